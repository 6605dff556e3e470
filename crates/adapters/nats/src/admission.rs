//! How full the queue is, and who may add to it.
//!
//! The answer comes from subjects alone. It is asked once for all who publish at the same time, and is used for a moment: what
//! this process adds is counted exactly, what others add or take is known after that moment. The moment is longer where the
//! answer takes longer (a long backlog), so that asking never takes more than a small part of the time. Nobody is refused by an
//! answer that is older than the request.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::DateTime;
use memfleet_ports::queue::{Bounds, Depth, Depths};
use memfleet_ports::store::Result;

use crate::buried::Letters;
use crate::shared::Shared;
use crate::subject::Waiting;

/// How long an answer is used at least …
pub const MOMENT: Duration = Duration::from_millis(50);
/// … and how many times as long as it took …
const TIMES: u32 = 20;
/// … and at most.
const LONGEST: Duration = Duration::from_secs(5);
/// Messages from which on an answer is a long one, which is not asked for anew by each who looks.
const LONG: usize = 10_000;

/// What is counted here at most while nobody asks.
const MOST_ADDED: usize = 10_000;

/// Turns of a tenant from which on what it adds goes through the lanes of backlogs.
const BACKLOG: u64 = 256;

/// The state of the matter.
#[derive(Debug, Default)]
pub struct Admission {
    asking: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    pub letters: Mutex<Letters>,
}

#[derive(Debug, Default)]
struct State {
    known: Option<Known>,
    /// What this process added and the answer does not count.
    added: HashMap<u64, Added>,
    next: u64,
}

/// An answer.
#[derive(Debug)]
struct Known {
    asked_at: Instant,
    took: Duration,
    messages: usize,
    tenants: HashMap<String, Depth>,
}

#[derive(Debug)]
struct Added {
    subject: String,
    tenant: String,
    depth: Depth,
    /// When the server had it: an answer to a later question counts it.
    stored_at: Option<Instant>,
}

impl Known {
    fn is_usable(&self) -> bool {
        let moment = (self.took * TIMES).clamp(MOMENT, LONGEST);
        self.asked_at.elapsed() < moment
    }
}

impl State {
    fn depths(&self, tenant: Option<&str>) -> Depths {
        let mut depths = Depths::default();
        let known = self.known.iter().flat_map(|known| &known.tenants);
        let added = self
            .added
            .values()
            .map(|added| (&added.tenant, &added.depth));
        for (of, depth) in known.chain(added) {
            depths.all = depths.all.with(*depth);
            if tenant == Some(of) {
                depths.own = depths.own.with(*depth);
            }
        }
        depths
    }
}

/// What a message adds to the queue.
fn depth(waiting: &Waiting) -> Depth {
    Depth {
        batches: 1,
        turns: waiting.turns,
        bytes: waiting.bytes,
        oldest: DateTime::from_timestamp_micros(waiting.accepted_at),
        dead_letters: 0,
    }
}

impl Admission {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the queue, kept for a message that is on its way.
pub struct Place<'a> {
    admission: &'a Admission,
    number: u64,
}

impl Place<'_> {
    /// Nothing was added.
    pub fn give_up(self) {
        self.admission.state().added.remove(&self.number);
    }
}

impl Drop for Place<'_> {
    /// Stored, or nobody knows: the next answer tells.
    fn drop(&mut self) {
        if let Some(added) = self.admission.state().added.get_mut(&self.number) {
            added.stored_at = Some(Instant::now());
        }
    }
}

impl Shared {
    /// A place for this message, where the bounds leave one, and the message with the lane that it is to go through.
    pub async fn admit(&self, waiting: Waiting, bounds: Bounds) -> Result<(Place<'_>, Waiting)> {
        let entered = Instant::now();
        loop {
            let usable = {
                let mut state = self.admission.state();
                let known = state.known.as_ref();
                let is_usable = known.is_some_and(Known::is_usable);
                let is_new = known.is_some_and(|known| known.asked_at >= entered);
                // Without bounds there is nothing to know.
                if is_usable || is_new || bounds == Bounds::NONE {
                    let depths = state.depths(Some(&waiting.tenant));
                    match bounds.check(&depths, waiting.turns, waiting.bytes) {
                        Ok(()) => {
                            let is_long = depths.own.turns > BACKLOG;
                            let waiting = if is_long {
                                waiting.behind_a_backlog()
                            } else {
                                waiting
                            };
                            let place = self.keep_place(&mut state, &waiting);
                            return Ok((place, waiting));
                        }
                        Err(full) if is_new => return Err(full),
                        Err(_) => false,
                    }
                } else {
                    false
                }
            };
            if !usable {
                self.count_waiting(entered).await?;
            }
        }
    }

    fn keep_place(&self, state: &mut State, waiting: &Waiting) -> Place<'_> {
        if state.added.len() >= MOST_ADDED {
            // Nobody has asked for long: the next answer begins afresh.
            state.known = None;
            state.added.retain(|_, added| added.stored_at.is_none());
        }
        let number = state.next;
        state.next += 1;
        let added = Added {
            subject: waiting.subject(&self.names),
            tenant: waiting.tenant.clone(),
            depth: depth(waiting),
            stored_at: None,
        };
        state.added.insert(number, added);
        Place {
            admission: &self.admission,
            number,
        }
    }

    /// How full the queue is now; a long answer may be a moment old.
    pub async fn depths(&self, tenant: Option<&str>) -> Result<Depths> {
        let entered = Instant::now();
        let is_enough = |known: &Known| known.messages > LONG && known.is_usable();
        if !self.admission.state().known.as_ref().is_some_and(is_enough) {
            self.count_waiting(entered).await?;
        }
        Ok(self.admission.state().depths(tenant))
    }

    /// Has an answer to a question that was asked after `entered`.
    async fn count_waiting(&self, entered: Instant) -> Result<()> {
        let _one = self.admission.asking.lock().await;
        let is_new = |known: &Known| known.asked_at >= entered;
        if self.admission.state().known.as_ref().is_some_and(is_new) {
            return Ok(());
        }
        let asked_at = Instant::now();
        let filter = self.names.all_waiting();
        let subjects = self.link.subjects(&self.names.ingest, &filter).await?;
        let mut state = self.admission.state();
        let is_counted = |added: &Added| added.stored_at.is_some_and(|at| at < asked_at);
        state.added.retain(|_, added| !is_counted(added));
        let own: std::collections::HashSet<&str> = state
            .added
            .values()
            .map(|added| added.subject.as_str())
            .collect();
        let mut tenants: HashMap<String, Depth> = HashMap::new();
        for subject in subjects
            .iter()
            .filter(|subject| !own.contains(subject.as_str()))
        {
            if let Some(waiting) = Waiting::parse(&self.names, subject) {
                let more = depth(&waiting);
                let sum = tenants.entry(waiting.tenant).or_default();
                *sum = sum.with(more);
            }
        }
        state.known = Some(Known {
            asked_at,
            took: asked_at.elapsed(),
            messages: subjects.len(),
            tenants,
        });
        Ok(())
    }
}
