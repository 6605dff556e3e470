//! Answers by quotation: the statements of what was found that a good answer needs, in their own
//! words and with their dates, as the reader of turns tells them. Of statements that contradict
//! each other the one that holds is quoted, or all in order of time where that is not certain.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::derivation::Origin;
use memfleet_domain::statement::{ChangeThresholds, Statement, StatementKind};
use memfleet_domain::tense::{PromptTense, TenseScores};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::{
    NeedQuestion, TurnComparison, TurnInContext, TurnReader, TurnStatements, TurnText,
};

use crate::hit_need::{hit_line, odds};

/// Longest wait for the reader.
const READER_TIMEOUT: Duration = Duration::from_secs(3);

/// Hits whose need is read, the first ones.
const MAX_WEIGHED_HITS: usize = 20;

/// Hits whose statements are read, those that are needed most.
const MAX_READ_HITS: usize = 4;

/// Least need of the best hit by which memory holds the answer.
const LEAST_ANSWER: f32 = 0.5;

/// Longest turn that is quoted as a whole, in bytes: the words around a short statement tell more.
const MAX_WHOLE_TURN: usize = 160;

/// Share of the odds of the statement of a turn that is needed most, by which a change of another
/// one counts.
const STATEMENT_SHARE: f32 = 0.5;

/// Share of the odds of the best hit that another needs to be a further value.
const LEAST_SHARE: f32 = 0.25;

/// Reader and the time that it has.
#[derive(Clone)]
pub struct Quoter {
    /// Reads which statements answer.
    pub reader: Arc<dyn TurnReader>,
    /// Call that waits for the answer.
    pub context: Context,
}

/// Statement that is quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotation {
    /// Place of its hit.
    pub place: usize,
    /// Its bytes of the hit's searchable text.
    pub bytes: Range<usize>,
}

/// Quotations that answer a question.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Quotations {
    /// In order of time; none where memory does not hold the answer.
    pub quoted: Vec<Quotation>,
    /// True where the quotations contradict each other, and it is not certain which holds.
    pub is_uncertain: bool,
}

/// Hit that may answer, with its statements in order and which of them is needed most.
struct Candidate {
    place: usize,
    turn: TurnText,
    need: f32,
    /// True where all that the turn says may be quoted.
    is_whole: bool,
    statements: Vec<Range<usize>>,
    /// Probability that the question needs each of them.
    needs: Vec<f32>,
    best: usize,
}

impl Candidate {
    /// Bytes that are quoted for a statement.
    fn quoted(&self, statement: usize) -> Range<usize> {
        match self.is_whole && self.turn.text.len() <= MAX_WHOLE_TURN {
            true => 0..self.turn.text.len(),
            false => self.statements[statement].clone(),
        }
    }

    /// True where the question needs a statement about as much as any other of the turn.
    fn is_asked(&self, statement: usize) -> bool {
        let of = |statement: usize| self.needs.get(statement).copied().map_or(0.0, odds);
        of(statement) >= STATEMENT_SHARE * of(self.best)
    }
}

/// Change of a statement of one candidate by one of a later candidate.
#[derive(Debug, Clone, Copy)]
struct StatedChange {
    /// Place of the earlier candidate, and of its statement.
    earlier: (usize, usize),
    /// The same of the later one.
    later: (usize, usize),
    /// Probability that the later statement ends or corrects the earlier one.
    probability: f32,
}

impl Quoter {
    /// Quotations of hits that answer a question.
    pub async fn quote(&self, question: &str, hits: &[Hit]) -> Result<Quotations, Fault> {
        let brief = self.context.at_most(READER_TIMEOUT);
        let quotations = self.quotations(question, hits);
        brief.within("the reader of turns", quotations).await
    }

    async fn quotations(&self, question: &str, hits: &[Hit]) -> Result<Quotations, Fault> {
        let hits = &hits[..hits.len().min(MAX_WEIGHED_HITS)];
        let lines = hits.iter().map(hit_line).collect();
        let reading = self.reader.needs(asked(question, lines)).await?;
        let turns = hits.iter().map(|hit| TurnText::of(&hit.turn.accepted));
        let turns: Vec<TurnText> = turns.collect();
        let mut weighed: Vec<(usize, f32)> = hits
            .iter()
            .zip(reading.needs)
            .map(|(_, need)| need)
            .enumerate()
            .collect();
        weighed.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        if weighed.first().is_none_or(|(_, best)| *best < LEAST_ANSWER) {
            return Ok(Quotations::default());
        }
        weighed.truncate(MAX_READ_HITS);
        let mut candidates = self.candidates(question, hits, &turns, weighed).await?;
        candidates.sort_by_key(|it| {
            let turn = &hits[it.place].turn;
            (turn.accepted.effective_time(), turn.position)
        });
        let changes = self.changes(question, hits, &candidates).await?;
        Ok(chosen(&candidates, &changes, &reading.tense))
    }

