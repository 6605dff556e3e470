//! New statements against earlier and later ones of the same speaker, by the reader of turns: which
//! of them a later one ends or corrects.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use memfleet_agents::conflicts::Verdict;
use memfleet_domain::derivation::{Conflict, Contradiction, Derivation, Kind, Origin, Status};
use memfleet_domain::fact::StatementLabels;
use memfleet_domain::ids::{ConflictId, DerivationId, TurnId};
use memfleet_domain::statement::{ChangeThresholds, ChangeVectors, StatementRelation};
use memfleet_domain::turn::{Role, Turn};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::{CallPriority, Context};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Question;
use memfleet_ports::retriever::Query;
use memfleet_ports::turn_reader::{TurnComparison, TurnStatements, TurnText, placed_statements};

use crate::LocalJudge;

/// Turns of the same session and speaker that a new one is compared with, the last before it.
const RECENT_TURNS: usize = 3;

/// Turns before a new one among which these are.
const PRECEDING_TURNS: u32 = 8;

/// Turns that a new one is compared with at most, the nearest that searches for its statements
/// find.
const NEAREST_TURNS: usize = 2;

/// Turns that it is compared with besides at most, of the others that were found and the last of
/// its session, by the vectors of their statements. In long conversation these find most changes,
/// among thousands of turns about other matters the searches do (docs/benchmarks.md,
/// Understanding).
const LIKELY_TURNS: usize = 5;

/// Turns that it is compared with at most where some of their statements have no vectors, as
/// corrections have none, or those of another reader: the nearest and then the last of its session.
const UNVECTORED_TURNS: usize = 7;

/// Hits of each search among which these are.
const SEARCHED_TURNS: u32 = 32;

/// Least cosine of the vectors of two statements by which the turns are compared.
const LEAST_COSINE: f32 = 0.25;

/// Statements of a turn for which a search is made.
const SEARCHED_STATEMENTS: usize = 4;

/// Possible changes that are noted of a new statement at most, the likeliest.
const MAX_POSSIBLE_CHANGES: usize = 8;

/// Longest wait for a search.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements by their turn.
type TurnFacts = BTreeMap<TurnId, Vec<Derivation>>;

/// Words with statements in them: a turn, or the sentence by which a caller corrected a fact of
/// one.
struct StatedText {
    turn: Turn,
    words: TurnText,
    /// Statements in the order of the words; none overlap.
    statements: Vec<(Derivation, Range<usize>)>,
}

impl LocalJudge {
    /// Conflicts of new statements with others. None where the reader is missing: nothing is
    /// compared then, and what stands goes on.
    pub(crate) async fn statement_conflicts(
        &self,
        scope: &Scope,
        new: &[Derivation],
    ) -> Result<Vec<Conflict>, Fault> {
        let open = new.iter().filter(|fact| fact.valid.end.is_none());
        let turns: BTreeSet<TurnId> = open.map(|fact| fact.turns[0]).collect();
        let mut found = BTreeMap::new();
        for stated in self.stated(scope, turns.into_iter().collect()).await? {
            let others = self.compared(scope, &stated).await?;
            match self.conflicts_of(&stated, &others).await {
                Err(fault) if fault.reason == "READER_MISSING" => {
                    tracing::warn!(%scope, "new statements are not compared: {fault}");
                    break;
                }
                conflicts => found.extend(conflicts?.into_iter().map(|it| (it.id, it))),
            }
        }
        Ok(found.into_values().collect())
    }

    /// Words of these turns that state something that holds, and of corrections of it.
    async fn stated(&self, scope: &Scope, turns: Vec<TurnId>) -> Result<Vec<StatedText>, Fault> {
        let statements = self.statements(scope, turns).await?;
        self.texts(scope, statements).await
    }

