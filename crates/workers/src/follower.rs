//! The loop of an agent that follows spaces. What is announced says where to look; a look at all spaces now and then finds what was
//! missed. A space is claimed for the time of its work, so that replicas share the spaces, and the store refuses what two of them
//! did after all: an agent may be killed between any two lines.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use futures::{FutureExt, StreamExt};
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Clock, Fault, Scope};
use memfleet_ports::events::{Event, Events};
use memfleet_ports::knowledge::{Knowledge, Stage};
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::aside::{Aside, in_turn};
use crate::waiting::Waiting;

/// How often all spaces are looked at.
const SWEEP: Duration = Duration::from_secs(20);

/// Spaces worked through before the next look; more follow at once.
const SPACES: usize = 64;

/// Spaces that a look asks for: more, where those are left alone for now …
const PAGE: u32 = 256;
/// … and this many at most.
const LARGEST_PAGE: u32 = 1 << 16;

/// Spaces that are worked on at a time: one that waits for a model does not hold up the others.
const TOGETHER: usize = 4;

/// How long a worker that says nothing keeps a space: one that was killed holds it up for so long. A round of rules takes seconds …
const LEASE: TimeDelta = TimeDelta::minutes(1);

/// … one that waits for a language model takes minutes.
const LEASE_OF_MODEL: TimeDelta = TimeDelta::minutes(5);

/// How long giving back claims may keep a process that stops.
const GIVING_BACK: Duration = Duration::from_secs(2);

/// Rounds of one space after which the others have their turn.
const ROUNDS: u32 = 32;

/// How a round of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There may be more.
    More,
    /// Nothing is left for now.
    Done,
}

impl Outcome {
    /// [`Outcome::More`] where there may be more.
    pub fn more_if(more: bool) -> Self {
        if more { Self::More } else { Self::Done }
    }
}

/// Does the work of a stage.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Works through some changes of a space after `reached`, and notes how far it came. It may be called again with the same.
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault>;
}

/// Brings an agent to the spaces that have work for it.
#[derive(Clone)]
pub struct Follower {
    /// Where progress is kept.
    pub knowledge: Arc<dyn Knowledge>,
    /// Whose.
    pub stage: Stage,
    /// Says where something changed.
    pub events: Events,
    /// Ends leases.
    pub clock: Arc<dyn Clock>,
}

impl Follower {
    /// Works until `shutdown`, which cuts off what is not written yet: it is done again.
    pub async fn run(&self, agent: &dyn Agent, shutdown: CancellationToken) {
        let round = Round::of(agent);
        let working = async {
            let mut events = self.events.listen();
            loop {
                let more = self.look(&round).await;
                let pause = if more { Duration::ZERO } else { SWEEP };
                self.listen(&round, &mut events, Instant::now() + pause)
                    .await;
            }
        };
        shutdown.run_until_cancelled(working).await;
        self.give_back(&round).await;
    }

    /// Gives back what was claimed when the work was cut off: it is no lost claim.
    async fn give_back(&self, round: &Round<'_>) {
        let claimed = std::mem::take(&mut *round.claimed());
        let releases = claimed
            .iter()
            .map(|(scope, until)| self.knowledge.release(scope, self.stage, *until));
        let released = futures::future::join_all(releases);
        // A store that is away keeps no process from its end: leases end by themselves.
        if let Ok(outcomes) = tokio::time::timeout(GIVING_BACK, released).await {
            for error in outcomes.into_iter().filter_map(Result::err) {
                tracing::debug!(%error, "a claim ends with its lease");
            }
        }
    }

    /// Works through every space that is behind, once; whether there may be more.
    pub async fn sweep(&self, agent: &dyn Agent) -> bool {
        self.look(&Round::of(agent)).await
    }

    async fn look(&self, round: &Round<'_>) -> bool {
        let mut limit = PAGE;
        loop {
            let mut spaces = match self.knowledge.pending(self.stage, limit).await {
                Ok(spaces) => spaces,
                Err(error) => {
                    tracing::warn!(%error, stage = self.stage.name(), "spaces are looked at later");
                    return false;
                }
            };
            let stage = self.stage.name();
            metrics::gauge!("memfleet_agent_behind_spaces", "stage" => stage)
                .set(spaces.len() as f64);
            let lag = round.waiting.behind(&spaces, Instant::now());
            metrics::gauge!("memfleet_agent_lag_seconds", "stage" => stage).set(lag.as_secs_f64());
            let is_full = spaces.len() >= limit as usize;
            round.aside.keep_due(&mut spaces);
            if spaces.is_empty() && is_full && limit < LARGEST_PAGE {
                limit *= 4;
                continue;
            }
            if spaces.is_empty() {
                return false;
            }
            let is_full = is_full || spaces.len() > SPACES;
            let mut next = in_turn(spaces);
            next.truncate(SPACES);
            return self.visit(round, next).await || is_full;
        }
    }

