//! Edits that came before what they replace. With several constructors the original may still be in the hands of another: then the
//! edit waits, as long as the queue holds anything of its space that was accepted before it.

use std::collections::{BTreeMap, HashSet};

use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_ports::store::Result;

use crate::Constructor;
use crate::task::Task;
use crate::worker::is_transient;

impl Constructor {
    /// Positions of the tasks that cannot be judged yet. A space that cannot be read is passed over: its commit meets the cause
    /// and counts the attempt.
    pub(crate) async fn early(&self, tasks: &[Task]) -> Result<HashSet<u64>> {
        let mut spaces: BTreeMap<&Scope, Vec<&Task>> = BTreeMap::new();
        for task in tasks {
            spaces.entry(&task.batch.scope).or_default().push(task);
        }
        let mut early = HashSet::new();
        for (scope, tasks) in spaces {
            let replaced = replaced(&tasks);
            if replaced.is_empty() {
                continue;
            }
            match self.early_in(scope, &tasks, &replaced).await {
                Ok(found) => early.extend(found),
                Err(error) if is_transient(&error) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(early)
    }

    async fn early_in(
        &self,
        scope: &Scope,
        tasks: &[&Task],
        replaced: &[TurnId],
    ) -> Result<Vec<u64>> {
        // The queue first: the ledger then knows all that had left it by that time.
        let Some((oldest, _)) = self.queue.waiting_span(scope).await? else {
            return Ok(Vec::new());
        };
        let known = self.ledger.known(scope, replaced).await?;
        let mut there: HashSet<TurnId> = known.stored;
        there.extend(known.forgotten);
        let mut early = Vec::new();
        for task in tasks {
            let own: HashSet<TurnId> = task.batch.turns.iter().map(|turn| turn.id).collect();
            let mut named = task.batch.turns.iter().filter_map(|turn| turn.replaces);
            let is_missing = named.any(|old| !there.contains(&old) && !own.contains(&old));
            if is_missing && oldest < task.acceptance {
                early.push(task.acceptance);
            } else {
                there.extend(own);
            }
        }
        Ok(early)
    }
}

/// Turns that the tasks replace.
fn replaced(tasks: &[&Task]) -> Vec<TurnId> {
    let named = tasks.iter().flat_map(|task| &task.batch.turns);
    named.filter_map(|turn| turn.replaces).collect()
}
