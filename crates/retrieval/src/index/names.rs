//! Interned text with use counts: a name lives as long as something uses it, so that what is forgotten leaves no word behind.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// Text ↔ small number. Numbers of names that fell out of use are given out again.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<Box<str>>,
    uses: Vec<u32>,
    free: Vec<u32>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    text_bytes: usize,
}

impl Names {
    /// The number of a name, used once more.
    pub(crate) fn acquire(&mut self, name: &str) -> u32 {
        let id = self.get(name).unwrap_or_else(|| self.add(name));
        self.uses[id as usize] += 1;
        id
    }

    /// Ends one use; true when it was the last one and the name is gone.
    pub(crate) fn release(&mut self, id: u32) -> bool {
        let uses = &mut self.uses[id as usize];
        *uses -= 1;
        if *uses > 0 {
            return false;
        }
        let name = std::mem::take(&mut self.names[id as usize]);
        if let Ok(entry) = self
            .table
            .find_entry(self.hasher.hash_one(&*name), |&other| other == id)
        {
            entry.remove();
        }
        self.text_bytes -= name.len();
        self.free.push(id);
        true
    }

    /// The number of a name that is in use.
    pub(crate) fn get(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        self.table
            .find(hash, |&id| &*self.names[id as usize] == name)
            .copied()
    }

    /// The text of a number that is in use.
    pub(crate) fn name(&self, id: u32) -> &str {
        &self.names[id as usize]
    }

    /// How many names are in use.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// How often a number is in use.
    pub(crate) fn uses(&self, id: u32) -> u32 {
        self.uses[id as usize]
    }

    /// The names in use, in no meaningful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &str)> {
        (0..)
            .zip(&self.names)
            .zip(&self.uses)
            .filter_map(|((id, name), &uses)| (uses > 0).then_some((id, &**name)))
    }

    /// Heap bytes.
    pub(crate) fn bytes(&self) -> usize {
        let slot = size_of::<Box<str>>() + size_of::<u32>();
        // An allocation takes about 16 bytes beside the text.
        self.text_bytes
            + self.names.len() * 16
            + self.names.capacity() * slot
            + self.table.allocation_size()
    }

    fn add(&mut self, name: &str) -> u32 {
        let id = if let Some(id) = self.free.pop() {
            self.names[id as usize] = name.into();
            id
        } else {
            self.names.push(name.into());
            self.uses.push(0);
            self.names.len() as u32 - 1
        };
        let hash = self.hasher.hash_one(name);
        let (names, hasher) = (&self.names, &self.hasher);
        self.table
            .insert_unique(hash, id, |&id| hasher.hash_one(&*names[id as usize]));
        self.text_bytes += name.len();
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_last_use_and_its_number_is_given_out_again() {
        let mut names = Names::default();
        let ada = names.acquire("Ada");
        assert_eq!(names.acquire("Ada"), ada);
        let ben = names.acquire("Ben");
        assert!(!names.release(ada));
        assert!(names.release(ada));
        assert_eq!(names.get("Ada"), None);
        assert_eq!(names.acquire("Cleo"), ada);
        assert_eq!(names.name(ada), "Cleo");
        assert_eq!(names.get("Ben"), Some(ben));
        assert_eq!(names.iter().count(), 2);
    }
}
