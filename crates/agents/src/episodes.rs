//! Episodes in rule form: a session cut into runs, and what a run is called and found by (AMA section 3.1, trigger T).
//!
//! With an assistant a run is one matter: the user's turn that opens it, the reply, the follow-ups; a user's turn opens the next one
//! unless its first words acknowledge or continue. Among people, where turns rarely announce a matter, runs end where the
//! meaning of the turns drifts. A request for a summary, a pause and a full window end any run.

mod cues;
mod drift;
mod text;

use std::ops::Range;

use memfleet_domain::episode::Trigger;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::Role;
use memfleet_language::Language;

pub use text::{central, head, title};

use cues::Cues;

/// Turns of a full window.
pub const WINDOW: usize = 40;
/// Hours of silence inside a session that end a run.
const PAUSE_HOURS: i64 = 6;

/// A turn of a session as it is cut.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// Who speaks, in which part.
    pub role: Role,
    /// The words.
    pub text: &'a str,
    /// Event time, where known.
    pub time: Option<Timestamp>,
    /// Its sentence vector, where known.
    pub vector: Option<&'a [i8]>,
}

/// Turns that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Their places in the session, never empty.
    pub turns: Range<usize>,
    /// Why it ended; absent for the last one, which may go on.
    pub trigger: Option<Trigger>,
}

/// Cuts the turns of one session, in their order, into runs: without gaps, each turn in one. More turns at the end change the
/// last run only, and among people the one before it.
pub fn runs(turns: &[Said<'_>], language: Language) -> Vec<Run> {
    let cues = Cues::of(language);
    let is_answered = turns.iter().any(|turn| turn.role == Role::Assistant);
    let drifts = if is_answered {
        Vec::new()
    } else {
        drift::shifts(turns)
    };
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 1..turns.len() {
        let shifts = if is_answered {
            turns[at].role == Role::User && !cues.continues(turns[at].text)
        } else {
            drifts.contains(&at)
        };
        if let Some(trigger) = ended(turns, start, at, shifts, &cues) {
            runs.push(Run {
                turns: start..at,
                trigger: Some(trigger),
            });
            start = at;
        }
    }
    if start < turns.len() {
        runs.push(Run {
            turns: start..turns.len(),
            trigger: None,
        });
    }
    runs
}

/// Whether the run that began at `start` ended before `at`, and why.
fn ended(
    turns: &[Said<'_>],
    start: usize,
    at: usize,
    shifts: bool,
    cues: &Cues,
) -> Option<Trigger> {
    let (last, next) = (&turns[at - 1], &turns[at]);
    let is_pause = match (last.time, next.time) {
        (Some(last), Some(next)) => (next - last).num_hours() >= PAUSE_HOURS,
        _ => false,
    };
    // What was asked for is answered before the run ends.
    let was_asked = next.role != Role::Assistant
        && turns[start..at]
            .iter()
            .any(|turn| turn.role != Role::Assistant && cues.asks(turn.text));
    if is_pause {
        Some(Trigger::Pause)
    } else if was_asked {
        Some(Trigger::Request)
    } else if shifts {
        Some(Trigger::TopicShift)
    } else {
        (at - start >= WINDOW).then_some(Trigger::Saturation)
    }
}

#[cfg(test)]
mod tests;
