//! Changes of the embedding model.

use memfleet_ports::admin::{ModelChange, ModelChangeStatus};
use memfleet_ports::model_switch::{
    OrderGiver, SpaceComparison, SwitchGoal, SwitchOrder, SwitchProgress,
};

use super::{Checked, Fields};
use crate::proto;
use crate::proto::SwitchAction;

/// Bytes of a model's name.
const MODEL_NAME: usize = 256;

impl From<Option<ModelChange>> for proto::SwitchModelRequest {
    fn from(change: Option<ModelChange>) -> Self {
        let (action, model) = match change {
            None => (SwitchAction::Unspecified, None),
            Some(ModelChange::Compare(model)) => (SwitchAction::Compare, model),
            Some(ModelChange::Serve(model)) => (SwitchAction::Serve, model),
            Some(ModelChange::ServeEverywhere(model)) => (SwitchAction::ServeEverywhere, model),
            Some(ModelChange::RollBack) => (SwitchAction::RollBack, None),
            Some(ModelChange::Drop) => (SwitchAction::Drop, None),
        };
        Self {
            action: action.into(),
            model: model.unwrap_or_default(),
        }
    }
}

impl Checked for proto::SwitchModelRequest {
    type Value = Option<ModelChange>;

    fn check(self, fields: &mut Fields) -> Option<Option<ModelChange>> {
        let model = fields.text("model", self.model, MODEL_NAME)?;
        let model = Some(model).filter(|model| !model.is_empty());
        match SwitchAction::try_from(self.action) {
            Ok(SwitchAction::Unspecified) => Some(None),
            Ok(SwitchAction::Compare) => Some(Some(ModelChange::Compare(model))),
            Ok(SwitchAction::Serve) => Some(Some(ModelChange::Serve(model))),
            Ok(SwitchAction::ServeEverywhere) => Some(Some(ModelChange::ServeEverywhere(model))),
            Ok(SwitchAction::RollBack) => Some(Some(ModelChange::RollBack)),
            Ok(SwitchAction::Drop) => Some(Some(ModelChange::Drop)),
            Err(_) => fields.refuse("action", "is not known; see the enum SwitchAction"),
        }
    }
}

impl From<Option<ModelChangeStatus>> for proto::SwitchModelResponse {
    fn from(status: Option<ModelChangeStatus>) -> Self {
        let Some(ModelChangeStatus { order, progress }) = status else {
            return Self::default();
        };
        let goal = match order.goal {
            SwitchGoal::Compare => SwitchAction::Compare,
            SwitchGoal::Serve if order.every_language => SwitchAction::ServeEverywhere,
            SwitchGoal::Serve => SwitchAction::Serve,
            SwitchGoal::RollBack => SwitchAction::RollBack,
        };
        Self {
            target: Some(order.target.into()),
            goal: goal.into(),
            drops: order.drops,
            forced: order.forced,
            spaces: progress.spaces,
            building: progress.building,
            compared: progress.compared,
            serving: progress.serving,
            beside: progress.beside,
            turns: progress.turns,
            turns_done: progress.done,
            queries: progress.comparison.queries,
            overlap: progress.comparison.overlap,
            correlation: progress.comparison.correlation,
        }
    }
}

impl Checked for proto::SwitchModelResponse {
    type Value = Option<ModelChangeStatus>;

    fn check(self, fields: &mut Fields) -> Option<Option<ModelChangeStatus>> {
        let Some(target) = self.target else {
            return Some(None);
        };
        let target = target.check(fields)?;
        let goal = match SwitchAction::try_from(self.goal) {
            Ok(SwitchAction::Compare) => SwitchGoal::Compare,
            Ok(SwitchAction::Serve | SwitchAction::ServeEverywhere) => SwitchGoal::Serve,
            Ok(SwitchAction::RollBack) => SwitchGoal::RollBack,
            _ => return fields.refuse("goal", "is not known"),
        };
        Some(Some(ModelChangeStatus {
            order: SwitchOrder {
                target,
                goal,
                drops: self.drops,
                forced: self.forced,
                every_language: self.goal == SwitchAction::ServeEverywhere as i32,
                giver: OrderGiver::Operator,
            },
            progress: SwitchProgress {
                spaces: self.spaces,
                building: self.building,
                compared: self.compared,
                serving: self.serving,
                beside: self.beside,
                turns: self.turns,
                done: self.turns_done,
                comparison: SpaceComparison {
                    queries: self.queries,
                    overlap: self.overlap,
                    correlation: self.correlation,
                },
            },
        }))
    }
}