    /// Statements of these turns that hold.
    async fn statements(&self, scope: &Scope, turns: Vec<TurnId>) -> Result<TurnFacts, Fault> {
        let mut statements = TurnFacts::new();
        if turns.is_empty() {
            return Ok(statements);
        }
        let question = Question {
            kind: Some(Kind::Fact),
            turns,
            ..Question::default()
        };
        for fact in self.knowledge.all_derivations(scope, &question).await? {
            let is_open = fact.valid.end.is_none();
            if is_open && fact.is_statement() {
                statements.entry(fact.turns[0]).or_default().push(fact);
            }
        }
        Ok(statements)
    }

    /// Words of turns with these statements, and of corrections among them.
    async fn texts(
        &self,
        scope: &Scope,
        mut statements: TurnFacts,
    ) -> Result<Vec<StatedText>, Fault> {
        if statements.is_empty() {
            return Ok(Vec::new());
        }
        let turns: Vec<TurnId> = statements.keys().copied().collect();
        let mut stated = Vec::new();
        for turn in self.ledger.turns(scope, &turns).await? {
            let of_turn = statements.remove(&turn.accepted.id).unwrap_or_default();
            let (corrected, said): (Vec<_>, Vec<_>) = of_turn
                .into_iter()
                .partition(|fact| fact.origin == Origin::Corrected);
            stated.extend(
                corrected
                    .into_iter()
                    .map(|fact| corrected_text(&turn, fact)),
            );
            stated.extend(turn_text(turn, said));
        }
        Ok(stated)
    }

    /// Turns of the same speaker that a new one is compared with: the nearest to its statements
    /// that searches find, and of the others and the last of its session the likeliest by their
    /// vectors.
    async fn compared(&self, scope: &Scope, new: &StatedText) -> Result<Vec<StatedText>, Fault> {
        let own = &new.turn.accepted;
        let before = self
            .ledger
            .preceding(scope, own.id, PRECEDING_TURNS)
            .await?;
        let recent = before.iter().rev();
        let recent = recent.filter(|turn| turn.accepted.speaker == own.speaker);
        let recent = recent.take(RECENT_TURNS).map(|turn| turn.accepted.id);
        let recent: Vec<TurnId> = recent.collect();
        let mut found = Vec::new();
        for (statement, _) in new.statements.iter().take(SEARCHED_STATEMENTS) {
            found.push(self.nearest(scope, new, statement).await?);
        }
        // The first of each search, then the second of each.
        let ranks = 0..found.iter().map(Vec::len).max().unwrap_or_default();
        let by_rank = ranks.flat_map(|rank| found.iter().filter_map(move |it| it.get(rank)));
        let mut turns: Vec<TurnId> = Vec::new();
        for turn in by_rank.chain(&recent) {
            if *turn != own.id && !turns.contains(turn) {
                turns.push(*turn);
            }
        }
        let mut statements = self.statements(scope, turns.clone()).await?;
        let likely = likely_changed(new, &statements, &turns);
        statements.retain(|turn, _| likely.contains(turn));
        self.texts(scope, statements).await
    }

    /// Turns of the speaker of a statement that are nearest to it.
    async fn nearest(
        &self,
        scope: &Scope,
        new: &StatedText,
        statement: &Derivation,
    ) -> Result<Vec<TurnId>, Fault> {
        let context = Context::new(scope.tenant.clone(), SEARCH_TIMEOUT);
        let query = Query {
            text: statement.body.found_by(),
            spaces: vec![scope.space.clone()],
            filter: TurnFilter {
                speakers: vec![new.turn.accepted.speaker.clone()],
                roles: vec![Role::User],
                ..TurnFilter::default()
            },
            k: SEARCHED_TURNS,
            neighbours: 0,
            now: None,
            session: None,
            intent: None,
            quality: None,
            explain: false,
            vectors: None,
        };
        let context = context.with_priority(CallPriority::Low);
        match self.retriever.search(&context, &query).await {
            Ok(found) => Ok(found.hits.iter().map(|hit| hit.turn.accepted.id).collect()),
            // Forgotten meanwhile.
            Err(fault) if fault.kind == FaultKind::NotFound => Ok(Vec::new()),
            Err(fault) => Err(fault),
        }
    }

