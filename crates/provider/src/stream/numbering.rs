//! The numbers of a chat completion's calls, by which its chunks belong together.
//!
//! Some servers leave them out. Their calls count in the order in which they appear: a call has one id and one name, so a second of either
//! begins the next; what has neither continues the last, and what has an id that was seen the call of that id.

use crate::json::{Node, Object};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// Numbers calls in the order of their chunks.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    begun: BTreeMap<u64, Begun>,
    ids: HashMap<String, u64>,
    /// The call of the last chunk.
    last: u64,
}

/// What was said of a call so far.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    has_id: bool,
    is_named: bool,
}

impl Numbering {
    /// The number of the call that an element of `tool_calls` is of.
    pub(super) fn of(&mut self, call: &Object<'_>) -> u64 {
        let id = call.text("id").filter(|id| !id.is_empty());
        let is_named = name(call).is_some();
        let number = call.get("index").and_then(Node::unsigned);
        let number = number.unwrap_or_else(|| self.by_order(id.as_deref(), is_named));
        let begun = self.begun.entry(number).or_default();
        begun.has_id |= id.is_some();
        begun.is_named |= is_named;
        if let Some(id) = id {
            self.ids.insert(id.into_owned(), number);
        }
        self.last = number;
        number
    }

    fn by_order(&self, id: Option<&str>, is_named: bool) -> u64 {
        let known = id.and_then(|id| self.ids.get(id)).copied();
        let number = known.unwrap_or(self.last);
        let begun = self.begun.get(&number).copied().unwrap_or_default();
        let other = id.is_some() && known.is_none() && begun.has_id;
        if other || is_named && begun.is_named {
            let greatest = self.begun.last_key_value();
            return greatest.map_or(0, |(number, _)| number.saturating_add(1));
        }
        number
    }
}

/// The name of a call where a chunk says it. A function that is no object says none.
pub(super) fn name<'a>(call: &Object<'a>) -> Option<Cow<'a, str>> {
    let function = call.child("function").ok().flatten();
    let name = function.and_then(|function| function.text("name"));
    name.filter(|name| !name.is_empty())
}
