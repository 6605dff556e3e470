//! Annotation of search hits with the facts that their turns state. Where the query asks for a
//! statement that another statement ended, or a caller corrected one, the hit is marked and the
//! turn that took its place stands before it. One that another statement may have ended is not
//! marked, and stands behind that one where the query needs both about alike. Facts that are no
//! statements mark and move no hit.

mod order;
mod statements;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use memfleet_domain::derivation::{Derivation, Kind, Origin};
use memfleet_domain::ids::{DerivationId, SpaceId, TurnId};
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Question;
use memfleet_ports::retriever::{Found, Hit, Query};

use crate::Gateway;
use order::{ended_with_successors, in_order, missing, put_in_pairs};
use statements::ChangesRead;
pub(crate) use statements::has_ended;

/// Longest wait of a search for the reader of turns, in all its spaces; it goes out without what
/// the reader would say.
const READER_TIMEOUT: Duration = Duration::from_millis(300);

/// Facts read at a time.
const PAGE: u32 = 1_000;

/// Versions of the world that are followed from an old fact to the present one.
const STEPS: usize = 16;

/// By the id of a fact that is no longer so: what took its place.
type Successors = HashMap<DerivationId, Derivation>;

impl Gateway {
    /// The answer with the facts of its turns. Without them it is an answer too.
    pub(crate) async fn with_facts(
        &self,
        context: &Context,
        query: &Query,
        mut found: Found,
    ) -> Found {
        let mut spaces: Vec<SpaceId> = found.hits.iter().map(|hit| hit.space.clone()).collect();
        spaces.sort_unstable();
        spaces.dedup();
        let brief = context.at_most(READER_TIMEOUT);
        for space in &spaces {
            let known = Box::pin(self.know(context, &brief, query, space, &mut found.hits));
            match context.within("facts", known).await {
                Ok(problem) => found.degraded.extend(problem),
                Err(fault) => found.degraded.push(format!("facts: {fault}")),
            }
        }
        found.hits.truncate(query.k as usize);
        found
    }

    /// Annotates and orders the hits of a space, with the reader of turns as long as `brief` lasts.
    /// The answer is what went wrong on the way.
    async fn know(
        &self,
        context: &Context,
        brief: &Context,
        query: &Query,
        space: &SpaceId,
        hits: &mut Vec<Hit>,
    ) -> Result<Option<String>, Fault> {
        let mut problem = None;
        let scope = context.scope(space);
        let here = || hits.iter().filter(|hit| hit.space == *space);
        let turns: Vec<TurnId> = here().map(|hit| hit.turn.accepted.id).collect();
        let facts = self.stated(&scope, query, turns).await?;
        for hit in hits.iter_mut().filter(|hit| hit.space == *space) {
            let of_hit = facts.get(&hit.turn.accepted.id);
            hit.facts = of_hit.cloned().unwrap_or_default();
        }
        let now = query.filter.as_of.happened_by;
        let now = now.unwrap_or_else(|| self.clock.now());
        let here: Vec<&Hit> = hits.iter().filter(|hit| hit.space == *space).collect();
        let as_of = query.filter.as_of;
        let possible = self.possible_changes(&scope, &here, as_of, now).await;
        let possible = possible.unwrap_or_else(|fault| {
            problem = Some(format!("possible changes: {fault}"));
            Vec::new()
        });
        if possible.is_empty() && !facts.values().flatten().any(is_changed) {
            return Ok(problem);
        }
        let changes = self.read_changes(brief, &query.text, &here, &possible);
        let mut changes = changes.await.unwrap_or_else(|fault| {
            problem = Some(format!("statements: {fault}"));
            ChangesRead::default()
        });
        put_in_pairs(hits, space, changes.ordered.into_iter());
        if changes.is_of_the_past {
            let ended = ended_with_successors(hits, space, &changes.needed, now);
            put_in_pairs(hits, space, ended.into_iter());
            changes.needed.clear();
        }
        for hit in hits.iter_mut().filter(|hit| hit.space == *space) {
            hit.outdated = outdated(hit, &changes.needed, now).map(|fact| fact.id);
        }
        let here = || hits.iter().filter(|hit| hit.space == *space);
        let asked: Vec<&Derivation> = here().filter_map(Hit::outdated_fact).collect();
        if asked.is_empty() {
            return Ok(problem);
        }
        let successors = self.successors(&scope, query, &asked, now).await?;
        let missing = missing(hits, space, &successors);
        let there = self.ledger.turns(&scope, &missing).await?;
        let passes = |turn: &Turn| {
            query.filter.passes(&turn.accepted)
                && (turn.replaced.is_none() || query.filter.include_replaced)
        };
        let there: Vec<Turn> = there.into_iter().filter(passes).collect();
        let facts = self.stated(&scope, query, missing).await?;
        *hits = in_order(std::mem::take(hits), space, &successors, there, facts);
        Ok(problem)
    }

