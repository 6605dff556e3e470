//! One assembly from its first look at the prompt to the block and its place. Every step either goes on or says why nothing is injected.

use std::sync::Arc;
use std::time::Duration;

use memfleet_assembly::Tokenizer;
use memfleet_domain::assembly::{
    Decision, FailurePolicy, Gate, GateOutcome, Reason, SessionOrigin, Strategy,
};
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId};
use memfleet_domain::space::Locale;
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::assembly::{AssembleRequest, Assembled, Edit, GateEntry, Prompt};
use memfleet_ports::context::Context;
use memfleet_ports::conversations::Conversation;
use memfleet_ports::retriever::Found;
use tokio::time::Instant;

use super::basis::{Basis, Thresholds};
use super::bounds::{self, Spent};
use super::choosing::{Made, Making};
use super::draft::Draft;
use super::finding;
use super::models::Model;
use super::nonce::{self, Contents};
use super::placing;
use super::profile::MadeProfile;
use super::prompt::{self, Outline, Reading, Weight};
use super::redaction::Redactions;
use super::rendering::Brought;
use super::sticky::Held;
use crate::Gateway;
use crate::conversations::Purpose;

/// An assembly under way.
pub struct Work<'w> {
    pub gateway: &'w Gateway,
    pub context: &'w Context,
    pub request: AssembleRequest,
    pub basis: Arc<Basis>,
    pub outline: Arc<Outline>,
    pub weight: Arc<Weight>,
    pub model: Model,
    pub tokenizer: Tokenizer,
    pub redactions: Arc<Redactions>,
    pub held: Option<Held>,
    /// Whether somebody may ask this for the first time. A question without a history is sent by who asks again as by who tries again, and only
    /// a name that the caller gives tells them apart: without one memory is asked again, too.
    may_begin_anew: bool,
    /// Digest of what was said that the exchange is known by, as long as it has no key.
    plain_exchange: Option<ExchangeName>,
    /// What is new of a conversation that nobody names.
    pub conversation: Option<Conversation>,
    pub draft: Draft,
    /// The least relevance of an item.
    pub threshold: f32,
    /// Bounds of gate 3.
    pub thresholds: Thresholds,
    /// Why the block has nothing but its profile, where that is so.
    pub rest_ended: Option<Reason>,
    /// When the answer is due, with memory or without.
    pub due: Instant,
    pub now: Timestamp,
}

/// The part of the time that is left for writing down.
const FOR_WRITING: u32 = 5;

/// Goes on, or ends without memory.
pub type Step<T> = Result<Result<T, Reason>, Fault>;

/// What goes on; a reason ends the step.
macro_rules! go {
    ($step:expr) => {
        match $step {
            Ok(value) => value,
            Err(reason) => return Ok(Err(reason)),
        }
    };
}

impl<'w> Work<'w> {
    /// Reads the prompt, under the policy in force.
    pub async fn begin(
        gateway: &'w Gateway,
        context: &'w Context,
        mut request: AssembleRequest,
        basis: Basis,
        began: Instant,
    ) -> Result<Self, Fault> {
        let due = began + Duration::from_millis(basis.settings.failure.deadline_ms.into());
        let prompt = std::mem::take(&mut request.prompt);
        let has_query = !request.query.text.is_empty();
        let (model, tokenizer) = (request.model.clone(), request.tokenizer.clone());
        let tokenizers = gateway.tokenizers.clone();
        let (rejections, caller) = (gateway.rejections.clone(), context.clone());
        let now = gateway.clock.now();
        let late = super::too_late(context);
        let read = move || {
            let redactions = Redactions::new(&basis.settings.format.redactions)?;
            let rejects = |model: &str| rejections.rejects(&caller, model, now);
            let mut chosen = None;
            let format = match &prompt {
                Prompt::Provider { format, .. } => Some(*format),
                _ => None,
            };
            let outline = prompt::with_conversation(&prompt, |conversation| {
                let name = conversation.model.as_deref();
                let (model, _) = chosen.insert(basis.model(
                    model.clone(),
                    name,
                    format,
                    tokenizer.clone(),
                    &tokenizers,
                )?);
                model.supports_tools &= !rejects(&model.name);
                Ok::<_, Fault>(Outline::of(
                    conversation,
                    &reading(&basis, has_query, model),
                ))
            })?;
            let outline = outline.transpose()?.unwrap_or_default();
            let (model, tokenizer) = match chosen {
                Some(chosen) => chosen,
                None => basis.model(model, None, None, tokenizer, &tokenizers)?,
            };
            Ok::<_, Fault>((
                prompt,
                basis,
                outline,
                model,
                tokenizer.until(late),
                redactions,
            ))
        };
        let (prompt, basis, outline, model, tokenizer, redactions) = super::apart(read).await??;
        request.prompt = prompt;
        let mut draft = Draft::new();
        draft.answer.versions = basis.versions.clone();
        draft.answer.strategy_requested = basis.settings.placing.strategies[0];
        draft.timed("prompt");
        let thresholds = basis.thresholds(Thresholds::of_brought());
        Ok(Self {
            gateway,
            context,
            request,
            threshold: thresholds.of_item,
            thresholds,
            rest_ended: None,
            due,
            basis: Arc::new(basis),
            outline: Arc::new(outline),
            weight: Arc::default(),
            model,
            tokenizer,
            redactions: Arc::new(redactions),
            held: None,
            may_begin_anew: false,
            plain_exchange: None,
            conversation: None,
            draft,
            now,
        })
    }

