//! What a part of a session is bound to, as one change.

use std::collections::{HashMap, HashSet};

use memfleet_agents::narratives::{BINDER, Stories};
use memfleet_domain::derivation::{Body, Change, ChangeKind, Derivation, Kind, Origin};
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::narrative::Narrative;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::{Question, Revision, Rewrite};

use super::draft::{Draft, drafts};
use super::part::Part;
use crate::LocalConsolidator;

/// What becomes of a part.
#[derive(Default)]
pub(super) struct News {
    /// New versions, each with its headline, which it is found by.
    written: Vec<(Derivation, String)>,
    /// Those that hold no more.
    withdrawn: Vec<Derivation>,
    /// Narratives to which something is bound.
    kept: HashSet<DerivationId>,
}

impl LocalConsolidator {
    /// What brings the fragments of a session up to date.
    pub(super) async fn session(
        &self,
        scope: &Scope,
        touched: HashSet<TurnId>,
        stories: &mut Stories,
    ) -> Result<News, Fault> {
        let part = self.part(scope, touched).await?;
        let drafts = drafts(&part, stories);
        self.news(scope, &part, drafts).await
    }

    async fn news(&self, scope: &Scope, part: &Part, drafts: Vec<Draft>) -> Result<News, Fault> {
        let known: HashMap<DerivationId, &Derivation> =
            part.fragments.iter().map(|it| (it.id, it)).collect();
        let stays: HashSet<DerivationId> = drafts.iter().map(Draft::id).collect();
        let gone = part.fragments.iter().filter(|it| !stays.contains(&it.id));
        let mut news = News {
            withdrawn: gone.cloned().collect(),
            kept: drafts.iter().map(|it| it.fragment.narrative).collect(),
            ..News::default()
        };
        let begun = drafts.iter().filter(|it| it.begins.is_some());
        let before = self.versions(scope, begun.map(|it| it.fragment.narrative).collect());
        let before = before.await?;
        for mut draft in drafts {
            let id = draft.id();
            let (opening, begun) = (draft.turns[0], draft.begun);
            if let Some(narrative) = draft.begins.take() {
                let version = before.get(&draft.fragment.narrative).copied();
                news.begin(draft.fragment.narrative, version, narrative, opening, begun);
            }
            if let Some(fragment) = known.get(&id).and_then(|known| known.fragment()) {
                draft.fragment.subplot = fragment.subplot;
            }
            let is_known = known.get(&id).is_some_and(|known| {
                known.turns == draft.turns && known.fragment() == Some(&draft.fragment)
            });
            if !is_known {
                let version = known.get(&id).map(|known| known.version);
                let version = version.or_else(|| part.withdrawn.get(&id).copied());
                let headline = draft.fragment.headline.clone();
                let body = Body::Fragment(Box::new(draft.fragment));
                let derivation = derivation(id, version, body, draft.turns, begun);
                news.written.push((derivation, headline));
            }
        }
        Ok(news)
    }

    /// What becomes of narratives to which nothing is bound any more, once all this is written.
    pub(super) async fn emptied(&self, scope: &Scope, news: &[News]) -> Result<News, Fault> {
        let gone = || news.iter().flat_map(|news| &news.withdrawn);
        let ids: HashSet<DerivationId> = gone().map(|it| it.id).collect();
        let narratives = gone().filter_map(Derivation::fragment);
        let mut narratives: HashSet<DerivationId> = narratives.map(|it| it.narrative).collect();
        narratives.retain(|narrative| !news.iter().any(|news| news.kept.contains(narrative)));
        let mut emptied = Vec::new();
        for narrative in narratives {
            let question = Question {
                narrative: Some(narrative),
                ..Question::default()
            };
            let bound = self.knowledge.all_derivations(scope, &question).await?;
            if bound.iter().all(|fragment| ids.contains(&fragment.id)) {
                emptied.push(narrative);
            }
        }
        if emptied.is_empty() {
            return Ok(News::default());
        }
        let question = Question {
            ids: emptied,
            ..Question::default()
        };
        Ok(News {
            withdrawn: self.of_kind(scope, Kind::Narrative, question).await?,
            ..News::default()
        })
    }