    /// Goes where something is announced, until an instant, or until nobody knows where.
    async fn listen(&self, round: &Round<'_>, events: &mut Receiver<Event>, until: Instant) {
        let mut changed = HashSet::new();
        while Instant::now() < until {
            let mut next = match changed.is_empty() {
                true => match tokio::time::timeout_at(until, events.recv()).await {
                    Ok(Ok(event)) => Some(event),
                    _ => return,
                },
                false => events.try_recv().ok(),
            };
            // All that was announced together.
            while let Some(event) = next {
                match event {
                    // A forget too has changes: who waits for what is derived waits for these.
                    Event::Settled { scope, .. }
                    | Event::Derived { scope }
                    | Event::Forgotten { scope } => {
                        changed.insert(scope);
                    }
                    Event::Missed => return,
                }
                next = events.try_recv().ok();
            }
            let mut spaces: Vec<_> = changed.drain().collect();
            round.aside.keep_due(&mut spaces);
            let mut spaces = in_turn(spaces);
            changed.extend(spaces.split_off(spaces.len().min(SPACES)));
            if self.visit(round, spaces).await {
                return;
            }
        }
    }

    /// Works through these spaces; whether one of them has more to do than its turn allows.
    async fn visit(&self, round: &Round<'_>, spaces: Vec<Scope>) -> bool {
        let visits = spaces.into_iter().map(|scope| async move {
            let outcome = self.visit_one(round, &scope).await;
            match &outcome {
                Ok(Some(_)) => round.aside.worked(&scope),
                // Mostly there is nothing to rebuild, and the next event may say that there is.
                Ok(None) if self.stage == Stage::Rebuild => {}
                Ok(None) => round.aside.taken(&scope),
                Err(fault) => {
                    round.aside.failed(&scope);
                    let stage = self.stage.name();
                    metrics::counter!("memfleet_agent_failures_total", "stage" => stage)
                        .increment(1);
                    tracing::warn!(%scope, stage, reason = %fault.reason, "tried again later: {fault}");
                }
            }
            matches!(outcome, Ok(Some(Outcome::More)))
        });
        let outcomes = futures::stream::iter(visits).buffer_unordered(TOGETHER);
        // To the end: who is dropped in the middle of its work keeps its space until the lease ends.
        let all = outcomes.fold(
            false,
            |all, is_unfinished| async move { all | is_unfinished },
        );
        all.await
    }

    fn lease(&self) -> TimeDelta {
        if self.stage.asks_model() {
            LEASE_OF_MODEL
        } else {
            LEASE
        }
    }

    /// Works through one space as far as its turn goes; none where another worker has it.
    async fn visit_one(&self, round: &Round<'_>, scope: &Scope) -> Result<Option<Outcome>, Fault> {
        for _ in 0..ROUNDS {
            let now = self.clock.now();
            let until = now + self.lease();
            let claimed = self.knowledge.claim(scope, self.stage, now, until);
            let Some(reached) = claimed.await? else {
                return Ok(None);
            };
            let claim = (scope.clone(), until);
            round.claimed().push(claim.clone());
            // A panic is a failure of this space alone, whose claim is given back.
            let work = AssertUnwindSafe(round.agent.work(scope, reached)).catch_unwind();
            let panicked = |_| Err(Fault::internal("the work on the space panicked"));
            let outcome = work.await.unwrap_or_else(panicked);
            let released = self.knowledge.release(scope, self.stage, until).await;
            round.claimed().retain(|one| *one != claim);
            released?;
            if outcome? == Outcome::Done {
                round.waiting.done(scope);
                return Ok(Some(Outcome::Done));
            }
        }
        Ok(Some(Outcome::More))
    }
}

/// Who works, what waits for it, and what it leaves alone for now.
struct Round<'a> {
    agent: &'a dyn Agent,
    waiting: Waiting,
    aside: Aside,
    /// Spaces that are worked on, with the ends of their leases.
    claimed: Mutex<Vec<(Scope, Timestamp)>>,
}

impl<'a> Round<'a> {
    fn of(agent: &'a dyn Agent) -> Self {
        Self {
            agent,
            waiting: Waiting::default(),
            aside: Aside::default(),
            claimed: Mutex::default(),
        }
    }

    fn claimed(&self) -> MutexGuard<'_, Vec<(Scope, Timestamp)>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
