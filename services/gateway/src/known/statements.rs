//! Statements that hold no longer, or may not, and which of them a query asks for.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::derivation::{Conflict, Derivation, Origin, Status};

use memfleet_domain::fact::Draft;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::Timestamp;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::NeedQuestion;

use crate::Gateway;
use crate::hit_need::{is_of_the_past, odds, statement_line};

use super::is_so;

/// Statements of hits that are read at most, those of the first hits.
const MAX_READ_STATEMENTS: usize = 64;

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
    /// Changes that are possible among the statements of hits: both statements of each hold.
    pub(super) async fn possible_changes(
        &self,
        scope: &Scope,
        hits: &[&Hit],
        now: Timestamp,
    ) -> Result<Vec<Conflict>, Fault> {
        let facts = hits.iter().flat_map(|hit| &hit.facts);
        let holding = facts.filter(|fact| is_statement(fact) && is_so(fact, now));
        let holding: Vec<DerivationId> = holding.map(|fact| fact.id).collect();
        if holding.len() < 2 {
            return Ok(Vec::new());
        }
        let possible = self
            .knowledge
            .conflicts_of(scope, &holding, &[Status::Possible]);
        let mut possible = possible.await?;
        possible.retain(|it| [it.older, it.newer].iter().all(|id| holding.contains(id)));
        Ok(possible)
    }

    /// Statements of hits that hold no longer, or that a possible change ends, and that the query
    /// asks for: a reply needs them about as much as any statement of their turn. None where the
    /// reader does not answer in time.
    pub(super) async fn asked_statements(
        &self,
        context: &Context,
        query: &str,
        hits: &[&Hit],
        possible: &[Conflict],
    ) -> Result<AskedStatements, Fault> {
        let may_be_over =
            |fact: &Derivation| has_ended(fact) || possible.iter().any(|it| it.older == fact.id);
        let mut groups: Vec<Vec<&Derivation>> = Vec::new();
        let mut lines = Vec::new();
        for hit in hits {
            let statements = hit.facts.iter().filter(|fact| is_statement(fact));
            let statements: Vec<_> = statements.collect();
            let is_read = statements.iter().any(|fact| may_be_over(fact));
            if is_read && lines.len() + statements.len() <= MAX_READ_STATEMENTS {
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
