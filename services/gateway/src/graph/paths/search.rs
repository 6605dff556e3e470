//! The search itself, in memory: the shortest paths first, and no more steps than a caller may be made to wait for.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use memfleet_domain::graph::Triplet;
use memfleet_domain::ids::{DerivationId, EntityId};
use memfleet_ports::ledger::Page;

use super::Found;

/// Paths that are compared before the best are taken, and triplets that are walked along for these. What is beyond is not looked at.
const COMPARED: usize = 10_000;
const STEPS: usize = 1_000_000;

/// The triplets around two entities.
#[derive(Default)]
pub(super) struct Surroundings {
    triplets: Vec<Triplet>,
    known: HashSet<(DerivationId, EntityId)>,
    around: HashMap<EntityId, Vec<usize>>,
    truncated: bool,
}

impl Surroundings {
    /// Takes what is not known yet; the answer is all of it.
    pub fn take(&mut self, page: Page<Triplet>) -> Vec<Triplet> {
        self.truncated |= page.next.is_some();
        for triplet in &page.items {
            if self.known.insert((triplet.fact, triplet.object)) {
                let place = self.triplets.len();
                for end in [triplet.subject, triplet.object] {
                    self.around.entry(end).or_default().push(place);
                }
                self.triplets.push(triplet.clone());
            }
        }
        page.items
    }

    /// The paths of at most so many triplets, the best first: all of one length are looked for before any of the next.
    pub fn paths(&self, from: &[EntityId], to: &[EntityId], hops: u32) -> Found {
        let last = self.last(to);
        let mut search = Search {
            read: self,
            to,
            last: &last,
            visited: from.to_vec(),
            path: Vec::new(),
            found: Vec::new(),
            steps: 0,
        };
        let mut starts = (1..=hops).flat_map(|length| from.iter().map(move |name| (*name, length)));
        let ended = starts.try_for_each(|(name, length)| search.walk(name, length));
        let mut found = search.found;
        let doubt = |path: &[usize]| -> f32 {
            let sure = path.iter().map(|place| self.triplets[*place].confidence);
            sure.map(|confidence| 1.0 - confidence).sum()
        };
        found.sort_by(|one, other| {
            let by_length = one.len().cmp(&other.len());
            by_length.then_with(|| doubt(one).total_cmp(&doubt(other)))
        });
        let triplets = |path: Vec<usize>| {
            let triplets = path.iter().map(|place| self.triplets[*place].clone());
            triplets.collect()
        };
        Found {
            paths: found.into_iter().map(triplets).collect(),
            truncated: self.truncated || ended.is_break(),
        }
    }

    /// By where they begin, the triplets that lead there.
    fn last(&self, to: &[EntityId]) -> HashMap<EntityId, Vec<usize>> {
        let mut last: HashMap<EntityId, Vec<usize>> = HashMap::new();
        for end in to {
            for place in self.around.get(end).into_iter().flatten() {
                let other = self.triplets[*place].other(*end);
                if !to.contains(&other) {
                    last.entry(other).or_default().push(*place);
                }
            }
        }
        last
    }
}

/// A path on its way, and those that arrived.
struct Search<'s> {
    read: &'s Surroundings,
    to: &'s [EntityId],
    last: &'s HashMap<EntityId, Vec<usize>>,
    visited: Vec<EntityId>,
    path: Vec<usize>,
    found: Vec<Vec<usize>>,
    steps: usize,
}

impl Search<'_> {
    /// Goes on from an entity along exactly so many triplets, and to nobody twice. It breaks off where a bound is reached.
    fn walk(&mut self, from: EntityId, length: u32) -> ControlFlow<()> {
        if length == 1 {
            return self.arrive(from);
        }
        for place in self.read.around.get(&from).into_iter().flatten() {
            self.step()?;
            let next = self.read.triplets[*place].other(from);
            if self.visited.contains(&next) || self.to.contains(&next) {
                continue;
            }
            self.path.push(*place);
            self.visited.push(next);
            let walked = self.walk(next, length - 1);
            self.visited.pop();
            self.path.pop();
            walked?;
        }
        ControlFlow::Continue(())
    }

    fn arrive(&mut self, from: EntityId) -> ControlFlow<()> {
        for place in self.last.get(&from).into_iter().flatten() {
            self.step()?;
            if self.found.len() == COMPARED {
                return ControlFlow::Break(());
            }
            let mut path = self.path.clone();
            path.push(*place);
            self.found.push(path);
        }
        ControlFlow::Continue(())
    }

    fn step(&mut self) -> ControlFlow<()> {
        self.steps += 1;
        match self.steps > STEPS {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::graph::Entity;
    use memfleet_ports::conformance::graph::{named, says};

    use super::*;

    /// Triplets, each of a fact of its own.
    fn reading(said: impl IntoIterator<Item = (String, String)>) -> Surroundings {
        let said = said.into_iter().zip(1_u128..);
        let triplets = said.map(|((subject, object), number)| Triplet {
            fact: DerivationId::from_bytes(number.to_be_bytes()),
            ..says(1, &named(&subject), "know", &named(&object))
        });
        let mut read = Surroundings::default();
        read.take(Page {
            items: triplets.collect(),
            next: None,
        });
        read
    }

    fn paths(read: &Surroundings, hops: u32) -> Found {
        let [ada, rome]: [Entity; 2] = ["Ada", "Rome"].map(named);
        read.paths(&[ada.id], &[rome.id], hops)
    }

    fn many(subject: &str, object: &str, count: usize) -> Vec<(String, String)> {
        vec![(subject.to_owned(), object.to_owned()); count]
    }

    #[test]
    fn the_shortest_path_is_found_however_many_longer_ones_there_are() {
        let mut said = [many("Ada", "Ben", 30), many("Ben", "Cleo", 30)].concat();
        said.extend(many("Cleo", "Rome", 30));
        said.extend(many("Ada", "Rome", 1));
        let read = reading(said);
        let found = paths(&read, 3);
        assert_eq!(found.paths[0].len(), 1);
        assert_eq!(found.paths.len(), COMPARED);
        assert!(found.truncated);
        let short = paths(&read, 2);
        assert_eq!((short.paths.len(), short.truncated), (1, false));
    }

    #[test]
    fn a_search_that_is_too_long_ends_and_says_so() {
        let said = [many("Ada", "Ben", 1_500), many("Ben", "Cleo", 1_500)].concat();
        let found = paths(&reading(said), 3);
        assert_eq!((found.paths.len(), found.truncated), (0, true));
    }

    #[test]
    fn nobody_is_on_a_path_twice() {
        let said = [
            ("Ada", "Ben"),
            ("Ben", "Ben"),
            ("Ben", "Ada"),
            ("Ada", "Rome"),
        ];
        let said = said.map(|(one, other)| (one.to_owned(), other.to_owned()));
        let found = paths(&reading(said), 3);
        assert_eq!((found.paths.len(), found.truncated), (1, false));
    }
}
