//! The circuit breaker: an endpoint that failed several times in a row is left alone for a while, then tried with one request.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use crate::failure::Failure;
use crate::{names, options};

/// The state of an endpoint, as far as we know.
#[derive(Debug)]
pub struct Breaker {
    options: options::Breaker,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant, pause: Duration },
    HalfOpen { pause: Duration },
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

    /// Leave to send one request.
    pub fn pass(&self) -> Result<Pass<'_>, Failure> {
        let mut state = self.state();
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open { until, pause } if until <= Instant::now() => {
                turn(&mut state, State::HalfOpen { pause });
                true
            }
            State::Open { until, .. } => return Err(Failure::Open(until - Instant::now())),
            State::HalfOpen { .. } => return Err(Failure::Open(Duration::ZERO)),
        };
        Ok(Pass {
            breaker: self,
            is_probe,
            is_over: false,
        })
    }

    fn record(&self, is_failure: bool, is_probe: bool) {
        let mut state = self.state();
        let next = match *state {
            State::Closed { failures } if is_failure => {
                let failures = failures + 1;
                match failures < self.options.failures {
                    true => State::Closed { failures },
                    false => open(self.options.pause),
                }
            }
            State::HalfOpen { pause } if is_probe && is_failure => {
                open((pause * 2).min(self.options.longest))
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

fn open(pause: Duration) -> State {
    tracing::warn!(
        ?pause,
        "the endpoint of models keeps failing and is left alone"
    );
    State::Open {
        until: Instant::now() + pause,
        pause,
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
    is_probe: bool,
    is_over: bool,
}

impl Pass<'_> {
    /// What came of the request.
    pub fn record<T>(mut self, outcome: &Result<T, Failure>) {
        self.is_over = true;
        let is_failure = outcome.as_ref().is_err_and(Failure::is_of_endpoint);
        self.breaker.record(is_failure, self.is_probe);
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
            turn(&mut state, State::Open { until, pause });
        }
    }
}
