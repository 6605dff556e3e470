//! Relevance of hits for gate 3: the probability that a good reply to the prompt needs them, as the
//! reader of turns tells it (AMP item 59), moved by the relevance that the search tells. Shares and
//! thresholds are chosen by `memfleet bench needs` (docs/gates.md).

use std::collections::HashSet;

use futures::future::join_all;
use memfleet_domain::Fault;
use memfleet_domain::turn::Role;
use memfleet_ports::retriever::{Found, Hit};
use memfleet_ports::turn_reader::{NeedQuestion, PromptReading, TurnText};
use tokio::time::timeout_at;
use tracing::Instrument;

use super::basis::Thresholds;
use super::work::Work;
use crate::hit_need::{hit_line, moved_need};

/// Lines of one question to the reader: few, so that what was read when the time is over counts.
const LINES_A_QUESTION: usize = 16;

/// Speaker of a turn of which only the role is known.
const UNNAMED_PERSON: &str = "user";

impl Work<'_> {
    /// Puts the needs of hits into the place of their relevance, and returns the thresholds of what
    /// they have then. Where the reader does not answer in time, the relevance of the search stays.
    pub(super) async fn weigh_hits(&mut self, found: &mut Found) -> Thresholds {
        let of_needs = self.basis.thresholds(Thresholds::of_needs());
        let of_search = self.basis.thresholds(Thresholds::of_search(found));
        // A story that is named is wanted whatever the prompt is. A prompt that names a speaker
        // asks about the words of others, which the reader was not fitted on.
        let asks_reader = self.basis.settings.gating.needs
            && self.request.narratives.is_empty()
            && of_needs != Thresholds::NONE
            && !names_speaker(&self.request.query.text, &found.hits);
        if !asks_reader {
            return of_search;
        }
        let (thresholds, degraded) = match self.needs(&found.hits).await {
            Ok(needs) => (of_needs, needs.replace_relevance(found, of_needs)),
            Err(fault) => (of_search, Some(fault.message)),
        };
        let degraded = degraded.map(|problem| format!("needs: {problem}"));
        self.draft.answer.degraded.extend(degraded);
        thresholds
    }

    /// Asks the reader for as long as time is left to make a block of what it says. Lines that were
    /// not read by then are read all the same: the next prompt finds them known.
    async fn needs(&self, hits: &[Hit]) -> Result<HitNeeds, Fault> {
        let lines: Vec<TurnText> = hits.iter().map(hit_line).collect();
        let until = self.reading_ends();
        let answers = lines.chunks(LINES_A_QUESTION).map(|lines| {
            let question = NeedQuestion {
                prompt: self.request.query.text.clone(),
                before: self.outline.history.clone(),
                lines: lines.to_vec(),
            };
            let reader = self.gateway.reader.clone();
            let reading = async move { reader.needs(question).await };
            let answer = tokio::spawn(reading.in_current_span());
            async move {
                match timeout_at(until, answer).await {
                    Ok(Ok(answer)) => answer,
                    Ok(Err(error)) => Err(Fault::internal(error.to_string())),
                    Err(_) => Err(Fault::deadline("reading which turns are needed")),
                }
            }
        });
        HitNeeds::of(join_all(answers).await, hits.len())
    }
}

/// Needs of hits.
struct HitNeeds {
    /// Name of the reader.
    reader: String,
    /// In the order of the hits; absent where the reader did not answer in time.
    needs: Vec<Option<f32>>,
}

impl HitNeeds {
    /// Joins answers to questions of [`LINES_A_QUESTION`] hits each. The fault of the first where
    /// there is no answer; those of another reader than the first do not count.
    fn of(answers: Vec<Result<PromptReading, Fault>>, hits: usize) -> Result<Self, Fault> {
        let mut reader = None;
        let mut fault = None;
        let mut needs = vec![None; hits];
        for (answer, needs) in answers.into_iter().zip(needs.chunks_mut(LINES_A_QUESTION)) {
            match answer {
                Ok(answer) => {
                    if *reader.get_or_insert_with(|| answer.reader.clone()) == answer.reader {
                        let answers = answer.needs.into_iter();
                        needs
                            .iter_mut()
                            .zip(answers)
                            .for_each(|(need, it)| *need = Some(it));
                    }
                }
                Err(problem) => {
                    fault.get_or_insert(problem);
                }
            }
        }
        match (reader, fault) {
            (Some(reader), _) => Ok(Self { reader, needs }),
            (None, fault) => Err(fault.unwrap_or_else(|| Fault::deadline("reading"))),
        }
    }

