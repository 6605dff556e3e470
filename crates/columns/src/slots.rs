//! Places for the vectors of a memory space: two at most, each of one embedding space.

/// Changes that are looked through again before a note of what a space lacks moves on.
pub(crate) const LOOKED_THROUGH: i64 = 16;

/// One of the two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorSlot {
    /// Beside the passages.
    First,
    /// In a table of its own.
    Second,
}

impl VectorSlot {
    /// From a column that is true for the second place.
    pub fn from_flag(is_second: bool) -> Self {
        match is_second {
            true => Self::Second,
            false => Self::First,
        }
    }

    /// True for the second place.
    pub fn is_second(self) -> bool {
        self == Self::Second
    }
}

/// The embedding spaces of a memory space, by their numbers in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VectorSlots {
    /// The one of the first place; absent where that is free.
    pub first: Option<i64>,
    /// The one of the second place; absent where that is free.
    pub second: Option<i64>,
    /// True where searches use the second.
    pub serves_second: bool,
    /// True once every turn had vectors in the place that searches do not use.
    pub is_other_whole: bool,
}

impl VectorSlots {
    /// Where the vectors of an embedding space are.
    pub fn of(&self, embedding: i64) -> Option<VectorSlot> {
        if self.first == Some(embedding) {
            Some(VectorSlot::First)
        } else if self.second == Some(embedding) {
            Some(VectorSlot::Second)
        } else {
            None
        }
    }

    /// The place that searches use.
    pub fn served(&self) -> Option<VectorSlot> {
        let (slot, taken) = match self.serves_second {
            true => (VectorSlot::Second, self.second),
            false => (VectorSlot::First, self.first),
        };
        taken.map(|_| slot)
    }

    /// The embedding space in a place.
    pub fn get(&self, slot: VectorSlot) -> Option<i64> {
        match slot {
            VectorSlot::First => self.first,
            VectorSlot::Second => self.second,
        }
    }

    /// The place that searches do not use, where it is taken.
    pub fn other(&self) -> Option<VectorSlot> {
        let (slot, taken) = match self.serves_second {
            true => (VectorSlot::First, self.first),
            false => (VectorSlot::Second, self.second),
        };
        taken.map(|_| slot)
    }

    /// True where indexes have vectors of a place: not while it is filled for the first time.
    pub fn is_read(&self, slot: VectorSlot) -> bool {
        self.served() == Some(slot) || self.is_other_whole || self.other() != Some(slot)
    }

    /// Where new vectors of an embedding space go: nowhere where the places are those of others. A
    /// memory space without vectors takes it as its first.
    pub fn place(&mut self, embedding: i64) -> Option<VectorSlot> {
        if self.first.is_none() && self.second.is_none() {
            self.first = Some(embedding);
        }
        self.of(embedding)
    }

    /// True where a place is to be filled and was not, when vectors went to `given`. A memory space
    /// without vectors waits for those of its first place.
    pub fn lacks(&self, slot: VectorSlot, given: Option<VectorSlot>) -> bool {
        let is_free = self.first.is_none() && self.second.is_none();
        let is_held = self.get(slot).is_some() || (is_free && slot == VectorSlot::First);
        is_held && given != Some(slot)
    }
}

/// Notes of one transaction on what it writes without vectors, a place each.
#[derive(Debug, Clone, Copy)]
pub struct LackingVectors {
    since: i64,
    /// Change after which something lacks vectors in the first place.
    pub first: Option<i64>,
    /// Change after which something lacks vectors in the second place.
    pub second: Option<i64>,
}

impl LackingVectors {
    /// Empty notes of a transaction whose changes come after `head`.
    pub fn since(head: i64) -> Self {
        Self {
            since: head,
            first: None,
            second: None,
        }
    }

    /// Notes where something has vectors that is written now.
    pub fn note(&mut self, slots: VectorSlots, given: Option<VectorSlot>) {
        if slots.lacks(VectorSlot::First, given) {
            self.first = Some(self.since);
        }
        if slots.lacks(VectorSlot::Second, given) {
            self.second = Some(self.since);
        }
    }
}

/// True where a note that nothing lacks vectors up to a change is to move on, as the first thing
/// that lacks some is of the change `next`, or nothing does.
pub fn is_outdated(noted: i64, next: Option<i64>) -> bool {
    next.is_none_or(|next| next > noted + LOOKED_THROUGH)
}

/// Places that a round takes up to `limit` things from: all of them from one that is alone, else a
/// half of them from each, so that a place where much waits leaves room for the next.
#[derive(Debug)]
pub struct PlaceRound<P> {
    places: std::vec::IntoIter<P>,
    share: u32,
    left: u32,
}

impl<P> PlaceRound<P> {
    /// A round through these places in order.
    pub fn new(limit: u32, places: Vec<P>) -> Self {
        let share = match places.len() {
            0 | 1 => limit,
            _ => limit.div_ceil(2),
        };
        Self {
            places: places.into_iter(),
            share,
            left: limit,
        }
    }

    /// The next place, and how many things it gives at most; absent once the round is full.
    pub fn next_place(&mut self) -> Option<(P, u32)> {
        let most = self.share.min(self.left);
        let place = self.places.next().filter(|_| most > 0)?;
        Some((place, most))
    }

    /// Counts what a place gave.
    pub fn count(&mut self, things: usize) {
        self.left = self.left.saturating_sub(things as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_where_much_waits_leaves_room_for_the_next() {
        let mut alone = PlaceRound::new(5, vec!["a"]);
        assert_eq!(alone.next_place(), Some(("a", 5)));
        let mut round = PlaceRound::new(5, vec!["a", "b", "c", "d"]);
        for (place, most, given) in [("a", 3, 3), ("b", 2, 1), ("c", 1, 1)] {
            assert_eq!(round.next_place(), Some((place, most)));
            round.count(given);
        }
        assert_eq!(round.next_place(), None);
    }

    #[test]
    fn vectors_of_a_third_embedding_space_have_no_place() {
        let mut slots = VectorSlots::default();
        assert!(slots.lacks(VectorSlot::First, None) && !slots.lacks(VectorSlot::Second, None));
        assert_eq!(slots.place(7), Some(VectorSlot::First));
        assert_eq!(slots.place(8), None);
        slots.second = Some(8);
        assert_eq!(slots.place(8), Some(VectorSlot::Second));
        assert_eq!(slots.place(9), None);
        assert_eq!(slots.served(), Some(VectorSlot::First));
        assert_eq!(slots.other(), Some(VectorSlot::Second));
        assert!(slots.lacks(VectorSlot::Second, Some(VectorSlot::First)));
        slots = VectorSlots {
            first: None,
            serves_second: true,
            ..slots
        };
        assert_eq!(
            (slots.served(), slots.other()),
            (Some(VectorSlot::Second), None)
        );
        assert_eq!(slots.place(7), None);
    }
}
