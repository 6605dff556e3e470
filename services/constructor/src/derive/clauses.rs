//! Clauses of statements in their own words: a language model's facts of the same words give them.

use memfleet_domain::derivation::{Body, ChangeKind, Derivation};
use memfleet_domain::fact::Draft;
use memfleet_domain::ids::{ChangeId, TurnId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::{Revision, Rewrite};

use super::{Deriver, change, lineage};
use crate::extract::{lacks_clause, matched};

/// Statements of a turn in use, with those that a caller corrected.
pub(super) fn statements_of(known: &[Derivation], turn: TurnId) -> Vec<&Derivation> {
    let is_stated =
        |fact: &&Derivation| fact.turns[0] == turn && !fact.is_withdrawn() && fact.is_statement();
    known.iter().filter(is_stated).collect()
}

impl Deriver {
    /// Statements of a turn to which a language model may give clauses; none where no extractor
    /// gives statements, and the model finds facts of its own. Absent where it is not to be asked
    /// about the turn.
    pub(super) fn asked_about<'k>(
        &self,
        known: &'k [Derivation],
        turn: TurnId,
    ) -> Option<Vec<&'k Derivation>> {
        let statements = statements_of(known, turn);
        let is_open = match statements.is_empty() {
            true => !self.extractor.gives_statements(),
            false => statements.iter().any(|statement| lacks_clause(statement)),
        };
        is_open.then_some(statements)
    }

    /// The changes by which statements get the clauses of facts of the same words. A clause that
    /// was there and was undone stays undone.
    pub(super) async fn clauses(
        &self,
        scope: &Scope,
        statements: &[&Derivation],
        facts: Vec<Draft>,
        by: &str,
    ) -> Result<Vec<Rewrite>, Fault> {
        let mut rewrites = Vec::new();
        for (place, fact) in matched(facts, statements) {
            let statement = statements[place];
            if !self.had_clause(scope, statement).await? {
                rewrites.push(self.with_clause(statement, fact, by));
            }
        }
        Ok(rewrites)
    }

    async fn had_clause(&self, scope: &Scope, statement: &Derivation) -> Result<bool, Fault> {
        if statement.version == 1 {
            return Ok(false);
        }
        let versions = self.knowledge.versions(scope, statement.id).await?;
        let mut facts = versions.iter().filter_map(Derivation::fact);
        Ok(facts.any(|fact| fact.clause.is_some()))
    }

    /// The change by which a statement gets the clause of a fact, and the turns that it draws on.
    fn with_clause(&self, statement: &Derivation, fact: Draft, by: &str) -> Rewrite {
        let now = self.clock.now();
        let version = (statement.version + 1).to_be_bytes();
        let id = ChangeId::of("clause", &[statement.id.as_bytes(), &version]);
        let mut derivation = statement.next(id);
        derivation.turns = lineage(statement.turns[0], &fact);
        if let Body::Fact(draft) = &mut derivation.body {
            (draft.clause, draft.related) = (fact.clause, fact.related);
        }
        derivation.known = TimeRange {
            start: Some(now),
            end: None,
        };
        let reason = format!("{by} finds its clause");
        Rewrite {
            revisions: vec![Revision {
                derivation,
                passage: None,
            }],
            change: change(id, ChangeKind::Derived, now, &reason),
        }
    }
}
