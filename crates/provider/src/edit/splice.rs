//! Changes of a text by place: what is put in, what is taken out, and the commas between.

use super::Inapplicable;
use crate::layout::List;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Changes that are collected and then made at once.
#[derive(Default)]
pub(crate) struct Splices<'l> {
    replaced: Vec<(Range<usize>, String)>,
    /// By where the list begins, so that an inner list comes after the one around it.
    lists: BTreeMap<usize, ListChange<'l>>,
}

struct ListChange<'l> {
    list: &'l List,
    /// Before the item of this index.
    inserted: BTreeMap<usize, Vec<String>>,
    removed: BTreeSet<usize>,
}

impl<'l> Splices<'l> {
    pub(crate) fn replace(&mut self, range: Range<usize>, with: String) {
        self.replaced.push((range, with));
    }

    /// Puts an item before the one at `index`, after those that were put there before it.
    pub(crate) fn insert(&mut self, list: &'l List, index: usize, item: String) {
        let change = self.change(list);
        change.inserted.entry(index).or_default().push(item);
    }

    pub(crate) fn remove(&mut self, list: &'l List, index: usize) {
        self.change(list).removed.insert(index);
    }

    fn change(&mut self, list: &'l List) -> &mut ListChange<'l> {
        self.lists
            .entry(list.range.start)
            .or_insert_with(|| ListChange {
                list,
                inserted: BTreeMap::new(),
                removed: BTreeSet::new(),
            })
    }

    /// The text with all changes made.
    pub(crate) fn into_bytes(self, text: &str) -> Result<Vec<u8>, Inapplicable> {
        let mut all = self.replaced;
        // Inner lists first: where both put something at one place, the inner one's belongs before the end of the outer one's item.
        for change in self.lists.values().rev() {
            change.splices(&mut all);
        }
        // Stable, so that what is put in at one place keeps its order; it comes before what replaces the bytes there.
        all.sort_by_key(|(range, _)| (range.start, range.end));
        let added: usize = all.iter().map(|(_, with)| with.len()).sum();
        let mut out = String::with_capacity(text.len() + added);
        let mut cursor = 0;
        for (range, with) in all {
            if range.start < cursor {
                return Err(Inapplicable::Conflict);
            }
            out.push_str(&text[cursor..range.start]);
            out.push_str(&with);
            cursor = range.end;
        }
        out.push_str(&text[cursor..]);
        Ok(out.into_bytes())
    }
}

impl ListChange<'_> {
    fn splices(&self, out: &mut Vec<(Range<usize>, String)>) {
        let Range { start, end } = self.list.range;
        if self.list.is_bare() {
            out.push((start..start, "[".to_owned()));
            self.changes(out);
            out.push((end..end, "]".to_owned()));
        } else {
            self.changes(out);
        }
    }

    fn changes(&self, out: &mut Vec<(Range<usize>, String)>) {
        let items = &self.list.items;
        let kept: Vec<usize> = (0..items.len())
            .filter(|index| !self.removed.contains(index))
            .collect();
        let Some(first) = kept.first() else {
            let inner = match (items.first(), items.last()) {
                (Some(first), Some(last)) => first.start..last.end,
                _ => self.list.range.start + 1..self.list.range.start + 1,
            };
            let joined: Vec<&str> = self
                .inserted
                .values()
                .flatten()
                .map(String::as_str)
                .collect();
            out.push((inner, joined.join(",")));
            return;
        };
        self.removals(*first, out);
        for (index, inserted) in &self.inserted {
            match kept.iter().find(|kept| *kept >= index) {
                Some(next) => {
                    let at = items[*next].start;
                    let text = inserted
                        .iter()
                        .fold(String::new(), |text, item| text + item + ",");
                    out.push((at..at, text));
                }
                None => {
                    let at = items[items.len() - 1].end;
                    let text = inserted
                        .iter()
                        .fold(String::new(), |text, item| text + "," + item);
                    out.push((at..at, text));
                }
            }
        }
    }

    /// What is removed goes with the comma before it; at the beginning, with the one after it.
    fn removals(&self, first_kept: usize, out: &mut Vec<(Range<usize>, String)>) {
        let items = &self.list.items;
        if first_kept > 0 {
            out.push((items[0].start..items[first_kept].start, String::new()));
        }
        for index in self.removed.range(first_kept..) {
            if *index < items.len() {
                let gone = items[index - 1].end..items[*index].end;
                out.push((gone, String::new()));
            }
        }
    }
}
