//! `memfleet model switch`: changes the embedding model of a node or fleet that runs.

use clap::Args;
use memfleet_ports::admin::{ModelChange, ModelChangeStatus};
use memfleet_ports::model_switch::{
    MIN_OVERLAP, SpaceComparison, SwitchGoal, SwitchOrder, SwitchProgress,
};
use serde_json::{Value, json};

use crate::cli::Handle;
use crate::cli::exit::{Error, Exit};
use crate::output::Output;

/// Which model, or what to do about the change under way.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags, of which one is given"
)]
pub struct SwitchArgs {
    /// The model to change to, which was pulled where texts are embedded
    #[arg(required_unless_present_any = ["status", "cut_over", "roll_back", "drop"])]
    name: Option<String>,
    /// Make its vectors and compare them, and leave searches as they are
    #[arg(long, requires = "name")]
    compare_only: bool,
    /// Change spaces too that have vectors of the multilingual model for their language
    #[arg(long, requires = "name", conflicts_with = "compare_only")]
    every_language: bool,
    /// Tell how far the change is
    #[arg(long, conflicts_with_all = ["name", "cut_over", "roll_back", "drop"])]
    status: bool,
    /// Have searches of each space use the new vectors once it has them, be the models alike or not
    #[arg(long, conflicts_with_all = ["name", "roll_back", "drop"])]
    cut_over: bool,
    /// Have searches use the vectors of before again
    #[arg(long, conflicts_with_all = ["name", "drop"])]
    roll_back: bool,
    /// Remove the vectors that searches do not use
    #[arg(long, conflicts_with = "name")]
    drop: bool,
}

impl SwitchArgs {
    fn change(self) -> Option<ModelChange> {
        match self.name {
            Some(name) if self.compare_only => Some(ModelChange::Compare(Some(name))),
            Some(name) if self.every_language => Some(ModelChange::ServeEverywhere(Some(name))),
            Some(name) => Some(ModelChange::Serve(Some(name))),
            None if self.cut_over => Some(ModelChange::Serve(None)),
            None if self.roll_back => Some(ModelChange::RollBack),
            None if self.drop => Some(ModelChange::Drop),
            None => None,
        }
    }
}

/// Runs the command.
pub async fn run(args: SwitchArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let status = handle
        .admin
        .switch_model(&handle.call(), args.change())
        .await?;
    output.answer(
        || status.as_ref().map_or(Value::Null, to_json),
        |_| match &status {
            Some(status) => shown(status),
            None => "no change of the model was ever asked for".to_owned(),
        },
    )?;
    Ok(Exit::Done)
}

fn shown(ModelChangeStatus { order, progress }: &ModelChangeStatus) -> String {
    let SwitchProgress {
        spaces,
        building,
        compared,
        serving,
        beside,
        turns,
        done,
        comparison,
    } = progress;
    let goal = goal(order);
    let mut lines = vec![
        format!("{}: {goal}", order.target.model),
        format!("{done} of {turns} turns have its vectors"),
        format!(
            "of {spaces} spaces {building} are being built, {compared} are ready, {serving} are served by it"
        ),
    ];
    if comparison.queries > 0 {
        let SpaceComparison {
            queries,
            overlap,
            correlation,
        } = comparison;
        lines.push(format!(
            "of {queries} sampled texts both models name {:.0} % of the ten nearest passages; rank correlation {correlation:.2}",
            overlap * 100.0
        ));
    }
    if *compared > 0 && order.goal == SwitchGoal::Serve && !order.forced {
        lines.push(format!(
            "spaces where they name less than {:.0} % alike wait: `memfleet model switch --cut-over` changes their searches too",
            MIN_OVERLAP * 100.0
        ));
    }
    if *beside > 0 && !order.drops {
        let then = match order.goal {
            SwitchGoal::Compare => ", which balanced searches use",
            SwitchGoal::Serve | SwitchGoal::RollBack => {
                "; `memfleet model switch --drop` removes those that searches do not use"
            }
        };
        lines.push(format!(
            "{beside} spaces have the vectors of two models{then}"
        ));
    }
    lines.join("\n")
}

fn goal(order: &SwitchOrder) -> &'static str {
    match (order.goal, order.drops) {
        (SwitchGoal::Compare, _) => "its vectors are made and compared",
        (SwitchGoal::Serve, false) => "searches change to it",
        (SwitchGoal::Serve, true) => "searches use it, and the vectors of before are removed",
        (SwitchGoal::RollBack, false) => "searches use the vectors of before",
        (SwitchGoal::RollBack, true) => {
            "searches use the vectors of before, and its own are removed some two minutes after the order"
        }
    }
}

fn to_json(ModelChangeStatus { order, progress }: &ModelChangeStatus) -> Value {
    json!({
        "target": order.target,
        "goal": order.goal,
        "drops": order.drops,
        "forced": order.forced,
        "every_language": order.every_language,
        "spaces": progress.spaces,
        "building": progress.building,
        "compared": progress.compared,
        "serving": progress.serving,
        "beside": progress.beside,
        "turns": progress.turns,
        "turns_done": progress.done,
        "queries": progress.comparison.queries,
        "overlap": progress.comparison.overlap,
        "correlation": progress.comparison.correlation,
    })
}
