//! What the stages that ask a language model have in common. They come behind the rules, each with a position of its own: while the model is
//! down, slow or over its budget, what the rules did is in use.

use std::collections::HashSet;

use chrono_tz::Tz;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::{Change, Changes};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_prompts::handles::Turn;
use memfleet_workers::{Outcome, before, is_witnessed};

use crate::LocalConsolidator;
use crate::news::News;

/// How much of a turn a model is shown, in characters.
pub(crate) const SHOWN: usize = 2_000;

/// What a round came to.
#[derive(Default)]
pub(crate) struct Advised {
    /// In the order in which it is written.
    pub(crate) news: Vec<News>,
    /// What is looked at again, with what lies behind: it may go on, or the model could not be asked about it.
    pub(crate) left: HashSet<DerivationId>,
    /// Why it could not.
    pub(crate) failed: Option<Fault>,
    /// Whether all of the round is looked at again, as what it could not be asked about lies before the round.
    pub(crate) is_held: bool,
}

impl Advised {
    /// The model could not be asked about this. One failure keeps nothing else from being asked about, as that is how a bad input is told from a
    /// bad endpoint; whether it is the endpoint.
    pub(crate) fn fail(&mut self, id: DerivationId, fault: Fault) -> bool {
        self.left.insert(id);
        let is_down = self.failed.is_some();
        self.failed.get_or_insert(fault);
        is_down
    }
}

/// The turns that a headline is words of: the first that bears it out alone, else all.
pub(crate) fn borne_out_by(headline: &str, turns: &[&Turn], zone: Tz) -> Vec<TurnId> {
    let mut turns = turns.iter();
    match turns
        .clone()
        .find(|turn| is_witnessed(headline, &[turn], zone))
    {
        Some(turn) => vec![turn.id],
        None => turns.by_ref().map(|turn| turn.id).collect(),
    }
}

impl LocalConsolidator {
    /// The fragments of a narrative, in the order in which they were said.
    pub(crate) async fn fragments(
        &self,
        scope: &Scope,
        narrative: DerivationId,
    ) -> Result<Vec<Derivation>, Fault> {
        let question = Question {
            narrative: Some(narrative),
            ..Question::default()
        };
        let mut fragments = self.of_kind(scope, Kind::Fragment, question).await?;
        fragments.sort_by_key(Derivation::begins);
        Ok(fragments)
    }

    /// Writes what a round of a stage came to, and how far it is: before the first that is left.
    pub(crate) async fn close(
        &self,
        scope: &Scope,
        (stage, why): (Stage, (&str, &str)),
        (reached, changes): (u64, &Changes),
        advised: Advised,
    ) -> Result<Outcome, Fault> {
        let left = advised.left;
        let is_left =
            |change: &Change| matches!(change, Change::Derived(it) if left.contains(&it.id));
        let to = match advised.is_held {
            true => reached,
            false => before(&*self.feed, scope, reached, changes, is_left).await?,
        };
        let emptied = self.emptied(scope, &advised.news).await?;
        let mut rewrites = Vec::with_capacity(advised.news.len() + 1);
        for news in advised.news.into_iter().chain([emptied]) {
            rewrites.extend(self.rewrite(scope, news, why).await?);
        }
        let Some(written) = self.write(scope, stage, rewrites, (reached, to)).await? else {
            return Ok(Outcome::More);
        };
        match advised.failed {
            Some(fault) => Err(fault),
            None => Ok(Outcome::more_if(
                left.is_empty() && (changes.more || written > 0),
            )),
        }
    }

    /// Where the people of a space are.
    pub(crate) async fn zone(&self, scope: &Scope) -> Result<Tz, Fault> {
        let locale = self.indexer.spaces.locale(scope).await?;
        Ok(locale.unwrap_or_default().time_zone.0)
    }
}
