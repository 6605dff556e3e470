//! What is done to which part of the fleet, drawn from a seed.

use std::fmt;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use memfleet_e2e::Fleet;
use memfleet_servers::Neo4j;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IteratorRandom, SliceRandom};

/// A process that can be harmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// PostgreSQL.
    Store,
    /// NATS.
    Queue,
    /// Neo4j.
    Graph,
    /// A role, by its place in the fleet.
    Role(usize),
}

/// What happens to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// SIGKILL, away for a while, started again.
    Kill,
    /// Ended in order, as an upgrade does, and started again.
    Stop,
    /// SIGSTOP and SIGCONT: it does not know that it was away.
    Pause,
}

/// One blow: to one part, or to two at once.
#[derive(Debug)]
pub struct Harm {
    way: Way,
    parts: Vec<Part>,
    away: Duration,
}

impl Harm {
    /// A kill and a pause of every part, in some order.
    pub fn to_everything(fleet: &Fleet, random: &mut StdRng) -> Vec<Self> {
        let mut all: Vec<_> = [Way::Kill, Way::Pause]
            .into_iter()
            .flat_map(|way| parts(fleet).map(move |part| (way, part)))
            .map(|(way, part)| Self {
                way,
                parts: vec![part],
                away: Duration::from_millis(random.random_range(0..1000)),
            })
            .collect();
        all.shuffle(random);
        all
    }

    /// Mostly kills; sometimes of two parts at once, sometimes longer than anything is waited for.
    pub fn any(fleet: &Fleet, random: &mut StdRng) -> Self {
        let way = match random.random_range(0..10) {
            0..7 => Way::Kill,
            7 => Way::Stop,
            _ => Way::Pause,
        };
        let number = if random.random_bool(0.2) { 2 } else { 1 };
        let mut parts = parts(fleet).choose_multiple(random, number);
        // A role waits for the servers when it starts.
        parts.sort();
        let longest = if random.random_bool(0.02) {
            40_000
        } else {
            2500
        };
        let away = Duration::from_millis(random.random_range(0..longest));
        Self { way, parts, away }
    }
}

fn parts(fleet: &Fleet) -> impl Iterator<Item = Part> + use<> {
    let roles = (0..fleet.roles.len()).map(Part::Role);
    let servers = [Part::Store, Part::Queue, Part::Graph];
    servers.into_iter().chain(roles)
}

/// What was done so far.
#[derive(Debug, Default)]
pub struct Done {
    /// Processes that were killed.
    pub kills: usize,
    stops: usize,
    pauses: usize,
    /// How long it took.
    pub seconds: u64,
}

impl Done {
    /// Does it, makes it good again, and leaves the fleet alone for a moment.
    pub fn to(&mut self, fleet: &mut Fleet, harm: &Harm, random: &mut StdRng) -> Result<()> {
        for part in &harm.parts {
            part.hurt(fleet, harm.way)
                .with_context(|| format!("{harm:?}"))?;
        }
        sleep(harm.away);
        for part in &harm.parts {
            part.heal(fleet, harm.way)
                .with_context(|| format!("{harm:?}"))?;
        }
        let times = harm.parts.len();
        match harm.way {
            Way::Kill => self.kills += times,
            Way::Stop => self.stops += times,
            Way::Pause => self.pauses += times,
        }
        sleep(Duration::from_millis(random.random_range(0..500)));
        Ok(())
    }
}

impl fmt::Display for Done {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kills,
            stops,
            pauses,
            seconds,
        } = self;
        write!(
            formatter,
            "{seconds} s: {kills} kills, {stops} restarts in order, {pauses} pauses"
        )
    }
}

impl Part {
    fn hurt(self, fleet: &mut Fleet, way: Way) -> Result<()> {
        match (self, way) {
            (Self::Role(role), Way::Kill) => fleet.roles[role].program.kill(),
            (Self::Role(role), Way::Stop) => fleet.roles[role].program.stop(),
            (Self::Role(role), Way::Pause) => fleet.roles[role].program.pause(),
            // It has no order to end in: Java leaves the signal alone.
            (Self::Graph, Way::Kill | Way::Stop) => graph(fleet)?.kill(),
            (Self::Graph, Way::Pause) => graph(fleet)?.pause(),
            (Self::Queue, Way::Kill) => fleet.nats.kill(),
            (Self::Queue, Way::Stop) => fleet.nats.stop(),
            (Self::Queue, Way::Pause) => fleet.nats.pause(),
            (Self::Store, Way::Kill) => fleet.postgres.kill(),
            (Self::Store, Way::Stop) => fleet.postgres.stop(),
            (Self::Store, Way::Pause) => fleet.postgres.pause(),
        }
    }

    fn heal(self, fleet: &mut Fleet, way: Way) -> Result<()> {
        match (self, way) {
            (Self::Role(role), Way::Pause) => fleet.roles[role].program.resume(),
            (Self::Role(role), _) => fleet.roles[role].program.restart(),
            (Self::Graph, Way::Pause) => graph(fleet)?.resume(),
            (Self::Graph, _) => graph(fleet)?.restart(),
            (Self::Queue, Way::Pause) => fleet.nats.resume(),
            (Self::Queue, _) => fleet.nats.restart(),
            (Self::Store, Way::Pause) => fleet.postgres.resume(),
            (Self::Store, _) => fleet.postgres.restart(),
        }
    }
}

fn graph(fleet: &mut Fleet) -> Result<&mut Neo4j> {
    let graph = fleet.graph.as_mut();
    graph.context("the fleet was started without a graph")
}
