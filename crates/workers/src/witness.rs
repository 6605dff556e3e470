//! Whether what a language model says was said.

use chrono_tz::Tz;
use memfleet_agents::facts::{dates, is_borne_out};
use memfleet_prompts::handles::Turn;

/// Whether turns bear a sentence out: every word of it that carries meaning is in one of them, names who speaks, or tells of a date that
/// their words stand for.
pub fn is_witnessed(sentence: &str, turns: &[&Turn], zone: Tz) -> bool {
    let dates = turns
        .iter()
        .map(|turn| dates(&turn.text, turn.said_at, zone));
    let dates: Vec<String> = dates.collect();
    let texts = turns.iter().map(|turn| turn.text.as_str());
    let speakers = turns.iter().map(|turn| turn.speaker.as_str());
    let beside = speakers.chain(dates.iter().map(String::as_str));
    is_borne_out(sentence, texts.chain(beside))
}