    /// The whole way. `Ok(Err(reason))`: nothing is injected.
    pub async fn run(&mut self) -> Step<()> {
        go!(self.policy());
        self.name();
        go!(self.rules());
        let brief = self.brief();
        brief.within("the session", self.recognise()).await?;
        if self.request.exchange.is_some() {
            let problem = "exchange: is of no session: nothing is kept for it";
            self.draft.answer.degraded.push(problem.to_owned());
        }
        brief.within("the exchange", self.name_exchange()).await?;
        if let Some(given) = brief.within("the exchange", self.held()).await? {
            let named = std::mem::replace(&mut self.draft.answer, given);
            let answer = &mut self.draft.answer;
            (answer.session_origin, answer.session_lineage) =
                (named.session_origin, named.session_lineage);
            return Ok(Ok(()));
        }
        let budget = go!(self.budget().await?);
        if self.offers_tools() {
            self.miss_profile();
            return Ok(self.offer_tools(budget));
        }
        self.wait().await?;
        let speaker = self.known_speaker();
        let (found, speaker) = tokio::join!(self.find(), speaker);
        self.draft.timed("search");
        let profile = self.profile(speaker, budget).await;
        let rest = match found {
            Ok(Ok(found)) => self.made(found, budget, profile.lead()).await,
            Ok(Err(reason)) => Ok(Err(reason)),
            Err(fault) => Err(fault),
        };
        self.put_together(rest, profile)
    }

    /// The block behind its profile: what gate 3 lets in of what was found.
    async fn made(&mut self, mut found: Found, budget: usize, lead: String) -> Step<Made> {
        self.thresholds = self.weigh_hits(&mut found).await;
        self.threshold = self.thresholds.of_each(&found);
        self.draft.timed("needs");
        let made = self.choose(found, budget, lead).await?;
        go!(self.relevance(&made));
        Ok(Ok(made))
    }

    /// Injects the profile and the rest, or the one of them that there is.
    fn put_together(&mut self, rest: Step<Made>, profile: MadeProfile) -> Step<()> {
        let is_closed = self.basis.settings.failure.policy == FailurePolicy::Closed;
        let rest = match rest {
            Err(fault) if is_closed || profile.items.is_empty() => return Err(fault),
            Err(fault) => {
                let (reason, why) = finding::without(fault)?;
                self.draft.answer.degraded.push(why);
                Err(reason)
            }
            Ok(rest) => rest,
        };
        match rest {
            Ok(made) => self.inject(made),
            Err(reason) if profile.items.is_empty() => return Ok(Err(reason)),
            Err(reason) => self.inject_alone(&profile, reason),
        }
        let answer = &mut self.draft.answer;
        answer.profile = profile.told();
        answer.items.splice(0..0, profile.items);
        Ok(Ok(()))
    }

    /// What an answer rests on besides its spaces and its exchange: what is hidden, and whose profile it has.
    pub(super) fn conditions(&self) -> String {
        let hidden = self.redactions.digest();
        match self.profile_tokens() {
            0 => hidden,
            most => {
                let speaker = self.request.speaker.as_ref();
                let speaker = speaker.map_or("", |speaker| speaker.as_str());
                format!("{hidden} profile {most} {speaker}")
            }
        }
    }

    /// Memory tools take their part of the budget, as a block does (AMP items 65, 67, 69).
    fn offer_tools(&mut self, budget: usize) -> Result<(), Reason> {
        let edits = placing::edits(&self.outline, &self.request.prompt, "");
        let tokens = edits.iter().map(|edit| self.tokenizer.count(&edit.tool));
        let tokens: usize = tokens.sum();
        if tokens > budget {
            return Err(Reason::BudgetTooSmall);
        }
        self.draft.answer.edits = edits;
        self.draft.answer.budget.added_tokens = tokens as u32;
        self.place(Reason::ToolsOffered);
        Ok(())
    }

