//! The stories of a space as binding needs them, read once and kept while nobody else writes there.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use memfleet_agents::narratives::{Opening, REMEMBERED, Stories, Vector};
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes, IndexedTurn};
use memfleet_ports::knowledge::Question;

use crate::LocalConsolidator;

/// Spaces that are kept; some 1 MB each where there are many fragments.
const KEPT: usize = 16;
/// Turns whose vectors are read together.
const TOGETHER: usize = 256;

/// The stories of some spaces, those that were worked on last at the end.
#[derive(Default)]
pub struct Shelf(Mutex<VecDeque<Kept>>);

/// How far binding is in a space, and the embedding space of the vectors it compares. A change of
/// the embedding model does not move the change sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BindingState {
    pub(crate) reached: u64,
    pub(crate) served: Option<EmbeddingSpace>,
}

/// The stories of a space as of a state of its binding.
struct Kept {
    scope: Scope,
    state: BindingState,
    stories: Stories,
}

impl Shelf {
    /// Stories of a space, if they are of this state. They are taken: who writes puts them back.
    pub(crate) fn take(&self, scope: &Scope, state: &BindingState) -> Option<Stories> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|kept| kept.scope == *scope)?;
        let kept = all.remove(at)?;
        (kept.state == *state).then_some(kept.stories)
    }

    pub(crate) fn put(&self, scope: &Scope, state: BindingState, stories: Stories) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|kept| kept.scope != *scope);
        if all.len() >= KEPT {
            all.pop_front();
        }
        all.push_back(Kept {
            scope: scope.clone(),
            state,
            stories,
        });
    }
}

impl LocalConsolidator {
    /// The stories of a space as they were kept in this state of its binding; none where these
    /// changes bound them otherwise, or took something of them away.
    pub(crate) async fn kept(
        &self,
        scope: &Scope,
        state: &BindingState,
        changes: &Changes,
    ) -> Result<Option<Stories>, Fault> {
        let Some(stories) = self.shelf.take(scope, state) else {
            return Ok(None);
        };
        let is_gone = |change: &Change| match change {
            // What was derived from it went with it, and is not named.
            Change::Forgotten(_) => true,
            Change::Withdrawn(id) => stories.holds(*id),
            Change::Stored(_) | Change::Derived(_) => false,
        };
        if changes.changes.iter().any(is_gone) {
            return Ok(None);
        }
        let ids = fragments(changes);
        if ids.is_empty() {
            return Ok(Some(stories));
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        let bound = self.of_kind(scope, Kind::Fragment, question).await?;
        let bound = bound
            .iter()
            .filter_map(|it| Some((it.id, it.fragment()?.narrative)));
        Ok((!stories.differ(&bound.collect())).then_some(stories))
    }

    /// The stories that these fragments are bound to.
    pub(crate) async fn stories_of(
        &self,
        scope: &Scope,
        fragments: &[Derivation],
    ) -> Result<Stories, Fault> {
        let latest = fragments.len().saturating_sub(REMEMBERED);
        let mut stories = Stories::default();
        for fragments in fragments[latest..].chunks(TOGETHER) {
            self.remember(scope, fragments, &mut stories).await?;
        }
        Ok(stories)
    }

    async fn remember(
        &self,
        scope: &Scope,
        fragments: &[Derivation],
        stories: &mut Stories,
    ) -> Result<(), Fault> {
        let openings: Vec<TurnId> = fragments.iter().map(|it| it.turns[0]).collect();
        let indexed = self.indexed(scope, &openings).await?;
        for derivation in fragments {
            let opening = indexed.get(&derivation.turns[0]).map(opening);
            if let Some((fragment, opening)) = derivation.fragment().zip(opening) {
                stories.bind(derivation.id, fragment.narrative, &opening);
            }
        }
        Ok(())
    }

    /// The embedding space whose vectors [`Self::indexed`] gives now. A round that compares vectors
    /// of several reads is of one model if this is the same before and after them.
    pub(crate) async fn served(&self, scope: &Scope) -> Result<Option<EmbeddingSpace>, Fault> {
        Ok(self.indexer.spaces.embeddings(scope).await?.served)
    }

    /// These turns as the index has them.
    pub(crate) async fn indexed(
        &self,
        scope: &Scope,
        turns: &[TurnId],
    ) -> Result<HashMap<TurnId, IndexedTurn>, Fault> {
        let indexed = self.feed.indexed(scope, turns).await?;
        Ok(indexed.into_iter().map(|turn| (turn.id, turn)).collect())
    }
}

/// The fragments that changed.
pub(crate) fn fragments(changes: &Changes) -> Vec<DerivationId> {
    let ids = changes.changes.iter().filter_map(|change| match change {
        Change::Derived(derived) if derived.kind == Kind::Fragment => Some(derived.id),
        _ => None,
    });
    ids.collect()
}

/// What binding knows a turn by that opens a run.
pub(crate) fn opening(turn: &IndexedTurn) -> Opening {
    let vector = turn.passages.first().and_then(|it| it.sentence.as_deref());
    Opening {
        vector: vector.and_then(Vector::new),
        words: turn.passages.iter().map(|passage| passage.words).sum(),
    }
}
