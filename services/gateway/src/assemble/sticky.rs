//! The requests of one exchange get the same bytes at the same place (AMP item 6): what the first of them was given is kept in the store, where
//! any gateway finds it. Of two at a time one wins, and both are given what it made.

use std::collections::BTreeSet;

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::assembly::{Assembled, AssembledItem};
use memfleet_ports::context::Context;
use memfleet_ports::exchanges::{Entry, Exchange, Kept, Written};
use memfleet_ports::injections::Injection;
use memfleet_ports::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::Gateway;
use crate::access::reaches;
use crate::tools::Retrieval;

/// How long an exchange is kept.
const KEPT: chrono::TimeDelta = chrono::TimeDelta::days(7);

/// Sets of spaces that an exchange keeps an answer for: of more, the oldest gives way.
const GIVEN: usize = 8;

/// What the store keeps of an exchange.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// What its first request was given, and the first of each that asked other spaces.
    pub given: Vec<Given>,
    /// What the model asked for itself.
    pub tools: Option<Retrieval>,
    /// Digest of whoever began it; empty where an earlier version did.
    begun_by: String,
}

/// What a request was given. Only a request that asks the same spaces is given it again: its credential reaches them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Given {
    /// The spaces that were asked.
    pub spaces: Vec<SpaceId>,
    /// [`super::work::Work::conditions`] that it was made under: where more is to be hidden by now, or another profile is asked for, it is not
    /// given again.
    #[serde(rename = "redactions")]
    pub conditions: String,
    /// The answer, the block included.
    pub answer: Assembled,
}

impl State {
    /// What a request of these spaces was given under these conditions; it is taken out.
    pub fn given_of(&mut self, spaces: &[SpaceId], conditions: &str) -> Option<Assembled> {
        let is_it = |given: &Given| given.spaces == spaces && given.conditions == conditions;
        let at = self.given.iter().position(is_it)?;
        Some(self.given.remove(at).answer)
    }

    /// Keeps what a request of these spaces is given.
    fn give(&mut self, spaces: &[SpaceId], conditions: &str, answer: &Assembled) {
        self.given.retain(|given| given.spaces != spaces);
        let surplus = (self.given.len() + 1).saturating_sub(GIVEN);
        self.given.drain(..surplus);
        self.given.push(Given {
            spaces: spaces.to_vec(),
            conditions: conditions.to_owned(),
            // The edits follow from the block and its place: they would be its text a second time. What was dropped is in the record.
            answer: Assembled {
                edits: Vec::new(),
                patched: None,
                dropped: Vec::new(),
                ..answer.clone()
            },
        });
    }

    /// The items of all that was given.
    pub fn items(&self) -> impl Iterator<Item = &AssembledItem> {
        self.given.iter().flat_map(|given| &given.answer.items)
    }

    /// Tokens of the prompt that tools were offered to, those of their definitions among them; 0 where that is not known.
    pub fn prompt_tokens(&self, spaces: &[SpaceId]) -> u64 {
        let given = self.given.iter().find(|given| given.spaces == spaces);
        given.map_or(0, |given| {
            let budget = &given.answer.budget;
            u64::from(budget.prompt_tokens) + u64::from(budget.added_tokens)
        })
    }

    /// The blocks of a state as the store has it.
    pub fn blocks(state: &str) -> Vec<String> {
        let state: Self = serde_json::from_str(state).unwrap_or_default();
        let answers = state.given.into_iter().map(|given| given.answer);
        answers.map(|answer| answer.block).collect()
    }

    /// What is left of a state that was forgotten.
    fn of_tally(tally: &str) -> Self {
        Self {
            given: Vec::new(),
            tools: serde_json::from_str(tally).ok(),
            begun_by: String::new(),
        }
    }

    /// The turns whose words it holds.
    fn turns(&self) -> Vec<(SpaceId, TurnId)> {
        let tools = self.tools.iter().flat_map(Retrieval::items);
        turns(self.items().chain(tools))
    }
}

/// An exchange, as it was read.
pub struct Held {
    pub session: SessionId,
    pub name: ExchangeName,
    /// The version that was read; none: there was none.
    pub version: Option<u64>,
    /// Tokens that it has had.
    pub tokens: u32,
    pub state: State,
}

impl Held {
    /// What is kept of an exchange; nothing of one that is new, and of one that was forgotten what was counted.
    fn of(session: SessionId, name: ExchangeName, kept: Option<Kept>) -> Self {
        let (version, tokens) = match &kept {
            Some(kept) => (Some(kept.version), kept.exchange.tokens),
            None => (None, 0),
        };
        let state = kept.map(|kept| match kept.forgotten {
            true => State::of_tally(&kept.exchange.tally),
            // A state of another version of this program is as good as none: the block is made anew.
            false => serde_json::from_str(&kept.exchange.state).unwrap_or_default(),
        });
        Self {
            session,
            name,
            version,
            tokens,
            state: state.unwrap_or_default(),
        }
    }

