//! New statements against earlier and later ones of the same speaker, by the reader of turns: which of
//! them a later one ends or corrects.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use memfleet_agents::conflicts::Verdict;
use memfleet_domain::derivation::{Conflict, Contradiction, Derivation, Kind, Origin};
use memfleet_domain::ids::{ConflictId, TurnId};
use memfleet_domain::statement::{RelationScores, StatementRelation};
use memfleet_domain::turn::{Role, Turn};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::{CallPriority, Context};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Question;
use memfleet_ports::retriever::Query;
use memfleet_ports::turn_reader::{TurnComparison, TurnStatements, TurnText};

use crate::LocalJudge;

/// Least probability of a change by which a statement is ended.
const LEAST_CHANGE: f32 = 0.7;

/// Least probability of a correction by which a statement was never so; below, it held until then.
const LEAST_CORRECTION: f32 = 0.8;

/// Turns of the same session that a new one is compared with, the last before it.
const RECENT: u32 = 3;

/// Turns that a new one is compared with besides, the nearest of its speaker's.
const NEAREST: usize = 4;

/// Turns that are looked at for the nearest with statements.
const SEARCHED: u32 = 16;

/// Statements of a turn that the nearest are searched for.
const SEARCHES: usize = 4;

/// Longest wait for a search.
const SEARCH: Duration = Duration::from_secs(10);

/// A turn and its statements that are facts, in the order of the text.
struct StatedTurn {
    turn: Turn,
    statements: Vec<Derivation>,
}

impl LocalJudge {
    /// Conflicts of new statements with others. None where the reader is missing: nothing is
    /// compared then, and what stands goes on.
    pub(crate) async fn statement_conflicts(
        &self,
        scope: &Scope,
        new: &[Derivation],
    ) -> Result<Vec<Conflict>, Fault> {
        let new = new.iter().filter(|fact| is_statement(fact));
        let turns: HashSet<TurnId> = new.map(|fact| fact.turns[0]).collect();
        let mut found = BTreeMap::new();
        for stated in self.stated(scope, turns.into_iter().collect()).await? {
            let others = self.compared(scope, &stated).await?;
            match self.conflicts_of(&stated, &others).await {
                Err(fault) if fault.reason == "READER_MISSING" => break,
                conflicts => found.extend(conflicts?.into_iter().map(|it| (it.id, it))),
            }
        }
        Ok(found.into_values().collect())
    }