    /// Puts them into the place of the hits' relevance. Hits that were not read have none, and
    /// leave where nothing that was read is needed. Returns how the answer is degraded, if it is.
    fn replace_relevance(self, found: &mut Found, thresholds: Thresholds) -> Option<String> {
        let unread = self.needs.iter().filter(|need| need.is_none()).count();
        let all = self.needs.len();
        for (hit, need) in found.hits.iter_mut().zip(self.needs) {
            hit.relevance = need.map(|need| moved_need(need, hit.relevance));
        }
        raise_successors(&mut found.hits);
        found.scorer = match &*found.scorer {
            "" => self.reader,
            search => format!("{}({search})", self.reader),
        };
        if thresholds.of_each(found) > thresholds.of_item {
            found.hits.retain(|hit| hit.relevance.is_some());
        }
        (unread > 0).then(|| format!("{unread} of {all} turns were not read in time"))
    }
}

/// True where a prompt has a word of the name of a person who said one of the hits.
fn names_speaker(prompt: &str, hits: &[Hit]) -> bool {
    let asked: HashSet<&str> = words(prompt).collect();
    hits.iter().any(|hit| {
        let turn = &hit.turn.accepted;
        let name = turn.speaker.as_str();
        let is_person = turn.role == Role::User && !name.eq_ignore_ascii_case(UNNAMED_PERSON);
        is_person && words(name).any(|word| asked.contains(word))
    })
}

/// Words of two letters and more.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| word.chars().nth(1).is_some())
}

/// Raises the relevance of each turn that tells how things are now, and stands before the one that
/// tells how they were, to the relevance of that one.
fn raise_successors(hits: &mut [Hit]) {
    for at in 1..hits.len() {
        let [before, hit] = &mut hits[at - 1..=at] else {
            continue;
        };
        if hit.outdated.is_some() && hit.space == before.space {
            let known = before.relevance.into_iter().chain(hit.relevance);
            before.relevance = known.reduce(f32::max);
        }
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{DerivationId, Speaker};
    use memfleet_domain::tense::{PromptTense, TenseScores};
    use memfleet_domain::turn::Turn;
    use memfleet_ports::conformance::samples;
    use memfleet_ports::turn_reader::no_reader;

    use super::*;

    fn hit(relevance: Option<f32>) -> Hit {
        Hit {
            space: samples::home().space,
            turn: Turn {
                accepted: samples::turn("1", "before the passage after"),
                position: 1,
                replaced: None,
            },
            score: 1.0,
            relevance,
            passage: (7, 18),
            signals: Vec::new(),
            neighbours: Vec::new(),
            facts: Vec::new(),
            outdated: None,
        }
    }

    fn answer(reader: &str, needs: &[f32]) -> PromptReading {
        PromptReading {
            reader: reader.to_owned(),
            tense: TenseScores::certain(PromptTense::Now),
            needs: needs.to_vec(),
        }
    }

    #[test]
    fn answers_of_one_reader_are_joined_and_faults_leave_holes() {
        let (first, last) = (vec![0.5; LINES_A_QUESTION], [0.25]);
        let fault = no_reader("none is here");
        let answers = vec![
            Err(fault.clone()),
            Ok(answer("a", &first)),
            Ok(answer("b", &first)),
            Ok(answer("a", &last)),
        ];
        let joined = HitNeeds::of(answers, 3 * LINES_A_QUESTION + 2).unwrap();
        assert_eq!(joined.reader, "a");
        let parts: Vec<_> = joined.needs.chunks(LINES_A_QUESTION).collect();
        let unread = [None; LINES_A_QUESTION];
        assert_eq!(
            parts[..3],
            [&unread[..], &[Some(0.5); LINES_A_QUESTION], &unread]
        );
        assert_eq!(parts[3], [Some(0.25), None]);
        let faults = HitNeeds::of(vec![Err(fault.clone())], 1);
        assert_eq!(faults.err(), Some(fault));
    }

    #[test]
    fn a_speaker_is_named_by_a_word_of_the_name_and_not_by_a_role() {
        let spoken = |name: &str, role| {
            let mut hit = hit(None);
            hit.turn.accepted.speaker = Speaker::new(name).unwrap();
            hit.turn.accepted.role = role;
            hit
        };
        let names = |prompt: &str, name: &str, role| names_speaker(prompt, &[spoken(name, role)]);
        assert!(names(
            "When did Caroline's son call?",
            "Caroline Mace",
            Role::User
        ));
        assert!(names("Где живёт Анна?", "Анна", Role::User));
        assert!(!names("What did caroline say?", "Caroline", Role::User));
        assert!(!names("Kit, tell me a joke", "Kit", Role::Assistant));
        assert!(!names("Add a user to the list", "user", Role::User));
        assert!(!names("A or B?", "A", Role::User));
    }

    #[test]
    fn a_turn_that_took_the_place_of_another_is_needed_as_much() {
        let mut hits = [hit(Some(0.1)), hit(Some(0.9)), hit(Some(0.2))];
        hits[1].outdated = Some(DerivationId::from_bytes([1; 16]));
        raise_successors(&mut hits);
        let relevances = hits.map(|hit| hit.relevance);
        assert_eq!(relevances, [Some(0.9), Some(0.9), Some(0.2)]);
    }
}
