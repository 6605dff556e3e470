//! From facts, and what callers say of names, to the semantic graph (Amory section 3.2, semanticization). The graph follows the facts of the store of record: how far it came
//! is noted there, and only after it was written. One that was away is caught up with by looking again. A space that was forgotten as a whole is
//! cleared, before anything that is written anew under its name.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::relations::{relates, told};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Change;
use memfleet_ports::graph::{Graph, GraphWrite};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_workers::{Agent, Outcome};
use tracing::instrument;

use crate::LocalConsolidator;

/// Changes that are looked at together.
const ROUND: u32 = 256;

/// The stage that relates.
pub struct Relater {
    /// The facts.
    pub consolidator: Arc<LocalConsolidator>,
    /// What follows them.
    pub graph: Arc<dyn Graph>,
}

#[async_trait]
impl Agent for Relater {
    #[instrument(name = "relate", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let from = &self.consolidator;
        if from.knowledge.is_left_over(scope).await? {
            self.graph.clear(scope).await?;
            from.knowledge.cleared(scope).await?;
            // What was written since under the same name comes next.
            return Ok(Outcome::More);
        }
        let changes = from.feed.changes_after(scope, reached, ROUND).await?;
        let mut write = GraphWrite::default();
        let mut ids = Vec::new();
        for change in &changes.changes {
            match change {
                Change::Forgotten(turn) => write.forgotten.push(*turn),
                Change::Derived(derived) if relates(derived.kind) => ids.push(derived.id),
                Change::Stored(_) | Change::Derived(_) => {}
                Change::Withdrawn(id) => write.replaced.push(*id),
            }
        }
        (write.entities, write.triplets) = told(&self.derivations(scope, &ids).await?);
        write.replaced.extend(ids);
        let triplets = write.triplets.len() as u64;
        if !write.is_empty() {
            self.graph.write(scope, write).await?;
        }
        let round = (reached, changes.reached);
        let noted = from.write(scope, Stage::Relate, Vec::new(), round).await?;
        if noted.is_some() {
            metrics::counter!("memfleet_triplets_written_total").increment(triplets);
        }
        Ok(Outcome::more_if(changes.more || noted.is_none()))
    }
}

impl Relater {
    /// Those of these that hold at some instant.
    async fn derivations(
        &self,
        scope: &Scope,
        ids: &[DerivationId],
    ) -> Result<Vec<Derivation>, Fault> {
        // No condition on ids would be all of them.
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids: ids.to_vec(),
            ..Question::default()
        };
        let knowledge = &self.consolidator.knowledge;
        Ok(knowledge.all_derivations(scope, &question).await?)
    }
}
