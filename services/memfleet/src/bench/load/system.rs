//! One system under load: its callers, and what their calls took.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::assembly::AssembleRequest;
use memfleet_ports::memory::{NewTurn, RecallRequest, RememberRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::mix::{Kind, Mix};
use crate::bench::synthetic::Conversation;
use crate::bench::{forget, query};
use crate::cli::Handle;
use crate::corpus::accept;

/// Turns that a search asks for.
const K: u32 = 10;
/// The block that is asked for.
const BLOCK_CANDIDATES: u32 = 100;
const BUDGET_TOKENS: u32 = 1000;
const TOKENIZER: &str = "o200k_base";

/// What every system gets.
pub struct Plan {
    /// Tells the spaces of this run from others'.
    pub run: i64,
    /// How many.
    pub spaces: u16,
    /// Turns in each.
    pub turns: usize,
    /// The calls.
    pub mix: Mix,
}

/// A node or a fleet.
pub struct System {
    /// Its address.
    pub name: String,
    /// What its calls took.
    pub calls: BTreeMap<Kind, Calls>,
    /// How long it was under load.
    pub loaded: Duration,
    callers: Vec<Handle>,
}

/// Calls of one kind.
#[derive(Debug, Default)]
pub struct Calls {
    /// Of those that succeeded.
    pub durations: Vec<Duration>,
    /// Those that did not, by reason.
    pub errors: BTreeMap<String, usize>,
}

impl Plan {
    fn spaces(&self) -> Vec<SpaceId> {
        let name = |number| format!("bench-load-{}-{number}", self.run);
        let space = |number| SpaceId::new(name(number)).expect("a short name");
        (0..self.spaces).map(space).collect()
    }
}

impl System {
    /// A system that was not called yet.
    pub fn new(name: String, callers: Vec<Handle>) -> Self {
        Self {
            name,
            calls: BTreeMap::new(),
            loaded: Duration::ZERO,
            callers,
        }
    }

    /// Makes the spaces and waits until all of them is searchable.
    pub async fn fill(&self, plan: &Plan) -> Result<(), BoxError> {
        for (seed, space) in (0..).zip(plan.spaces()) {
            // Never empty: a search of a space that does not exist is an error.
            let turns = Conversation::new(seed).turns(plan.turns.max(1));
            accept(&*self.callers[0].memory, &space, turns).await?;
        }
        Ok(())
    }

    /// Removes the spaces.
    pub async fn clear(&self, plan: &Plan) -> Result<(), Fault> {
        for space in plan.spaces() {
            forget(&self.callers[0], space).await?;
        }
        Ok(())
    }

    /// All callers call for a while.
    pub async fn load(
        &mut self,
        plan: &Plan,
        round: u64,
        length: Duration,
    ) -> Result<(), BoxError> {
        let (spaces, until) = (plan.spaces(), Instant::now() + length);
        let callers = (0..).zip(&self.callers).map(|(number, handle)| {
            let caller = Caller::new(handle, &spaces, (round << 32) | number);
            caller.call_until(until, plan.mix.clone())
        });
        let callers = callers.map(|work| tokio::spawn(work));
        for calls in try_join_all(callers).await? {
            for (kind, calls) in calls {
                self.calls.entry(kind).or_default().add(calls);
            }
        }
        self.loaded += length;
        Ok(())
    }
}

impl Calls {
    fn add(&mut self, other: Self) {
        self.durations.extend(other.durations);
        for (reason, count) in other.errors {
            *self.errors.entry(reason).or_default() += count;
        }
    }
}

/// Makes one call at a time.
struct Caller {
    handle: Handle,
    spaces: Vec<SpaceId>,
    random: StdRng,
    conversation: Conversation,
}

impl Caller {
    fn new(handle: &Handle, spaces: &[SpaceId], seed: u64) -> Self {
        Self {
            handle: handle.clone(),
            spaces: spaces.to_vec(),
            random: StdRng::seed_from_u64(seed),
            conversation: Conversation::new(seed),
        }
    }

    async fn call_until(mut self, until: Instant, mix: Mix) -> BTreeMap<Kind, Calls> {
        let mut calls = BTreeMap::<Kind, Calls>::new();
        while Instant::now() < until {
            let kind = mix.draw(&mut self.random);
            let space = self.spaces.choose(&mut self.random);
            let space = space.expect("there is a space").clone();
            let begun = Instant::now();
            let answer = self.call(kind, space).await;
            let calls = calls.entry(kind).or_default();
            match answer {
                Ok(()) => calls.durations.push(begun.elapsed()),
                Err(fault) => *calls.errors.entry(fault.reason.into_owned()).or_default() += 1,
            }
        }
        calls
    }

    async fn call(&mut self, kind: Kind, space: SpaceId) -> Result<(), Fault> {
        match kind {
            Kind::Remember => self.remember(space).await.map(drop),
            Kind::Searchable => self.searchable(space).await,
            Kind::Recall => {
                let request = RecallRequest::from(query(&space, self.conversation.question(), K));
                let (memory, call) = (&self.handle.memory, self.handle.call());
                memory.recall(&call, request).await.map(drop)
            }
            Kind::Assemble => {
                let request = block(query(
                    &space,
                    self.conversation.question(),
                    BLOCK_CANDIDATES,
                ));
                let (assembly, call) = (&self.handle.assembly, self.handle.call());
                assembly.assemble(&call, request).await.map(drop)
            }
        }
    }

    async fn remember(&mut self, space: SpaceId) -> Result<RecallRequest, Fault> {
        let turn: NewTurn = self.conversation.turns(1).remove(0);
        let text = turn.content.text.clone();
        let request = RememberRequest {
            space: space.clone(),
            turns: vec![turn],
            idempotency_key: None,
        };
        let (memory, call) = (&self.handle.memory, self.handle.call());
        let receipt = memory.remember(&call, request).await?;
        let mut query = query(&space, text, K);
        query.filter.turns = vec![receipt.turns[0].id];
        Ok(RecallRequest {
            wait_for: vec![receipt.batch],
            ..RecallRequest::from(query)
        })
    }

    async fn searchable(&mut self, space: SpaceId) -> Result<(), Fault> {
        let request = self.remember(space).await?;
        let (memory, call) = (&self.handle.memory, self.handle.call());
        let found = memory.recall(&call, request).await?;
        match found.hits.len() {
            1 => Ok(()),
            _ => Err(Fault::internal("a turn that was remembered was not found")),
        }
    }
}

fn block(query: Query) -> AssembleRequest {
    let mut request = AssembleRequest::ungated(query, BUDGET_TOKENS);
    request.policy.selection.excerpts = Some(false);
    request.tokenizer = Some(TOKENIZER.to_owned());
    request
}
