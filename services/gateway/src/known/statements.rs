//! Statements that hold no longer, and which of them a query asks for.

use std::collections::HashSet;

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, SpaceId};
use memfleet_domain::turn::Role;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::{NeedQuestion, TurnText};

use super::is_changed;
use crate::Gateway;

/// True for a fact that is a statement in its own words.
fn is_statement(fact: &Derivation) -> bool {
    fact.fact().is_some_and(|draft| draft.statement.is_some())
}

impl Gateway {
    /// Statements of hits that hold no longer and that the query asks for: of the statements of their
    /// turn, each is the one that a reply to it needs most. Where the reader does not answer, those
    /// of turns that state nothing else.
    pub(super) async fn asked_statements(
        &self,
        query: &str,
        space: &SpaceId,
        hits: &[Hit],
    ) -> HashSet<DerivationId> {
        let mut asked = HashSet::new();
        let mut several = Vec::new();
        for hit in hits.iter().filter(|hit| hit.space == *space) {
            let statements = hit.facts.iter().filter(|fact| is_statement(fact));
            match &*statements.collect::<Vec<_>>() {
                [only] if is_changed(only) => {
                    asked.insert(only.id);
                }
                statements if statements.iter().any(|fact| is_changed(fact)) => {
                    several.push((hit, statements.to_vec()));
                }
                _ => {}
            }
        }
        if several.is_empty() {
            return asked;
        }
        let lines = several
            .iter()
            .flat_map(|(hit, statements)| statements.iter().map(|fact| line(hit, fact)));
        let question = NeedQuestion {
            prompt: query.to_owned(),
            before: String::new(),
            lines: lines.collect(),
        };
        let Ok(read) = self.reader.needs(question).await else {
            return asked;
        };
        let mut needs = read.answers.into_iter();
        for (_, statements) in several {
            let of_turn: Vec<f32> = needs.by_ref().take(statements.len()).collect();
            let most = of_turn.iter().copied().fold(0.0, f32::max);
            let pairs = statements.iter().zip(of_turn);
            let needed = pairs.filter(|(fact, need)| is_changed(fact) && *need >= most);
            asked.extend(needed.map(|(fact, _)| fact.id));
        }
        asked
    }
}

fn line(hit: &Hit, fact: &Derivation) -> TurnText {
    TurnText {
        speaker: hit.turn.accepted.speaker.to_string(),
        is_assistant: hit.turn.accepted.role == Role::Assistant,
        text: fact.body.found_by(),
    }
}
