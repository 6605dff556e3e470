//! Lines of statements whose neighbours hold no longer.

use std::collections::HashMap;

use memfleet_domain::derivation::{Body, Derivation, Kind, Origin};
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;

use crate::Gateway;
use crate::known::is_so;

impl Gateway {
    /// Leaves in the line of each fact the words of its statement alone, where another fact in the
    /// line was corrected or holds no longer.
    pub(crate) async fn shrink_stale_lines(
        &self,
        scope: &Scope,
        facts: &mut [Derivation],
        known_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let longer = facts.iter().filter(|fact| has_longer_line(fact));
        let mut turns: Vec<TurnId> = longer.map(|fact| fact.turns[0]).collect();
        turns.sort_unstable();
        turns.dedup();
        if turns.is_empty() {
            return Ok(());
        }
        let question = Question {
            kind: Some(Kind::Fact),
            turns,
            withdrawn: true,
            as_of: AsOf {
                known_at,
                happened_by: None,
            },
            ..Question::default()
        };
        let mut stale: HashMap<TurnId, Vec<Derivation>> = HashMap::new();
        for fact in self.knowledge.all_derivations(scope, &question).await? {
            if fact.origin == Origin::Corrected || !is_so(&fact, now) {
                stale.entry(fact.turns[0]).or_default().push(fact);
            }
        }
        for fact in facts.iter_mut().filter(|fact| has_longer_line(fact)) {
            let of_turn = stale.get(&fact.turns[0]).into_iter().flatten();
            let mut others = of_turn.filter(|other| other.id != fact.id);
            if others.any(|other| is_in_line(other, fact))
                && let Body::Fact(draft) = &mut fact.body
            {
                draft.shrink_line();
            }
        }
        Ok(())
    }
}

fn has_longer_line(fact: &Derivation) -> bool {
    fact.fact().is_some_and(|draft| {
        let line = draft.line.as_ref();
        line.is_some_and(|line| line.bytes != draft.evidence)
    })
}

/// True where words of a fact stand in the line of another.
fn is_in_line(fact: &Derivation, of: &Derivation) -> bool {
    let line = of.fact().and_then(|draft| draft.line.as_ref());
    let words = fact.fact().map(|draft| &draft.evidence);
    line.zip(words)
        .is_some_and(|(line, words)| words.start < line.bytes.end && line.bytes.start < words.end)
}
