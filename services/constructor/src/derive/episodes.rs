//! From stored turns to episodes (AMA section 3.1, trigger T): each session is cut into runs, and each run has a title, a summary and
//! a head that it is found by. A session that goes on changes its last episodes only, by new versions; a caller's correction stays.

mod draft;
mod retell;
mod stretch;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Body, ChangeKind, Derivation, Origin};
use memfleet_domain::ids::{ChangeId, DerivationId, SessionId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::{Progress, Revision, Rewrite, Stage};
use memfleet_ports::ledger::Passage;
use memfleet_workers::{Agent, Outcome, reverted};
use tracing::instrument;

pub use self::retell::Reteller;

use self::draft::Drafted;
use super::{Deriver, change};

/// Changes that are looked at together.
const ROUND: u32 = 256;

/// Follows every space and keeps its episodes.
#[derive(Clone)]
pub struct Summariser(pub Arc<Deriver>);

#[async_trait]
impl Agent for Summariser {
    #[instrument(name = "episodes", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.0;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let mut sessions: BTreeMap<SessionId, Vec<Turn>> = BTreeMap::new();
        for turn in deriver.changed(scope, &changes).await? {
            let session = turn.accepted.session.clone();
            sessions.entry(session).or_default().push(turn);
        }
        let mut rewrites = Vec::new();
        for changed in sessions.into_values() {
            rewrites.extend(self.session(scope, changed).await?);
        }
        let progress = Progress {
            stage: Stage::Episodes,
            from: reached,
            to: changes.reached,
        };
        let Some(written) = deriver.write(scope, rewrites, progress).await? else {
            return Ok(Outcome::More);
        };
        metrics::counter!("memfleet_episodes_written_total").increment(written as u64);
        Ok(Outcome::more_if(changes.more || written > 0))
    }
}

impl Summariser {
    /// The change that brings the episodes of a session up to date, where they are not.
    async fn session(&self, scope: &Scope, changed: Vec<Turn>) -> Result<Option<Rewrite>, Fault> {
        let stretch = self.stretch(scope, changed).await?;
        let drafted = self.drafted(scope, &stretch.segments).await?;
        let known: HashMap<DerivationId, &Derivation> = stretch
            .known
            .iter()
            .map(|episode| (episode.id, episode))
            .collect();
        let undone = self.0.undone(scope, &stretch.known).await?;
        let is_undone = |drafted: &Drafted| {
            let mut undone = undone.iter();
            undone.any(|undone| undone.id == drafted.id() && undone.turns == drafted.turns)
        };
        let is_news = |drafted: &Drafted| {
            let known = known.get(&drafted.id());
            known.is_none_or(|known| is_outdated(known, drafted) && !is_undone(drafted))
        };
        let drafted = drafted.into_iter().map(|drafted| {
            let before = known.get(&drafted.id()).copied();
            drafted.in_words_of(before)
        });
        let (news, rest): (Vec<_>, Vec<_>) = drafted.partition(is_news);
        let stays = |id| news.iter().chain(&rest).any(|drafted| drafted.id() == id);
        let gone: Vec<_> = stretch
            .replaceable()
            .filter(|episode| !stays(episode.id))
            .collect();
        self.rewrite(scope, news, &known, &gone).await
    }

    async fn rewrite(
        &self,
        scope: &Scope,
        news: Vec<Drafted>,
        known: &HashMap<DerivationId, &Derivation>,
        gone: &[&Derivation],
    ) -> Result<Option<Rewrite>, Fault> {
        if news.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        let version = |id: &DerivationId| known.get(id).map_or(0, |known| known.version);
        let ids = news.iter().map(Drafted::id);
        let ids = ids.chain(gone.iter().map(|episode| episode.id));
        let parts: Vec<Vec<u8>> = ids
            .map(|id| [&id.as_bytes()[..], &version(&id).to_be_bytes()].concat())
            .collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let id = ChangeId::of("episodes", &parts);
        let now = self.0.clock.now();
        let mut passages = self.passages(scope, &news, known).await?;
        let written = news.into_iter().map(|drafted| {
            let passage = passages.remove(&drafted.id());
            let before = known.get(&drafted.id()).copied();
            Revision {
                derivation: next(before, drafted, id, now),
                passage,
            }
        });
        let mut revisions: Vec<Revision> = written.collect();
        revisions.extend(gone.iter().map(|episode| Revision {
            derivation: Derivation {
                known: since(now),
                ..episode.next(id).withdrawn()
            },
            passage: None,
        }));
        Ok(Some(Rewrite {
            revisions,
            change: change(id, ChangeKind::Derived, now, "a session went on"),
        }))
    }

    /// What those episodes are found by that were never there: the head of the others is that of the same turn as before.
    async fn passages(
        &self,
        scope: &Scope,
        news: &[Drafted],
        known: &HashMap<DerivationId, &Derivation>,
    ) -> Result<HashMap<DerivationId, Passage>, Fault> {
        let indexer = &self.0.indexer;
        let new = || {
            news.iter()
                .filter(|drafted| !known.contains_key(&drafted.id()))
        };
        let heads = new().map(|drafted| drafted.head.clone()).collect();
        let language = indexer.language(scope).await?;
        let passages = indexer.passages(scope, heads, language).await?;
        Ok(new().map(Drafted::id).zip(passages).collect())
    }
}

impl Deriver {
    /// The versions that a caller undid, of those episodes that nobody wrote since. Their turns being the same, they would only come back.
    pub(super) async fn undone(
        &self,
        scope: &Scope,
        episodes: &[Derivation],
    ) -> Result<Vec<Derivation>, Fault> {
        let mut undone = Vec::new();
        let reverted = reverted(&*self.knowledge, scope, episodes).await?;
        for episode in episodes.iter().filter(|it| reverted.contains(&it.id)) {
            let versions = self.knowledge.versions(scope, episode.id).await?;
            let before = versions
                .into_iter()
                .find(|before| before.version + 1 == episode.version);
            // What retention removed had the turns of what was left, as far as anybody knows.
            undone.push(before.unwrap_or_else(|| episode.clone()));
        }
        Ok(undone)
    }
}

/// Whether an episode says something else than what is cut now. What a caller corrected is never outdated.
fn is_outdated(known: &Derivation, drafted: &Drafted) -> bool {
    let is_same = known.turns == drafted.turns && known.episode() == Some(&drafted.episode);
    known.origin != Origin::Corrected && (known.is_withdrawn() || !is_same)
}

fn next(
    before: Option<&Derivation>,
    drafted: Drafted,
    change: ChangeId,
    now: Timestamp,
) -> Derivation {
    Derivation {
        id: drafted.id(),
        version: before.map_or(0, |before| before.version) + 1,
        valid: since(drafted.begun),
        known: since(now),
        origin: Origin::Extracted(drafted.episode.extractor.clone()),
        change,
        succeeded_by: None,
        turns: drafted.turns,
        body: Body::Episode(Box::new(drafted.episode)),
    }
}

fn since(start: Timestamp) -> TimeRange {
    TimeRange {
        start: Some(start),
        end: None,
    }
}
