//! A caller's word on names: which are one, and which are not. The refresher notes it, and the answer waits until the graph has followed.

use memfleet_domain::graph::Identity;
use memfleet_domain::ids::{ChangeId, EntityId, SpaceId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge::Stage;
use memfleet_ports::knowledge_api::{MergeRequest, Merged, Split, SplitRequest};
use memfleet_ports::refresher::Naming;

use super::{entity, missing};
use crate::Gateway;

/// Triplets among which the turn that names an entity is chosen.
const NAMING_TURNS: u32 = 100;

impl Gateway {
    pub(crate) async fn merged(
        &self,
        context: &Context,
        request: &MergeRequest,
    ) -> Result<Merged, Fault> {
        let graph = self.graph()?;
        let scope = self.existing(context, &request.space).await?;
        let one = entity(&*graph, &scope, &request.entity).await?;
        let other = entity(&*graph, &scope, &request.other).await?;
        if one.id == other.id {
            return Err(Fault::invalid(
                "other",
                "is the same name as `entity`: say which other name it has",
            ));
        }
        let names = self.names(&*graph, &scope, one.id).await?;
        if names.all(one.id).contains(&other.id) {
            return Ok(Merged {
                entity: names.resolved(&*graph, &scope, one.id).await?,
                change: None,
            });
        }
        let other = self
            .names(&*graph, &scope, other.id)
            .await?
            .resolved(&*graph, &scope, other.id)
            .await?
            .entity;
        let entity = names.resolved(&*graph, &scope, one.id).await?.entity;
        let mut turns = Vec::new();
        for name in [&entity, &other] {
            let turn = self.naming_turn(&*graph, &scope, name.id).await?;
            turns.extend((!turns.contains(&turn)).then_some(turn));
        }
        let naming = Naming {
            identity: Identity {
                entity,
                other,
                same: true,
            },
            turns,
        };
        let change = self.say(context, &scope, "merged", vec![naming]).await?;
        let names = self.names(&*graph, &scope, one.id).await?;
        Ok(Merged {
            entity: names.resolved(&*graph, &scope, one.id).await?,
            change: Some(change),
        })
    }

    pub(crate) async fn parted(
        &self,
        context: &Context,
        request: &SplitRequest,
    ) -> Result<Split, Fault> {
        let graph = self.graph()?;
        let scope = self.existing(context, &request.space).await?;
        let entity = entity(&*graph, &scope, &request.entity).await?;
        let names = self.names(&*graph, &scope, entity.id).await?;
        let joined = names.joining(entity.id);
        let ids: Vec<EntityId> = joined.iter().map(|(other, _)| *other).collect();
        let parted = graph.named(&scope, &ids).await?;
        let mut namings: Vec<Naming> = Vec::new();
        for other in &parted {
            // What joins them names both.
            let because = joined.iter().find(|(id, _)| *id == other.id);
            let turns = because.map(|(_, it)| it.turns.clone()).unwrap_or_default();
            namings.push(Naming {
                identity: Identity {
                    entity: other.clone(),
                    other: entity.clone(),
                    same: false,
                },
                turns,
            });
        }
        let change = match namings.is_empty() {
            true => None,
            false => Some(self.say(context, &scope, "split", namings).await?),
        };
        Ok(Split {
            entity,
            parted,
            change,
        })
    }

    /// Has it noted, and returns when the graph knows. `done` is all that the log has of it: an
    /// entity's id tells its name to who guesses it.
    async fn say(
        &self,
        context: &Context,
        scope: &Scope,
        done: &str,
        namings: Vec<Naming>,
    ) -> Result<ChangeId, Fault> {
        let space: &SpaceId = &scope.space;
        let detail = [("names", done.to_owned())];
        self.note_in_space(context, AuditKind::CorrectionBegun, space, detail)
            .await?;
        let change = self.refresher.identify(context, space, &namings).await?;
        let what = format!("the graph to follow change {change}, which is noted");
        let followed = self.worked_through(scope, Stage::Relate);
        context.within(&what, followed).await?;
        Ok(change)
    }

    /// The turn that names an entity and was told of last.
    async fn naming_turn(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        name: EntityId,
    ) -> Result<TurnId, Fault> {
        let ends = [name];
        let query = TripletQuery::touching(&ends);
        let page = graph.triplets(scope, query, NAMING_TURNS, None).await?;
        let stated = self.still_stated(scope, page.items).await?;
        let last = stated.iter().max_by_key(|it| (it.valid.start, it.fact));
        let turn = last.and_then(|it| it.turns.first());
        turn.copied().ok_or_else(|| missing(&name.to_string()))
    }
}
