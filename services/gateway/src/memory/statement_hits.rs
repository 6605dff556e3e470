//! Statements as hits: of the turns that were found each fact that they state, by the probability
//! that the query needs it.

use std::cmp::Ordering;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::derivation::Derivation;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Hit};
use memfleet_ports::turn_reader::{NeedQuestion, TurnText};

use crate::Gateway;
use crate::hit_need::{hit_line, moved_need};

/// Statements that are read at most, those of the first turns; the others stand behind them.
const MAX_READ_STATEMENTS: usize = 512;

/// Longest wait for the reader.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

impl Gateway {
    /// Puts the statements of the hits into their place, at most `k` of them.
    pub(super) async fn split_into_statements(
        &self,
        context: &Context,
        query: &str,
        k: u32,
        found: &mut Found,
    ) {
        let mut statements: Vec<Hit> = found.hits.iter().flat_map(statements_of).collect();
        if !statements.is_empty() {
            match self
                .needs_of_statements(context, query, &mut statements)
                .await
            {
                Ok(reader) => {
                    statements.sort_by(by_relevance);
                    put_before_ended(&mut statements);
                    found.scorer = match &*found.scorer {
                        "" => reader,
                        search => format!("{reader}({search})"),
                    };
                }
                Err(fault) => found.degraded.push(format!("statements: {fault}")),
            }
        }
        statements.truncate(k as usize);
        found.hits = statements;
    }

    /// Puts the probability that the query needs a statement into the place of its relevance, and
    /// gives the name of the reader.
    async fn needs_of_statements(
        &self,
        context: &Context,
        query: &str,
        statements: &mut [Hit],
    ) -> Result<String, Fault> {
        let read = statements.iter().take(MAX_READ_STATEMENTS);
        let lines: Vec<TurnText> = read.map(hit_line).collect();
        let question = NeedQuestion {
            prompt: query.to_owned(),
            before: String::new(),
            lines,
        };
        let brief = context.at_most(READER_TIMEOUT);
        let reading = brief.within("the reader of turns", self.reader.needs(question));
        let reading = reading.await?;
        let mut needs = reading.needs.into_iter();
        for statement in statements {
            let need = needs.next();
            statement.relevance = need.map(|need| moved_need(need, statement.relevance));
        }
        Ok(reading.reader)
    }
}

/// Hits of the facts that a turn states, in the order of its text. What was withdrawn is none.
fn statements_of(hit: &Hit) -> Vec<Hit> {
    let length = hit.turn.accepted.content.searchable_text().len() as u32;
    let facts = hit.facts.iter().filter(|fact| !fact.is_withdrawn());
    let mut statements: Vec<Hit> = facts
        .filter_map(|fact| {
            let words = &fact.fact()?.evidence;
            let is_placed = words.start < words.end && words.end <= length;
            Some(Hit {
                passage: match is_placed {
                    true => (words.start, words.end),
                    false => (0, length),
                },
                facts: vec![fact.clone()],
                outdated: hit.outdated.filter(|id| *id == fact.id),
                signals: Vec::new(),
                ..hit.clone()
            })
        })
        .collect();
    statements.sort_by_key(|statement| statement.passage);
    statements
}

/// The more relevant first; those of unknown relevance last, in their order.
fn by_relevance(one: &Hit, other: &Hit) -> Ordering {
    match (one.relevance, other.relevance) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// Puts each statement that took the place of a marked one right before it.
fn put_before_ended(statements: &mut [Hit]) {
    for ended in 0..statements.len() {
        let successor = statements[ended]
            .outdated_fact()
            .and_then(|fact| fact.succeeded_by);
        let Some(successor) = successor else {
            continue;
        };
        let is_it = |hit: &Hit| {
            hit.facts
                .iter()
                .any(|fact: &Derivation| fact.id == successor)
        };
        let Some(behind) = statements[ended..].iter().position(is_it) else {
            continue;
        };
        statements[ended..=ended + behind].rotate_right(1);
        let [holds, ended] = &mut statements[ended..ended + 2] else {
            continue;
        };
        holds.relevance = ended.relevance;
        holds.score = holds.score.max(ended.score);
    }
}