    /// Waits for the writes that a caller wants to see and for their facts, which takes nothing of memory's own time.
    async fn wait(&mut self) -> Result<(), Fault> {
        let began = Instant::now();
        let (spaces, writes) = (&self.request.query.spaces, &self.request.wait_for);
        self.gateway.wait_for(self.context, spaces, writes).await?;
        let reading = self
            .gateway
            .facts_of_writes_read(self.context, spaces, writes);
        self.draft.answer.degraded.extend(reading.await);
        self.due += began.elapsed();
        Ok(())
    }

    /// Which session and which exchange it is, as far as somebody says so, and what is searched for.
    fn name(&mut self) {
        let query = &mut self.request.query;
        let mut origin = query.session.as_ref().map(|_| SessionOrigin::Given);
        if query.session.is_none() {
            query.session.clone_from(&self.outline.session);
            origin = query.session.as_ref().map(|_| SessionOrigin::Request);
        }
        if query.text.is_empty() {
            let said = self.outline.query.clone().unwrap_or_default();
            query.text = prompt::searched_for(&said).into_owned();
        }
        self.tell_session(origin);
    }

    fn tell_session(&mut self, origin: Option<SessionOrigin>) {
        let answer = &mut self.draft.answer;
        answer.session.clone_from(&self.request.query.session);
        answer.session_origin = origin;
        if answer.session.is_some() {
            let told = self.request.exchange.take();
            self.may_begin_anew = told.is_none() && self.outline.begins;
            self.plain_exchange = match told {
                Some(_) => None,
                None => self.outline.exchange.clone(),
            };
            answer.exchange = told;
        }
    }

    /// The session that nobody names is known by what was said. What it comes from is excluded with it.
    async fn recognise(&mut self) -> Result<(), Fault> {
        let query = &mut self.request.query;
        let (Some(resent), Some(space), None) =
            (&self.outline.resent, query.spaces.first(), &query.session)
        else {
            return Ok(());
        };
        let recognised = self
            .gateway
            .recognised(self.context, space, resent, Purpose::Call)
            .await?;
        let conversation = recognised.conversation;
        query.session = Some(conversation.session.clone());
        let lineage = conversation.lineage.iter();
        let lineage: Vec<_> = lineage.map(|it| it.session.clone()).collect();
        self.request.aliases.extend_from_slice(&lineage);
        self.draft.answer.session_lineage = lineage;
        self.conversation = recognised.is_news.then_some(conversation);
        self.tell_session(Some(recognised.origin));
        Ok(())
    }

    /// Names an exchange without a name by what was said.
    async fn name_exchange(&mut self) -> Result<(), Fault> {
        if let Some(plain) = self.plain_exchange.take() {
            let name = self.gateway.exchange_name(self.context, &plain).await?;
            self.draft.answer.exchange = Some(name);
        }
        Ok(())
    }

    /// What an earlier request of the exchange was given.
    async fn held(&mut self) -> Result<Option<Assembled>, Fault> {
        let answer = &self.draft.answer;
        let (Some(session), Some(name)) = (&answer.session, &answer.exchange) else {
            return Ok(None);
        };
        let mut held = self.gateway.held(self.context, session, name).await?;
        let spaces = &self.request.query.spaces;
        if self.may_begin_anew {
            held.anew(spaces);
        }
        let given = held.state.given_of(spaces, &self.conditions());
        let Some(mut given) = given.filter(|given| self.takes_place_of(given)) else {
            self.held = Some(held);
            return Ok(None);
        };
        given.gates = vec![GateEntry::new(
            Gate::Policy,
            GateOutcome::Force,
            Reason::Sticky,
        )];
        given.edits = self.edits(&given);
        Ok(Some(given))
    }

    /// Whether this prompt can have an answer where the one that it was made for had it: a block where it was, tools where tools may be. A model
    /// that turned out to take no tools is given a block.
    pub fn takes_place_of(&mut self, answer: &Assembled) -> bool {
        answer.decision == Decision::Skipped
            || Arc::make_mut(&mut self.outline).go_by(answer.strategy_used)
    }

    /// What puts an answer into the prompt: that follows from its block and the place, so it is not kept.
    pub fn edits(&self, answer: &Assembled) -> Vec<Edit> {
        match answer.decision {
            Decision::Skipped => Vec::new(),
            _ => placing::edits(&self.outline, &self.request.prompt, &answer.block),
        }
    }