    /// Conflicts of the statements of a turn with those of others.
    async fn conflicts_of(
        &self,
        new: &StatedText,
        others: &[StatedText],
    ) -> Result<Vec<Conflict>, Fault> {
        let pairs: Vec<_> = others.iter().map(|other| in_order(new, other)).collect();
        let asked = pairs.iter().map(|[earlier, later]| TurnComparison {
            earlier: earlier.to_compare(),
            later: later.to_compare(),
            gap: later.turn.accepted.effective_time() - earlier.turn.accepted.effective_time(),
            question: None,
        });
        let read = self.reader.relations(asked.collect()).await?;
        let mut conflicts = Vec::new();
        for ([earlier, later], relations) in pairs.iter().zip(&read.answers) {
            for scores in relations {
                let pair = earlier.statements.get(scores.earlier);
                let pair = pair.zip(later.statements.get(scores.later));
                let Some(((older, _), (newer, _))) = pair else {
                    continue;
                };
                let [before, after] = [older, newer].map(labels);
                let change = StatementLabels::change_probability(before, after, scores);
                if change < ChangeThresholds::POSSIBLE {
                    continue;
                }
                let correction = scores.probability(StatementRelation::Corrects);
                let is_correction = correction >= ChangeThresholds::CORRECTED;
                let verdict = verdict(older, newer, is_correction);
                conflicts.extend(verdict.map(|verdict| {
                    let id = ConflictId::of(verdict.older, verdict.newer);
                    Conflict {
                        status: match change >= ChangeThresholds::ENDED {
                            true => Status::Found,
                            false => Status::Possible,
                        },
                        probability: Some(change),
                        ..self.conflict(id, verdict, &read.reader)
                    }
                }));
            }
        }
        Ok(likeliest(conflicts))
    }
}

impl StatedText {
    /// Highest cosine of the later and the earlier ones of its statements and of others, and
    /// whether some of them cannot be compared by vectors.
    fn cosine(&self, others: &[Derivation]) -> (Option<f32>, bool) {
        let (mut highest, mut is_unvectored) = (None, false);
        let own_time = self.turn.accepted.effective_time();
        for (own, _) in &self.statements {
            for other in others {
                let said_at = other.fact().and_then(|draft| draft.said_at);
                let is_earlier = said_at.is_none_or(|instant| instant <= own_time);
                let [older, newer] = if is_earlier {
                    [other, own]
                } else {
                    [own, other]
                };
                match vectors(newer).zip(vectors(older)) {
                    Some((newer, older)) if own.origin == other.origin => {
                        let cosine = ChangeVectors::cosine(newer, older);
                        highest = Some(highest.map_or(cosine, |it: f32| it.max(cosine)));
                    }
                    _ => is_unvectored = true,
                }
            }
        }
        (highest, is_unvectored)
    }

    fn to_compare(&self) -> TurnStatements {
        TurnStatements {
            turn: self.words.clone(),
            statements: self.statements.iter().map(|it| it.1.clone()).collect(),
        }
    }
}

/// Turns whose statements a new one may change, or be changed by, of turns in the order of the
/// search: the nearest and the likeliest by their vectors, and the first of those with statements
/// that cannot be compared by them.
fn likely_changed(new: &StatedText, statements: &TurnFacts, turns: &[TurnId]) -> Vec<TurnId> {
    let mut likely = Vec::new();
    let mut unvectored = Vec::new();
    for turn in turns {
        let Some(facts) = statements.get(turn) else {
            continue;
        };
        let (cosine, is_unvectored) = new.cosine(facts);
        if let Some(cosine) = cosine.filter(|it| *it >= LEAST_COSINE) {
            likely.push((*turn, cosine));
        } else if is_unvectored {
            unvectored.push(*turn);
        }
    }
    let mut others = likely.split_off(NEAREST_TURNS.min(likely.len()));
    let mut chosen: Vec<TurnId> = likely.into_iter().map(|(turn, _)| turn).collect();
    others.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    chosen.extend(others.into_iter().map(|(turn, _)| turn).take(LIKELY_TURNS));
    chosen.extend(unvectored.into_iter().take(UNVECTORED_TURNS));
    chosen
}

