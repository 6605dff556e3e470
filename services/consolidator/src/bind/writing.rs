//! What a part of a session is bound to, as one change.

use std::collections::{HashMap, HashSet};

use memfleet_agents::narratives::Stories;
use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;

use super::beginning::Story;
use super::draft::{Draft, drafts};
use super::part::Part;
use crate::LocalConsolidator;
use crate::news::News;

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
            if let Some(owner) = draft.begins.take() {
                let version = before.get(&draft.fragment.narrative).copied();
                let story = Story {
                    id: draft.fragment.narrative,
                    headline: draft.fragment.headline.clone(),
                    owner,
                    opening,
                };
                let cast = self.cast(scope, &draft.turns).await?;
                story.begin(version, &cast, begun, &mut news);
            }
            if let Some(fragment) = known.get(&id).and_then(|known| known.fragment()) {
                draft.fragment.subplot = fragment.subplot;
                // It is found by it.
                draft.fragment.headline.clone_from(&fragment.headline);
            }
            let is_known = known.get(&id).is_some_and(|known| {
                known.turns == draft.turns && known.fragment() == Some(&draft.fragment)
            });
            if !is_known {
                let version = known.get(&id).map(|known| known.version);
                let version = version.or_else(|| part.withdrawn.get(&id).copied());
                let headline = draft.fragment.headline.clone();
                let body = Body::Fragment(Box::new(draft.fragment));
                news.write(id, version, body, draft.turns, begun, headline);
            }
        }
        Ok(news)
    }

    /// What becomes of narratives to which nothing is bound any more, once all this is written.
    pub(crate) async fn emptied(&self, scope: &Scope, news: &[News]) -> Result<News, Fault> {
        let withdrawn = news.iter().flat_map(|news| &news.withdrawn);
        let withdrawn = withdrawn.filter_map(|it| Some((it.id, it.fragment()?.narrative)));
        let moved = news.iter().flat_map(|news| news.moved.iter().copied());
        let (ids, mut narratives): (HashSet<DerivationId>, HashSet<DerivationId>) =
            withdrawn.chain(moved).unzip();
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
    pub(crate) async fn versions(
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
}
