//! Need of a hit: the line that the reader of turns is shown of it, and the probability that a good
//! reply needs it, moved by the relevance that the search tells. The share of the search is chosen by
//! `memfleet bench needs` (docs/gates.md).

use memfleet_domain::derivation::Derivation;
use memfleet_domain::tense::{PromptTense, TenseScores};
use memfleet_domain::turn::Role;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::TurnText;

/// Longest beginning of a line that is sent, in bytes: more than the reader reads.
const MAX_LINE_BYTES: usize = 2_048;

/// Relevance of the search that leaves the odds of a need as they are.
const NEUTRAL_RELEVANCE: f32 = 0.02;

/// Share of the log odds of the search beside those of the need.
const SEARCH_SHARE: f32 = 0.5;

/// Passage of a hit that matched best, and who said it.
pub(crate) fn hit_line(hit: &Hit) -> TurnText {
    let turn = &hit.turn.accepted;
    let text = turn.content.searchable_text();
    let passage = hit.passage.0 as usize..hit.passage.1 as usize;
    let passage = text.get(passage).filter(|passage| !passage.is_empty());
    let passage = passage.unwrap_or(&text);
    said_in(
        hit,
        passage[..passage.floor_char_boundary(MAX_LINE_BYTES)].to_owned(),
    )
}

/// Words of a fact of a hit, and who said them.
pub(crate) fn statement_line(hit: &Hit, fact: &Derivation) -> TurnText {
    said_in(hit, fact.body.found_by())
}

fn said_in(hit: &Hit, text: String) -> TurnText {
    TurnText {
        speaker: hit.turn.accepted.speaker.to_string(),
        is_assistant: hit.turn.accepted.role == Role::Assistant,
        text,
    }
}

/// Least probability that a prompt is about the past by which it is.
const LEAST_PAST: f32 = 0.5;

/// True where a prompt asks how things were, or for all that there was.
pub(crate) fn is_of_the_past(tense: &TenseScores) -> bool {
    let past = [PromptTense::Before, PromptTense::AsOf, PromptTense::All];
    let past: f32 = past.map(|it| tense.probability(it)).iter().sum();
    past >= LEAST_PAST
}

/// Probability of a need whose odds the relevance of the search moves.
pub(crate) fn moved_need(need: f32, search: Option<f32>) -> f32 {
    let Some(search) = search else {
        return need;
    };
    let step = log_odds(search) - log_odds(NEUTRAL_RELEVANCE);
    let odds = log_odds(need) + SEARCH_SHARE * step;
    1.0 / (1.0 + (-odds).exp())
}

/// Odds of a probability, which may be 1.
pub(crate) fn odds(probability: f32) -> f32 {
    log_odds(probability).exp()
}

/// Log odds of a probability, which may be 0 or 1.
pub(crate) fn log_odds(probability: f32) -> f32 {
    let probability = probability.clamp(1e-6, 1.0 - 1e-6);
    (probability / (1.0 - probability)).ln()
}

#[cfg(test)]
mod tests {
    use memfleet_domain::turn::Turn;
    use memfleet_ports::conformance::samples;

    use super::*;

    fn hit() -> Hit {
        Hit {
            space: samples::home().space,
            turn: Turn {
                accepted: samples::turn("1", "before the passage after"),
                position: 1,
                replaced: None,
            },
            score: 1.0,
            relevance: None,
            passage: (7, 18),
            signals: Vec::new(),
            neighbours: Vec::new(),
            facts: Vec::new(),
            outdated: None,
        }
    }

    #[test]
    fn the_relevance_of_the_search_moves_the_odds_of_a_need() {
        let is_near = |one: f32, other: f32| (one - other).abs() < 1e-4;
        assert!(is_near(moved_need(0.3, None), 0.3));
        assert!(is_near(moved_need(0.3, Some(NEUTRAL_RELEVANCE)), 0.3));
        assert!(moved_need(0.3, Some(0.5)) > 0.7 && moved_need(0.3, Some(0.001)) < 0.1);
        for need in [0.0, 1.0] {
            assert!((0.0..=1.0).contains(&moved_need(need, Some(need))));
        }
    }

    #[test]
    fn a_line_is_the_passage_that_matched_and_a_whole_turn_where_none_did() {
        let mut hit = hit();
        assert_eq!(hit_line(&hit).text, "the passage");
        hit.passage = (0, 0);
        assert_eq!(hit_line(&hit).text, "before the passage after");
        hit.passage = (7, 99);
        assert_eq!(hit_line(&hit).text, "before the passage after");
    }
}