    fn offers_tools(&self) -> bool {
        let placement = self.outline.placement();
        placement.is_some_and(|it| it.strategy == Strategy::Tool)
    }

    async fn budget(&mut self) -> Step<usize> {
        let spent = match &self.held {
            Some(held) => {
                let brief = self.brief();
                let spent = self.gateway.spent(&brief, held, &self.basis);
                brief.within("the budget", spent).await?
            }
            None => Spent::default(),
        };
        self.allowed(nonce::PLACEHOLDER, spent).await
    }

    /// Reads what the prompt comes to.
    async fn weigh(&mut self) -> Result<(), Fault> {
        let (outline, model) = (self.outline.clone(), self.model.clone());
        let (tokenizer, compares) = (
            self.tokenizer.clone(),
            self.basis.settings.exclusion.in_prompt,
        );
        let weigh = move || Weight::of(&outline, &model, &tokenizer, compares);
        self.weight = Arc::new(super::apart(weigh).await?);
        self.draft.timed("prompt");
        Ok(())
    }

    /// Tokens that may be added, after what exchange and session have had.
    async fn allowed(&mut self, nonce: &str, spent: Spent) -> Step<usize> {
        self.weigh().await?;
        let making = self.making(usize::MAX, nonce, Locale::default());
        let overhead = making.options().overhead();
        let budget = bounds::budget(
            &self.basis,
            &self.model,
            &self.outline,
            self.weight.tokens,
            spent,
            overhead,
        )?;
        let told = &mut self.draft.answer.budget;
        (told.tokenizer, told.approximate) = bounds::described(&self.tokenizer);
        told.prompt_tokens = u32::try_from(self.weight.tokens).unwrap_or(u32::MAX);
        Ok(budget.map(|effective| {
            told.effective_tokens = u32::try_from(effective.tokens).unwrap_or(u32::MAX);
            bounds::name(effective.limited_by).clone_into(&mut told.limited_by);
            told.effective_tokens as usize
        }))
    }

    /// The call with the time that memory may take: what comes of it is written down in the rest.
    fn brief(&self) -> Context {
        let left = (self.due - self.rest()).saturating_duration_since(Instant::now());
        self.context.at_most(left)
    }

    /// End of the time for reading what was found. A block has as much time as writing down has.
    pub(super) fn reading_ends(&self) -> Instant {
        self.due - 2 * self.rest()
    }

    /// Time to write down what an assembly comes to.
    fn rest(&self) -> Duration {
        let most = self.basis.settings.failure.deadline_ms;
        Duration::from_millis(most.into()) / FOR_WRITING
    }

    /// Gates 1 and 2, then the search, in the time that there is.
    async fn find(&mut self) -> Step<Found> {
        let context = self.brief();
        context.within("memory", self.search(&context)).await
    }

    async fn search(&mut self, context: &Context) -> Step<Found> {
        go!(self.anything(context).await?);
        let understood = self.gateway.understood(context, &self.request.query).await;
        go!(self.routing(context, understood.as_deref()).await?);
        let request = &mut self.request;
        if !request.narratives.is_empty() && !self.gateway.narrow(context, request).await? {
            return Ok(Err(Reason::NothingFound));
        }
        let exclusion = &self.basis.settings.exclusion;
        let session = request.query.session.as_ref();
        let (filter, aliases) = (&mut request.query.filter, &request.aliases);
        finding::exclude(filter, exclusion, session, aliases, self.now);
        let query = &request.query;
        let found = self
            .gateway
            .search_understood(context, query, understood)
            .await;
        let found = match found {
            Ok(found) => found,
            Err(fault) => return self.unknown_space(fault),
        };
        let answer = &mut self.draft.answer;
        answer.degraded.extend_from_slice(&found.degraded);
        answer.understood.clone_from(&found.understood);
        match found.hits.is_empty() {
            true => Ok(Err(Reason::NothingFound)),
            false => Ok(Ok(found)),
        }
    }

    /// End of an assembly that asks for a space that does not exist; other faults, and this one where memory must not fail, stay
    /// faults.
    fn unknown_space<T>(&mut self, fault: Fault) -> Step<T> {
        let is_closed = self.basis.settings.failure.policy == FailurePolicy::Closed;
        if fault.kind != FaultKind::NotFound || is_closed {
            return Err(fault);
        }
        self.draft.answer.degraded.push(fault.message);
        Ok(Err(Reason::UnknownSpace))
    }

