//! Possible changes of statements in their own words, by a language model: which of them are
//! changes. Pairs that the judge did not note are none, whatever the model says of them.

use std::collections::HashMap;

use memfleet_domain::derivation::{Conflict, Contradiction, Derivation, Status};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::knowledge::Question;
use memfleet_ports::language_model;
use memfleet_prompts::conflicts::{Comparing, Exclusion, Relation, Sentence};

use super::{Comparer, DOUBTFUL};
use crate::statements::verdict;

/// Pairs of statements that a model is asked about at a time, at most.
const PAIRS_PER_CALL: usize = 16;

/// A possible change with its statements, both of which hold.
struct PossibleChange<'d> {
    conflict: &'d Conflict,
    older: &'d Derivation,
    newer: &'d Derivation,
}

impl Comparer {
    /// Conflicts of the possible changes that new statements are in and that a model names. The
    /// others stay possible.
    pub(super) async fn confirmed(
        &self,
        scope: &Scope,
        new: &[Derivation],
    ) -> Result<Vec<Conflict>, Fault> {
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let knowledge = &self.judge.knowledge;
        let ids: Vec<DerivationId> = new.iter().map(|fact| fact.id).collect();
        let possible = knowledge.conflicts_of(scope, &ids, &[Status::Possible]);
        let possible = possible.await?;
        let statements = self.statements_in(scope, &possible).await?;
        let pairs = possible.iter().filter_map(|conflict| {
            Some(PossibleChange {
                conflict,
                older: statements.get(&conflict.older)?,
                newer: statements.get(&conflict.newer)?,
            })
        });
        let pairs: Vec<PossibleChange<'_>> = pairs.collect();
        let mut confirmed = Vec::new();
        for pairs in pairs.chunks(PAIRS_PER_CALL) {
            confirmed.extend(self.named(scope, pairs).await?);
        }
        Ok(confirmed)
    }

    /// Statements of conflicts that hold.
    async fn statements_in(
        &self,
        scope: &Scope,
        conflicts: &[Conflict],
    ) -> Result<HashMap<DerivationId, Derivation>, Fault> {
        let mut ids: Vec<DerivationId> = Vec::new();
        ids.extend(conflicts.iter().flat_map(|it| [it.older, it.newer]));
        ids.sort_unstable();
        ids.dedup();
        // No condition on ids would be all of them.
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        let found = self.judge.knowledge.all_derivations(scope, &question);
        let open = found.await?.into_iter();
        let open = open.filter(|fact| fact.valid.end.is_none());
        Ok(open.map(|fact| (fact.id, fact)).collect())
    }

    /// Conflicts of the pairs that a model says exclude each other.
    async fn named(
        &self,
        scope: &Scope,
        pairs: &[PossibleChange<'_>],
    ) -> Result<Vec<Conflict>, Fault> {
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for pair in pairs {
            for (shown, statement) in [(&mut new, pair.newer), (&mut known, pair.older)] {
                if shown.iter().all(|it: &Sentence| it.id != statement.id) {
                    shown.extend(Sentence::of(statement));
                }
            }
        }
        let prompt = Comparing {
            new: &new,
            known: &known,
        };
        let Some(mut asked) = self.adviser.ask(&scope.tenant, &prompt).await? else {
            return Ok(Vec::new());
        };
        let named = asked.meant.found.iter().map(|found| {
            let is_named =
                |it: &&PossibleChange<'_>| (it.newer.id, it.older.id) == (found.new, found.known);
            (found, pairs.iter().find(is_named))
        });
        let mut conflicts = Vec::new();
        for (found, pair) in named {
            match pair {
                None => asked.meant.dropped.unknown += 1,
                Some(pair) if found.confidence >= DOUBTFUL => {
                    conflicts.extend(self.change(pair, found, &asked.by));
                }
                Some(_) => {}
            }
        }
        asked.meant.dropped.report(language_model::Agent::Judge);
        Ok(conflicts)
    }

    /// The conflict of a change that a model confirmed, with the dates that the judge computes. The
    /// older statement was never true where the judge noted a correction, too. Where the model says
    /// that nothing tells which of the two holds, a person decides.
    fn change(&self, pair: &PossibleChange<'_>, found: &Exclusion, by: &str) -> Option<Conflict> {
        let PossibleChange {
            conflict,
            older,
            newer,
        } = pair;
        let is_correction = found.relation == Relation::Correction
            && conflict.contradiction == Contradiction::Correction;
        let verdict = verdict(older, newer, is_correction)?;
        let mut confirmed = self.judge.conflict(conflict.id, verdict, by);
        if found.relation == Relation::Contradiction {
            confirmed.status = Status::Open;
        }
        Some(confirmed)
    }
}
