//! One call of a memory tool: the state of its exchange, what it finds, and the state again. Of several calls at a time each is done on what
//! the one before left.

use std::collections::HashSet;
use std::sync::Arc;

use chrono::TimeDelta;
use memfleet_assembly::{Empty, Tokenizer};
use memfleet_domain::Fault;
use memfleet_domain::assembly::{
    Decision, FailurePolicy, Granularity, Reason, Strategy, Termination,
};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Turn;
use memfleet_ports::assembly::{Assembled, AssembledItem};
use memfleet_ports::context::Context;
use memfleet_ports::exchanges::Written;
use memfleet_ports::retriever::Found;
use memfleet_ports::store::StoreError;
use memfleet_ports::tools::{ToolCall, ToolResult};
use memfleet_provider::rounds::{Limits, NOTHING_NEW, Verdict};
use memfleet_provider::tools::{Ask, Names};

use tokio::sync::OnceCell;

use super::looking::{Look, basis_of};
use super::retrieval::{IN_FULL, Retrieval, key};
use super::{ATTEMPTS, busy, wording};
use crate::Gateway;
use crate::assemble::basis::{Basis, Thresholds};
use crate::assemble::bounds;
use crate::assemble::choosing::{Made, Making};
use crate::assemble::finding;
use crate::assemble::models::Model;
use crate::assemble::nonce::Contents;
use crate::assemble::prompt::Outline;
use crate::assemble::redaction::Redactions;
use crate::assemble::sticky::Held;
use crate::assemble::{apart, too_late};

/// A call under way.
struct Run<'r> {
    gateway: &'r Gateway,
    context: &'r Context,
    call: &'r ToolCall,
    names: Names,
    basis: Basis,
    model: Model,
    tokenizer: Tokenizer,
    redactions: Arc<Redactions>,
    looked: OnceCell<Look>,
    now: Timestamp,
}

/// What a call has for a result.
#[derive(Default)]
struct Told {
    text: String,
    is_error: bool,
    items: Vec<AssembledItem>,
    degraded: Vec<String>,
    /// Whether the next attempt may come to something else: nothing of it is kept.
    is_passing: bool,
}

impl Told {
    fn words(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::words(text)
        }
    }
}

impl Gateway {
    /// Runs a call, or gives the result that it had.
    pub(super) async fn run_tool(
        &self,
        context: &Context,
        call: &ToolCall,
    ) -> Result<ToolResult, Fault> {
        let basis = self
            .basis(context, &call.spaces, call.policy.clone())
            .await?;
        let redactions = Redactions::new(&basis.settings.format.redactions)?;
        let (asked, tokenizers) = (call.model.clone(), self.tokenizers.clone());
        let tokenizer = call.tokenizer.clone();
        let late = too_late(context);
        let read = move || {
            let model = basis.model(asked, None, None, tokenizer, &tokenizers);
            model.map(|(model, tokenizer)| (basis, model, tokenizer.until(late)))
        };
        let (basis, model, tokenizer) = apart(read).await??;
        let run = Run {
            gateway: self,
            context,
            call,
            names: names_of(&call.name),
            basis,
            model,
            tokenizer,
            redactions: Arc::new(redactions),
            looked: OnceCell::new(),
            now: self.clock.now(),
        };
        let failure = run.basis.settings.failure.policy;
        let result = run.result().await;
        match result {
            Err(fault) if failure == FailurePolicy::Open => out_of_reach(fault),
            result => result,
        }
    }
}

/// What the model is told where the state of its exchange cannot be had: nothing is counted, so it is not to ask again.
fn out_of_reach(fault: Fault) -> Result<ToolResult, Fault> {
    let (_, why) = finding::without(fault)?;
    Ok(ToolResult {
        text: wording::UNREACHABLE.to_owned(),
        is_error: true,
        rounds_used: 0,
        rounds_remaining: 0,
        tokens_used: 0,
        tokens_remaining: 0,
        must_finalize: true,
        termination: Some(Termination::UpstreamError),
        items: Vec::new(),
        degraded: vec![why],
    })
}