    /// These turns with their statements; those without are left out.
    async fn stated(&self, scope: &Scope, turns: Vec<TurnId>) -> Result<Vec<StatedTurn>, Fault> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let mut statements: BTreeMap<TurnId, Vec<Derivation>> = BTreeMap::new();
        let question = Question {
            kind: Some(Kind::Fact),
            turns: turns.clone(),
            ..Question::default()
        };
        for fact in self.knowledge.all_derivations(scope, &question).await? {
            if is_statement(&fact) {
                statements.entry(fact.turns[0]).or_default().push(fact);
            }
        }
        let stated = self.ledger.turns(scope, &turns).await?.into_iter();
        let stated = stated.filter_map(|turn| {
            let mut statements = statements.remove(&turn.accepted.id)?;
            statements.sort_by_key(|fact| evidence(fact).start);
            Some(StatedTurn { turn, statements })
        });
        Ok(stated.collect())
    }

    /// Turns of the same speaker that a new one is compared with: the last of its session and the
    /// nearest.
    async fn compared(&self, scope: &Scope, new: &StatedTurn) -> Result<Vec<StatedTurn>, Fault> {
        let own = new.turn.accepted.id;
        let recent = self.ledger.preceding(scope, own, RECENT).await?;
        let is_speakers = |turn: &&Turn| turn.accepted.speaker == new.turn.accepted.speaker;
        let recent = recent.iter().filter(is_speakers);
        let recent: Vec<TurnId> = recent.map(|turn| turn.accepted.id).collect();
        let mut nearest: Vec<TurnId> = Vec::new();
        for statement in new.statements.iter().take(SEARCHES) {
            for turn in self.nearest(scope, new, statement).await? {
                if turn != own && !recent.contains(&turn) && !nearest.contains(&turn) {
                    nearest.push(turn);
                }
            }
        }
        let mut stated = self.stated(scope, nearest.clone()).await?;
        stated.sort_by_key(|it| nearest.iter().position(|turn| *turn == it.turn.accepted.id));
        stated.truncate(NEAREST);
        stated.extend(self.stated(scope, recent).await?);
        Ok(stated)
    }

    /// Turns of the speaker of a statement that are nearest to it.
    async fn nearest(
        &self,
        scope: &Scope,
        new: &StatedTurn,
        statement: &Derivation,
    ) -> Result<Vec<TurnId>, Fault> {
        let context = Context::new(scope.tenant.clone(), SEARCH);
        let query = Query {
            text: statement.body.found_by(),
            spaces: vec![scope.space.clone()],
            filter: TurnFilter {
                speakers: vec![new.turn.accepted.speaker.clone()],
                roles: vec![Role::User],
                ..TurnFilter::default()
            },
            k: SEARCHED,
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
        new: &StatedTurn,
        others: &[StatedTurn],
    ) -> Result<Vec<Conflict>, Fault> {
        let pairs: Vec<_> = others.iter().map(|other| in_order(new, other)).collect();
        let asked = pairs.iter().map(|[earlier, later]| TurnComparison {
            earlier: statements(earlier),
            later: statements(later),
            gap: later.turn.accepted.effective_time() - earlier.turn.accepted.effective_time(),
        });
        let read = self.reader.relations(asked.collect()).await?;
        let mut conflicts = Vec::new();
        for ([earlier, later], relations) in pairs.iter().zip(&read.answers) {
            for scores in relations {
                let pair = earlier.statements.get(scores.earlier);
                let pair = pair.zip(later.statements.get(scores.later));
                let verdict = pair.and_then(|(older, newer)| verdict(older, newer, scores));
                conflicts.extend(verdict.map(|verdict| {
                    let id = ConflictId::of(verdict.older, verdict.newer);
                    self.conflict(id, verdict, &read.reader)
                }));
            }
        }
        Ok(conflicts)
    }
}

/// True for a statement in its own words that holds.
fn is_statement(fact: &Derivation) -> bool {
    let is_extracted = matches!(fact.origin, Origin::Extracted(_));
    is_extracted && fact.fact().is_some_and(|draft| draft.statement.is_some())
}

/// Two turns in the order in which they were said.
fn in_order<'t>(one: &'t StatedTurn, other: &'t StatedTurn) -> [&'t StatedTurn; 2] {
    let place = |it: &StatedTurn| {
        let said = &it.turn.accepted;
        (said.effective_time(), it.turn.position, said.id)
    };
    match place(one) <= place(other) {
        true => [one, other],
        false => [other, one],
    }
}

fn statements(stated: &StatedTurn) -> TurnStatements {
    let said = &stated.turn.accepted;
    let statements = stated.statements.iter().map(|fact| {
        let bytes = evidence(fact);
        bytes.start as usize..bytes.end as usize
    });
    TurnStatements {
        turn: TurnText {
            speaker: said.speaker.to_string(),
            is_assistant: said.role == Role::Assistant,
            text: said.content.searchable_text(),
        },
        statements: statements.collect(),
    }
}

fn evidence(fact: &Derivation) -> std::ops::Range<u32> {
    fact.fact().map_or(0..0, |draft| draft.evidence.clone())
}

/// The verdict where the later statement ends or corrects the earlier one, which still holds and is
/// about the same person or thing.
fn verdict(older: &Derivation, newer: &Derivation, scores: &RelationScores) -> Option<Verdict> {
    let (before, after) = (older.fact()?, newer.fact()?);
    let is_open = older.valid.end.is_none() && newer.valid.end.is_none();
    if !is_open || before.claim.subject != after.claim.subject || scores.change() < LEAST_CHANGE {
        return None;
    }
    let is_correction = scores.probability(StatementRelation::Corrects) >= LEAST_CORRECTION;
    let is_later = newer.valid.start > older.valid.start;
    Some(Verdict {
        older: older.id,
        newer: newer.id,
        contradiction: match is_correction {
            true => Contradiction::Correction,
            false => Contradiction::Functional,
        },
        ends: newer.valid.start.filter(|_| is_later && !is_correction),
    })
}