/// Vectors of a statement, as a reader gave them.
fn vectors(statement: &Derivation) -> Option<&ChangeVectors> {
    match statement.origin {
        Origin::Extracted(_) => labels(statement)?.vectors.as_ref(),
        Origin::Corrected => None,
    }
}

/// Statements of a turn in its words; none where no statement is left. Those that overlap another
/// or lie beyond what is read are left out.
fn turn_text(turn: Turn, facts: Vec<Derivation>) -> Option<StatedText> {
    let words = TurnText::of(&turn.accepted);
    let placed = facts.into_iter().map(|fact| {
        let bytes = fact.fact().map_or(0..0, |draft| draft.evidence.clone());
        (fact, bytes.start as usize..bytes.end as usize)
    });
    let statements = placed_statements(&words.text, placed.collect());
    (!statements.is_empty()).then_some(StatedText {
        turn,
        words,
        statements,
    })
}

/// The sentence by which a caller corrected a fact of a turn.
fn corrected_text(turn: &Turn, fact: Derivation) -> StatedText {
    let words = TurnText {
        text: fact.body.found_by(),
        ..TurnText::of(&turn.accepted)
    };
    let bytes = 0..words.text.len();
    StatedText {
        turn: turn.clone(),
        words,
        statements: vec![(fact, bytes)],
    }
}

/// Two texts in the order in which they were said.
fn in_order<'t>(one: &'t StatedText, other: &'t StatedText) -> [&'t StatedText; 2] {
    let place = |it: &StatedText| {
        let said = &it.turn.accepted;
        (said.effective_time(), it.turn.position, said.id)
    };
    match place(one) <= place(other) {
        true => [one, other],
        false => [other, one],
    }
}

fn labels(statement: &Derivation) -> Option<&StatementLabels> {
    statement.fact()?.statement.as_ref()
}

/// Conflicts without those that are possible beyond the likeliest few of each newer statement.
fn likeliest(mut conflicts: Vec<Conflict>) -> Vec<Conflict> {
    let probability = |it: &Conflict| it.probability.unwrap_or_default();
    conflicts.sort_by(|one, other| probability(other).total_cmp(&probability(one)));
    let mut possible: BTreeMap<DerivationId, usize> = BTreeMap::new();
    conflicts.retain(|it| {
        let count = possible.entry(it.newer).or_default();
        *count += usize::from(it.status == Status::Possible);
        it.status != Status::Possible || *count <= MAX_POSSIBLE_CHANGES
    });
    conflicts
}

/// The verdict on a later statement that changes an earlier one, where that still holds and is
/// about the same person. One that began at the same instant ends nothing: the older one would have
/// held at no time.
pub(crate) fn verdict(
    older: &Derivation,
    newer: &Derivation,
    is_correction: bool,
) -> Option<Verdict> {
    let (before, after) = (older.fact()?, newer.fact()?);
    let ends = newer.valid.start.filter(|_| !is_correction);
    let leaves_time = is_correction || ends > older.valid.start;
    if !leaves_time || before.claim.subject != after.claim.subject {
        return None;
    }
    Some(Verdict {
        older: older.id,
        newer: newer.id,
        contradiction: match is_correction {
            true => Contradiction::Correction,
            false => Contradiction::Functional,
        },
        ends,
    })
}

#[cfg(test)]
mod tests {
    use memfleet_domain::derivation::Body;
    use memfleet_ports::conformance::{knowledge, samples};

    use super::*;

    fn statement(name: &str) -> Derivation {
        let turn = samples::turn(name, name);
        knowledge::statement(&turn, name, samples::instant(1))
    }