impl Run<'_> {
    async fn result(&self) -> Result<ToolResult, Fault> {
        let key = key(self.call);
        for _ in 0..ATTEMPTS {
            let (session, exchange) = (&self.call.session, &self.call.exchange);
            let mut held = self.gateway.held(self.context, session, exchange).await?;
            let mut retrieval = match held.state.tools.take() {
                Some(retrieval) => retrieval,
                None => self.begin(&held).await?,
            };
            if let Some(known) = retrieval.result(&key) {
                return Ok(known.clone());
            }
            let before = retrieval.turn.tokens_used();
            let told = self.answer(&mut retrieval).await?;
            let (is_passing, result) = (told.is_passing, finished(told, &retrieval));
            held.tokens += retrieval.turn.tokens_used() - before;
            if !is_passing {
                retrieval.keep(key.clone(), result.clone());
            }
            held.state.tools = Some(retrieval);
            match self.keep(&held, &result, before).await? {
                Ok(written) if written.forgotten => return Ok(forgotten(result)),
                Ok(_) => return Ok(result),
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }

    /// The state of an exchange whose first call this is: its limits stand for all of it.
    async fn begin(&self, held: &Held) -> Result<Retrieval, Fault> {
        let settings = &self.basis.settings;
        let spent = self.gateway.spent(self.context, held, &self.basis).await?;
        let outline = Outline::default();
        let prompt = held.state.prompt_tokens(&self.call.spaces);
        let effective = bounds::budget(&self.basis, &self.model, &outline, prompt, spent, 0)?;
        let tokens = effective.map_or(0, |it| u32::try_from(it.tokens).unwrap_or(u32::MAX));
        let limits = Limits {
            rounds: settings.tools.rounds,
            tokens,
            tokens_per_call: settings.tools.result_tokens,
            ..Limits::default()
        };
        // A line of a profile is a part of its turn.
        let turns = held.state.items();
        let turns = turns.filter(|item| item.granularity != Granularity::Profile);
        let ids = turns.flat_map(sources);
        let mut retrieval = Retrieval::new(limits, ids, self.now);
        retrieval.spaces.clone_from(&self.call.spaces);
        Ok(retrieval)
    }

    async fn answer(&self, retrieval: &mut Retrieval) -> Result<Told, Fault> {
        if self.due(retrieval) <= self.now {
            retrieval.turn.end(Termination::Deadline);
        }
        retrieval.turn.resume();
        let is_next = self.call.round == 0 || self.call.round != retrieval.round;
        if is_next && let Err(why) = retrieval.turn.open() {
            return Ok(Told::words(wording::ended(why)));
        }
        retrieval.round = self.call.round;
        let told = match Ask::parse(&self.names, &self.call.name, &self.call.arguments) {
            Ok(ask) => self.asked(retrieval, &ask).await?,
            Err(error) => self.rejected(retrieval.turn.reject(&error), retrieval),
        };
        if self.call.round == 0 {
            retrieval.turn.close();
        }
        Ok(told)
    }

    fn rejected(&self, words: String, retrieval: &mut Retrieval) -> Told {
        let model = &self.model.name;
        if retrieval.turn.termination() == Some(Termination::ToolsRejected) && !model.is_empty() {
            let known = &self.gateway.rejections;
            known.note(self.context, model, self.now);
        }
        self.say(Told::error(words), retrieval)
    }

    async fn asked(&self, retrieval: &mut Retrieval, ask: &Ask) -> Result<Told, Fault> {
        let tokens = match retrieval.turn.ask(ask) {
            Verdict::Run { tokens } => tokens,
            Verdict::Answer(words) => return Ok(self.say(Told::words(words), retrieval)),
            Verdict::Ended(why) => return Ok(Told::words(wording::ended(why))),
        };
        match self.look(ask, self.due(retrieval)).await? {
            Look::Refused(words) => Ok(self.say(Told::error(words), retrieval)),
            Look::Unreachable(why) => {
                // The round counts, or nothing ended a model's asking while memory is away.
                retrieval.turn.take_back(ask);
                self.unreachable(why, retrieval)
            }
            Look::Found(found, missing) => self.found(retrieval, ask, found, missing, tokens).await,
        }
    }

    /// What the call finds: once, however often its state is written anew.
    async fn look(&self, ask: &Ask, due: Timestamp) -> Result<Look, Fault> {
        let context = self.context_until(due);
        let look = || {
            let gateway = self.gateway;
            gateway.look(&context, self.call, ask, &self.basis, self.now)
        };
        Ok(self.looked.get_or_try_init(look).await?.clone())
    }

    fn unreachable(&self, why: String, retrieval: &mut Retrieval) -> Result<Told, Fault> {
        if self.basis.settings.failure.policy == FailurePolicy::Closed {
            return Err(Fault::new(
                memfleet_domain::FaultKind::Unavailable,
                "STORE_UNAVAILABLE",
                why,
            ));
        }
        if self.due(retrieval) <= self.gateway.clock.now() {
            let ended = retrieval.turn.end(Termination::Deadline);
            return Ok(Told::words(wording::ended(ended)));
        }
        Ok(Told {
            degraded: vec![why],
            is_passing: true,
            ..Told::error(wording::UNREACHABLE)
        })
    }

    /// The block of what was found and was not given before, in the tokens of the call.
    async fn found(
        &self,
        retrieval: &mut Retrieval,
        ask: &Ask,
        mut found: Found,
        missing: Option<&'static str>,
        tokens: u32,
    ) -> Result<Told, Fault> {
        let is_full = matches!(ask, Ask::Get(_));
        let marked = |id: String| {
            if is_full {
                format!("{IN_FULL}{id}")
            } else {
                id
            }
        };
        let known: HashSet<String> = retrieval.turn.delivered().map(str::to_owned).collect();
        let is_new = |turn: &Turn| !known.contains(&marked(turn.accepted.id.to_string()));
        found.hits.retain(|hit| is_new(&hit.turn));
        for hit in &mut found.hits {
            hit.neighbours.retain(is_new);
        }
        let degraded = std::mem::take(&mut found.degraded);
        let (made, text) = self.made(ask, found, tokens as usize).await?;
        if matches!(
            made.block.trace.empty,
            Some(Empty::BudgetTooSmall | Empty::BudgetZero)
        ) {
            let ended = retrieval.turn.end(Termination::TokenBudget);
            return Ok(Told::words(wording::ended(ended)));
        }
        if made.items.is_empty() {
            let told = match missing {
                Some(words) => Told::error(words),
                None => Told::words(NOTHING_NEW),
            };
            let told = Told { degraded, ..told };
            return Ok(self.say(told, retrieval));
        }
        let text = self.with_words(text, missing, tokens as usize);
        let ids: Vec<_> = made.items.iter().flat_map(sources).map(marked).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let used = self.tokenizer.count(&text) as u32;
        let delivered = retrieval.turn.deliver(&ids, used);
        delivered.map_err(|error| Fault::internal(error.to_string()))?;
        Ok(Told {
            items: made.items,
            degraded,
            ..Told::words(text)
        })
    }

    /// A block and, where it has parts of memories only, how to read them in full, both in the budget.
    async fn made(&self, ask: &Ask, found: Found, budget: usize) -> Result<(Made, String), Fault> {
        let locale = self.gateway.locale(self.context, &self.call.spaces).await?;
        let query = match ask {
            Ask::Search(search) => search.query.clone(),
            Ask::Get(_) => String::new(),
        };
        let contents = Contents::default()
            .with([&query])
            .with(self.call.spaces.iter().map(SpaceId::as_str))
            .with([self.call.session.as_str(), self.call.exchange.as_str()])
            .found(&found);
        let basis = basis_of(ask, &self.basis);
        let mut making = Making {
            threshold: basis
                .thresholds(Thresholds::of_search(&found))
                .of_each(&found),
            basis,
            outline: Arc::default(),
            weight: Arc::default(),
            tokenizer: self.tokenizer.clone(),
            redactions: self.redactions.clone(),
            locale,
            budget,
            nonce: self.gateway.nonce(self.context, &contents).await,
            as_of: self.call.now,
            now: self.call.now.unwrap_or(self.now),
            query,
            lead: String::new(),
        };
        let get = self.names.get.clone();
        apart(move || {
            let made = making.of_found(&found);
            let tokenizer = making.tokenizer.clone();
            let below =
                |made: &Made, tokens| wording::cut_short(&made.items, &get, tokens, &tokenizer);
            let wanted = tokenizer.count(&below(&made, usize::MAX));
            let whole = |made: &Made| {
                // Counted together: tokens of two texts are not those of one.
                let left = budget.saturating_sub(tokenizer.count(&made.block.text) + 1);
                let text = made.block.text.clone() + &below(made, left);
                let fits = tokenizer.count(&text) <= budget;
                if fits { text } else { made.block.text.clone() }
            };
            // Room for the ids comes out of the block where there is enough of it.
            if wanted > 0 && wanted <= budget / 4 {
                making.budget = budget - wanted - 1;
                let smaller = making.of_found(&found);
                if !smaller.items.is_empty() {
                    let text = whole(&smaller);
                    return (smaller, text);
                }
            }
            let text = whole(&made);
            (made, text)
        })
        .await
    }

    fn with_words(&self, text: String, words: Option<&str>, tokens: usize) -> String {
        let Some(words) = words else { return text };
        let longer = format!("{text}\n\n{words}");
        if self.tokenizer.count(&longer) > tokens {
            return text;
        }
        longer
    }

    /// Words that hold no memory count like it as long as there is room for them (AMP item 29).
    fn say(&self, told: Told, retrieval: &mut Retrieval) -> Told {
        let tokens = self.tokenizer.count(&told.text) as u32;
        // Where there is none the model is told all the same: a call must have a result.
        let _ = retrieval.turn.deliver(&[], tokens);
        told
    }

    fn due(&self, retrieval: &Retrieval) -> Timestamp {
        let most = self.basis.settings.tools.deadline_ms;
        retrieval.began_at + TimeDelta::milliseconds(most.into())
    }

    fn context_until(&self, due: Timestamp) -> Context {
        let left = (due - self.gateway.clock.now())
            .to_std()
            .unwrap_or_default();
        // The caller is to hear of it in time.
        self.context.at_most(left)
    }

    /// What enters the prompt, to be written down as that of an assembly is (AMP item 94).
    fn injected(&self, result: &ToolResult, before: u32) -> Assembled {
        let mut answer = Assembled {
            decision: Decision::Injected,
            reason: None,
            block: result.text.clone(),
            tokens: result.tokens_used - before,
            items: result.items.clone(),
            strategy_requested: Strategy::Tool,
            strategy_used: Strategy::Tool,
            versions: self.basis.versions.clone(),
            session: Some(self.call.session.clone()),
            exchange: Some(self.call.exchange.clone()),
            ..Assembled::skipped(Reason::Relevant)
        };
        answer.budget.added_tokens = answer.tokens;
        answer
    }

    /// Keeps what a call came to, and writes down what enters the prompt with it.
    async fn keep(
        &self,
        held: &Held,
        result: &ToolResult,
        before: u32,
    ) -> Result<Result<Written, StoreError>, Fault> {
        let mut answer = self.injected(result, before);
        let injection = match result.items.is_empty() {
            true => None,
            false => self.gateway.injection(
                self.context,
                &self.call.spaces,
                &self.basis.settings.audit,
                &mut answer,
            )?,
        };
        let written = self
            .gateway
            .write(self.context, held, injection.as_ref())
            .await?;
        if matches!(&written, Ok(written) if !written.forgotten) {
            self.gateway.note_injected(self.context, &answer);
        }
        Ok(written)
    }
}

/// The ids of all that an item stands for.
fn sources(item: &AssembledItem) -> impl Iterator<Item = String> {
    item.sources.iter().map(|source| source.id.clone())
}

fn finished(told: Told, retrieval: &Retrieval) -> ToolResult {
    let turn = &retrieval.turn;
    ToolResult {
        text: told.text,
        is_error: told.is_error,
        rounds_used: turn.rounds_used(),
        rounds_remaining: turn.rounds_left(),
        tokens_used: turn.tokens_used(),
        tokens_remaining: turn.tokens_left(),
        must_finalize: turn.must_finalize(),
        termination: turn.termination(),
        items: told.items,
        degraded: told.degraded,
    }
}

/// A result whose words were forgotten while it was made.
fn forgotten(result: ToolResult) -> ToolResult {
    ToolResult {
        text: NOTHING_NEW.to_owned(),
        items: Vec::new(),
        ..result
    }
}

/// The names that the tools have in a request, by one of them.
fn names_of(name: &str) -> Names {
    let plain = Names::default();
    let of = |tool: &str| {
        let suffix = name.strip_prefix(tool)?;
        let number = suffix.strip_prefix('_')?;
        number.parse::<u32>().ok().map(|_| suffix)
    };
    match of(&plain.search).or_else(|| of(&plain.get)) {
        Some(suffix) => Names {
            search: plain.search.clone() + suffix,
            get: plain.get.clone() + suffix,
        },
        None => plain,
    }
}
