//! Fragments bound once more by a language model (Amory section 3.1, initialisation and momentum-aware binding), behind the rules: it splits
//! what was said at a stretch by matter, finds the story of each part, and leaves filler out. What it bound stays bound while its turns
//! are there; what it has no words for stays as the rules have it.

mod board;
mod parts;
mod writing;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::TimeDelta;
use memfleet_agents::narratives::BINDER;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_prompts::Adviser;
use memfleet_prompts::handles::Turn as Shown;
use memfleet_prompts::stories::{Beginning, Binding};
use memfleet_workers::{Agent, Heard, Outcome, is_witnessed, reverted};
use tracing::instrument;

use crate::LocalConsolidator;
use crate::advised::{Advised, SHOWN};
use crate::news::News;
use crate::stories::fragments;
use board::Board;

/// Changes that are looked at together: each may be a call to the model, and all of them should be over before the lease is.
const ROUND: u32 = 16;
/// A fragment that may go on is bound when nothing came for so long.
const QUIET: TimeDelta = TimeDelta::minutes(10);
/// T of Amory section 3.1: the turns of a space with which its stories begin.
const INITIAL: usize = 20;
/// Turns before a fragment that a model reads to understand it.
const CONTEXT: u32 = 4;

/// Why a change binds.
const REBOUND: (&str, &str) = ("rebound", "a model bound what was said to its story");

/// The stage.
#[derive(Clone)]
pub struct Rebinder {
    /// Reads and writes narratives.
    pub consolidator: Arc<LocalConsolidator>,
    /// Says which story what is of.
    pub adviser: Adviser,
    /// What it had no words for.
    pub heard: Heard,
}

#[async_trait]
impl Agent for Rebinder {
    #[instrument(name = "rebind", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let from = &self.consolidator;
        let changes = from.feed.changes_after(scope, reached, ROUND).await?;
        let by_rules = self.by_rules(scope, fragments(&changes)).await?;
        let advised = self.advised(scope, by_rules).await?;
        let stage = (Stage::Rebind, REBOUND);
        from.close(scope, stage, (reached, &changes), advised).await
    }
}

impl Rebinder {
    /// What a model makes of these.
    async fn advised(&self, scope: &Scope, asked: Vec<Derivation>) -> Result<Advised, Fault> {
        let mut advised = Advised::default();
        if asked.is_empty() {
            return Ok(advised);
        }
        let mut board = self.board(scope).await?;
        if board.turns() < INITIAL && !board.is_begun() {
            // With so little said there is nothing to tell apart; what there is comes with the beginning.
            return Ok(advised);
        }
        let ended = self.ended(scope, &asked).await?;
        let (over, lively): (Vec<_>, Vec<_>) =
            asked.into_iter().partition(|it| self.is_over(it, &ended));
        advised.left = lively.iter().map(|it| it.id).collect();
        if !board.is_begun() && !over.is_empty() {
            self.begin(scope, &mut board, &mut advised).await?;
            if advised.is_held {
                // Once one fragment is bound, nobody would ask about the beginning any more.
                return Ok(advised);
            }
        }
        let mut is_down = false;
        for fragment in over {
            if is_down {
                advised.left.insert(fragment.id);
            }
            if advised.left.contains(&fragment.id) {
                continue;
            }
            // It may have been part of the beginning.
            let Some(fragment) = board.by_rules(fragment.id).cloned() else {
                continue;
            };
            if self.heard.has(&fragment) {
                continue;
            }
            match self.bound(scope, &board, &fragment).await {
                Ok(Some(news)) => board.take(news, &mut advised),
                Ok(None) => self.heard.note(&fragment),
                Err(fault) => is_down = advised.fail(fragment.id, fault),
            }
        }
        Ok(advised)
    }

