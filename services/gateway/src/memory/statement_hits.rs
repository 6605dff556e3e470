//! Statements as hits: of the turns that were found each fact that they state, by the probability
//! that the query needs it.

use std::cmp::Ordering;
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::derivation::Derivation;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Hit};
use memfleet_ports::turn_reader::NeedQuestion;

use crate::Gateway;
use crate::hit_need::{is_of_the_past, moved_need, statement_line};
use crate::known::has_ended;

/// Statements that are read at most, those of the first turns; the others stand behind them.
const MAX_READ_STATEMENTS: usize = 512;

/// Longest wait for the reader.
const READER_TIMEOUT: Duration = Duration::from_secs(2);

/// Statement of a hit: places of both, and the relevance that the statement has by itself.
#[derive(Debug, Clone, Copy)]
struct PlacedStatement {
    hit: usize,
    fact: usize,
    relevance: Option<f32>,
}

impl PlacedStatement {
    fn fact<'h>(&self, hits: &'h [Hit]) -> &'h Derivation {
        &hits[self.hit].facts[self.fact]
    }

    /// The statement as a hit of its own.
    fn as_hit(&self, hits: &[Hit]) -> Hit {
        let (hit, fact) = (&hits[self.hit], self.fact(hits));
        Hit {
            space: hit.space.clone(),
            turn: hit.turn.clone(),
            score: hit.score,
            relevance: self.relevance,
            passage: words_of(hit, fact),
            signals: Vec::new(),
            neighbours: hit.neighbours.clone(),
            facts: vec![fact.clone()],
            outdated: (has_ended(fact) || hit.outdated == Some(fact.id)).then_some(fact.id),
        }
    }
}

impl Gateway {
    /// Puts the statements of the hits into their place, at most `k` of them.
    pub(super) async fn split_into_statements(
        &self,
        context: &Context,
        query: &str,
        k: u32,
        found: &mut Found,
    ) {
        let hits = std::mem::take(&mut found.hits);
        let mut statements = statements_of(&hits);
        if !statements.is_empty() {
            let read = self.read_needs(context, query, &hits, &mut statements);
            match read.await {
                Ok((reader, is_of_the_past)) => {
                    statements.sort_by(by_relevance);
                    if !is_of_the_past {
                        put_before_ended(&mut statements, &hits);
                    }
                    found.scorer = match &*found.scorer {
                        "" => reader,
                        search => format!("{reader}({search})"),
                    };
                }
                Err(fault) => found.degraded.push(format!("statements: {fault}")),
            }
        }
        let best = statements.iter().take(k as usize);
        found.hits = best.map(|statement| statement.as_hit(&hits)).collect();
    }

    /// Puts the probability that the query needs a statement into the place of its relevance, and
    /// gives the name of the reader and whether the query is about the past.
    async fn read_needs(
        &self,
        context: &Context,
        query: &str,
        hits: &[Hit],
        statements: &mut [PlacedStatement],
    ) -> Result<(String, bool), Fault> {
        let read = statements.iter().take(MAX_READ_STATEMENTS);
        let lines = read.map(|it| statement_line(&hits[it.hit], it.fact(hits)));
        let question = NeedQuestion {
            prompt: query.to_owned(),
            before: String::new(),
            lines: lines.collect(),
        };
        let brief = context.at_most(READER_TIMEOUT);
        let reading = brief.within("the reader of turns", self.reader.needs(question));
        let reading = reading.await?;
        let is_of_the_past = is_of_the_past(&reading.tense);
        let mut needs = reading.needs.into_iter();
        for statement in statements {
            let need = needs.next();
            statement.relevance = need.map(|need| moved_need(need, statement.relevance));
        }
        Ok((reading.reader, is_of_the_past))
    }
}

/// Statements of hits, each hit's in the order of its text. Withdrawn ones are left out.
fn statements_of(hits: &[Hit]) -> Vec<PlacedStatement> {
    let mut statements = Vec::new();
    for (place, hit) in hits.iter().enumerate() {
        let facts = hit.facts.iter().enumerate();
        let stated = facts.filter(|(_, fact)| !fact.is_withdrawn() && fact.fact().is_some());
        let mut stated: Vec<PlacedStatement> = stated
            .map(|(fact, _)| PlacedStatement {
                hit: place,
                fact,
                relevance: hit.relevance,
            })
            .collect();
        stated.sort_by_key(|statement| words_of(hit, &hit.facts[statement.fact]));
        statements.extend(stated);
    }
    statements
}

/// Bytes of a turn's searchable text that state a fact; the whole where they are not known.
fn words_of(hit: &Hit, fact: &Derivation) -> (u32, u32) {
    let length = hit.turn.accepted.content.searchable_text().len() as u32;
    match fact.fact().map(|draft| &draft.evidence) {
        Some(words) if words.start < words.end && words.end <= length => (words.start, words.end),
        _ => (0, length),
    }
}

/// The more relevant first; those of unknown relevance last, in their order.
fn by_relevance(one: &PlacedStatement, other: &PlacedStatement) -> Ordering {
    match (one.relevance, other.relevance) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

/// Puts each statement that took the place of another right before the first of those.
fn put_before_ended(statements: &mut [PlacedStatement], hits: &[Hit]) {
    for place in 0..statements.len() {
        // An ended statement moves behind its successor, and that one behind its own.
        for _ in place..statements.len() {
            let successor = statements[place].fact(hits).succeeded_by;
            let is_it = |it: &PlacedStatement| Some(it.fact(hits).id) == successor;
            let Some(behind) = statements[place + 1..].iter().position(is_it) else {
                break;
            };
            let relevance = statements[place].relevance;
            statements[place..=place + 1 + behind].rotate_right(1);
            statements[place].relevance = relevance;
        }
    }
}
