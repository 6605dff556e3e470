//! Texts of the turns that an explanation names. An answer has none of what was left out, since records keep it longer than turns.

use std::collections::{BTreeMap, HashMap};

use memfleet_domain::FaultKind;
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_ports::assembly::Assembled;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::PageRequest;
use memfleet_rpc::limits;

use super::explaining::LISTED;
use crate::cli::Handle;
use crate::cli::exit::Error;

/// Texts by turn; of a turn that was forgotten meanwhile there is none.
#[derive(Debug, Default)]
pub struct Texts(HashMap<TurnId, String>);

impl Texts {
    /// Reads the texts of the items and of the dropped turns that are listed, with one call for each space; none where the key may
    /// not list turns.
    pub async fn of(handle: &Handle, assembled: &Assembled) -> Result<Self, Error> {
        let mut texts = HashMap::new();
        for (space, turns) in named(assembled) {
            let page = PageRequest {
                limit: turns.len() as u32,
                after: None,
            };
            let filter = TurnFilter {
                turns,
                include_replaced: true,
                ..TurnFilter::default()
            };
            let call = handle.call();
            let listed = handle.memory.list(&call, space, &filter, page, &[]).await;
            let turns = match listed {
                Ok(page) => page.items,
                Err(fault) if fault.kind == FaultKind::PermissionDenied => Vec::new(),
                Err(fault) => return Err(fault.into()),
            };
            let text = |turn: memfleet_domain::turn::Turn| {
                let text = turn.accepted.content.searchable_text();
                (turn.accepted.id, text)
            };
            texts.extend(turns.into_iter().map(text));
        }
        Ok(Self(texts))
    }

    /// The text of one turn.
    pub fn of_turn(&self, turn: TurnId) -> Option<&str> {
        self.0.get(&turn).map(String::as_str)
    }

    /// Texts that are known already.
    #[cfg(test)]
    pub fn known(texts: impl IntoIterator<Item = (TurnId, String)>) -> Self {
        Self(texts.into_iter().collect())
    }
}

/// Turns of an answer by space, as many as one call may name.
fn named(assembled: &Assembled) -> BTreeMap<&SpaceId, Vec<TurnId>> {
    let items = assembled.items.iter();
    let items = items.map(|item| (item.space.as_ref(), item.turn()));
    let dropped = assembled.dropped.iter().take(LISTED);
    let dropped = dropped.map(|it| (it.space.as_ref(), it.turn()));
    let mut named: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (space, turn) in dropped.chain(items) {
        if let Some((space, turn)) = space.zip(turn) {
            let turns = named.entry(space).or_default();
            if turns.len() < limits::VALUES {
                turns.push(turn);
            }
        }
    }
    named
}
