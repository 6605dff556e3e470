//! What is so: chains that connect two entities, and relations that lead nowhere.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::wordings::{Cast, Entity, Kind, Wordings};

/// Chains; every other one has three links, the rest two.
const CHAINS: usize = 40;
/// People of the chat.
const SPEAKERS: RangeInclusive<usize> = 4..=5;
/// People besides who may be an end, and entities of every other kind. Fewer than there are ends: each has more to it than one chain.
const PEOPLE: usize = 9;
const THINGS: usize = 4;
/// Relations that lead nowhere: from entities of chains, and of others altogether.
const DEAD_ENDS: usize = 50;
const APART: usize = 30;

/// Everything that is not a person.
const KINDS: [Kind; 6] = [
    Kind::Company,
    Kind::Town,
    Kind::Club,
    Kind::Band,
    Kind::School,
    Kind::Event,
];

/// A relation of two, as a place in the wordings.
#[derive(Debug, Clone)]
pub(super) struct Bond {
    pub(super) relation: usize,
    pub(super) subject: Entity,
    pub(super) object: Entity,
}

/// The entities from one end to the other, and what relates each to the next.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) entities: Vec<Entity>,
    pub(super) bonds: Vec<Bond>,
}

/// All of it.
pub(super) struct Plot {
    pub(super) speakers: Vec<Entity>,
    pub(super) paths: Vec<Path>,
    /// What is on no path.
    pub(super) asides: Vec<Bond>,
}

impl Plot {
    pub(super) fn new(wordings: &Wordings, rng: &mut StdRng) -> Self {
        let mut plotter = Plotter::new(wordings, rng);
        let speakers = plotter.known.clone();
        plotter.know();
        let mut paths: Vec<Path> = Vec::with_capacity(CHAINS);
        while paths.len() < CHAINS {
            let links = 2 + paths.len() % 2;
            paths.extend(plotter.path(links));
        }
        let asides = plotter.asides(&paths);
        Self {
            speakers,
            paths,
            asides,
        }
    }
}

/// A relation that a path takes, from its subject or from its object.
struct Step {
    relation: usize,
    is_forward: bool,
}

struct Plotter<'w, 'r> {
    wordings: &'w Wordings,
    rng: &'r mut StdRng,
    cast: Cast<'w>,
    /// Who and what may be an end, the speakers first.
    known: Vec<Entity>,
    /// Which ends have a path between them.
    joined: HashSet<[String; 2]>,
    /// Nobody lives in two towns.
    stated: HashSet<(String, usize)>,
}

impl<'w, 'r> Plotter<'w, 'r> {
    /// With the speakers.
    fn new(wordings: &'w Wordings, rng: &'r mut StdRng) -> Self {
        let mut cast = Cast::new(wordings, rng);
        let speakers = rng.random_range(SPEAKERS);
        let known = (0..speakers).map(|_| cast.introduce(Kind::Person, rng));
        Self {
            known: known.collect(),
            wordings,
            cast,
            joined: HashSet::new(),
            stated: HashSet::new(),
            rng,
        }
    }

    /// With all others who may be an end.
    fn know(&mut self) {
        let people = [Kind::Person].repeat(PEOPLE);
        for kind in people.into_iter().chain(KINDS.repeat(THINGS)) {
            let entity = self.cast.introduce(kind, self.rng);
            self.known.push(entity);
        }
    }

    /// A path between two that have none yet; nothing where this try comes to none.
    fn path(&mut self, links: usize) -> Option<Path> {
        let first = self.end(|_| true)?;
        let steps = self.steps(first.kind, links);
        let kinds: Vec<Kind> = steps.iter().map(|step| self.beyond(step)).collect();
        let last = self.end(|it| it.kind == kinds[links - 1])?;
        let mut ends = [first.name.clone(), last.name.clone()];
        ends.sort();
        let repeats = steps
            .windows(2)
            .any(|pair| pair[0].relation == pair[1].relation);
        let contradicts =
            self.states(&first, &steps[0], true) || self.states(&last, &steps[links - 1], false);
        if first == last || repeats || contradicts || !self.joined.insert(ends) {
            return None;
        }
        let mut entities = vec![first];
        for &kind in &kinds[..links - 1] {
            entities.push(self.cast.introduce(kind, self.rng));
        }
        entities.push(last);
        let pairs = entities.windows(2).zip(&steps);
        let bonds = pairs.map(|(pair, step)| bond(step, &pair[0], &pair[1]));
        let bonds: Vec<Bond> = bonds.collect();
        self.note(&bonds);
        Some(Path { entities, bonds })
    }