    /// Of each of these turns the statements, and which of them is needed most.
    async fn candidates(
        &self,
        question: &str,
        hits: &[Hit],
        turns: &[TurnText],
        weighed: Vec<(usize, f32)>,
    ) -> Result<Vec<Candidate>, Fault> {
        let read = weighed.iter().map(|(place, _)| TurnInContext {
            turn: turns[*place].clone(),
            previous: None,
        });
        let statements = self.reader.statements(read.collect()).await?.answers;
        let mut lines = Vec::new();
        let mut told = Vec::new();
        for ((place, need), statements) in weighed.into_iter().zip(statements) {
            let stands = |it: &Statement| answers(it) && !is_disowned(&hits[place], &it.bytes);
            for statement in statements.into_iter().filter(stands) {
                let turn = &turns[place];
                let text = turn.text.get(statement.bytes.clone()).unwrap_or_default();
                lines.push(TurnText {
                    text: text.to_owned(),
                    ..turn.clone()
                });
                told.push((place, need, statement.bytes));
            }
        }
        let needs = match lines.is_empty() {
            true => Vec::new(),
            false => self.reader.needs(asked(question, lines)).await?.needs,
        };
        let mut candidates: Vec<Candidate> = Vec::new();
        for ((place, need, bytes), of_statement) in told.into_iter().zip(needs) {
            match candidates.last_mut().filter(|it| it.place == place) {
                Some(candidate) => {
                    if of_statement > candidate.needs[candidate.best] {
                        candidate.best = candidate.statements.len();
                    }
                    candidate.statements.push(bytes);
                    candidate.needs.push(of_statement);
                }
                None => candidates.push(Candidate {
                    place,
                    turn: turns[place].clone(),
                    need,
                    is_whole: !is_disowned(&hits[place], &(0..turns[place].text.len())),
                    statements: vec![bytes],
                    needs: vec![of_statement],
                    best: 0,
                }),
            }
        }
        Ok(candidates)
    }

    /// Changes of candidates by later ones, of what the question asks about; candidates are in
    /// order of time.
    async fn changes(
        &self,
        question: &str,
        hits: &[Hit],
        candidates: &[Candidate],
    ) -> Result<Vec<StatedChange>, Fault> {
        let mut places = Vec::new();
        let mut pairs = Vec::new();
        let time = |candidate: &Candidate| hits[candidate.place].turn.accepted.effective_time();
        for later in 0..candidates.len() {
            for earlier in 0..later {
                places.push((earlier, later));
                let [before, after] = [earlier, later].map(|place| &candidates[place]);
                pairs.push(TurnComparison {
                    earlier: statements_of(before),
                    later: statements_of(after),
                    gap: time(after) - time(before),
                    question: Some(question.to_owned()),
                });
            }
        }
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let relations = self.reader.relations(pairs).await?.answers;
        let pairs = places.into_iter().zip(relations);
        let changes = pairs.flat_map(|((earlier, later), relations)| {
            let changes = relations.into_iter().map(move |scores| StatedChange {
                earlier: (earlier, scores.earlier),
                later: (later, scores.later),
                probability: scores.change(),
            });
            changes.filter(|change| change.probability >= ChangeThresholds::DOUBTED)
        });
        Ok(changes.collect())
    }
}