    /// Whether there is any memory to search, be it such as the filter keeps out (AMP item 57).
    async fn anything(&mut self, context: &Context) -> Step<()> {
        for name in &self.request.query.spaces {
            let space = self.gateway.spaces.get(&context.scope(name)).await?;
            let is_empty = space.as_ref().is_some_and(|space| space.turns == 0);
            if !is_empty {
                if space.is_none()
                    && let Err(fault) = self.gateway.awaited(context, name).await
                {
                    return self.unknown_space(fault);
                }
                return Ok(Ok(()));
            }
        }
        Ok(Err(Reason::NoMemory))
    }

    pub(super) fn making(&self, budget: usize, nonce: &str, locale: Locale) -> Making {
        Making {
            basis: self.basis.clone(),
            outline: self.outline.clone(),
            weight: self.weight.clone(),
            tokenizer: self.tokenizer.clone(),
            redactions: self.redactions.clone(),
            locale,
            budget,
            nonce: nonce.to_owned(),
            threshold: self.threshold,
            as_of: self.request.query.now,
            now: self.request.query.now.unwrap_or(self.now),
            query: self.request.query.text.clone(),
            lead: String::new(),
        }
    }

    /// What is asked, where and in which exchange.
    fn asked(&self) -> Contents {
        let (query, answer) = (&self.request.query, &self.draft.answer);
        Contents::default()
            .with([&query.text])
            .with(query.spaces.iter().map(SpaceId::as_str))
            .with(answer.session.as_ref().map(SessionId::as_str))
            .with(answer.exchange.as_ref().map(ExchangeName::as_str))
    }

    async fn choose(&mut self, found: Found, budget: usize, lead: String) -> Result<Made, Fault> {
        let locale = self
            .gateway
            .locale(self.context, &self.request.query.spaces);
        let locale = self.brief().within("memory", locale).await?;
        let contents = self.asked().found(&found);
        let nonce = self.gateway.nonce(&self.brief(), &contents).await;
        let making = Making {
            lead,
            ..self.making(budget, &nonce, locale)
        };
        self.draft.answer.nonce = nonce;
        self.draft.made_by("scorer", &found.scorer);
        super::apart(move || making.of_found(&found)).await
    }

    /// The block of what a caller brought, in its place.
    pub async fn render(&mut self, brought: Brought, nonce: Option<String>) -> Step<()> {
        if let Some(Err(reason)) = &self.outline.place {
            return Ok(Err(*reason));
        }
        let nonce = match nonce {
            Some(given) => given,
            None => {
                let contents = brought.contents(self.asked());
                self.gateway.nonce(&self.brief(), &contents).await
            }
        };
        let budget = go!(self.allowed(&nonce, Spent::default()).await?);
        let making = self.making(budget, &nonce, Locale::default());
        let made = super::apart(move || making.of_brought(&brought)).await?;
        self.draft.answer.nonce = nonce;
        go!(self.relevance(&made));
        self.inject(made);
        Ok(Ok(()))
    }

    fn inject(&mut self, made: Made) {
        let answer = &mut self.draft.answer;
        answer.tokens = made.block.tokens as u32;
        answer.budget.added_tokens = made.block.added_tokens as u32;
        answer.items = made.items;
        answer.block = made.block.text;
        answer.edits = placing::edits(&self.outline, &self.request.prompt, &answer.block);
        self.place(Reason::Relevant);
    }

    /// The profile as the whole block; the rest stays out for this reason.
    fn inject_alone(&mut self, profile: &MadeProfile, reason: Reason) {
        let section = &profile.section;
        let answer = &mut self.draft.answer;
        answer.tokens = section.tokens as u32;
        answer.budget.added_tokens = section.added_tokens as u32;
        answer.block.clone_from(&section.text);
        answer.nonce = String::new();
        answer.edits = placing::edits(&self.outline, &self.request.prompt, &answer.block);
        self.place(Reason::Relevant);
        self.rest_ended = Some(reason);
        let told = &mut self.draft.answer.reason;
        *told = told.or(Some(reason));
    }

    /// Says by which strategy it goes.
    fn place(&mut self, reason: Reason) {
        let answer = &mut self.draft.answer;
        let placement = self.outline.placement();
        let requested = answer.strategy_requested;
        answer.strategy_used = placement.map_or(requested, |it| it.strategy);
        let passed_over = placement.and_then(prompt::passed_over);
        answer.decision = match passed_over {
            None => Decision::Injected,
            Some(_) => Decision::Fallback,
        };
        answer.reason = passed_over.or((reason == Reason::ToolsOffered).then_some(reason));
    }
}

fn reading<'r>(basis: &'r Basis, has_query: bool, model: &'r Model) -> Reading<'r> {
    let settings = &basis.settings;
    Reading {
        strategies: &settings.placing.strategies,
        has_query,
        model,
        compares: settings.exclusion.in_prompt,
    }
}