    /// The first stories of a space, from its first turns.
    async fn begin(
        &self,
        scope: &Scope,
        board: &mut Board,
        advised: &mut Advised,
    ) -> Result<(), Fault> {
        let first = board.first(INITIAL);
        let undone = reverted(&*self.consolidator.knowledge, scope, &first).await?;
        if self.heard.has(&first[0]) || !undone.is_empty() {
            return Ok(());
        }
        let said = self.said(scope, &first).await?;
        if said.is_empty() {
            return Ok(());
        }
        let zone = self.consolidator.zone(scope).await?;
        let is_supported = |words: &str, turns: &[&Shown]| is_witnessed(words, turns, zone);
        let prompt = Beginning {
            turns: &shown(&said),
            is_supported: &is_supported,
        };
        match self.adviser.ask(&scope.tenant, &prompt).await {
            Ok(Some(asked)) => {
                let news = self.news(scope, board, &first, &said, &[], asked).await?;
                board.take(news, advised);
            }
            Ok(None) => self.heard.note(&first[0]),
            Err(fault) => {
                advised.fail(first[0].id, fault);
                advised.is_held = true;
            }
        }
        Ok(())
    }

    /// What becomes of a fragment; none where the model says nothing of use.
    async fn bound(
        &self,
        scope: &Scope,
        board: &Board,
        fragment: &Derivation,
    ) -> Result<Option<News>, Fault> {
        let from = &self.consolidator;
        let asked_about = std::slice::from_ref(fragment);
        let said = self.said(scope, asked_about).await?;
        let Some(first) = said.first() else {
            return Ok(None);
        };
        let context = from.ledger.preceding(scope, first.accepted.id, CONTEXT);
        let mut turns = shown(&context.await?);
        let earlier = turns.len();
        turns.extend(shown(&said));
        let (ids, stories) = self.stories(scope, board, fragment).await?;
        let zone = from.zone(scope).await?;
        let is_supported = |words: &str, turns: &[&Shown]| is_witnessed(words, turns, zone);
        let prompt = Binding {
            stories: &stories,
            turns: &turns,
            earlier,
            is_supported: &is_supported,
        };
        let Some(mut asked) = self.adviser.ask(&scope.tenant, &prompt).await? else {
            return Ok(None);
        };
        for decision in &mut asked.meant.decisions {
            decision.turns.iter_mut().for_each(|turn| *turn -= earlier);
        }
        let news = self.news(scope, board, asked_about, &said, &ids, asked);
        news.await.map(Some)
    }

    /// Those of these fragments that the rules bound, and not since a caller undid something else.
    async fn by_rules(
        &self,
        scope: &Scope,
        ids: Vec<DerivationId>,
    ) -> Result<Vec<Derivation>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        let from = &self.consolidator;
        let mut fragments = from.of_kind(scope, Kind::Fragment, question).await?;
        fragments.retain(is_by_rules);
        let reverted = reverted(&*from.knowledge, scope, &fragments).await?;
        fragments.retain(|it| !reverted.contains(&it.id));
        fragments.sort_by_key(Derivation::begins);
        Ok(fragments)
    }

    /// The turns with which episodes ended, among the last ones of these fragments.
    async fn ended(
        &self,
        scope: &Scope,
        fragments: &[Derivation],
    ) -> Result<HashSet<TurnId>, Fault> {
        let question = Question {
            turns: fragments.iter().filter_map(last).collect(),
            ..Question::default()
        };
        let from = &self.consolidator;
        let mut episodes = from.of_kind(scope, Kind::Episode, question).await?;
        episodes.retain(|it| it.episode().is_some_and(|told| told.trigger.is_some()));
        let turns = episodes.iter().flat_map(|it| &it.turns);
        Ok(turns.copied().collect())
    }

    fn is_over(&self, fragment: &Derivation, ended: &HashSet<TurnId>) -> bool {
        let has_ended = last(fragment).is_some_and(|turn| ended.contains(&turn));
        let written = fragment.known.start;
        has_ended || written.is_none_or(|at| at + QUIET <= self.consolidator.clock.now())
    }
}

/// Whether the rules bound it.
fn is_by_rules(derivation: &Derivation) -> bool {
    derivation.fragment().is_some_and(|it| it.binder == BINDER)
}

fn last(fragment: &Derivation) -> Option<TurnId> {
    fragment.turns.last().copied()
}

/// Turns as a prompt shows them.
fn shown(turns: &[memfleet_domain::turn::Turn]) -> Vec<Shown> {
    turns
        .iter()
        .map(|turn| Shown::clipped(turn, SHOWN))
        .collect()
}
