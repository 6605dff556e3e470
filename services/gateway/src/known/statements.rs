//! Statements that hold no longer, or may not, and which of them a query asks for.

use std::collections::{HashMap, HashSet};

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
use crate::hit_need::{HitNeed, hit_line, is_of_the_past, log_odds, odds, statement_line};

use super::is_so;

/// Statements of hits that are read at most, those of the first hits.
const MAX_READ_STATEMENTS: usize = 64;

/// Statements of hits among which possible changes are looked for, those of the first hits.
const MAX_COMPARED_STATEMENTS: usize = 512;

/// Least probability that a reply needs a statement by which the query asks for it.
const LEAST_NEED: f32 = 0.05;

/// Most hits with possible changes whose need is read; the first ones count.
const MAX_READ_HITS: usize = 16;

/// Least difference of two needs in log odds, first minus second, from which a possible change may
/// order them.
const LEAST_NEED_STEP: f32 = -2.0;

/// Share of the odds of the statement of a turn that a reply needs most, by which the query asks
/// for another one, too.
const ASKED_SHARE: f32 = 0.2;

/// Reading of a query beside the hits whose statements changed, or may have.
#[derive(Debug, Default)]
pub(super) struct ChangesRead {
    /// Ids of the statements that ended and that the query asks for, with the probability that a
    /// reply needs each.
    pub(super) needed: HashMap<DerivationId, f32>,
    /// Pairs of statements that a possible change orders: the first goes before the second.
    pub(super) ordered: Vec<(DerivationId, DerivationId)>,
    /// True where the query asks how things were.
    pub(super) is_of_the_past: bool,
}

impl Gateway {
    /// Changes that are possible among the statements of the first hits: both statements of each
    /// hold, and no caller corrected the older one. The likelier come first.
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

    /// Statements of hits that ended and that the query asks for, which a reply needs about as much
    /// as any statement of their turn, and the order of those that a possible change parts. Empty
    /// where the reader does not answer while `brief` lasts. Changes that another version of it
    /// found are left out.
    pub(super) async fn read_changes(
        &self,
        brief: &Context,
        query: &str,
        hits: &[&Hit],
        possible: Vec<Conflict>,
    ) -> Result<ChangesRead, Fault> {
        let mut groups: Vec<Vec<&Derivation>> = Vec::new();
        let mut lines = Vec::new();
        for hit in hits {
            let statements = hit.facts.iter().filter(|fact| is_statement(fact));
            let statements: Vec<&Derivation> = statements.collect();
            let has_ended = statements.iter().any(|fact| has_ended(fact));
            if has_ended && lines.len() + statements.len() <= MAX_READ_STATEMENTS {
                lines.extend(statements.iter().map(|fact| statement_line(hit, fact)));
                groups.push(statements);
            }
        }
        let changing: HashSet<DerivationId> = possible
            .iter()
            .flat_map(|it| [it.older, it.newer])
            .collect();
        let may_change = |hit: &&&Hit| hit.facts.iter().any(|fact| changing.contains(&fact.id));
        let changing: Vec<&&Hit> = hits.iter().filter(may_change).take(MAX_READ_HITS).collect();
        lines.extend(changing.iter().map(|hit| hit_line(hit)));
        if lines.is_empty() {
            return Ok(ChangesRead::default());
        }
        let question = NeedQuestion {
            prompt: query.to_owned(),
            before: String::new(),
            lines,
        };
        let reading = self.reader.needs(question);
        let read = brief.within("the reader of turns", reading).await?;
        let is_of_the_past = is_of_the_past(&read.tense);
        let mut needs = read.needs.into_iter();
        let mut needed = HashMap::new();
        for statements in groups {
            let of_turn: Vec<f32> = needs.by_ref().take(statements.len()).collect();
            let most = of_turn.iter().copied().fold(0.0, f32::max);
            let is_asked = |need: f32| need >= LEAST_NEED && odds(need) >= ASKED_SHARE * odds(most);
            let pairs = statements.iter().zip(of_turn);
            let asked = pairs.filter(|(fact, need)| has_ended(fact) && is_asked(*need));
            needed.extend(asked.map(|(fact, need)| (fact.id, need)));
        }
        let of_hits = changing.iter().zip(needs).flat_map(|(hit, need)| {
            let relevance = hit.relevance;
            let need = HitNeed { need, relevance };
            hit.facts.iter().map(move |fact| (fact.id, need))
        });
        let needs: HashMap<DerivationId, HitNeed> = of_hits.collect();
        let known = possible.into_iter().filter(|it| it.judge == read.reader);
        Ok(ChangesRead {
            needed,
            ordered: ordered(&known.collect::<Vec<_>>(), &needs, is_of_the_past),
            is_of_the_past,
        })
    }
}