    /// One of those who may be an end: as often somebody as something.
    fn end(&mut self, fits: impl Fn(&Entity) -> bool) -> Option<Entity> {
        let wants_person = self.rng.random_bool(0.5);
        let is_wanted = |it: &&Entity| fits(it) && (it.kind == Kind::Person) == wants_person;
        let wanted: Vec<&Entity> = self.known.iter().filter(is_wanted).collect();
        wanted.choose(self.rng).copied().cloned()
    }

    fn steps(&mut self, from: Kind, links: usize) -> Vec<Step> {
        let mut at = from;
        let mut steps = Vec::with_capacity(links);
        for _ in 0..links {
            let step = self.step(at);
            at = self.beyond(&step);
            steps.push(step);
        }
        steps
    }

    /// Any relation of this kind.
    fn step(&mut self, from: Kind) -> Step {
        let relations = self.wordings.relations.iter().enumerate();
        let ways = relations.flat_map(|(relation, it)| {
            let ways = [(it.subject, true), (it.object, false)].into_iter();
            ways.filter(|(kind, _)| *kind == from)
                .map(move |(_, is_forward)| (relation, is_forward))
        });
        let ways: Vec<(usize, bool)> = ways.collect();
        let (relation, is_forward) = *ways.choose(self.rng).expect("every kind is related");
        Step {
            relation,
            is_forward,
        }
    }

    /// Where a step leads.
    fn beyond(&self, step: &Step) -> Kind {
        let relation = &self.wordings.relations[step.relation];
        match step.is_forward {
            true => relation.object,
            false => relation.subject,
        }
    }

    /// Whether that is said already of an entity that a step comes from, or leads to.
    fn states(&self, entity: &Entity, step: &Step, comes_from: bool) -> bool {
        let key = (entity.name.clone(), step.relation);
        step.is_forward == comes_from && self.stated.contains(&key)
    }

    fn note(&mut self, bonds: &[Bond]) {
        let subjects = bonds.iter();
        self.stated
            .extend(subjects.map(|bond| (bond.subject.name.clone(), bond.relation)));
    }

    /// Relations to entities of which nothing else is said.
    fn asides(&mut self, paths: &[Path]) -> Vec<Bond> {
        let told: Vec<&Entity> = paths.iter().flat_map(|path| &path.entities).collect();
        let mut asides = Vec::with_capacity(DEAD_ENDS + APART);
        while asides.len() < DEAD_ENDS {
            let entity = *told.choose(self.rng).expect("there are paths");
            asides.extend(self.aside(entity));
        }
        for _ in 0..APART {
            let kind = *KINDS.choose(self.rng).expect("there are kinds");
            let entity = self.cast.introduce(kind, self.rng);
            asides.extend(self.aside(&entity));
        }
        asides
    }

    fn aside(&mut self, entity: &Entity) -> Option<Bond> {
        let step = self.step(entity.kind);
        if self.states(entity, &step, true) {
            return None;
        }
        let other = self.cast.introduce(self.beyond(&step), self.rng);
        let bond = bond(&step, entity, &other);
        self.note(std::slice::from_ref(&bond));
        Some(bond)
    }
}

fn bond(step: &Step, from: &Entity, to: &Entity) -> Bond {
    let (subject, object) = match step.is_forward {
        true => (from, to),
        false => (to, from),
    };
    Bond {
        relation: step.relation,
        subject: subject.clone(),
        object: object.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::SeedableRng;

    use super::*;

    type Graph = HashMap<String, Vec<String>>;

    fn graph(plot: &Plot) -> Graph {
        let mut graph = Graph::new();
        let bonds = plot.paths.iter().flat_map(|path| &path.bonds);
        for bond in bonds.chain(&plot.asides) {
            let ends = [&bond.subject.name, &bond.object.name];
            for [one, other] in [ends, [ends[1], ends[0]]] {
                graph.entry(one.clone()).or_default().push(other.clone());
            }
        }
        graph
    }

    /// How many ways of at most so many links lead from one to the other.
    fn ways(graph: &Graph, from: &str, to: &str, links: usize) -> usize {
        match links {
            _ if from == to => 1,
            0 => 0,
            _ => {
                let next = graph[from].iter();
                next.map(|next| ways(graph, next, to, links - 1)).sum()
            }
        }
    }

    #[test]
    fn no_other_way_between_two_ends_is_as_short() {
        for seed in 0..30 {
            let plot = Plot::new(&Wordings::load(), &mut StdRng::seed_from_u64(seed));
            let graph = graph(&plot);
            for path in &plot.paths {
                let (first, last) = (&path.entities[0], &path.entities[path.bonds.len()]);
                let ways = ways(&graph, &first.name, &last.name, path.bonds.len());
                assert_eq!(ways, 1, "seed {seed}: {path:?}");
            }
        }
    }
}
