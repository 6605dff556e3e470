//! Handles: what a prompt calls the things that it shows, by their place in the list ("T3" is the third turn). A reply can only
//! name what was shown; ids of the store never travel.

use memfleet_domain::Timestamp;
use memfleet_domain::ids::TurnId;
use serde::{Serialize, Serializer};

/// A turn as prompts show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// Which it is.
    #[serde(skip)]
    pub id: TurnId,
    /// Event time, else recorded time.
    pub said_at: Timestamp,
    /// Who spoke.
    pub speaker: String,
    /// Its searchable text.
    pub text: String,
}

impl From<&memfleet_domain::turn::Turn> for Turn {
    fn from(turn: &memfleet_domain::turn::Turn) -> Self {
        Self {
            id: turn.accepted.id,
            said_at: turn.accepted.effective_time(),
            speaker: turn.accepted.speaker.to_string(),
            text: turn.accepted.content.searchable_text(),
        }
    }
}

impl Turn {
    /// The first `most` characters of a turn.
    pub fn clipped(turn: &memfleet_domain::turn::Turn, most: usize) -> Self {
        let mut shown = Self::from(turn);
        if let Some((end, _)) = shown.text.char_indices().nth(most) {
            shown.text.truncate(end);
        }
        shown
    }
}

/// Where in a list the thing with this handle is.
pub fn place<T>(list: &[T], letter: char, handle: &str) -> Option<usize> {
    let bare = handle.trim().trim_matches(['[', ']']);
    let number: usize = bare.strip_prefix(letter)?.parse().ok()?;
    let place = number.checked_sub(1)?;
    (place < list.len()).then_some(place)
}

/// The thing with this handle.
pub fn named<'a, T>(list: &'a [T], letter: char, handle: &str) -> Option<&'a T> {
    place(list, letter, handle).map(|place| &list[place])
}

#[derive(Serialize)]
struct Handled<'a, T> {
    id: String,
    #[serde(flatten)]
    item: &'a T,
}

fn handled<T: Serialize, S: Serializer>(
    letter: char,
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let numbered = list.iter().enumerate();
    serializer.collect_seq(numbered.map(|(place, item)| Handled {
        id: format!("{letter}{}", place + 1),
        item,
    }))
}

/// `T1`, `T2`, …: turns.
pub(crate) fn turns<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    handled('T', list, to)
}

/// `F1`, …: facts that are known, or fragments.
pub(crate) fn facts<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    handled('F', list, to)
}

/// `N1`, …: facts that are new.
pub(crate) fn news<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    handled('N', list, to)
}

/// `C1`, …: candidates of a search.
pub(crate) fn candidates<T: Serialize, S: Serializer>(
    list: &[T],
    to: S,
) -> Result<S::Ok, S::Error> {
    handled('C', list, to)
}

/// `S1`, …: stories.
pub(crate) fn stories<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    handled('S', list, to)
}

/// `X1`, …: conflicts.
pub(crate) fn conflicts<T: Serialize, S: Serializer>(list: &[T], to: S) -> Result<S::Ok, S::Error> {
    handled('X', list, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_means_its_place_and_nothing_that_was_not_shown() {
        let list = ["a", "b"];
        assert_eq!(named(&list, 'T', "T2"), Some(&"b"));
        assert_eq!(named(&list, 'T', " [T1] "), Some(&"a"));
        for unknown in [
            "T0",
            "T3",
            "F1",
            "t1",
            "1",
            "",
            "T",
            "T-1",
            "T99999999999999999999",
            "all",
        ] {
            assert_eq!(named(&list, 'T', unknown), None, "{unknown}");
        }
    }
}
