//! Statements that hold no longer, or may not, and which of them a query asks for.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use chrono::TimeDelta;
use futures::future::try_join_all;
use memfleet_domain::derivation::{Conflict, Derivation, Origin, Status};
use memfleet_domain::fact::{Draft, StatementLabels};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::statement::ChangeThresholds;
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Hit;
use memfleet_ports::turn_reader::{
    NeedQuestion, TurnComparison, TurnStatements, TurnText, placed_statements,
};

use crate::Gateway;
use crate::hit_need::{hit_line, is_of_the_past, log_odds, odds, statement_line};

use super::is_so;

/// Statements of hits that are read at most, those of the first hits.
const MAX_READ_STATEMENTS: usize = 64;

/// Statements of hits among which possible changes are looked for, those of the first hits.
const MAX_COMPARED_STATEMENTS: usize = 512;

/// Least probability that a reply needs a statement by which the query asks for it.
const LEAST_NEED: f32 = 0.05;

/// Pairs of turns with a possible change that are read for a query, those of the first hits.
const MAX_READ_PAIRS: usize = 4;

/// Least log odds by which a reply needs the turn that would come first more than the other: a turn
/// that the query clearly asks for stays first.
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
    /// Pairs of turns that a change of what the query asks about orders: the first goes before the
    /// second.
    pub(super) ordered: Vec<(TurnId, TurnId)>,
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
        let holding = facts.filter(|fact| fact.is_statement() && is_so(fact, now));
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
    /// as any statement of their turn, and the order of the turns that a possible change parts.
    /// Empty where the reader does not answer while `brief` lasts. Changes that another version of
    /// it found are left out.
    pub(super) async fn read_changes(
        &self,
        brief: &Context,
        query: &str,
        hits: &[&Hit],
        possible: &[Conflict],
    ) -> Result<ChangesRead, Fault> {
        let mut groups: Vec<Vec<&Derivation>> = Vec::new();
        let mut lines = Vec::new();
        for hit in hits {
            let statements = hit.facts.iter().filter(|fact| fact.is_statement());
            let statements: Vec<&Derivation> = statements.collect();
            let has_ended = statements.iter().any(|fact| has_ended(fact));
            if has_ended && lines.len() + statements.len() <= MAX_READ_STATEMENTS {
                lines.extend(statements.iter().map(|fact| statement_line(hit, fact)));
                groups.push(statements);
            }
        }
        let pairs = changed_pairs(hits, possible);
        lines.extend(
            pairs
                .iter()
                .flat_map(|it| [it.older, it.newer])
                .map(hit_line),
        );
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
        let mut weighed = Vec::new();
        for pair in pairs {
            let of_pair = needs.by_ref().take(2).collect::<Vec<f32>>();
            if pair.judge == read.reader
                && let [older, newer] = of_pair[..]
            {
                let step = log_odds(newer) - log_odds(older);
                weighed.push((pair, step));
            }
        }
        let changes = self.asked_changes(query, weighed);
        let changes = brief.within("the reader of turns", changes).await?;
        Ok(ChangesRead {
            needed,
            ordered: ordered(changes, is_of_the_past),
            is_of_the_past,
        })
    }

    /// Changes of what a query asks about between the turns of these pairs.
    async fn asked_changes(
        &self,
        query: &str,
        pairs: Vec<(ChangedPair<'_>, f32)>,
    ) -> Result<Vec<TurnChange>, Fault> {
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let read = pairs.into_iter();
        let read = read.map(|(pair, step)| ([pair.older, pair.newer].map(ReadHit::of), step));
        let read: Vec<([ReadHit<'_>; 2], f32)> = read.collect();
        let comparisons = read.iter().map(|([older, newer], _)| TurnComparison {
            earlier: older.to_compare(),
            later: newer.to_compare(),
            gap: (newer.said_at() - older.said_at()).max(TimeDelta::zero()),
            question: Some(query.to_owned()),
        });
        // One by one, so that several cores read them.
        let relations = comparisons.map(|pair| self.reader.relations(vec![pair]));
        let relations = try_join_all(relations).await?;
        let relations = relations.into_iter().flat_map(|it| it.answers);
        let changes = read.iter().zip(relations);
        let changes = changes.map(|(([older, newer], step), scores)| {
            let changes = scores.iter().map(|scores| {
                let [older, newer] = [(older, scores.earlier), (newer, scores.later)]
                    .map(|(hit, place)| hit.labels(place));
                StatementLabels::change_probability(older, newer, scores)
            });
            TurnChange {
                older: older.hit.turn.accepted.id,
                newer: newer.hit.turn.accepted.id,
                probability: changes.fold(0.0, f32::max),
                need_step: *step,
            }
        });
        Ok(changes.collect())
    }
}

/// Two hits that a possible change parts, and who found it.
struct ChangedPair<'h> {
    older: &'h Hit,
    newer: &'h Hit,
    judge: &'h str,
}

/// Pairs of hits that possible changes part, those of the first hits: of each version of the reader
/// that found them as many as are read, since only those of the present one will be.
fn changed_pairs<'h>(hits: &[&'h Hit], possible: &'h [Conflict]) -> Vec<ChangedPair<'h>> {
    let stated = hits.iter().enumerate();
    let stated = stated.flat_map(|(at, hit)| hit.facts.iter().map(move |fact| (fact.id, at)));
    let stated: HashMap<DerivationId, usize> = stated.collect();
    let mut known = HashSet::new();
    let mut pairs: Vec<([usize; 2], &str)> = Vec::new();
    for change in possible {
        let places = [change.older, change.newer].map(|id| stated.get(&id).copied());
        if let [Some(older), Some(newer)] = places
            && older != newer
            && known.insert(([older, newer], &change.judge))
        {
            pairs.push(([older, newer], &*change.judge));
        }
    }
    pairs.sort_by_key(|([older, newer], _)| *older.min(newer));
    let mut of_judges: HashMap<&str, usize> = HashMap::new();
    pairs.retain(|(_, judge)| {
        let count = of_judges.entry(judge).or_default();
        *count += 1;
        *count <= MAX_READ_PAIRS
    });
    let pairs = pairs
        .into_iter()
        .map(|([older, newer], judge)| ChangedPair {
            older: hits[older],
            newer: hits[newer],
            judge,
        });
    pairs.collect()
}