    /// The facts that turns state, as they were known when the query asks for, by turn.
    async fn stated(
        &self,
        scope: &Scope,
        query: &Query,
        turns: Vec<TurnId>,
    ) -> Result<HashMap<TurnId, Vec<Derivation>>, Fault> {
        let mut stated: HashMap<TurnId, Vec<Derivation>> = HashMap::new();
        if turns.is_empty() {
            return Ok(stated);
        }
        let question = Question {
            turns,
            ..asked(query)
        };
        for fact in self.knowledge.all_derivations(scope, &question).await? {
            stated.entry(fact.turns[0]).or_default().push(fact);
        }
        Ok(stated)
    }

    /// What holds now in the place of each of these facts: the end of the chain that leads from it.
    async fn successors(
        &self,
        scope: &Scope,
        query: &Query,
        facts: &[&Derivation],
        now: Timestamp,
    ) -> Result<Successors, Fault> {
        let mut known: HashMap<DerivationId, Derivation> = HashMap::new();
        let mut next: HashSet<DerivationId> =
            facts.iter().filter_map(|fact| fact.succeeded_by).collect();
        for _ in 0..STEPS {
            next.retain(|id| !known.contains_key(id));
            if next.is_empty() {
                break;
            }
            let question = Question {
                ids: next.drain().collect(),
                ..asked(query)
            };
            let page = self.knowledge.derivations(scope, &question, PAGE, None);
            for fact in page.await?.items {
                next.extend(fact.succeeded_by);
                known.insert(fact.id, fact);
            }
        }
        let end = |fact: &&Derivation| {
            let mut at = known.get(&fact.succeeded_by?)?;
            for _ in 0..STEPS {
                match at.succeeded_by.and_then(|next| known.get(&next)) {
                    Some(next) if !is_so(at, now) => at = next,
                    _ => break,
                }
            }
            is_so(at, now).then(|| (fact.id, at.clone()))
        };
        Ok(facts.iter().filter_map(end).collect())
    }
}

/// Facts as the query means them, those that do not hold among them.
fn asked(query: &Query) -> Question {
    Question {
        kind: Some(Kind::Fact),
        as_of: AsOf {
            known_at: query.filter.as_of.known_at,
            happened_by: None,
        },
        withdrawn: true,
        ..Question::default()
    }
}

/// True for a fact that holds at an instant.
pub(crate) fn is_so(fact: &Derivation, now: Timestamp) -> bool {
    !fact.is_withdrawn() && fact.valid.end.is_none_or(|end| end > now)
}

/// Whether something took the fact's place, or a caller corrected it, in a way that may be shown.
fn is_changed(fact: &Derivation) -> bool {
    fact.origin == Origin::Corrected || fact.is_statement() && has_ended(fact)
}

/// The statement of a hit that the query asks for most and that is not so; else one that a caller
/// corrected, which is shown whatever the query asks for.
fn outdated<'h>(
    hit: &'h Hit,
    statements: &HashMap<DerivationId, f32>,
    now: Timestamp,
) -> Option<&'h Derivation> {
    let over = hit.facts.iter().filter(|fact| !is_so(fact, now));
    let asked = over.filter_map(|fact| Some((fact, *statements.get(&fact.id)?)));
    let most = asked.max_by(|(_, one), (_, other)| one.total_cmp(other));
    most.map(|(fact, _)| fact).or_else(|| corrected(hit))
}

/// A fact of a hit that a caller corrected. One that is withdrawn counts where the turn states
/// nothing else.
fn corrected(hit: &Hit) -> Option<&Derivation> {
    let is_alone = hit.facts.len() == 1;
    let is_shown =
        |fact: &&Derivation| fact.origin == Origin::Corrected && (is_alone || !fact.is_withdrawn());
    hit.facts
        .iter()
        .filter(is_shown)
        .max_by_key(|fact| fact.known.start)
}