    #[test]
    fn of_a_statement_the_likeliest_possible_changes_are_noted_and_all_others() {
        let newer = statement("newer");
        let conflict = |number: usize, status| Conflict {
            status,
            probability: Some(number as f32 / 100.0),
            ..knowledge::conflict(&statement(&number.to_string()), &newer)
        };
        let possible = (10..30).map(|number| conflict(number, Status::Possible));
        let found = (96..99).map(|number| conflict(number, Status::Found));
        let kept = likeliest(possible.chain(found).collect());
        let of = |status| kept.iter().filter(move |it| it.status == status);
        assert_eq!(of(Status::Found).count(), 3);
        assert_eq!(of(Status::Possible).count(), MAX_POSSIBLE_CHANGES);
        assert!(of(Status::Possible).all(|it| it.probability >= Some(0.22)));
    }

    /// Text of one statement, told at a position, with a vector that is `along` and across the
    /// first number, or none.
    fn text(name: &str, position: u32, along: Option<i8>) -> StatedText {
        let mut fact = statement(name);
        if let Body::Fact(draft) = &mut fact.body
            && let Some(labels) = &mut draft.statement
        {
            labels.vectors = along.and_then(|along| {
                let mut vector = [0; ChangeVectors::DIMENSIONS];
                let across = 127.0_f32.powi(2) - f32::from(along).powi(2);
                (vector[0], vector[1]) = (along, across.max(0.0).sqrt() as i8);
                ChangeVectors::new(vector, vector)
            });
        }
        let accepted = samples::turn(name, name);
        StatedText {
            words: TurnText::of(&accepted),
            turn: Turn {
                accepted,
                position,
                replaced: None,
            },
            statements: vec![(fact, 0..name.len())],
        }
    }

    /// Turns that are chosen of some with these vectors, by their places.
    fn chosen(new: &StatedText, others: &[StatedText]) -> Vec<u32> {
        let turns: Vec<TurnId> = others.iter().map(|it| it.turn.accepted.id).collect();
        let mut statements = TurnFacts::new();
        for other in others {
            let facts = other.statements.iter().map(|(fact, _)| fact.clone());
            statements.insert(other.turn.accepted.id, facts.collect());
        }
        let place = |turn: &TurnId| {
            others
                .iter()
                .find(|it| it.turn.accepted.id == *turn)
                .unwrap()
        };
        let chosen = likely_changed(new, &statements, &turns);
        chosen
            .iter()
            .map(|turn| place(turn).turn.position)
            .collect()
    }

    fn texts(along: &[Option<i8>]) -> Vec<StatedText> {
        let texts = along.iter().zip(1..);
        let texts = texts.map(|(along, at)| text(&format!("turn {at}"), at, *along));
        texts.collect()
    }

    #[test]
    fn the_nearest_and_the_likeliest_turns_are_compared_and_some_without_vectors() {
        let new = text("new", 100, Some(127));
        let along = [Some(-90), Some(40), None, Some(120), None, Some(60)];
        assert_eq!(chosen(&new, &texts(&along)), [2, 4, 6, 3, 5]);
        let many: Vec<Option<i8>> = (0..9).map(|at| Some(60 + at)).chain([None]).collect();
        assert_eq!(chosen(&new, &texts(&many)), [1, 2, 9, 8, 7, 6, 5, 10]);
        assert_eq!(chosen(&new, &texts(&[None; 9])), [1, 2, 3, 4, 5, 6, 7]);
        let unread = text("new", 100, None);
        assert_eq!(chosen(&unread, &texts(&[Some(127); 9])).len(), 7);
    }

    #[test]
    fn vectors_of_another_reader_and_of_corrections_are_not_compared() {
        let new = text("new", 100, Some(127));
        for origin in [Origin::Extracted("reader-0".to_owned()), Origin::Corrected] {
            let mut others = texts(&[Some(127), Some(120)]);
            others[0].statements[0].0.origin = origin;
            assert_eq!(chosen(&new, &others), [2, 1]);
        }
    }

    #[test]
    fn a_turn_whose_statements_have_vectors_in_part_is_compared() {
        let new = text("new", 100, Some(127));
        let mut others = texts(&[Some(-90)]);
        assert!(chosen(&new, &others).is_empty());
        let unread = text("turn 1 again", 1, None).statements.remove(0);
        others[0].statements.push(unread);
        assert_eq!(chosen(&new, &others), [1]);
    }
}