/// Quotations of candidates, which are in order of time.
fn chosen(candidates: &[Candidate], changes: &[StatedChange], tense: &TenseScores) -> Quotations {
    let by_need =
        |one: &usize, other: &usize| candidates[*one].need.total_cmp(&candidates[*other].need);
    let best = (0..candidates.len()).max_by(by_need);
    let best = best.filter(|best| candidates[*best].need >= LEAST_ANSWER);
    let Some(best) = best else {
        return Quotations::default();
    };
    let likeliest = |changes: Vec<&StatedChange>| {
        let changes = changes.into_iter();
        changes
            .max_by(|one, other| one.probability.total_cmp(&other.probability))
            .copied()
    };
    // Every statement of the best turn counts that the question asks for; of a turn behind it the
    // one that made the change.
    let is_meant = |(place, statement): (usize, usize), meant: (usize, usize)| {
        place == meant.0
            && (statement == meant.1 || place == best && candidates[best].is_asked(statement))
    };
    let sure = || {
        changes
            .iter()
            .filter(|it| it.probability >= ChangeThresholds::QUOTED)
    };
    let successor = |meant| {
        let after = sure().filter(|change| is_meant(change.earlier, meant));
        likeliest(after.collect()).map(|change| change.later)
    };
    let mut meant = (best, candidates[best].best);
    match tense.likeliest() {
        // Later candidates have higher places, so this ends.
        PromptTense::Now => {
            while let Some(later) = successor(meant) {
                meant = later;
            }
        }
        PromptTense::Before if successor(meant).is_none() => {
            let before = sure().filter(|change| is_meant(change.later, meant));
            meant = before.map(|change| change.earlier).max().unwrap_or(meant);
        }
        PromptTense::Before | PromptTense::AsOf => {}
        PromptTense::All => {
            let least = odds(candidates[best].need) * LEAST_SHARE;
            let meant = candidates.iter().filter(|it| odds(it.need) >= least);
            return quotations(meant.map(|it| (it, it.best)), false);
        }
    }
    let doubted: HashMap<usize, usize> = changes
        .iter()
        .filter(|change| change.probability < ChangeThresholds::QUOTED)
        .filter_map(|change| {
            let (earlier, later) = (change.earlier, change.later);
            match (is_meant(earlier, meant), is_meant(later, meant)) {
                (true, _) => Some(later),
                (_, true) => Some(earlier),
                _ => None,
            }
        })
        .collect();
    let quoted = candidates.iter().enumerate().filter_map(|(place, it)| {
        let statement = match place == meant.0 {
            true => Some(meant.1),
            false => doubted.get(&place).copied(),
        };
        Some((it, statement?))
    });
    quotations(quoted, true)
}

/// Quotations of statements of candidates; the same words are quoted once. Where several are left
/// they are uncertain, if they `exclude` each other.
fn quotations<'c>(
    quoted: impl Iterator<Item = (&'c Candidate, usize)>,
    exclude: bool,
) -> Quotations {
    let mut known = HashSet::new();
    let quoted = quoted.map(|(candidate, statement)| (candidate, candidate.quoted(statement)));
    let quoted = quoted.filter(|(candidate, bytes)| {
        known.insert(candidate.turn.text.get(bytes.clone()).unwrap_or_default())
    });
    let quoted = quoted.map(|(candidate, bytes)| Quotation {
        place: candidate.place,
        bytes,
    });
    let quoted: Vec<Quotation> = quoted.collect();
    Quotations {
        is_uncertain: exclude && quoted.len() > 1,
        quoted,
    }
}

/// True for words of a turn that a caller corrected, or whose fact was withdrawn.
fn is_disowned(hit: &Hit, bytes: &Range<usize>) -> bool {
    let disowned = hit
        .facts
        .iter()
        .filter(|fact| fact.is_withdrawn() || fact.origin == Origin::Corrected);
    let mut words = disowned.filter_map(|fact| Some(&fact.fact()?.evidence));
    words.any(|words| (words.start as usize) < bytes.end && bytes.start < words.end as usize)
}

/// True for a statement that can answer a question.
fn answers(statement: &Statement) -> bool {
    !matches!(
        statement.kind,
        StatementKind::Question | StatementKind::Small
    )
}

fn asked(question: &str, lines: Vec<TurnText>) -> NeedQuestion {
    NeedQuestion {
        prompt: question.to_owned(),
        before: String::new(),
        lines,
    }
}

