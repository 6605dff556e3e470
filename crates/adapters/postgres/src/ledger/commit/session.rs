//! A session while turns are added to it: where the next one stands.

use memfleet_columns::end_of_session;
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::AcceptedTurn;

/// A turn in its session.
#[derive(Debug)]
pub struct Place {
    pub id: TurnId,
    pub acceptance: i64,
    pub ordinal: u32,
    pub position: u32,
    /// Its position in the database; absent for a new turn.
    pub stored: Option<u32>,
}

/// A session's row, kept in memory during a commit.
#[derive(Debug)]
pub struct OpenSession {
    pub turns: i64,
    pub started_at: i64,
    pub first_at: i64,
    pub last_at: i64,
    /// It is not in the database yet.
    pub is_new: bool,
    /// Its turns from the one before the earliest that may come, in the order of acceptance.
    pub places: Vec<Place>,
}

impl OpenSession {
    /// One that begins with this turn.
    pub fn begin(turn: &AcceptedTurn) -> Self {
        let effective = turn.effective_time().timestamp_micros();
        Self {
            turns: 0,
            started_at: turn.recorded_at.timestamp_micros(),
            first_at: effective,
            last_at: effective,
            is_new: true,
            places: Vec::new(),
        }
    }

    /// Adds a turn: at its place, if it brings one that is further than the end. Turns that were accepted later but stored
    /// earlier move up by one.
    pub fn add(&mut self, turn: &AcceptedTurn, acceptance: i64, ordinal: u32) {
        let order = |place: &Place| (place.acceptance, place.ordinal);
        let after = self
            .places
            .partition_point(|place| order(place) <= (acceptance, ordinal));
        let before = after.checked_sub(1).map(|last| self.places[last].position);
        let position = if after == self.places.len() {
            end_of_session(before, turn.place)
        } else {
            before.map_or(0, |position| position + 1)
        };
        for place in &mut self.places[after..] {
            place.position += 1;
        }
        let place = Place {
            id: turn.id,
            acceptance,
            ordinal,
            position,
            stored: None,
        };
        self.places.insert(after, place);
        self.count(turn);
    }

    fn count(&mut self, turn: &AcceptedTurn) {
        let effective = turn.effective_time().timestamp_micros();
        self.turns += 1;
        self.started_at = self.started_at.min(turn.recorded_at.timestamp_micros());
        self.first_at = self.first_at.min(effective);
        self.last_at = self.last_at.max(effective);
    }

    /// Whether a turn was added.
    pub fn is_changed(&self) -> bool {
        self.places.iter().any(|place| place.stored.is_none())
    }

    /// The turns of the database that stand elsewhere now.
    pub fn moved(&self) -> impl Iterator<Item = &Place> {
        let is_moved = |place: &&Place| place.stored.is_some_and(|stored| stored != place.position);
        self.places.iter().filter(is_moved)
    }
}
