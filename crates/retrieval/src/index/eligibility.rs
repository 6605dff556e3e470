//! Which passages a request may find.

use std::collections::HashSet;

use chrono::TimeDelta;
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::candidates::Among;
use memfleet_ports::filter::TurnFilter;

use super::bits::Bits;
use super::{SpaceIndex, TurnEntry};

/// Time by which clocks and time zones of callers may be ahead of the store's.
const AHEAD: TimeDelta = TimeDelta::days(1);

/// The passages of one space that pass a filter.
#[derive(Debug, Clone)]
pub struct Eligible {
    rows: Bits,
    turns: usize,
}

impl Eligible {
    /// How many turns pass.
    pub fn turns(&self) -> usize {
        self.turns
    }

    pub(crate) fn contains(&self, row: u32) -> bool {
        self.rows.contains(row)
    }

    /// How many passages pass.
    pub(crate) fn rows(&self) -> usize {
        self.rows.count()
    }

    /// The passages that pass.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.rows.iter()
    }

    /// Which passages pass.
    pub(crate) fn bits(&self) -> &Bits {
        &self.rows
    }
}

impl SpaceIndex {
    /// The passages that pass `filter`. Its metadata condition is not known here: `labelled` are the turns that carry the
    /// labels, absent when the filter names none.
    pub fn eligible(&self, filter: &TurnFilter, labelled: Option<&HashSet<TurnId>>) -> Eligible {
        if labelled.is_none() && filter.is_everything() && !filter.include_replaced {
            return Eligible {
                rows: self.current.clone(),
                turns: self.turns() - self.replaced,
            };
        }
        let condition = Condition::new(self, filter, labelled);
        let passing = self
            .turns
            .iter()
            .flatten()
            .filter(|entry| condition.holds(entry));
        let (mut rows, mut turns) = (Bits::default(), 0);
        for entry in passing {
            turns += 1;
            entry.rows().for_each(|row| rows.set(row, true));
        }
        Eligible { rows, turns }
    }

    /// The store's numbers of the passages that pass.
    pub fn among(&self, eligible: &Eligible) -> Among {
        eligible
            .iter()
            .map(|row| self.passage_number(row))
            .collect()
    }

    /// The turns that pass.
    pub(crate) fn turns_passing(&self, eligible: &Eligible) -> impl Iterator<Item = &TurnEntry> {
        let turns = self.turns.iter().flatten();
        turns.filter(|entry| eligible.contains(entry.first_row))
    }

    /// The latest event time of the turns that pass, else their latest recorded time: what "last week" is relative to
    /// unless the request says. An event time later than a day after its turn was recorded is an appointment or a wrong clock,
    /// and counts only where all are such.
    pub fn last_time(&self, eligible: &Eligible) -> Option<Timestamp> {
        let passing = || self.turns_passing(eligible);
        let past = |entry: &TurnEntry| {
            let time = entry.event_time?;
            (time - entry.recorded_at <= AHEAD).then_some(time)
        };
        passing()
            .filter_map(past)
            .max()
            .or_else(|| passing().filter_map(|entry| entry.event_time).max())
            .or_else(|| passing().map(|entry| entry.recorded_at).max())
    }
}

/// A filter in terms of one index.
struct Condition<'a> {
    filter: &'a TurnFilter,
    labelled: Option<&'a HashSet<TurnId>>,
    turns: HashSet<TurnId>,
    sessions: Vec<Option<u32>>,
    excluded_sessions: Vec<Option<u32>>,
    speakers: Vec<Option<u32>>,
}

impl<'a> Condition<'a> {
    fn new(
        index: &SpaceIndex,
        filter: &'a TurnFilter,
        labelled: Option<&'a HashSet<TurnId>>,
    ) -> Self {
        let sessions = |names: &[memfleet_domain::ids::SessionId]| {
            names
                .iter()
                .map(|name| index.session_names.get(name.as_str()))
                .collect()
        };
        Self {
            filter,
            labelled,
            turns: filter.turns.iter().copied().collect(),
            sessions: sessions(&filter.sessions),
            excluded_sessions: sessions(&filter.excluded_sessions),
            speakers: filter
                .speakers
                .iter()
                .map(|name| index.speakers.get(name.as_str()))
                .collect(),
        }
    }

    fn holds(&self, entry: &TurnEntry) -> bool {
        let filter = self.filter;
        let one_of = |names: &[Option<u32>], name| names.is_empty() || names.contains(&Some(name));
        (self.turns.is_empty() || self.turns.contains(&entry.id))
            && self.labelled.is_none_or(|turns| turns.contains(&entry.id))
            && one_of(&self.sessions, entry.session)
            && !self.excluded_sessions.contains(&Some(entry.session))
            && one_of(&self.speakers, entry.speaker)
            && (filter.roles.is_empty() || filter.roles.contains(&entry.role))
            && filter.time.contains(entry.effective_time())
            && self.known(entry)
    }

    /// Whether the turn belongs to the state of memory that the filter asks for.
    fn known(&self, entry: &TurnEntry) -> bool {
        let as_of = self.filter.as_of;
        let recorded = as_of.known_at.is_none_or(|at| entry.recorded_at <= at);
        let happened = as_of
            .happened_by
            .is_none_or(|at| entry.effective_time() <= at);
        let replaced = entry
            .replaced_at
            .is_some_and(|replaced| as_of.known_at.is_none_or(|at| replaced <= at));
        recorded && happened && (self.filter.include_replaced || !replaced)
    }
}
