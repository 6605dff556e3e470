//! Spaces whose language changes: once turns come that another model reads better than the one
//! whose vectors the space has, the space moves to that model ([`crate::ModelSwitcher`]).

use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::ledger::Ledger;

use crate::Constructor;

/// Turns that came last, and tell which model reads a space.
pub(crate) const SAMPLE: usize = 50;

impl Constructor {
    /// Notes where a space is to move, if another model than the default reads `texts`, which came
    /// just now, and a fifth of the last turns or more. Nothing moves to the default model: the
    /// other one reads its language, too.
    pub(crate) async fn follow_language(
        &self,
        scope: &Scope,
        held: &HeldEmbeddings,
        texts: &[String],
    ) -> Result<(), Fault> {
        let read_by = self.embedder.space_for(texts).await?;
        let other = held.other.as_ref().map(|other| &other.space);
        let is_held = held.served.as_ref() == Some(&read_by) || other == Some(&read_by);
        if is_held || read_by == self.embedder.space().await? {
            return Ok(());
        }
        let mut latest = latest(&*self.feed, &*self.ledger, scope).await?;
        latest.extend_from_slice(texts);
        if self.embedder.space_for(&latest).await? == read_by {
            tracing::info!(%scope, to = %read_by, "the space moves to the model that reads its language");
            self.switches.follow_language(scope, &read_by).await?;
        }
        Ok(())
    }
}

/// Texts of the turns that came last.
pub(crate) async fn latest(
    feed: &dyn IndexFeed,
    ledger: &dyn Ledger,
    scope: &Scope,
) -> Result<Vec<String>, Fault> {
    let head = feed.head(scope).await?;
    let after = head.saturating_sub(SAMPLE as u64);
    let page = feed.changes_after(scope, after, SAMPLE as u32).await?;
    let stored = page.changes.iter().filter_map(|change| match change {
        Change::Stored(turn) => Some(turn.id),
        _ => None,
    });
    let turns = ledger.turns(scope, &stored.collect::<Vec<_>>()).await?;
    let texts = turns.iter();
    Ok(texts
        .map(|turn| turn.accepted.content.searchable_text())
        .collect())
}