/// Pairs of statements in the order that possible changes give them, by the probability of the
/// change and by how much more a reply needs the one than the other: what is said later of another
/// matter has no business before what the query asks for. The likeliest change comes first. One
/// whose later statement another change ends at least as probably says nothing about the present.
fn ordered(
    possible: &[Conflict],
    needs: &HashMap<DerivationId, HitNeed>,
    is_of_the_past: bool,
) -> Vec<(DerivationId, DerivationId)> {
    let probability = |change: &Conflict| change.probability.unwrap_or_default();
    let is_over = |change: &Conflict| {
        let least = probability(change).max(ChangeThresholds::ORDERED);
        let mut later = possible.iter().filter(|it| it.older == change.newer);
        later.any(|it| probability(it) >= least)
    };
    let orders = |change: &&Conflict| {
        let (Some(older), Some(newer)) = (needs.get(&change.older), needs.get(&change.newer))
        else {
            return false;
        };
        let (first, second) = match is_of_the_past {
            true => (older, newer),
            false => (newer, older),
        };
        let step = first.beyond(*second);
        let is_likely = log_odds(probability(change)) + step >= log_odds(ChangeThresholds::ORDERED);
        is_likely && step >= LEAST_NEED_STEP && (is_of_the_past || !is_over(change))
    };
    let ordered = possible.iter().filter(orders);
    let ordered = ordered.map(|change| match is_of_the_past {
        true => (change.older, change.newer),
        false => (change.newer, change.older),
    });
    ordered.collect()
}

/// True for a statement that another took the place of.
pub(crate) fn has_ended(fact: &Derivation) -> bool {
    fact.succeeded_by.is_some() && fact.origin != Origin::Corrected
}

pub(super) fn is_statement(fact: &Derivation) -> bool {
    fact.fact().is_some_and(Draft::is_statement)
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::knowledge::conflict;
    use memfleet_ports::conformance::{knowledge, samples};

    use super::*;

    fn statement_of(name: &str) -> Derivation {
        let turn = samples::turn(name, name);
        knowledge::statement(&turn, name, samples::instant(1))
    }

    fn statement(name: &str) -> DerivationId {
        statement_of(name).id
    }

    fn change(older: &str, newer: &str, probability: f32) -> Conflict {
        Conflict {
            status: Status::Possible,
            probability: Some(probability),
            ..conflict(&statement_of(older), &statement_of(newer))
        }
    }

    fn order(changes: &[Conflict], needs: &[(&str, f32)], is_past: bool) -> Vec<[DerivationId; 2]> {
        let needs = needs.iter().map(|(name, need)| {
            let relevance = None;
            let need = HitNeed {
                need: *need,
                relevance,
            };
            (statement(name), need)
        });
        let pairs = ordered(changes, &needs.collect(), is_past);
        pairs
            .into_iter()
            .map(|(first, second)| [first, second])
            .collect()
    }

    #[test]
    fn a_change_orders_what_a_query_needs_about_alike() {
        let now = vec![["oslo", "rome"].map(statement)];
        let past = vec![["rome", "oslo"].map(statement)];
        // Probability of the change, needs of the older and of the newer one.
        for (change_of, rome, oslo, is_ordered) in [
            (0.4, 0.5, 0.5, true),
            (0.2, 0.5, 0.5, false),
            (0.2, 0.3, 0.6, true),
            (0.9, 0.6, 0.3, true),
            (0.9, 0.9, 0.3, false),
            (0.12, 0.2, 0.7, true),
        ] {
            let changes = [change("rome", "oslo", change_of)];
            let needs = [("rome", rome), ("oslo", oslo)];
            let ordered = order(&changes, &needs, false);
            assert_eq!(ordered == now, is_ordered, "{change_of} {rome} {oslo}");
            let turned = [("rome", oslo), ("oslo", rome)];
            let ordered = order(&changes, &turned, true);
            assert_eq!(ordered == past, is_ordered, "{change_of} {rome} {oslo}");
        }
        let changes = [change("rome", "oslo", 0.9)];
        assert!(order(&changes, &[("rome", 0.5)], false).is_empty());
    }

    #[test]
    fn a_later_statement_that_is_over_itself_orders_nothing_but_the_past() {
        let changes = [change("own", "lent", 0.5), change("lent", "back", 0.8)];
        let needs = [("own", 0.5), ("lent", 0.5), ("back", 0.5)];
        let now = vec![["back", "lent"].map(statement)];
        assert_eq!(order(&changes, &needs, false), now);
        assert_eq!(order(&changes, &needs, true).len(), 2);
        let unsure = [change("own", "lent", 0.25), change("lent", "back", 0.25)];
        let needs = [("own", 0.5), ("lent", 0.7), ("back", 0.1)];
        assert_eq!(order(&unsure, &needs, false).len(), 1);
    }
}
