//! Rounds of stages that ask a language model: how far they may go, and what a caller undid.

use std::collections::HashSet;

use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes, IndexFeed};
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Stage};

/// Changes of a space behind `reached`, `limit` of them at most, as far as another stage has worked
/// through them. None where that stage stands at `reached` or before it.
pub async fn worked_through(
    feed: &dyn IndexFeed,
    knowledge: &dyn Knowledge,
    scope: &Scope,
    by: Stage,
    reached: u64,
    mut limit: u32,
) -> Result<Changes, Fault> {
    let position = knowledge.position(scope, by).await?;
    let worked = position.map_or(0, |position| position.reached);
    while worked > reached && limit > 0 {
        let changes = feed.changes_after(scope, reached, limit).await?;
        if changes.reached <= worked {
            return Ok(changes);
        }
        // Changes do not say where they are in the sequence: fewer of them end earlier.
        limit /= 2;
    }
    Ok(Changes {
        changes: Vec::new(),
        reached,
        more: false,
    })
}

/// How far the changes of a round, which begins behind `reached`, go before the first of these.
pub async fn before(
    feed: &dyn IndexFeed,
    scope: &Scope,
    reached: u64,
    changes: &Changes,
    is_one: impl Fn(&Change) -> bool,
) -> Result<u64, Fault> {
    let first = match changes.changes.iter().position(is_one) {
        None => return Ok(changes.reached),
        Some(0) => return Ok(reached),
        Some(first) => first,
    };
    let before = feed.changes_after(scope, reached, first as u32).await?;
    // Other changes than a moment ago: the one that was looked for may be among them.
    let is_same = before.changes[..] == changes.changes[..first];
    Ok(if is_same { before.reached } else { reached })
}

/// Those of these whose current version undid a later one.
pub async fn reverted(
    knowledge: &dyn Knowledge,
    scope: &Scope,
    all: &[Derivation],
) -> Result<HashSet<DerivationId>, Fault> {
    let later = all.iter().filter(|derivation| derivation.version > 1);
    let mut ids: Vec<ChangeId> = later.map(|derivation| derivation.change).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let most = ids.len() as u32;
    let filter = ChangeFilter {
        ids,
        ..ChangeFilter::default()
    };
    let changes = knowledge.changes(scope, &filter, most, None).await?;
    let reverting = changes.items.iter().map(|recorded| &recorded.change);
    let reverting: HashSet<ChangeId> = reverting
        .filter(|change| change.kind == ChangeKind::Reverted)
        .map(|change| change.id)
        .collect();
    let reverted = all.iter().filter(|it| reverting.contains(&it.change));
    Ok(reverted.map(|it| it.id).collect())
}
