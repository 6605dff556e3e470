//! The judge on read (AMA section 3.3): which of the turns that were found tell how things were before another of them was said.
//!
//! `asking` knows it of facts, whose values were understood when they were written. Here it is enough that a speaker's turns tell of
//! the attribute that is asked for, each with what looks like a value of it: the one said last tells how it is now.

use memfleet_domain::time::Timestamp;

use crate::asking::Asking;
use crate::facts::{Told, told};

/// A turn that was found, of a user.
#[derive(Debug, Clone, Copy)]
pub struct Said<'t> {
    /// Who spoke.
    pub speaker: &'t str,
    /// The turn's searchable text.
    pub text: &'t str,
    /// When, and which of those said at the same time.
    pub at: (Timestamp, u64),
}

/// For each of these turns the place of the one that tells how it is now, where that is a later one with another value.
pub fn newer(asking: &Asking, turns: &[Said<'_>]) -> Vec<Option<usize>> {
    let mut newer = vec![None; turns.len()];
    let mut speakers: Vec<&str> = turns.iter().map(|turn| turn.speaker).collect();
    speakers.sort_unstable();
    speakers.dedup();
    speakers.retain(|speaker| asking.is_of(speaker));
    for attribute in asking.attributes() {
        for speaker in &speakers {
            let of = turns.iter().enumerate();
            let of = of.filter(|(_, turn)| turn.speaker == *speaker);
            let told = of.filter_map(|(place, turn)| Some((place, told(attribute, turn.text)?)));
            let told: Vec<(usize, Told)> = told.collect();
            let stating = told.iter().filter(|(_, told)| !told.states.is_empty());
            let Some((last, now)) = stating.max_by_key(|(place, _)| turns[*place].at) else {
                continue;
            };
            for (place, before) in &told {
                let is_before = turns[*place].at < turns[*last].at;
                let says = if before.states.is_empty() {
                    &before.names
                } else {
                    &before.states
                };
                if is_before && !says.iter().any(|value| now.states.contains(value)) {
                    newer[*place] = Some(*last);
                }
            }
        }
    }
    newer
}

#[cfg(test)]
mod tests {
    use memfleet_language::Language;

    use super::*;

    /// What Ada says, a day after the other; by text which is newer.
    fn newer_of<'t>(query: &str, said: &[&'t str]) -> Vec<Option<&'t str>> {
        let turns: Vec<Said<'_>> = said
            .iter()
            .zip(1..)
            .map(|(text, day)| Said {
                speaker: "Ada",
                text,
                at: (Timestamp::UNIX_EPOCH, day),
            })
            .collect();
        let newer = newer(&Asking::of(query, Language::English), &turns);
        newer.into_iter().map(|at| at.map(|at| said[at])).collect()
    }

    #[test]
    fn what_was_said_last_tells_how_it_is_now() {
        let now = "Long story short, Oslo is home these days.";
        let said = [
            "We've got a flat in Rome and love living there.",
            "I moved to Bonn!",
            now,
        ];
        assert_eq!(
            newer_of("Where do I live?", &said),
            [Some(now), Some(now), None]
        );
        assert_eq!(
            newer_of("Where does Ada live?", &said),
            [Some(now), Some(now), None]
        );
    }

    #[test]
    fn other_languages_are_not_guessed_at() {
        let said = ["I live in Rome.", "I moved to Oslo."].map(|text| Said {
            speaker: "Ada",
            text,
            at: (Timestamp::UNIX_EPOCH, 0),
        });
        let asking = Asking::of("Where do I live?", Language::German);
        assert_eq!(newer(&asking, &said), [None, None]);
    }

    #[test]
    fn what_says_the_same_again_is_as_good() {
        let said = ["I live in Oslo.", "Still living in Oslo, by the way."];
        assert_eq!(newer_of("Where do I live?", &said), [None, None]);
    }

    #[test]
    fn what_only_looks_like_a_change_is_none() {
        for other in [
            "If I lived in Rome, I would eat well.",
            "My brother lives in Rome.",
            "I might move to Rome next year.",
            "Back in college I lived in Rome.",
            "I don't live in Rome.",
            "How far is it to Rome from where I live?",
        ] {
            assert_eq!(
                newer_of("Where do I live?", &["I live in Oslo.", other])[0],
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn a_correction_counts_for_what_was_meant() {
        let now = "Oops, I said my phone is a Pixel 8 but I meant a Pixel 9.";
        let said = ["My phone is a Pixel 8.", now];
        assert_eq!(newer_of("Which phone do I have?", &said), [Some(now), None]);
    }

    #[test]
    fn a_query_for_the_past_or_for_somebody_else_is_left_alone() {
        let said = ["I live in Rome.", "I moved to Oslo."];
        for query in [
            "Where did I live before?",
            "Where does Ben live?",
            "What do I cook?",
        ] {
            assert_eq!(newer_of(query, &said), [None, None], "{query}");
        }
    }
}