/// Hit with its statements, as they are read.
struct ReadHit<'h> {
    hit: &'h Hit,
    words: TurnText,
    statements: Vec<(&'h Draft, Range<usize>)>,
}

impl<'h> ReadHit<'h> {
    fn of(hit: &'h Hit) -> Self {
        let words = TurnText::of(&hit.turn.accepted);
        // The words of a correction are not those of its turn.
        let said = hit.facts.iter().filter(|fact| {
            fact.is_statement() && fact.origin != Origin::Corrected && !fact.is_withdrawn()
        });
        let drafts = said.filter_map(Derivation::fact);
        let spans = drafts.map(|draft| {
            let words = &draft.evidence;
            (draft, words.start as usize..words.end as usize)
        });
        let statements = placed_statements(&words.text, spans.collect());
        Self {
            hit,
            words,
            statements,
        }
    }

    fn said_at(&self) -> Timestamp {
        self.hit.turn.accepted.effective_time()
    }

    fn to_compare(&self) -> TurnStatements {
        TurnStatements {
            turn: self.words.clone(),
            statements: self.statements.iter().map(|it| it.1.clone()).collect(),
        }
    }

    /// Labels of the statement at a place.
    fn labels(&self, place: usize) -> Option<&'h StatementLabels> {
        let (draft, _) = self.statements.get(place)?;
        draft.statement.as_ref()
    }
}

/// Change of what a query asks about, from one turn to a later one.
#[derive(Debug, Clone, Copy)]
struct TurnChange {
    older: TurnId,
    newer: TurnId,
    probability: f32,
    /// Log odds by which a reply needs the later turn more than the earlier one.
    need_step: f32,
}

/// Pairs of turns in the order that changes of what the query asks about give them, the likeliest
/// first: by the probability of each and by how much more a reply needs the turn that would come
/// first. A change whose later turn another change ends at least as probably says nothing about the
/// present.
fn ordered(mut changes: Vec<TurnChange>, is_of_the_past: bool) -> Vec<(TurnId, TurnId)> {
    changes.retain(|it| {
        let step = match is_of_the_past {
            true => -it.need_step,
            false => it.need_step,
        };
        let is_likely = log_odds(it.probability) + step >= log_odds(ChangeThresholds::ORDERED);
        is_likely && step >= LEAST_NEED_STEP
    });
    changes.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let is_over = |change: &&TurnChange| {
        let mut later = changes.iter().filter(|it| it.older == change.newer);
        later.any(|it| it.probability >= change.probability)
    };
    let pairs = changes.iter().filter(|it| is_of_the_past || !is_over(it));
    let pairs = pairs.map(|change| match is_of_the_past {
        true => (change.older, change.newer),
        false => (change.newer, change.older),
    });
    pairs.collect()
}

/// True for a statement that another took the place of.
pub(crate) fn has_ended(fact: &Derivation) -> bool {
    fact.succeeded_by.is_some() && fact.origin != Origin::Corrected
}

