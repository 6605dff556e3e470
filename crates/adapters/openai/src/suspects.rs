//! Inputs that the endpoint fails on again and again while it answers others: a filter that crashes, a text that takes it too long. To who asks, that
//! looks like an endpoint that is down, and is asked again for ever; what stands behind it is never asked at all.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use crate::cache::Key;
use crate::failure::Failure;

/// Calls that failed before the input is at fault.
const ATTEMPTS: u32 = 3;
/// How many inputs are remembered.
const KEPT: usize = 1_024;

/// The inputs that failed last: of a process, as another one may try them once more.
#[derive(Debug, Default)]
pub struct Suspects(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Calls that were served.
    served: u64,
    failed: VecDeque<Suspect>,
}

#[derive(Debug)]
struct Suspect {
    input: Key,
    /// The first, and those after others were served.
    failures: u32,
    /// Calls that had been served when it failed first.
    served: u64,
}

/// What is known of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing that speaks against it: where all fail, it is the endpoint.
    Clear,
    /// It failed, and others were served since.
    Suspect,
    /// It failed too often for that.
    AtFault,
}

impl Suspects {
    /// What is known of an input.
    pub fn standing(&self, input: &Key) -> Standing {
        let known = self.known();
        let mut failed = known.failed.iter();
        match failed.find(|suspect| suspect.input == *input) {
            Some(suspect) if suspect.served == known.served => Standing::Clear,
            Some(suspect) if suspect.failures >= ATTEMPTS => Standing::AtFault,
            Some(_) => Standing::Suspect,
            None => Standing::Clear,
        }
    }

    /// Notes what came of a call.
    pub fn record<T>(&self, input: Key, outcome: &Result<T, Failure>) {
        let mut known = self.known();
        let place = known.failed.iter().position(|it| it.input == input);
        match outcome {
            Ok(_) => {
                known.served += 1;
                place.map(|place| known.failed.remove(place));
            }
            Err(failure) if failure.may_be_of_input() => match place {
                // Where nobody else was served meanwhile it is the endpoint, and counts once.
                Some(place) if known.failed[place].served == known.served => {}
                Some(place) => known.failed[place].failures += 1,
                None => {
                    let served = known.served;
                    known.failed.truncate(KEPT - 1);
                    known.failed.push_front(Suspect {
                        input,
                        failures: 1,
                        served,
                    });
                }
            },
            Err(_) => {}
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("nothing panics with it")
    }
}
