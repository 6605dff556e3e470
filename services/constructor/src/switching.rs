//! A change of the embedding model, carried on from wherever it is: the store says which step comes
//! next in which space, so that a process that ends in the middle leaves nothing undone. The
//! vectors themselves are made by [`crate::backfill`].

mod comparing;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::{Fault, Scope};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::{
    ModelSwitches, NextStep, SpaceComparison, SwitchGoal, SwitchOrder, SwitchStep,
};
use memfleet_ports::spaces::SpaceCatalog;
use rand::seq::SliceRandom;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::following_language::latest;

/// How often the order is read.
const PERIOD: Duration = Duration::from_secs(1);

/// Longest pause between two looks for steps, which ask every tenant.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often the gauges are set, for which every space is asked, and how often once every turn has
/// vectors of the target.
const GAUGES: Duration = Duration::from_secs(30);
const GAUGES_AT_REST: Duration = Duration::from_mins(10);

/// How long vectors stay that searches may have used until just now: those of before, once a space
/// serves the model of its language, and those of a change that is rolled back and dropped.
/// Searches that began with them end, and indexes of the others are built.
const LEAVING: Duration = Duration::from_mins(2);

/// Spaces that are looked at together.
const SPACES: u32 = 64;

/// How long a space is left alone after its first failure, and at most.
const FIRST_DELAY: Duration = Duration::from_secs(5);
const LONGEST_DELAY: Duration = Duration::from_mins(5);

/// Carries a change of the model on.
#[derive(Clone)]
pub struct ModelSwitcher {
    /// Where the steps are.
    pub switches: Arc<dyn ModelSwitches>,
    /// The vectors to compare.
    pub feed: Arc<dyn IndexFeed>,
    /// The texts that serve as queries.
    pub ledger: Arc<dyn Ledger>,
    /// Which embedding spaces a space has.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Text to vectors.
    pub embedder: Arc<dyn Embedder>,
    /// Name of the model whose vectors all spaces are to have beside those that they serve, for
    /// balanced searches; an operator's order goes before.
    pub second_model: Option<String>,
}

/// Notes of one process from round to round: when it looks again, and the spaces whose step failed.
#[derive(Debug, Default)]
pub struct SwitchSchedule {
    order: Option<SwitchOrder>,
    pause: Duration,
    next_look: Option<Instant>,
    next_gauges: Option<Instant>,
    /// Failures in a row, and when the space is tried again.
    postponed: HashMap<Scope, (u32, Instant)>,
    /// Spaces whose vectors of before wait to be dropped, and since when.
    leaving: HashMap<Scope, Instant>,
    /// The last warning about the configured order, which is not repeated.
    told: Option<String>,
}

impl SwitchSchedule {
    /// True where steps are looked for now: at once after a new order, and ever more seldom while
    /// nothing is to be done.
    fn is_due(&mut self, order: Option<&SwitchOrder>) -> bool {
        if self.order.as_ref() != order {
            *self = Self {
                order: order.cloned(),
                told: self.told.take(),
                ..Self::default()
            };
        }
        has_come(self.next_look)
    }

    fn tell_once(&mut self, message: &str) {
        if self.told.as_deref() != Some(message) {
            tracing::warn!("{message}");
            self.told = Some(message.to_owned());
        }
    }

    fn note_look(&mut self, taken: usize) {
        self.pause = match taken {
            0 => (self.pause * 2).clamp(PERIOD, LONGEST_PAUSE),
            _ => Duration::ZERO,
        };
        self.next_look = Some(Instant::now() + self.pause);
    }

    /// Takes the postponed ones out of these steps. Comparisons come last, in an order that is
    /// another one in each process: so these seldom do the same work.
    fn order_steps(&mut self, steps: &mut Vec<NextStep>) {
        let listed: HashSet<&Scope> = steps.iter().map(|next| &next.scope).collect();
        self.postponed.retain(|scope, _| listed.contains(scope));
        let drops = |next: &NextStep| {
            next.step == SwitchStep::Drop && (next.is_for_language || next.order.is_given_up())
        };
        self.leaving.retain(|scope, _| listed.contains(scope));
        let now = Instant::now();
        for next in steps.iter().filter(|next| drops(next)) {
            self.leaving.entry(next.scope.clone()).or_insert(now);
        }
        let waits = |next: &NextStep| drops(next) && self.leaving[&next.scope] + LEAVING > now;
        steps.retain(|next| !waits(next));
        let until = |scope: &Scope| self.postponed.get(scope).map(|(_, until)| *until);
        steps.retain(|next| has_come(until(&next.scope)));
        steps.shuffle(&mut rand::rng());
        steps.sort_by_key(|next| next.step == SwitchStep::Compare);
    }