#[cfg(test)]
mod tests {
    use memfleet_domain::turn::Turn;
    use memfleet_ports::conformance::{knowledge, samples};

    use super::*;

    /// Hit on a turn that states its name.
    fn stating(name: &str) -> Hit {
        let accepted = samples::turn(name, name);
        Hit {
            space: samples::home().space,
            facts: vec![knowledge::statement(&accepted, name, samples::instant(1))],
            turn: Turn {
                accepted,
                position: 1,
                replaced: None,
            },
            score: 1.0,
            relevance: None,
            passage: (0, 0),
            signals: Vec::new(),
            neighbours: Vec::new(),
            outdated: None,
        }
    }

    #[test]
    fn changes_that_another_reader_found_take_no_places() {
        let hits: Vec<Hit> = (0..8).map(|at| stating(&format!("turn {at}"))).collect();
        let hits: Vec<&Hit> = hits.iter().collect();
        let found = |judge: &str| {
            let pairs = hits.windows(2);
            let pairs = pairs.map(|pair| Conflict {
                judge: judge.into(),
                ..knowledge::conflict(&pair[0].facts[0], &pair[1].facts[0])
            });
            pairs.collect::<Vec<_>>()
        };
        let possible = [found("earlier"), found("present")].concat();
        let pairs = changed_pairs(&hits, &possible);
        for judge in ["earlier", "present"] {
            let of_judge = pairs.iter().filter(|it| it.judge == judge);
            let older: Vec<TurnId> = of_judge.map(|it| it.older.turn.accepted.id).collect();
            let first = hits.iter().take(MAX_READ_PAIRS);
            assert_eq!(
                older,
                first.map(|hit| hit.turn.accepted.id).collect::<Vec<_>>()
            );
        }
    }

    fn turn(name: &str) -> TurnId {
        samples::turn(name, name).id
    }

    fn order(changes: &[(&str, &str, f32)], is_past: bool) -> Vec<[TurnId; 2]> {
        order_by_need(changes, 0.0, is_past)
    }

    fn order_by_need(
        changes: &[(&str, &str, f32)],
        need_step: f32,
        is_past: bool,
    ) -> Vec<[TurnId; 2]> {
        let changes = changes
            .iter()
            .map(|(older, newer, probability)| TurnChange {
                older: turn(older),
                newer: turn(newer),
                probability: *probability,
                need_step,
            });
        let pairs = ordered(changes.collect(), is_past).into_iter();
        pairs.map(|(first, second)| [first, second]).collect()
    }

    #[test]
    fn a_turn_that_a_reply_needs_more_goes_first_at_a_lower_probability() {
        let unlikely = [("rome", "oslo", ChangeThresholds::ORDERED / 2.0)];
        let likely = [("rome", "oslo", ChangeThresholds::ORDERED)];
        for (need_step, is_ordered) in [(1.5, true), (-1.5, false)] {
            for change in [&unlikely, &likely] {
                let count = usize::from(is_ordered);
                assert_eq!(order_by_need(change, need_step, false).len(), count);
                // For the past the earlier turn would come first.
                assert_eq!(order_by_need(change, -need_step, true).len(), count);
            }
        }
    }

    #[test]
    fn a_turn_that_the_query_clearly_asks_for_stays_first() {
        let likely = [("rome", "oslo", 0.9)];
        assert_eq!(order_by_need(&likely, LEAST_NEED_STEP, false).len(), 1);
        assert!(order_by_need(&likely, LEAST_NEED_STEP - 0.01, false).is_empty());
        assert!(order_by_need(&likely, 0.01 - LEAST_NEED_STEP, true).is_empty());
    }

    #[test]
    fn a_likely_change_puts_the_later_turn_first_and_the_earlier_one_for_the_past() {
        let likely = [("rome", "oslo", ChangeThresholds::ORDERED)];
        assert_eq!(order(&likely, false), [["oslo", "rome"].map(turn)]);
        assert_eq!(order(&likely, true), [["rome", "oslo"].map(turn)]);
        let unlikely = [("rome", "oslo", ChangeThresholds::ORDERED - 0.01)];
        assert!(order(&unlikely, false).is_empty());
    }

    #[test]
    fn a_later_turn_that_is_over_itself_orders_nothing_but_the_past() {
        let changes = [("own", "lent", 0.8), ("lent", "back", 0.9)];
        assert_eq!(order(&changes, false), [["back", "lent"].map(turn)]);
        assert_eq!(order(&changes, true).len(), 2);
        let unsure = [("own", "lent", 0.9), ("lent", "back", 0.8)];
        assert_eq!(order(&unsure, false).len(), 2);
    }
}
