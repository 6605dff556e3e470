//! The narratives of a space while a round binds to them: what was decided a moment ago is there for the next decision.

use std::collections::HashMap;

use memfleet_agents::narratives::Stories;
use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;
use memfleet_prompts::stories::Story;

use super::{Rebinder, is_by_rules};
use crate::advised::Advised;
use crate::news::News;
use crate::stories::opening;

/// Stories that a model is shown, at most.
const MOST: usize = 30;

/// Fragments and narratives that hold.
pub(super) struct Board {
    fragments: Vec<Derivation>,
    narratives: HashMap<DerivationId, Derivation>,
    stories: Stories,
    /// The embedding space of the vectors in `stories`; absent where these may be of two.
    served: Option<EmbeddingSpace>,
}

impl Board {
    /// Turns that are in fragments.
    pub(super) fn turns(&self) -> usize {
        self.fragments.iter().map(|it| it.turns.len()).sum()
    }

    /// Whether a model bound anything yet.
    pub(super) fn is_begun(&self) -> bool {
        !self.fragments.iter().all(is_by_rules)
    }

    /// The first fragments, with so many turns together.
    pub(super) fn first(&self, turns: usize) -> Vec<Derivation> {
        let mut first = self.fragments.clone();
        first.sort_by_key(Derivation::begins);
        let mut before = 0;
        first.retain(|it| {
            let is_first = before < turns;
            before += it.turns.len();
            is_first
        });
        first
    }

    /// This fragment, while it is as the rules bound it.
    pub(super) fn by_rules(&self, id: DerivationId) -> Option<&Derivation> {
        let found = self.fragments.iter().find(|it| it.id == id);
        found.filter(|it| is_by_rules(it))
    }

    /// This narrative.
    pub(super) fn narrative(&self, id: DerivationId) -> Option<&Derivation> {
        self.narratives.get(&id)
    }

    /// Whether a narrative has other fragments than this one.
    fn has_others(&self, narrative: DerivationId, than: DerivationId) -> bool {
        let bound = self.fragments.iter().filter(|it| it.id != than);
        bound
            .filter_map(Derivation::fragment)
            .any(|it| it.narrative == narrative)
    }

    /// Takes what was decided.
    pub(super) fn take(&mut self, news: News, advised: &mut Advised) {
        for (derivation, _) in &news.written {
            match &derivation.body {
                Body::Narrative(_) => {
                    self.narratives.insert(derivation.id, derivation.clone());
                }
                _ => match self.fragments.iter_mut().find(|it| it.id == derivation.id) {
                    Some(before) => *before = derivation.clone(),
                    None => self.fragments.push(derivation.clone()),
                },
            }
        }
        for gone in &news.withdrawn {
            self.fragments.retain(|it| it.id != gone.id);
        }
        advised.news.push(news);
    }
}

impl Rebinder {
    /// The board of a space as it is now.
    pub(super) async fn board(&self, scope: &Scope) -> Result<Board, Fault> {
        let from = &self.consolidator;
        let all = |kind| from.of_kind(scope, kind, Question::default());
        let fragments = all(Kind::Fragment).await?;
        let narratives = all(Kind::Narrative).await?;
        let before = from.served(scope).await?;
        let stories = from.stories_of(scope, &fragments).await?;
        let after = from.served(scope).await?;
        Ok(Board {
            narratives: narratives.into_iter().map(|it| (it.id, it)).collect(),
            fragments,
            stories,
            served: before.filter(|before| after.as_ref() == Some(before)),
        })
    }

    /// The stories that a fragment may be of, those nearest to it: all where there are few. One that has nothing but this fragment is none.
    pub(super) async fn stories(
        &self,
        scope: &Scope,
        board: &Board,
        fragment: &Derivation,
    ) -> Result<(Vec<DerivationId>, Vec<Story>), Fault> {
        let indexed = self
            .consolidator
            .indexed(scope, &fragment.turns[..1])
            .await?;
        let served = self.consolidator.served(scope).await?;
        let is_same = served == board.served;
        let opening = indexed.get(&fragment.turns[0]).map(opening);
        let mut ids: Vec<DerivationId> = fragment
            .fragment()
            .map(|it| it.narrative)
            .into_iter()
            .collect();
        if let Some(opening) = opening.filter(|_| is_same) {
            ids.extend(board.stories.nearest(&opening, MOST));
        }
        let mut rest: Vec<&Derivation> = board.narratives.values().collect();
        rest.sort_by_key(|it| std::cmp::Reverse((it.begins(), it.id)));
        ids.extend(rest.iter().take(MOST).map(|it| it.id));
        let mut stories = Vec::with_capacity(MOST);
        let mut shown: Vec<DerivationId> = Vec::with_capacity(MOST);
        for id in ids {
            let told = board.narrative(id).and_then(Derivation::narrative);
            if let Some(told) = told
                && shown.len() < MOST
                && !shown.contains(&id)
                && board.has_others(id, fragment.id)
            {
                shown.push(id);
                stories.push(Story::from(told));
            }
        }
        Ok((shown, stories))
    }
}
