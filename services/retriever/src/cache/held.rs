//! The spaces in memory in the order of their last reads, with what they take together: each step costs the same however many they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};

use super::entry::Entry;

/// Names an index: vectors of two embedding spaces are never in one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct IndexKey {
    /// The memory space.
    pub scope: Scope,
    /// The embedding space of its vectors; absent: it has none.
    pub embedding: Option<EmbeddingSpace>,
}

/// Entries by space and embedding space.
#[derive(Default)]
pub(super) struct Held {
    slots: BTreeMap<IndexKey, Slot>,
    /// By last read.
    order: BTreeMap<u64, IndexKey>,
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
    pub(super) fn read(&mut self, key: &IndexKey) -> Option<Arc<Entry>> {
        let slot = self.slots.get_mut(key)?;
        self.reads += 1;
        let earlier = std::mem::replace(&mut slot.read_at, self.reads);
        if let Some(key) = self.order.remove(&earlier) {
            self.order.insert(self.reads, key);
        }
        Some(slot.entry.clone())
    }

    /// Puts an entry in, read now. The space must not be here.
    pub(super) fn insert(&mut self, key: &IndexKey, entry: Arc<Entry>) {
        self.reads += 1;
        let slot = Slot {
            read_at: self.reads,
            bytes: entry.bytes(),
            entry,
        };
        self.bytes += slot.bytes;
        self.order.insert(self.reads, key.clone());
        self.slots.insert(key.clone(), slot);
    }

    /// Counts what an entry takes by now, if it is the one of its space.
    pub(super) fn weigh(&mut self, key: &IndexKey, entry: &Arc<Entry>) {
        if let Some(slot) = self.slots.get_mut(key)
            && Arc::ptr_eq(&slot.entry, entry)
        {
            let earlier = std::mem::replace(&mut slot.bytes, entry.bytes());
            self.bytes = self.bytes - earlier + slot.bytes;
        }
    }

    /// Puts an entry in the place of another, if that is the one of its space.
    pub(super) fn replace(&mut self, key: &IndexKey, earlier: &Arc<Entry>, entry: &Arc<Entry>) {
        if let Some(slot) = self.slots.get_mut(key)
            && Arc::ptr_eq(&slot.entry, earlier)
        {
            slot.entry = entry.clone();
            self.weigh(key, entry);
        }
    }

    /// Takes a space out, if `entry`, where one is named, is the one of it.
    pub(super) fn remove(
        &mut self,
        key: &IndexKey,
        entry: Option<&Arc<Entry>>,
    ) -> Option<Arc<Entry>> {
        let slot = self.slots.get(key)?;
        if entry.is_some_and(|entry| !Arc::ptr_eq(&slot.entry, entry)) {
            return None;
        }
        let slot = self.slots.remove(key)?;
        self.order.remove(&slot.read_at);
        self.bytes -= slot.bytes;
        Some(slot.entry)
    }

    /// Takes out the space that was read longest ago, but never `reading`.
    pub(super) fn remove_oldest(&mut self, reading: &IndexKey) -> Option<Arc<Entry>> {
        let oldest = self.order.values().find(|key| *key != reading)?.clone();
        self.remove(&oldest, None)
    }

    /// Takes out all indexes of a space.
    pub(super) fn remove_space(&mut self, scope: &Scope) -> Vec<Arc<Entry>> {
        self.remove_where(scope, |_| true)
    }

    /// Takes out the indexes of a space in embedding spaces other than these.
    pub(super) fn remove_others(
        &mut self,
        scope: &Scope,
        held: &HeldEmbeddings,
    ) -> Vec<Arc<Entry>> {
        self.remove_where(scope, |embedding| {
            embedding.is_some_and(|embedding| held.whole().all(|whole| whole != embedding))
        })
    }

    fn remove_where(
        &mut self,
        scope: &Scope,
        is_gone: impl Fn(Option<&EmbeddingSpace>) -> bool,
    ) -> Vec<Arc<Entry>> {
        let first = IndexKey {
            scope: scope.clone(),
            embedding: None,
        };
        let keys = self.slots.range(first..).map(|(key, _)| key);
        let keys: Vec<_> = keys
            .take_while(|key| key.scope == *scope)
            .filter(|key| is_gone(key.embedding.as_ref()))
            .cloned()
            .collect();
        let gone = keys.iter().filter_map(|key| self.remove(key, None));
        gone.collect()
    }

    /// The entry of an index, if it is here and was built; it does not count as read.
    pub(super) fn built(&self, key: &IndexKey) -> bool {
        self.slots
            .get(key)
            .is_some_and(|slot| slot.entry.is_built())
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

    fn space(name: &str) -> IndexKey {
        IndexKey {
            scope: Scope {
                tenant: TenantId::new("t").unwrap(),
                space: SpaceId::new(name).unwrap(),
            },
            embedding: None,
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
    fn a_space_that_is_dropped_leaves_with_the_indexes_of_all_its_models() {
        let mut held = Held::default();
        let of = |model: &str| IndexKey {
            embedding: Some(EmbeddingSpace {
                model: model.to_owned(),
                ..EmbeddingSpace::default()
            }),
            ..space("b")
        };
        for key in [space("a"), space("b"), of("x"), of("y"), space("c")] {
            held.insert(&key, entry(1));
        }
        let only_x = HeldEmbeddings {
            served: of("x").embedding,
            other: None,
        };
        assert_eq!(held.remove_others(&space("b").scope, &only_x).len(), 1);
        assert!(held.read(&of("x")).is_some() && held.read(&of("y")).is_none());
        held.insert(&of("y"), entry(1));
        assert_eq!(held.remove_space(&space("b").scope).len(), 3);
        assert_eq!((held.bytes(), held.len()), (2, 2));
        assert!(held.read(&of("x")).is_none() && held.read(&space("a")).is_some());
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
