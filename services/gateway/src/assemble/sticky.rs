//! The requests of one exchange get the same bytes at the same place (AMP item 6): what the first of them was given is kept in the store, where
//! any gateway finds it. Of two at a time one wins, and both are given what it made.

use std::collections::BTreeSet;

use memfleet_domain::Fault;
use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TurnId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::assembly::{Assembled, AssembledItem};
use memfleet_ports::context::Context;
use memfleet_ports::conversations::Conversation;
use memfleet_ports::exchanges::{Exchange, Kept, Written};
use memfleet_ports::store::StoreError;
use serde::{Deserialize, Serialize};

use crate::Gateway;
use crate::access::reaches;
use crate::tools::Retrieval;

/// How long an exchange is kept.
const KEPT: chrono::TimeDelta = chrono::TimeDelta::days(7);

/// What the store keeps of an exchange.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// What its first request was given.
    pub given: Option<Given>,
    /// What the model asked for itself.
    pub tools: Option<Retrieval>,
}

/// What a request was given. Only a request that asks the same spaces is given it again: its credential reaches them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Given {
    /// The spaces that were asked.
    pub spaces: Vec<SpaceId>,
    /// The answer, the block included.
    pub answer: Assembled,
}

impl State {
    /// What a request of these spaces was given.
    pub fn given_of(&mut self, spaces: &[SpaceId]) -> Option<Assembled> {
        let given = self.given.take_if(|given| given.spaces == spaces)?;
        Some(given.answer)
    }

    /// What is left of a state that was forgotten.
    fn of_tally(tally: &str) -> Self {
        Self {
            given: None,
            tools: serde_json::from_str(tally).ok(),
        }
    }

    /// The turns whose words it holds.
    fn turns(&self) -> Vec<(SpaceId, TurnId)> {
        let given = self.given.iter().flat_map(|given| &given.answer.items);
        let tools = self.tools.iter().flat_map(Retrieval::items);
        let turns: BTreeSet<_> = given.chain(tools).filter_map(turn).collect();
        turns.into_iter().collect()
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

    /// Whether who calls reaches all spaces that it was asked for.
    pub fn is_reached(&self, context: &Context) -> bool {
        let given = self.state.given.iter().flat_map(|given| &given.spaces);
        let tools = self.state.tools.iter().flat_map(|tools| &tools.spaces);
        given.chain(tools).all(|space| reaches(context, space))
    }

    /// The same place, with nothing in it yet.
    pub fn anew(self) -> Self {
        Self {
            tokens: 0,
            state: State::default(),
            ..self
        }
    }

    fn exchange(&self, now: Timestamp) -> Result<Exchange, Fault> {
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

/// The turns whose words an answer holds.
pub fn turns(answer: &Assembled) -> Vec<(SpaceId, TurnId)> {
    answer.items.iter().filter_map(turn).collect()
}

fn turn(item: &AssembledItem) -> Option<(SpaceId, TurnId)> {
    Some((item.space.clone()?, item.turn()?))
}

impl Gateway {
    /// The exchange as it is kept.
    pub(crate) async fn held(
        &self,
        context: &Context,
        session: &SessionId,
        name: &ExchangeName,
    ) -> Result<Held, Fault> {
        let now = self.clock.now();
        let kept = self
            .exchanges
            .get(&context.tenant, session, name, now)
            .await?;
        Ok(Held::of(session.clone(), name.clone(), kept))
    }

    /// Keeps what an exchange is given, and its conversation. Another answer, where that is the one that counts: where somebody was faster, and one
    /// without memory where a turn in it was forgotten meanwhile.
    pub(crate) async fn keep(
        &self,
        context: &Context,
        mut held: Held,
        conversation: Option<&Conversation>,
        spaces: &[SpaceId],
        answer: &Assembled,
    ) -> Result<Option<Assembled>, Fault> {
        held.tokens += answer.budget.added_tokens;
        held.state.given = Some(Given {
            spaces: spaces.to_vec(),
            // The edits follow from the block and its place: they would be its text a second time.
            answer: Assembled {
                edits: Vec::new(),
                ..answer.clone()
            },
        });
        match self.write(context, &held, conversation).await? {
            Ok(written) => Ok(written
                .forgotten
                .then(|| Assembled::skipped(Reason::NothingFound))),
            Err(StoreError::Stale { .. }) => {
                if let Some(conversation) = conversation {
                    self.hear(context, conversation).await?;
                }
                let mut winner = self.held(context, &held.session, &held.name).await?;
                Ok(winner.state.given_of(spaces))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Writes an exchange, if nobody did since it was read, and with it what is new of its conversation.
    pub(crate) async fn write(
        &self,
        context: &Context,
        held: &Held,
        conversation: Option<&Conversation>,
    ) -> Result<Result<Written, StoreError>, Fault> {
        let exchange = held.exchange(self.clock.now())?;
        let (store, tenant) = (&self.exchanges, &context.tenant);
        let known = held.version;
        Ok(match conversation {
            Some(conversation) => {
                store
                    .hear(tenant, conversation, Some((&exchange, known)))
                    .await
            }
            None => store.put(tenant, &exchange, known).await,
        })
    }
}
