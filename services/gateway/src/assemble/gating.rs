//! The gates (AMP sections E to G): rules look at the words of the user, before anything is looked up; routing looks at
//! the vector of the query, which the search uses, too; relevance at what was found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memfleet_assembly::Empty;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{
    DropReason, FailurePolicy, Gate, GateMode, GateOutcome, Reason, Strategy,
};
use memfleet_domain::policy::{Failure, Gating};
use memfleet_gates::rules::{Before, Rules, Utterance};
use memfleet_ports::assembly::{GateEntry, GateRequest, Gated};
use memfleet_ports::context::Context;

use super::choosing::Made;
use super::finding;
use super::prompt::{self, Asked};
use super::work::{Step, Work};
use crate::Gateway;

/// What gate 1 says of an utterance.
pub fn rules(gating: &Gating, text: &str, before: Before) -> GateEntry {
    if !gating.rules {
        return GateEntry::new(Gate::Rules, GateOutcome::Abstain, Reason::SwitchedOff);
    }
    let began = Instant::now();
    let judged = Rules::shipped().judge(Utterance { text, before });
    GateEntry {
        rule: judged.rule.unwrap_or_default(),
        pattern: judged.pattern.unwrap_or_default(),
        version: judged.version.to_owned(),
        duration: began.elapsed(),
        ..GateEntry::new(Gate::Rules, judged.outcome, judged.reason)
    }
}

/// What the policy says before any gate, if it says something.
pub fn policy(gating: &Gating) -> Option<GateEntry> {
    let (outcome, reason) = match gating.mode {
        GateMode::Never => (GateOutcome::Skip, Reason::GateNever),
        GateMode::Always => (GateOutcome::Force, Reason::GateAlways),
        GateMode::Auto => return None,
    };
    Some(GateEntry::new(Gate::Policy, outcome, reason))
}

impl Work<'_> {
    /// What the caller and the policy say before anything else.
    pub(super) fn policy(&mut self) -> Result<(), Reason> {
        let settings = &self.basis.settings;
        if settings.placing.strategies[0] == Strategy::None {
            return Err(Reason::StrategyNone);
        }
        if let Some(said) = policy(&settings.gating) {
            let (outcome, reason) = (said.outcome, said.reason);
            self.draft.said(said);
            if outcome == GateOutcome::Skip {
                return Err(reason);
            }
        }
        match &self.outline.place {
            Some(Err(reason)) => Err(*reason),
            _ => Ok(()),
        }
    }

    /// Gate 1. A story that is named is asked for, whatever the words are.
    pub(super) fn rules(&mut self) -> Result<(), Reason> {
        let gating = &self.basis.settings.gating;
        if gating.mode == GateMode::Always || !self.request.narratives.is_empty() {
            return Ok(());
        }
        let said = rules(gating, &self.request.query.text, self.outline.before_it);
        let (outcome, reason) = (said.outcome, said.reason);
        self.draft.made_by("rules", &said.version);
        self.draft.said(said);
        self.draft.timed("rules");
        match outcome {
            GateOutcome::Skip => Err(reason),
            _ => Ok(()),
        }
    }

    /// Gate 2, where nothing says already that memory is wanted. The query is embedded for it and for the search together (AMP item 53).
    pub(super) async fn routing(
        &mut self,
        context: &Context,
        understood: Option<&str>,
    ) -> Step<()> {
        let gating = self.basis.settings.gating.clone();
        let is_asked = gating.mode == GateMode::Auto && self.request.narratives.is_empty();
        let is_forced = self
            .draft
            .answer
            .gates
            .iter()
            .any(|gate| gate.outcome == GateOutcome::Force);
        // An answer to the assistant is no utterance by itself.
        let is_answer = self.outline.before_it == Before::Question;
        if !is_asked || is_forced || is_answer {
            return Ok(Ok(()));
        }
        if !gating.routing {
            let off = GateEntry::new(Gate::Routing, GateOutcome::Abstain, Reason::SwitchedOff);
            self.draft.said(off);
            return Ok(Ok(()));
        }
        let query = &self.request.query;
        let text = understood.unwrap_or(&query.text);
        let (tenant, spaces) = (&self.basis.tenant, &query.spaces);
        let routed = self.gateway.route(context, tenant, spaces, text);
        let (said, embedded) = routed.await?;
        self.request.query.vectors = embedded.map(Arc::new);
        let (outcome, reason) = (said.outcome, said.reason);
        self.draft.made_by("exemplars", &said.version);
        self.draft.said(said);
        self.draft.timed("routing");
        Ok(match outcome {
            GateOutcome::Skip => Err(reason),
            _ => Ok(()),
        })
    }

    /// Gate 3: what the relevance of the items says (AMP items 59 to 62).
    pub(super) fn relevance(&mut self, made: &Made) -> Result<(), Reason> {
        let trace = &made.block.trace;
        let threshold = self.threshold.max(self.thresholds.of_best);
        let below = made.dropped.iter();
        let below = below
            .filter(|it| it.reason == DropReason::BelowThreshold)
            .count();
        let is_below = trace.empty == Some(Empty::BelowThreshold);
        let (outcome, reason) = match trace.best_relevance {
            _ if threshold == 0.0 => (GateOutcome::Pass, Reason::SwitchedOff),
            _ if is_below => (GateOutcome::Skip, Reason::BelowThreshold),
            None => (GateOutcome::Abstain, Reason::NotScored),
            Some(_) => (GateOutcome::Pass, Reason::Relevant),
        };
        let versions = &self.draft.answer.versions;
        let version = versions.get("scorer").cloned().unwrap_or_default();
        let duration = self.draft.timed("select");
        self.draft.said(GateEntry {
            threshold: Some(threshold),
            best_score: trace.best_relevance,
            passed: (made.items.len() + made.dropped.len() - below) as u32,
            dropped: below as u32,
            version,
            duration,
            bounds: self.thresholds.bounds(trace.best_relevance),
            ..GateEntry::new(Gate::Relevance, outcome, reason)
        });
        self.draft.answer.left_out = made.block.left_out.len() as u32;
        self.draft.answer.dropped.clone_from(&made.dropped);
        match trace.empty {
            None => Ok(()),
            Some(Empty::BudgetZero) => Err(Reason::BudgetZero),
            Some(Empty::BudgetTooSmall) => Err(Reason::BudgetTooSmall),
            Some(Empty::BelowThreshold) => Err(Reason::BelowThreshold),
            Some(Empty::NoCandidates | Empty::AllLeftOut) => Err(Reason::NothingFound),
        }
    }
}

