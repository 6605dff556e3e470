//! Episodes in the words of a language model (AMA appendix C.3), behind the rules: what is over, or has been quiet for a while, is summed
//! up once more. It has a position of its own: while the model is down, slow or over its budget, the summaries of the rules are in use. Where
//! an episode begins and ends stays with the rules, which cut without a call a turn.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::TimeDelta;
use memfleet_domain::derivation::{Body, ChangeKind, Derivation, Kind, Origin};
use memfleet_domain::ids::{ChangeId, DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Change;
use memfleet_ports::knowledge::{Progress, Question, Revision, Rewrite, Stage};
use memfleet_ports::language_model;
use memfleet_prompts::Adviser;
use memfleet_prompts::episode::{Summary, Summing};
use memfleet_prompts::handles::Turn;
use memfleet_workers::{Agent, Heard, Outcome, before, is_witnessed, reverted};
use tracing::instrument;

use super::draft::NAME;
use super::since;
use crate::derive::{Deriver, change};

/// Changes that are looked at together: each may be a call to the model, and all of them should be over before the lease is.
const ROUND: u32 = 16;
/// An episode that may go on is told when nothing came for so long.
const QUIET: TimeDelta = TimeDelta::minutes(10);
/// How much of a turn is shown, in characters.
const SHOWN: usize = 2_000;

/// Follows every space behind the rules that cut it.
#[derive(Clone)]
pub struct Reteller {
    /// Reads turns, writes episodes.
    pub deriver: Arc<Deriver>,
    /// Finds the words.
    pub adviser: Adviser,
    /// What it had no words for.
    pub heard: Heard,
}

#[async_trait]
impl Agent for Reteller {
    #[instrument(name = "retell", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let deriver = &self.deriver;
        let changes = deriver.feed.changes_after(scope, reached, ROUND).await?;
        let ids = changes.changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Episode => Some(derived.id),
            _ => None,
        });
        let by_rules = self.by_rules(scope, ids.collect()).await?;
        let (quiet, lively): (Vec<_>, Vec<_>) = by_rules
            .into_iter()
            .partition(|episode| self.is_over(episode));
        let (rewrites, failed) = self.told(scope, &quiet).await;
        // Who is not told yet is looked at again, with what lies behind: it may wait minutes, and every write in the space meanwhile would ask
        // again about all that came before.
        let is_left = |change: &Change| match change {
            Change::Derived(derived) => {
                let failed = failed.iter().map(|(failed, _)| *failed);
                let mut left = lively.iter().map(|episode| episode.id).chain(failed);
                left.any(|left| left == derived.id)
            }
            _ => false,
        };
        let to = before(&*deriver.feed, scope, reached, &changes, is_left).await?;
        let progress = Progress {
            stage: Stage::Retell,
            from: reached,
            to,
        };
        let Some(written) = deriver.write(scope, rewrites, progress).await? else {
            return Ok(Outcome::More);
        };
        metrics::counter!("memfleet_episodes_written_total").increment(written as u64);
        if let Some((_, fault)) = failed {
            return Err(fault);
        }
        Ok(Outcome::more_if(
            lively.is_empty() && (changes.more || written > 0),
        ))
    }
}

impl Reteller {
    /// The changes that give these episodes the model's words, and the first about which it could not be asked. As with turns (`refine`), one that
    /// fails keeps neither what others are told from being written nor the next from being asked about; a second one does.
    async fn told(
        &self,
        scope: &Scope,
        quiet: &[Derivation],
    ) -> (Vec<Rewrite>, Option<(DerivationId, Fault)>) {
        let (mut rewrites, mut failed) = (Vec::new(), None);
        for episode in quiet.iter().filter(|episode| !self.heard.has(episode)) {
            match self.retold(scope, episode).await {
                Ok(Some(rewrite)) => rewrites.push(rewrite),
                // That was an answer too: the rules' summary stands.
                Ok(None) => self.heard.note(episode),
                Err(_) if failed.is_some() => break,
                Err(fault) => failed = Some((episode.id, fault)),
            }
        }
        (rewrites, failed)
    }

    /// Those of these episodes that are in the words of the rules, and not since a caller undid other words.
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
        let knowledge = &self.deriver.knowledge;
        let mut episodes = knowledge.all_derivations(scope, &question).await?;
        episodes.retain(|episode| matches!(&episode.origin, Origin::Extracted(by) if by == NAME));
        let reverted = reverted(&**knowledge, scope, &episodes).await?;
        episodes.retain(|episode| !reverted.contains(&episode.id));
        Ok(episodes)
    }

    fn is_over(&self, episode: &Derivation) -> bool {
        let has_ended = episode.episode().is_some_and(|told| told.trigger.is_some());
        let cut = episode.known.start;
        has_ended || cut.is_none_or(|cut| cut + QUIET <= self.deriver.clock.now())
    }

    /// The change that gives an episode the model's words; none where those are of no use.
    async fn retold(&self, scope: &Scope, episode: &Derivation) -> Result<Option<Rewrite>, Fault> {
        let turns = self.turns(scope, &episode.turns).await?;
        let locale = self.deriver.indexer.spaces.locale(scope).await?;
        let zone = locale.unwrap_or_default().time_zone.0;
        let is_supported = |sentence: &str, turns: &[&Turn]| is_witnessed(sentence, turns, zone);
        let prompt = Summing {
            turns: &turns,
            is_supported: &is_supported,
        };
        let asked = self.adviser.ask(&scope.tenant, &prompt).await?;
        Ok(asked.and_then(|asked| {
            asked
                .meant
                .dropped
                .report(language_model::Agent::Constructor);
            self.rewrite(episode, asked.meant, asked.by)
        }))
    }

    /// The turns of an episode as a prompt shows them.
    async fn turns(&self, scope: &Scope, ids: &[TurnId]) -> Result<Vec<Turn>, Fault> {
        let mut turns = self.deriver.ledger.turns(scope, ids).await?;
        turns.sort_unstable_by_key(|turn| turn.position);
        let shown = turns.iter().map(|turn| Turn::clipped(turn, SHOWN));
        Ok(shown.collect())
    }

    fn rewrite(&self, episode: &Derivation, summary: Summary, by: String) -> Option<Rewrite> {
        let now = self.deriver.clock.now();
        let version = episode.version.to_be_bytes();
        let id = ChangeId::of("retold", &[episode.id.as_bytes(), &version]);
        let mut told = episode.episode()?.clone();
        (told.title, told.summary) = (summary.title, summary.summary);
        told.extractor.clone_from(&by);
        let derivation = Derivation {
            known: since(now),
            origin: Origin::Extracted(by),
            body: Body::Episode(Box::new(told)),
            ..episode.next(id)
        };
        Some(Rewrite {
            change: change(id, ChangeKind::Derived, now, "a model summed it up"),
            revisions: vec![Revision {
                derivation,
                passage: None,
            }],
        })
    }
}
