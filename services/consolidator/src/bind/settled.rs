//! What of a session stays as somebody else decided: what a model bound or left out, and what a caller undid. Rules bind what is left.

use std::collections::HashSet;

use memfleet_agents::narratives::BINDER;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::TurnId;
use memfleet_domain::{Fault, Scope};
use memfleet_workers::reverted;

use crate::LocalConsolidator;

/// The fragments of some turns.
#[derive(Default)]
pub(super) struct Sorted {
    /// The turns that are decided about.
    pub(super) settled: HashSet<TurnId>,
    /// The fragments that rules may change, withdrawn or not.
    pub(super) open: Vec<Derivation>,
}

impl LocalConsolidator {
    /// Tells what is settled from what is not. What was decided together with a turn that is not in `there` any more, as it was replaced, is
    /// decided anew.
    pub(super) async fn sorted(
        &self,
        scope: &Scope,
        fragments: Vec<Derivation>,
        there: &HashSet<TurnId>,
    ) -> Result<Sorted, Fault> {
        let stands = |it: &Derivation| it.turns.iter().all(|turn| there.contains(turn));
        let undone = reverted(&*self.knowledge, scope, &fragments).await?;
        let mut sorted = Sorted::default();
        for fragment in fragments {
            let is_decided = undone.contains(&fragment.id) || !is_by_rules(&fragment);
            if !is_decided || !stands(&fragment) {
                sorted.open.push(fragment);
                continue;
            }
            let decided = self.decided(scope, fragment).await?;
            let decided = decided.iter().filter(|it| stands(it));
            sorted.settled.extend(decided.flat_map(|it| &it.turns));
        }
        Ok(sorted)
    }

    /// A fragment and the versions of it that say what was decided about: one has turns that the next one lost, as a model found them to be
    /// filler, or a caller undid that they were bound.
    async fn decided(&self, scope: &Scope, fragment: Derivation) -> Result<Vec<Derivation>, Fault> {
        if fragment.version == 1 {
            return Ok(vec![fragment]);
        }
        let versions = self.knowledge.versions(scope, fragment.id).await?;
        let current = fragment.version;
        let mut decided = vec![fragment];
        for version in versions.into_iter().rev() {
            if version.version < current {
                let is_first = is_by_rules(&version);
                decided.push(version);
                if is_first {
                    break;
                }
            }
        }
        Ok(decided)
    }
}

fn is_by_rules(derivation: &Derivation) -> bool {
    let fragment = derivation.fragment();
    fragment.is_some_and(|it| it.binder == BINDER)
}