    /// The versions that these derivations are at, withdrawn or not; nothing of those that were never there.
    pub(super) async fn versions(
        &self,
        scope: &Scope,
        ids: Vec<DerivationId>,
    ) -> Result<HashMap<DerivationId, u32>, Fault> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let question = Question {
            ids,
            withdrawn: true,
            ..Question::default()
        };
        let there = self.knowledge.all_derivations(scope, &question).await?;
        Ok(there.iter().map(|it| (it.id, it.version)).collect())
    }

    pub(super) async fn rewrite(
        &self,
        scope: &Scope,
        News {
            written, withdrawn, ..
        }: News,
        reason: &str,
    ) -> Result<Option<Rewrite>, Fault> {
        if written.is_empty() && withdrawn.is_empty() {
            return Ok(None);
        }
        let now = self.clock.now();
        let all = written.iter().map(|(it, _)| it).chain(&withdrawn);
        let parts = all.map(|it| [&it.id.as_bytes()[..], &it.version.to_be_bytes()].concat());
        let parts: Vec<Vec<u8>> = parts.collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let change = Change {
            id: ChangeId::of("bound", &parts),
            kind: ChangeKind::Derived,
            at: now,
            reason: reason.to_owned(),
            conflict: None,
            reverts: None,
        };
        // What changes is found by what it was found by: its opening turn is the same.
        let new = written
            .iter()
            .filter(|(derivation, _)| derivation.version == 1);
        let headlines = new.map(|(_, headline)| headline.clone()).collect();
        let language = self.indexer.language(scope).await?;
        let passages = self.indexer.passages(headlines, language).await?;
        let mut passages = passages.into_iter();
        let known = since(Some(now));
        let mut revisions: Vec<Revision> = Vec::with_capacity(written.len() + withdrawn.len());
        for (derivation, _) in written {
            let passage = if derivation.version == 1 {
                passages.next()
            } else {
                None
            };
            let derivation = Derivation {
                known,
                change: change.id,
                ..derivation
            };
            revisions.push(Revision {
                derivation,
                passage,
            });
        }
        revisions.extend(withdrawn.iter().map(|gone| Revision {
            derivation: Derivation {
                known,
                ..gone.next(change.id).withdrawn()
            },
            passage: None,
        }));
        Ok(Some(Rewrite { change, revisions }))
    }
}

impl News {
    pub(super) fn withdraws_nothing(&self) -> bool {
        self.withdrawn.is_empty()
    }

    /// The same fragment, of another story.
    pub(super) fn bind_anew(&mut self, orphan: Derivation, narrative: DerivationId) {
        if let Body::Fragment(mut fragment) = orphan.body {
            fragment.narrative = narrative;
            fragment.subplot = None;
            let headline = fragment.headline.clone();
            let (id, begun) = (orphan.id, orphan.valid.start);
            let body = Body::Fragment(fragment);
            let derivation = derivation(id, Some(orphan.version), body, orphan.turns, begun);
            self.written.push((derivation, headline));
        }
    }

    /// A story that begins.
    pub(super) fn begin(
        &mut self,
        id: DerivationId,
        version: Option<u32>,
        narrative: Narrative,
        opening: TurnId,
        begun: Option<Timestamp>,
    ) {
        let headline = narrative.headline.clone();
        let body = Body::Narrative(Box::new(narrative));
        let derivation = derivation(id, version, body, vec![opening], begun);
        self.written.push((derivation, headline));
    }
}

/// The version after this one; when and by which change it is known is filled in by [`LocalConsolidator::rewrite`].
fn derivation(
    id: DerivationId,
    before: Option<u32>,
    body: Body,
    turns: Vec<TurnId>,
    begun: Option<Timestamp>,
) -> Derivation {
    Derivation {
        id,
        version: before.unwrap_or(0) + 1,
        body,
        turns,
        valid: since(begun),
        known: TimeRange::default(),
        origin: Origin::Extracted(BINDER.to_owned()),
        change: ChangeId::of("bound", &[]),
        succeeded_by: None,
    }
}

fn since(start: Option<Timestamp>) -> TimeRange {
    TimeRange { start, end: None }
}
