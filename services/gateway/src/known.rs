//! What the turns of an answer state, as memory knows it: each hit carries its facts. Where the query asks for what is no longer so,
//! the turn that tells how it is now stands before the one that tells how it was.

use std::collections::{HashMap, HashSet};

use memfleet_agents::asking::Asking;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::{DerivationId, SpaceId, TurnId};
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_language::Language;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Question;
use memfleet_ports::retriever::{Found, Hit, Query};

use crate::Gateway;

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
        for space in &spaces {
            let known = self.know(context, query, space, &mut found.hits);
            if let Err(fault) = context.within("facts", known).await {
                found.degraded.push(format!("facts: {fault}"));
            }
        }
        found.hits.truncate(query.k as usize);
        found
    }

    async fn know(
        &self,
        context: &Context,
        query: &Query,
        space: &SpaceId,
        hits: &mut Vec<Hit>,
    ) -> Result<(), Fault> {
        let scope = context.scope(space);
        let here = || hits.iter().filter(|hit| hit.space == *space);
        let turns: Vec<TurnId> = here().map(|hit| hit.turn.accepted.id).collect();
        let facts = self.stated(&scope, query, turns).await?;
        for hit in hits.iter_mut().filter(|hit| hit.space == *space) {
            let of_hit = facts.get(&hit.turn.accepted.id);
            hit.facts = of_hit.cloned().unwrap_or_default();
        }
        // Most answers have nothing that ended: the query is not read for them.
        if !facts
            .values()
            .flatten()
            .any(|fact| fact.succeeded_by.is_some())
        {
            return Ok(());
        }
        let locale = self.spaces.locale(&scope).await?.unwrap_or_default();
        let language = Language::tagged(locale.language.as_deref());
        let asking = Asking::of(&query.text, language);
        let now = query.filter.as_of.happened_by;
        let now = now.unwrap_or_else(|| self.clock.now());
        for hit in hits.iter_mut().filter(|hit| hit.space == *space) {
            hit.outdated = outdated(hit, &asking, now).map(|fact| fact.id);
        }
        let here = hits.iter().filter(|hit| hit.space == *space);
        let asked: Vec<&Derivation> = here.filter_map(Hit::outdated_fact).collect();
        if asked.is_empty() {
            return Ok(());
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
        Ok(())
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
        let mut after = None;
        loop {
            let page = self
                .knowledge
                .derivations(scope, &question, PAGE, after.as_ref())
                .await?;
            for fact in page.items {
                stated.entry(fact.turns[0]).or_default().push(fact);
            }
            after = page.next;
            if after.is_none() {
                return Ok(stated);
            }
        }
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

fn is_so(fact: &Derivation, now: Timestamp) -> bool {
    !fact.is_withdrawn() && fact.valid.end.is_none_or(|end| end > now)
}

/// The fact of a hit that the query asks for and that is no longer so, where no other fact of it says how it is now.
fn outdated<'h>(hit: &'h Hit, asking: &Asking, now: Timestamp) -> Option<&'h Derivation> {
    if !hit.facts.iter().any(|fact| fact.succeeded_by.is_some()) {
        return None;
    }
    let speaker = hit.turn.accepted.speaker.as_str();
    let asked = |fact: &&Derivation| {
        fact.fact()
            .is_some_and(|draft| asking.is_for(draft, speaker))
    };
    let mut gone = None;
    for fact in hit.facts.iter().filter(asked) {
        let is_positive = fact.fact().is_some_and(|draft| !draft.clause.negated);
        if is_so(fact, now) {
            if is_positive {
                return None;
            }
        } else if fact.succeeded_by.is_some() {
            gone = Some(fact);
        }
    }
    gone
}

/// The turns that tell how things are now and were not found.
fn missing(hits: &[Hit], space: &SpaceId, successors: &Successors) -> Vec<TurnId> {
    let have: HashSet<TurnId> = hits
        .iter()
        .filter(|hit| hit.space == *space)
        .map(|hit| hit.turn.accepted.id)
        .collect();
    let wanted = successors.values().map(|fact| fact.turns[0]);
    let missing: HashSet<TurnId> = wanted.filter(|turn| !have.contains(turn)).collect();
    missing.into_iter().collect()
}

/// The hits with each turn that tells how it is now right before the first that tells how it was.
fn in_order(
    hits: Vec<Hit>,
    space: &SpaceId,
    successors: &Successors,
    there: Vec<Turn>,
    mut facts: HashMap<TurnId, Vec<Derivation>>,
) -> Vec<Hit> {
    let mut hits: Vec<Option<Hit>> = hits.into_iter().map(Some).collect();
    let mut there: HashMap<TurnId, Turn> = there
        .into_iter()
        .map(|turn| (turn.accepted.id, turn))
        .collect();
    let mut ordered = Vec::with_capacity(hits.len() + there.len());
    for at in 0..hits.len() {
        let Some(hit) = hits[at].take() else {
            continue;
        };
        let successor = hit.outdated.and_then(|fact| successors.get(&fact));
        if let Some(now) = successor.filter(|_| hit.space == *space) {
            let turn = now.turns[0];
            let is_it = |other: &Option<Hit>| {
                other
                    .as_ref()
                    .is_some_and(|other| other.space == *space && other.turn.accepted.id == turn)
            };
            let later = hits.iter().position(is_it);
            let moved = match later {
                Some(later) => hits[later].take(),
                None => there
                    .remove(&turn)
                    .map(|turn| brought(&hit, turn, &mut facts)),
            };
            ordered.extend(moved.map(|moved| Hit {
                score: moved.score.max(hit.score),
                ..moved
            }));
        }
        ordered.push(hit);
    }
    ordered
}

/// A turn that was not found, as a hit.
fn brought(hit: &Hit, turn: Turn, facts: &mut HashMap<TurnId, Vec<Derivation>>) -> Hit {
    let facts = facts.remove(&turn.accepted.id).unwrap_or_default();
    Hit {
        space: hit.space.clone(),
        score: hit.score,
        passage: (0, turn.accepted.content.searchable_text().len() as u32),
        signals: Vec::new(),
        neighbours: Vec::new(),
        outdated: None,
        facts,
        turn,
    }
}