    /// Whether who calls, `own` by its digest, may take part: it reaches all spaces that were asked for, and where none was asked yet it began
    /// the exchange.
    fn is_reached(&self, context: &Context, own: &str) -> bool {
        let given = self.state.given.iter().flat_map(|given| &given.spaces);
        let tools = self.state.tools.iter().flat_map(|tools| &tools.spaces);
        let mut asked = given.chain(tools).peekable();
        match asked.peek() {
            Some(_) => asked.all(|space| reaches(context, space)),
            None => self.state.begun_by.is_empty() || self.state.begun_by == own,
        }
    }

    /// The same place for a question that is asked anew, if it was asked before: without what that was given.
    pub fn anew(&mut self, spaces: &[SpaceId]) {
        if self.state.given.iter().any(|given| given.spaces == spaces) {
            let begun_by = std::mem::take(&mut self.state.begun_by);
            self.tokens = 0;
            self.state = State {
                begun_by,
                ..State::default()
            };
        }
    }

    /// Keeps what a request of these spaces is given.
    pub fn give(&mut self, spaces: &[SpaceId], conditions: &str, answer: &Assembled) {
        self.tokens += answer.budget.added_tokens;
        self.state.give(spaces, conditions, answer);
    }

    /// As it is written.
    pub fn exchange(&self, now: Timestamp) -> Result<Exchange, Fault> {
        let unwritten = |error| Fault::internal(format!("an exchange cannot be written: {error}"));
        let state = serde_json::to_string(&self.state).map_err(unwritten)?;
        let tally = self.state.tools.as_ref().map(Retrieval::tally);
        let tally = tally.map(|tally| serde_json::to_string(&tally)).transpose();
        Ok(Exchange {
            tally: tally.map_err(unwritten)?.unwrap_or_default(),
            session: self.session.clone(),
            name: self.name.clone(),
            state,
            tokens: self.tokens,
            turns: self.state.turns(),
            updated_at: now,
            expires_at: now + KEPT,
        })
    }
}

/// The turns whose words these items hold, each once.
pub fn turns<'i>(items: impl IntoIterator<Item = &'i AssembledItem>) -> Vec<(SpaceId, TurnId)> {
    let items = items.into_iter();
    let turns: BTreeSet<_> = items.flat_map(AssembledItem::shown_turns).collect();
    turns.into_iter().collect()
}

impl Gateway {
    /// The exchange as it is kept. Where it holds what this caller does not reach, it is somebody else's of the same name, and the caller has
    /// one of its own: it takes no part in the other, and learns nothing of it.
    pub(crate) async fn held(
        &self,
        context: &Context,
        session: &SessionId,
        name: &ExchangeName,
    ) -> Result<Held, Fault> {
        let own = own_name(name, context.caller_name())?;
        let mut held = self.held_as(context, session, name).await?;
        if !held.is_reached(context, own.as_str()) {
            held = self.held_as(context, session, &own).await?;
        }
        if held.version.is_none() {
            own.as_str().clone_into(&mut held.state.begun_by);
        }
        Ok(held)
    }

    async fn held_as(
        &self,
        context: &Context,
        session: &SessionId,
        name: &ExchangeName,
    ) -> Result<Held, Fault> {
        let (tenant, now) = (&context.tenant, self.clock.now());
        let kept = self.exchanges.get(tenant, session, name, now).await?;
        Ok(Held::of(session.clone(), name.clone(), kept))
    }

    /// Writes an exchange, if nobody did since it was read, and what entered its prompt with it.
    pub(crate) async fn write(
        &self,
        context: &Context,
        held: &Held,
        injection: Option<&Injection>,
    ) -> Result<Result<Written, StoreError>, Fault> {
        let exchange = held.exchange(self.clock.now())?;
        let entry = Entry {
            injection,
            ..Entry::of(&exchange, held.version)
        };
        Ok(self.keep_entry(&context.tenant, entry).await)
    }
}

/// The name of a caller's own exchange where the name that it gives is taken.
fn own_name(name: &ExchangeName, caller: &str) -> Result<ExchangeName, Fault> {
    let mut hasher = blake3::Hasher::new_derive_key("memfleet gateway 2026 exchange of a caller");
    hasher.update(&(name.as_str().len() as u64).to_be_bytes());
    hasher.update(name.as_str().as_bytes());
    hasher.update(caller.as_bytes());
    let digest = hasher.finalize().to_hex();
    ExchangeName::new(&digest[..32]).map_err(|error| Fault::internal(error.to_string()))
}