fn statements_of(candidate: &Candidate) -> TurnStatements {
    TurnStatements {
        turn: candidate.turn.clone(),
        statements: candidate.statements.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Candidates with these needs, in order of time; each says another word.
    fn candidates(needs: &[f32]) -> Vec<Candidate> {
        let candidates = needs.iter().enumerate().map(|(place, &need)| Candidate {
            place,
            turn: TurnText {
                speaker: "Ada".to_owned(),
                is_assistant: false,
                text: format!("word {place}, {}", "and more ".repeat(20)),
            },
            need,
            is_whole: true,
            statements: vec![0..6, 0..4],
            needs: vec![0.9, 0.01],
            best: 0,
        });
        candidates.collect()
    }

    /// Places that are quoted, and whether that is uncertain. Changes are (earlier, later,
    /// probability).
    fn quoted(
        needs: &[f32],
        changes: &[(usize, usize, f32)],
        tense: PromptTense,
    ) -> (Vec<usize>, bool) {
        let found = chosen(
            &candidates(needs),
            &stated(changes),
            &TenseScores::certain(tense),
        );
        let places = found.quoted.iter().map(|it| it.place);
        (places.collect(), found.is_uncertain)
    }

    /// Changes of every statement of each earlier candidate, most likely by the second of the later
    /// one.
    fn stated(changes: &[(usize, usize, f32)]) -> Vec<StatedChange> {
        let changes = changes.iter().flat_map(|&(earlier, later, probability)| {
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(before, after)| StatedChange {
                earlier: (earlier, before),
                later: (later, after),
                probability: probability - if after == 0 { 0.01 } else { 0.0 },
            })
        });
        changes.collect()
    }

    #[test]
    fn a_change_of_another_statement_of_the_turn_counts_for_nothing() {
        let other = StatedChange {
            earlier: (0, 1),
            later: (1, 0),
            probability: 0.9,
        };
        let tense = TenseScores::certain(PromptTense::Now);
        let found = chosen(&candidates(&[0.9, 0.1]), &[other], &tense);
        assert_eq!(found.quoted[0].place, 0);
    }

    #[test]
    fn of_a_successor_the_statement_that_ended_the_other_is_quoted() {
        let tense = TenseScores::certain(PromptTense::Now);
        let found = chosen(&candidates(&[0.9, 0.1]), &stated(&[(0, 1, 0.9)]), &tense);
        assert_eq!(
            found.quoted,
            [Quotation {
                place: 1,
                bytes: 0..4
            }]
        );
    }

    #[test]
    fn the_statement_that_is_needed_most_is_quoted() {
        assert_eq!(
            quoted(&[0.6, 0.9, 0.8], &[], PromptTense::Now),
            (vec![1], false)
        );
        assert_eq!(quoted(&[], &[], PromptTense::Now), (vec![], false));
    }

    #[test]
    fn a_statement_that_ended_is_quoted_for_the_past_alone() {
        let changes = [(0, 1, 0.9)];
        assert_eq!(
            quoted(&[0.9, 0.6], &changes, PromptTense::Now),
            (vec![1], false)
        );
        assert_eq!(
            quoted(&[0.6, 0.9], &changes, PromptTense::Before),
            (vec![0], false)
        );
        assert_eq!(
            quoted(&[0.6, 0.9], &[], PromptTense::Before),
            (vec![1], false)
        );
        assert_eq!(
            quoted(&[0.8, 0.9], &changes, PromptTense::All),
            (vec![0, 1], false)
        );
    }

    #[test]
    fn statements_of_which_one_may_have_ended_are_quoted_both() {
        let changes = [(0, 1, 0.1)];
        assert_eq!(
            quoted(&[0.9, 0.6, 0.5], &changes, PromptTense::Now),
            (vec![0, 1], true)
        );
        assert_eq!(
            quoted(&[0.5, 0.6, 0.9], &changes, PromptTense::Now),
            (vec![2], false)
        );
    }

    #[test]
    fn a_statement_that_ended_the_one_asked_for_is_quoted_however_little_it_is_needed() {
        let changes = [(0, 2, 0.9)];
        assert_eq!(
            quoted(&[0.9, 0.6, 0.1], &changes, PromptTense::Now),
            (vec![2], false)
        );
        let again = [(0, 1, 0.9), (1, 2, 0.8)];
        assert_eq!(
            quoted(&[0.9, 0.6, 0.1], &again, PromptTense::Now),
            (vec![2], false)
        );
        assert_eq!(
            quoted(&[0.1, 0.6, 0.9], &again, PromptTense::Before),
            (vec![1], false)
        );
    }

    #[test]
    fn the_same_words_are_quoted_once() {
        let mut same = candidates(&[0.9, 0.8]);
        same[1].turn.text = same[0].turn.text.clone();
        let found = chosen(&same, &[], &TenseScores::certain(PromptTense::All));
        assert_eq!(found.quoted.len(), 1);
    }
}
