//! Statements that hold no longer, or may not, and which of them a query asks for.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use memfleet_domain::derivation::{Conflict, Derivation, Origin, Status};

use memfleet_domain::fact::Draft;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::statement::ChangeThresholds;
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::NeedQuestion;

use crate::Gateway;
use crate::hit_need::{is_of_the_past, odds, statement_line};

use super::is_so;

/// Statements of hits that are read at most, those of the first hits.
const MAX_READ_STATEMENTS: usize = 64;

/// Statements of hits among which possible changes are looked for, those of the first hits.
const MAX_COMPARED_STATEMENTS: usize = 512;

/// Longest wait for the reader; a search goes out without what it would say.
const READER_TIMEOUT: Duration = Duration::from_millis(300);

/// Least probability that a reply needs a statement by which the query asks for it.
const LEAST_NEED: f32 = 0.05;

/// Share of the odds of the statement of a turn that a reply needs most, by which the query asks
/// for another one, too.
const ASKED_SHARE: f32 = 0.2;

/// Statements of hits that hold no longer, or may not, and that a query asks for.
#[derive(Debug, Default)]
pub(super) struct AskedStatements {
    /// Their ids, with the probability that a reply needs each.
    pub(super) needed: HashMap<DerivationId, f32>,
    /// True where the query asks how things were.
    pub(super) is_of_the_past: bool,
}

impl Gateway {
    /// Changes that are possible among the statements of the first hits: both statements of each hold,
    /// and no caller corrected the older one. The likelier come first.
    pub(super) async fn possible_changes(
        &self,
        scope: &Scope,
        hits: &[&Hit],
        as_of: AsOf,
        now: Timestamp,
    ) -> Result<Vec<Conflict>, Fault> {
        let facts = hits.iter().flat_map(|hit| &hit.facts);
        let holding = facts.filter(|fact| is_statement(fact) && is_so(fact, now));
        let holding: Vec<&Derivation> = holding.take(MAX_COMPARED_STATEMENTS).collect();
        if holding.len() < 2 {
            return Ok(Vec::new());
        }
        let ids: Vec<DerivationId> = holding.iter().map(|fact| fact.id).collect();
        let possible = self
            .knowledge
            .conflicts_of(scope, &ids, &[Status::Possible]);
        let mut possible = possible.await?;
        let origins: HashMap<_, _> = holding.iter().map(|it| (it.id, &it.origin)).collect();
        possible.retain(|it| {
            let is_known = as_of.known_at.is_none_or(|instant| it.found_at <= instant);
            let is_decided = origins.get(&it.older) == Some(&&Origin::Corrected);
            let are_found = [it.older, it.newer]
                .iter()
                .all(|id| origins.contains_key(id));
            let is_likely = it.probability >= Some(ChangeThresholds::POSSIBLE);
            is_known && are_found && is_likely && !is_decided
        });
        let probability = |it: &Conflict| it.probability.unwrap_or_default();
        possible.sort_by(|one, other| probability(other).total_cmp(&probability(one)));
        Ok(possible)
    }

    /// Statements of hits that hold no longer, or that a possible change ends, and that the query asks
    /// for: a reply needs them about as much as any statement of their turn. None where the reader
    /// does not answer in time. Possible changes that another version of the reader found are removed.
    pub(super) async fn asked_statements(
        &self,
        context: &Context,
        query: &str,
        hits: &[&Hit],
        possible: &mut Vec<Conflict>,
    ) -> Result<AskedStatements, Fault> {
        let older: HashSet<DerivationId> = possible.iter().map(|it| it.older).collect();
        let may_be_over = |fact: &Derivation| has_ended(fact) || older.contains(&fact.id);
        let turns = hits.iter().map(|hit| {
            let statements = hit.facts.iter().filter(|fact| is_statement(fact));
            (*hit, statements.collect::<Vec<_>>())
        });
        // Statements that ended come before those that may have: a mark is at stake.
        let (ended, others): (Vec<_>, Vec<_>) =
            turns.partition(|(_, statements)| statements.iter().any(|fact| has_ended(fact)));
        let others = others.into_iter();
        let others = others.filter(|(_, statements)| statements.iter().any(|it| may_be_over(it)));
        let mut groups: Vec<Vec<&Derivation>> = Vec::new();
        let mut lines = Vec::new();
        for (hit, statements) in ended.into_iter().chain(others) {
            if lines.len() + statements.len() <= MAX_READ_STATEMENTS {
                lines.extend(statements.iter().map(|fact| statement_line(hit, fact)));
                groups.push(statements);
            }
        }
        if groups.is_empty() {
            return Ok(AskedStatements::default());
        }
        let question = NeedQuestion {
            prompt: query.to_owned(),
            before: String::new(),
            lines,
        };
        let brief = context.at_most(READER_TIMEOUT);
        let reading = self.reader.needs(question);
        let read = brief.within("the reader of turns", reading).await?;
        possible.retain(|it| it.judge == read.reader);
        let mut needs = read.needs.into_iter();
        let mut asked = HashMap::new();
        for statements in groups {
            let of_turn: Vec<f32> = needs.by_ref().take(statements.len()).collect();
            let most = of_turn.iter().copied().fold(0.0, f32::max);
            let is_asked = |need: f32| need >= LEAST_NEED && odds(need) >= ASKED_SHARE * odds(most);
            let pairs = statements.iter().zip(of_turn);
            let needed = pairs.filter(|(fact, need)| may_be_over(fact) && is_asked(*need));
            asked.extend(needed.map(|(fact, need)| (fact.id, need)));
        }
        Ok(AskedStatements {
            needed: asked,
            is_of_the_past: is_of_the_past(&read.tense),
        })
    }
}

/// True for a statement that another took the place of.
pub(crate) fn has_ended(fact: &Derivation) -> bool {
    fact.succeeded_by.is_some() && fact.origin != Origin::Corrected
}

pub(super) fn is_statement(fact: &Derivation) -> bool {
    fact.fact().is_some_and(Draft::is_statement)
}
