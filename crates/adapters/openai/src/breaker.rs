//! The circuit breaker: an endpoint that failed several times in a row is left alone for a while, then tried with one request.
//! One input that it cannot take does not open it for the others, and is not the only one that tries.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use crate::cache::Key;
use crate::failure::Failure;
use crate::suspects::Standing;
use crate::{names, options};

/// The state of an endpoint, as far as we know.
#[derive(Debug)]
pub struct Breaker {
    options: options::Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        until: Instant,
        pause: Duration,
        /// What the last probe failed with.
        probed: Option<Key>,
    },
    HalfOpen {
        pause: Duration,
    },
}

impl Breaker {
    /// Closed.
    pub fn new(options: options::Breaker) -> Self {
        let mut state = State::Closed { failures: 0 };
        let closed = state;
        turn(&mut state, closed);
        Self {
            options,
            state: Mutex::new(state),
        }
    }

    /// Leave to send one request. Who failed as the last probe lets others go first.
    pub fn pass(&self, input: Key, standing: Standing) -> Result<Pass<'_>, Failure> {
        let mut state = self.state();
        let wait = |pause, probed| match probed == Some(input) {
            true => pause,
            false => Duration::ZERO,
        };
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open {
                until,
                pause,
                probed,
            } => {
                let left = until + wait(pause, probed) - Instant::now();
                if !left.is_zero() {
                    return Err(Failure::Open(left));
                }
                turn(&mut state, State::HalfOpen { pause });
                true
            }
            State::HalfOpen { .. } => return Err(Failure::Open(Duration::ZERO)),
        };
        Ok(Pass {
            breaker: self,
            input,
            is_suspect: standing != Standing::Clear,
            is_probe,
            is_over: false,
        })
    }

    fn record(&self, is_failure: bool, pass: &Pass<'_>) {
        let is_probe = pass.is_probe;
        let mut state = self.state();
        let next = match *state {
            // It has served others since this failed first: that it fails again is no news of the endpoint.
            before @ State::Closed { .. } if is_failure && pass.is_suspect => before,
            State::Closed { failures } if is_failure => {
                let failures = failures + 1;
                match failures < self.options.failures {
                    true => State::Closed { failures },
                    false => open(self.options.pause, None),
                }
            }
            State::HalfOpen { pause } if is_probe && is_failure => {
                open((pause * 2).min(self.options.longest), Some(pass.input))
            }
            State::HalfOpen { .. } if is_probe => State::Closed { failures: 0 },
            State::Closed { .. } => State::Closed { failures: 0 },
            // What was sent before it opened tells nothing new.
            before => before,
        };
        turn(&mut state, next);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }
}

fn open(pause: Duration, probed: Option<Key>) -> State {
    tracing::warn!(
        ?pause,
        "the endpoint of models keeps failing and is left alone"
    );
    State::Open {
        until: Instant::now() + pause,
        pause,
        probed,
    }
}

fn turn(state: &mut State, next: State) {
    *state = next;
    let value = match next {
        State::Closed { .. } => 0.0,
        State::HalfOpen { .. } => 1.0,
        State::Open { .. } => 2.0,
    };
    metrics::gauge!(names::BREAKER).set(value);
}

/// Leave to send one request. A probe that is dropped without an outcome makes way for another.
#[derive(Debug)]
pub struct Pass<'a> {
    breaker: &'a Breaker,
    input: Key,
    is_suspect: bool,
    is_probe: bool,
    is_over: bool,
}

impl Pass<'_> {
    /// What came of the request.
    pub fn record<T>(mut self, outcome: &Result<T, Failure>) {
        self.is_over = true;
        let is_failure = outcome.as_ref().is_err_and(Failure::is_of_endpoint);
        self.breaker.record(is_failure, &self);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.breaker.state();
        if let State::HalfOpen { pause } = *state
            && self.is_probe
            && !self.is_over
        {
            let until = Instant::now();
            let probed = None;
            turn(
                &mut state,
                State::Open {
                    until,
                    pause,
                    probed,
                },
            );
        }
    }
}