impl Gateway {
    /// The gates before the search, and nothing after them.
    pub(super) async fn gate_alone(
        &self,
        context: &Context,
        request: GateRequest,
    ) -> Result<Gated, Fault> {
        let failure = request.policy.failure.clone();
        let within = failure
            .deadline_ms
            .unwrap_or(Failure::default().deadline_ms);
        let brief = context.at_most(Duration::from_millis(within.into()));
        let asked = self.ask_gates(&brief, request);
        match brief.within("the gates", asked).await {
            Err(fault) if failure.policy != Some(FailurePolicy::Closed) => {
                let (reason, _) = finding::without(fault)?;
                let skip = GateEntry::new(Gate::Policy, GateOutcome::Skip, reason);
                Ok(gated(vec![skip]))
            }
            gated => gated,
        }
    }

    async fn ask_gates(&self, context: &Context, request: GateRequest) -> Result<Gated, Fault> {
        let basis = self.basis(context, &request.spaces, request.policy).await?;
        let gating = &basis.settings.gating;
        let asked = Asked::of(request.prompt).await?;
        let text = match (request.text.is_empty(), asked.query) {
            (false, _) => request.text,
            (true, Some(said)) => said,
            (true, None) => return Ok(gated(vec![no_text()])),
        };
        if let Some(said) = policy(gating) {
            return Ok(gated(vec![said]));
        }
        let text = &prompt::searched_for(&text);
        let rules = rules(gating, text, asked.before_it);
        let is_decided = matches!(rules.outcome, GateOutcome::Skip | GateOutcome::Force)
            || asked.before_it == Before::Question;
        let mut gates = vec![rules];
        if gating.routing && !is_decided {
            let (tenant, spaces) = (&basis.tenant, &request.spaces);
            let routed = self.route(context, tenant, spaces, text);
            gates.push(routed.await?.0);
        }
        Ok(gated(gates))
    }
}

fn no_text() -> GateEntry {
    GateEntry::new(Gate::Rules, GateOutcome::Skip, Reason::NoQueryText)
}

/// What several gates come to: the last one that decided does.
fn gated(gates: Vec<GateEntry>) -> Gated {
    let last = gates.last();
    Gated {
        pass: last.is_none_or(|gate| gate.outcome != GateOutcome::Skip),
        reason: last.map_or(Reason::Undecided, |gate| gate.reason),
        gates,
    }
}
