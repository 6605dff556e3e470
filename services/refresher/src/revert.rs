//! Undoing a change: what it wrote is as it was before, in a new version; nothing is lost by it, and it can be undone too.

use memfleet_domain::derivation::{Change, ChangeKind, Derivation, Status};
use memfleet_domain::ids::{ChangeId, SpaceId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{Applied, ChangeFilter, Recorded, Revision, Rewrite};

use crate::LocalRefresher;

impl LocalRefresher {
    pub(crate) async fn revert_change(
        &self,
        context: &Context,
        space: &SpaceId,
        id: ChangeId,
    ) -> Result<Recorded, Fault> {
        let scope = context.scope(space);
        let recorded = self.recorded(&scope, id).await?;
        if let Some(by) = recorded.reverted_by {
            // Asked twice, it is undone once.
            return self.recorded(&scope, by).await;
        }
        let now = self.clock.now();
        let reverting = ChangeId::of("reverted", &[id.as_bytes()]);
        let mut revisions = Vec::with_capacity(recorded.wrote.len());
        for written in &recorded.wrote {
            let mut derivation = self.undone(&scope, written).await?;
            (derivation.version, derivation.change) = (written.version + 1, reverting);
            derivation.known = TimeRange {
                start: Some(now),
                end: None,
            };
            // Words may have changed with it.
            let passage = match derivation.fact() {
                Some(fact) => {
                    let language = self.indexer.language(&scope).await?;
                    let passages = self
                        .indexer
                        .passages(&scope, vec![fact.text.clone()], language)
                        .await?;
                    passages.into_iter().next()
                }
                None => None,
            };
            revisions.push(Revision {
                derivation,
                passage,
            });
        }
        let change = Change {
            id: reverting,
            kind: ChangeKind::Reverted,
            at: now,
            reason: "a caller undid it".into(),
            conflict: recorded.change.conflict,
            reverts: Some(id),
        };
        let settled = recorded
            .change
            .conflict
            .map(|conflict| (conflict, Status::Dismissed));
        let rewrite = Rewrite { change, revisions };
        match self
            .make(&scope, rewrite, settled.into_iter().collect())
            .await?
        {
            Applied::Done(_) => self.recorded(&scope, reverting).await,
            Applied::Stale => Err(stands_on(id)),
        }
    }

    async fn recorded(&self, scope: &Scope, id: ChangeId) -> Result<Recorded, Fault> {
        let filter = ChangeFilter {
            ids: vec![id],
            ..ChangeFilter::default()
        };
        let page = self.knowledge.changes(scope, &filter, 1, None).await?;
        let gone = || Fault::not_found(format_args!("change {id}"));
        page.items.into_iter().next().ok_or_else(gone)
    }

    /// The version before; of a first one, that it never held.
    async fn undone(&self, scope: &Scope, written: &Derivation) -> Result<Derivation, Fault> {
        if written.known.end.is_some() {
            return Err(stands_on(written.change));
        }
        let mut versions = self.knowledge.versions(scope, written.id).await?;
        versions.retain(|version| version.version < written.version);
        match versions.pop() {
            Some(before) => Ok(before),
            None if written.version == 1 => Ok(written.clone().withdrawn()),
            None => Err(removed(written)),
        }
    }
}

/// What was before is not known any more, and is not that it never held.
fn removed(written: &Derivation) -> Fault {
    let message = format!(
        "the version of memory {} before this change is past `retention_superseded_days` and was removed: say how it is with `Update`",
        written.id
    );
    Fault::new(FaultKind::FailedPrecondition, "VERSION_REMOVED", message)
}

fn stands_on(id: ChangeId) -> Fault {
    let message =
        format!("a later change stands on change {id}: undo that one first (`History` lists it)");
    Fault::new(FaultKind::FailedPrecondition, "CHANGED_SINCE", message)
}