    fn postpone(&mut self, scope: Scope) {
        let (failures, until) = self.postponed.entry(scope).or_insert((0, Instant::now()));
        let delay = FIRST_DELAY.saturating_mul(1 << (*failures).min(10));
        *failures += 1;
        *until = Instant::now() + delay.min(LONGEST_DELAY);
    }
}

fn has_come(time: Option<Instant>) -> bool {
    time.is_none_or(|time| time <= Instant::now())
}

impl ModelSwitcher {
    /// Takes steps until `shutdown`.
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut schedule = SwitchSchedule::default();
        while !shutdown.is_cancelled() {
            let pause = match self.round(&mut schedule).await {
                Ok(0) => PERIOD,
                Ok(_) => continue,
                Err(fault) => {
                    tracing::warn!(reason = %fault.reason, "the change of the model waits: {fault}");
                    PERIOD
                }
            };
            shutdown
                .run_until_cancelled(tokio::time::sleep(pause))
                .await;
        }
    }

    /// Takes the steps that are due in some spaces; how many. A space whose step fails is left
    /// alone for a while, and the others go on.
    pub async fn round(&self, schedule: &mut SwitchSchedule) -> Result<usize, Fault> {
        let mut order = self.switches.order().await?;
        if !schedule.is_due(order.as_ref()) {
            return Ok(0);
        }
        order = self.configured_order(order, schedule).await?;
        // As many more as may be postponed: these are listed as long as they wait.
        let limit = SPACES.saturating_add(schedule.postponed.len() as u32);
        let mut steps = self.switches.steps(order.as_ref(), limit).await?;
        schedule.order_steps(&mut steps);
        let mut taken = 0;
        for next in steps {
            if !self.is_wanted(&next).await? {
                return Ok(taken);
            }
            match self.take(&next).await {
                Ok(()) => taken += 1,
                Err(fault) => {
                    tracing::warn!(scope = %next.scope, step = ?next.step, reason = %fault.reason, "a step of a change of the model waits: {fault}");
                    schedule.postpone(next.scope);
                }
            }
        }
        schedule.note_look(taken);
        if let Some(order) = order
            && taken == 0
            && has_come(schedule.next_gauges)
        {
            let pause = match self.set_gauges(&order).await? {
                true => GAUGES_AT_REST,
                false => GAUGES,
            };
            schedule.next_gauges = Some(Instant::now() + pause);
        }
        Ok(taken)
    }

    /// The order that stands, once the configuration had its say: vectors of the second model are
    /// ordered where no operator ordered anything, or gave up all that was ordered.
    async fn configured_order(
        &self,
        known: Option<SwitchOrder>,
        schedule: &mut SwitchSchedule,
    ) -> Result<Option<SwitchOrder>, Fault> {
        let Some(model) = self.second_model.as_deref() else {
            if known.as_ref().is_some_and(SwitchOrder::is_configured) {
                schedule.tell_once("searches are fast now, and turns still get vectors of a second model: `memfleet model switch --roll-back` and then `--drop` end that");
            }
            return Ok(known);
        };
        let target = match self.embedder.space_of(model).await {
            Ok(target) => target,
            Err(fault) => {
                let message = format!("balanced searches wait for a second model: {fault}");
                schedule.tell_once(&message);
                return Ok(known);
            }
        };
        let wanted = SwitchOrder::beside(target);
        if known.as_ref() == Some(&wanted) {
            return Ok(known);
        }
        if let Some(order) = &known
            && !order.is_configured()
            && !self.is_gone(order).await?
        {
            schedule.tell_once("balanced searches get no vectors of a second model while another change of the model stands that an operator ordered (`memfleet model switch --status`)");
            return Ok(known);
        }
        if !self.switches.replace_order(known.as_ref(), &wanted).await? {
            return Ok(self.switches.order().await?);
        }
        tracing::info!(
            model,
            "all spaces get vectors of a second model, for balanced searches"
        );
        Ok(Some(wanted))
    }

    /// True for a change that was given up and of which nothing is left.
    async fn is_gone(&self, order: &SwitchOrder) -> Result<bool, Fault> {
        Ok(order.is_given_up() && self.switches.progress(order).await?.beside == 0)
    }

    /// Sets the gauges; true where every turn has vectors of the target.
    async fn set_gauges(&self, order: &SwitchOrder) -> Result<bool, Fault> {
        let progress = self.switches.progress(order).await?;
        metrics::gauge!("memfleet_model_switch_turns").set(progress.turns as f64);
        metrics::gauge!("memfleet_model_switch_turns_done").set(progress.done as f64);
        metrics::gauge!("memfleet_model_switch_spaces_serving").set(progress.serving as f64);
        Ok(progress.done == progress.turns)
    }

    /// True while the operator wants this and nothing else, and for steps of a space's language.
    async fn is_wanted(&self, next: &NextStep) -> Result<bool, Fault> {
        Ok(next.is_for_language || self.switches.order().await?.as_ref() == Some(&next.order))
    }

    /// True for a space that keeps the multilingual model, as that reads its language; the store is
    /// told.
    async fn stays(&self, next: &NextStep) -> Result<bool, Fault> {
        if next.is_for_language || next.order.every_language {
            return Ok(false);
        }
        let served = self.spaces.embeddings(&next.scope).await?.served;
        let latest = latest(&*self.feed, &*self.ledger, &next.scope).await?;
        if latest.is_empty() {
            return Ok(false);
        }
        let read_by = self.embedder.space_for(&latest).await?;
        if served.as_ref() != Some(&read_by) || read_by == self.embedder.space().await? {
            return Ok(false);
        }
        self.switches.follow_language(&next.scope, &read_by).await?;
        tracing::info!(scope = %next.scope, model = %read_by, "the space keeps the model that reads its language");
        Ok(true)
    }

    async fn take(&self, next: &NextStep) -> Result<(), Fault> {
        let NextStep {
            scope, order, step, ..
        } = next;
        if *step == SwitchStep::Build && self.stays(next).await? {
            return Ok(());
        }
        let comparison = match step {
            SwitchStep::Compare if !next.is_for_language => match self.compare(next).await? {
                Some(comparison) => comparison,
                None => return Ok(()),
            },
            _ => SpaceComparison::default(),
        };
        let is_unlike = comparison.queries > 0 && comparison.overlap < order.min_overlap();
        if is_unlike && order.goal == SwitchGoal::Compare {
            tracing::warn!(%scope, overlap = comparison.overlap, "the two models name other passages: something may be wrong with one of them");
        } else if is_unlike {
            tracing::warn!(%scope, overlap = comparison.overlap, "the two models name other passages: searches change with `memfleet model switch --cut-over` alone");
        }
        self.switches.take(next, comparison).await?;
        tracing::info!(%scope, target = %order.target, ?step, "a step of a change of the model");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::embedding_space;
    use memfleet_ports::model_switch::{OrderGiver, SwitchGoal};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn looks_for_steps_grow_rare_until_something_is_to_be_done_or_ordered() {
        let mut order = SwitchOrder {
            target: embedding_space("2"),
            goal: SwitchGoal::Serve,
            drops: false,
            forced: false,
            every_language: false,
            giver: OrderGiver::Operator,
        };
        let mut schedule = SwitchSchedule::default();
        for pause in [1, 2, 4, 8, 16, 30, 30] {
            assert!(schedule.is_due(Some(&order)));
            schedule.note_look(0);
            tokio::time::advance(Duration::from_millis(pause * 1_000 - 1)).await;
            assert!(!schedule.is_due(Some(&order)), "{pause}");
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        schedule.note_look(0);
        order.goal = SwitchGoal::RollBack;
        assert!(schedule.is_due(Some(&order)));
        schedule.note_look(1);
        assert!(schedule.is_due(Some(&order)));
    }
}
