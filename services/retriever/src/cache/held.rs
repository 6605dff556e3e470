//! The spaces in memory in the order of their last reads, with what they take together: each step costs the same however many they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use memfleet_domain::Scope;

use super::entry::Entry;

/// Entries by space.
#[derive(Default)]
pub(super) struct Held {
    slots: HashMap<Scope, Slot>,
    /// By last read.
    order: BTreeMap<u64, Scope>,
    reads: u64,
    bytes: u64,
}

struct Slot {
    entry: Arc<Entry>,
    read_at: u64,
    bytes: u64,
}

impl Held {
    /// The entry of a space, which counts as read now.
    pub(super) fn read(&mut self, scope: &Scope) -> Option<Arc<Entry>> {
        let slot = self.slots.get_mut(scope)?;
        self.reads += 1;
        let earlier = std::mem::replace(&mut slot.read_at, self.reads);
        if let Some(scope) = self.order.remove(&earlier) {
            self.order.insert(self.reads, scope);
        }
        Some(slot.entry.clone())
    }

    /// Puts an entry in, read now. The space must not be here.
    pub(super) fn insert(&mut self, scope: &Scope, entry: Arc<Entry>) {
        self.reads += 1;
        let slot = Slot {
            read_at: self.reads,
            bytes: entry.bytes(),
            entry,
        };
        self.bytes += slot.bytes;
        self.order.insert(self.reads, scope.clone());
        self.slots.insert(scope.clone(), slot);
    }

    /// Counts what an entry takes by now, if it is the one of its space.
    pub(super) fn weigh(&mut self, scope: &Scope, entry: &Arc<Entry>) {
        if let Some(slot) = self.slots.get_mut(scope)
            && Arc::ptr_eq(&slot.entry, entry)
        {
            let earlier = std::mem::replace(&mut slot.bytes, entry.bytes());
            self.bytes = self.bytes - earlier + slot.bytes;
        }
    }

    /// Puts an entry in the place of another, if that is the one of its space.
    pub(super) fn replace(&mut self, scope: &Scope, earlier: &Arc<Entry>, entry: &Arc<Entry>) {
        if let Some(slot) = self.slots.get_mut(scope)
            && Arc::ptr_eq(&slot.entry, earlier)
        {
            slot.entry = entry.clone();
            self.weigh(scope, entry);
        }
    }

    /// Takes a space out, if `entry`, where one is named, is the one of it.
    pub(super) fn remove(
        &mut self,
        scope: &Scope,
        entry: Option<&Arc<Entry>>,
    ) -> Option<Arc<Entry>> {
        let slot = self.slots.get(scope)?;
        if entry.is_some_and(|entry| !Arc::ptr_eq(&slot.entry, entry)) {
            return None;
        }
        let slot = self.slots.remove(scope)?;
        self.order.remove(&slot.read_at);
        self.bytes -= slot.bytes;
        Some(slot.entry)
    }

    /// Takes out the space that was read longest ago, but never `reading`.
    pub(super) fn remove_oldest(&mut self, reading: &Scope) -> Option<Arc<Entry>> {
        let oldest = self.order.values().find(|scope| *scope != reading)?.clone();
        self.remove(&oldest, None)
    }

    /// Takes out every space.
    pub(super) fn remove_all(&mut self) -> Vec<Arc<Entry>> {
        let gone = std::mem::take(self);
        gone.slots.into_values().map(|slot| slot.entry).collect()
    }

    /// What all take, as last weighed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SpaceId, TenantId};

    use super::*;

    fn space(name: &str) -> Scope {
        Scope {
            tenant: TenantId::new("t").unwrap(),
            space: SpaceId::new(name).unwrap(),
        }
    }

    fn entry(bytes: usize) -> Arc<Entry> {
        let entry = Entry::new(0, None);
        entry.measure(bytes);
        Arc::new(entry)
    }

    #[test]
    fn what_was_read_longest_ago_leaves_first_and_the_total_is_kept() {
        let mut held = Held::default();
        let [a, b, c] = ["a", "b", "c"].map(space);
        let [first, second, third] = [10, 20, 30].map(entry);
        held.insert(&a, first.clone());
        held.insert(&b, second.clone());
        held.insert(&c, third);
        assert_eq!((held.bytes(), held.len()), (60, 3));
        assert!(held.read(&a).is_some());
        first.measure(11);
        held.weigh(&a, &first);
        held.weigh(&a, &second);
        assert_eq!(held.bytes(), 61);
        assert!(Arc::ptr_eq(&held.remove_oldest(&a).unwrap(), &second));
        assert!(held.read(&b).is_none());
        held.replace(&a, &first, &entry(1));
        assert!(held.remove(&a, Some(&first)).is_none(), "it was replaced");
        assert_eq!(held.bytes(), 31);
        held.remove_oldest(&a).unwrap();
        assert!(held.remove_oldest(&a).is_none(), "it is being read");
        assert_eq!(held.remove_all().len(), 1);
        assert_eq!((held.bytes(), held.len(), held.order.len()), (0, 0, 0));
    }

    #[test]
    fn a_hundred_thousand_spaces_are_read_and_let_go_of_in_no_time() {
        let mut held = Held::default();
        let spaces: Vec<_> = (0..100_000)
            .map(|number: u32| space(&number.to_string()))
            .collect();
        let begun = std::time::Instant::now();
        for scope in &spaces {
            held.insert(scope, entry(1));
        }
        for scope in &spaces {
            held.read(scope);
            held.remove_oldest(scope);
        }
        // Seconds on a busy machine, and hours where a step looks at all of them.
        assert!(begun.elapsed().as_secs() < 30);
        assert_eq!(held.len() as u64, held.bytes());
    }
}
