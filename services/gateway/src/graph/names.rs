//! Which names are of one entity: those that facts tell ("My name is Ada", "I go by Addie"), and those that callers say are. Facts stay under the name that
//! they were told under; who reads, reads under all of them. So nothing is rewritten by a merge, and a split gives back what was.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use memfleet_domain::graph::{Entity, Identity, Triplet};
use memfleet_domain::ids::{DerivationId, EntityId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::knowledge_api::{EntityName, NamedEntity};

use super::missing;
use crate::Gateway;

/// What a fact says whose object is a name of its subject.
const NAMING: [&str; 6] = [
    "name",
    "full name",
    "nickname",
    "know as",
    "go by",
    Identity::PREDICATE,
];

/// Names of an entity that are looked at, and what is said of names at a time.
const NAMES: usize = 100;
const SAID: u32 = 1_000;

/// What is said of names around an entity, as far as it joins them.
pub(super) struct Names {
    /// Which of them are one.
    joins: Vec<Join>,
}

struct Join {
    /// The name that the other is a name of.
    entity: EntityId,
    other: EntityId,
    because: Triplet,
}

impl Gateway {
    /// What joins an entity to other names, and these to others.
    pub(super) async fn names(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        of: EntityId,
    ) -> Result<Names, Fault> {
        let (mut seen, mut next) = (BTreeSet::from([of]), vec![of]);
        let mut said = Vec::new();
        while !next.is_empty() && seen.len() <= NAMES {
            let query = TripletQuery {
                predicates: &NAMING,
                ..TripletQuery::touching(&next)
            };
            let page = graph.triplets(scope, query, SAID, None).await?;
            let ends = page.items.iter().flat_map(|it| [it.subject, it.object]);
            next = ends.filter(|end| seen.insert(*end)).collect();
            said.extend(page.items);
        }
        let mut told = HashSet::new();
        said.retain(|it| told.insert((it.fact, it.object)));
        Ok(Names::of(self.still_stated(scope, said).await?))
    }
}

impl Names {
    /// A name that two are told to have is of neither, unless a caller says so; and what a caller says are two is not one.
    fn of(said: Vec<Triplet>) -> Self {
        let pair = |it: &Triplet| (it.subject.min(it.object), it.subject.max(it.object));
        let by_caller = |it: &Triplet| it.predicate == Identity::PREDICATE;
        let parted = said.iter().filter(|it| it.negated && by_caller(it));
        let parted: HashSet<_> = parted.map(pair).collect();
        let mut called: HashMap<EntityId, BTreeSet<EntityId>> = HashMap::new();
        for it in said.iter().filter(|it| !it.negated && !by_caller(it)) {
            called.entry(it.object).or_default().insert(it.subject);
        }
        let joins = |it: &Triplet| {
            let is_clear = called.get(&it.object).is_some_and(|who| who.len() == 1);
            let is_one = it.subject != it.object && !it.negated && !parted.contains(&pair(it));
            is_one && (by_caller(it) || is_clear)
        };
        let joins = said.into_iter().filter(joins).map(|it| Join {
            entity: it.subject,
            other: it.object,
            because: it,
        });
        Self {
            joins: joins.collect(),
        }
    }

    /// What joins a name to others by itself: of each the first triplet that does.
    pub fn joining(&self, name: EntityId) -> Vec<(EntityId, &Triplet)> {
        let of_it = self.joins.iter().filter_map(|join| {
            let is_end = join.entity == name || join.other == name;
            is_end.then(|| (join.because.other(name), &join.because))
        });
        let mut seen = HashSet::new();
        of_it.filter(|(other, _)| seen.insert(*other)).collect()
    }

    /// An entity under all its names, itself the first.
    pub fn all(&self, of: EntityId) -> Vec<EntityId> {
        let mut all = vec![of];
        let mut looked_at = 0;
        while let Some(name) = all.get(looked_at).copied() {
            looked_at += 1;
            for (other, _) in self.joining(name) {
                if !all.contains(&other) {
                    all.push(other);
                }
            }
        }
        all
    }

    /// The same with what is known of each; the first is the one that the others are names of.
    pub async fn resolved(
        &self,
        graph: &dyn Graph,
        scope: &Scope,
        of: EntityId,
    ) -> Result<NamedEntity, Fault> {
        let mut named = graph.named(scope, &self.all(of)).await?;
        named.sort_by(|one, other| one.key.cmp(&other.key));
        let is_name = |entity: &Entity| self.joins.iter().any(|join| join.other == entity.id);
        let first = named.iter().position(|entity| !is_name(entity));
        if named.is_empty() {
            return Err(missing(&of.to_string()));
        }
        let entity = named.remove(first.unwrap_or_default());
        let mut because: BTreeMap<EntityId, BTreeSet<DerivationId>> = BTreeMap::new();
        for join in &self.joins {
            for end in [join.entity, join.other] {
                because.entry(end).or_default().insert(join.because.fact);
            }
        }
        let names = named.into_iter().map(|entity| EntityName {
            because: because
                .remove(&entity.id)
                .unwrap_or_default()
                .into_iter()
                .collect(),
            entity,
        });
        Ok(NamedEntity {
            names: names.collect(),
            entity,
        })
    }
}
