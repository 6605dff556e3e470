//! Windows: of a document that was cut into windows, each is shown without what those beside it show (AMP item 84).

use crate::candidate::Candidate;
use crate::overlap;
use std::collections::HashMap;
use std::ops::Range;

/// Windows of one document repeat each other only where they are this near.
const WINDOWS_APART: u64 = 2;
/// Bytes that are compared: many times what windows have that stand where they should, and an end to thousands at one place.
const COMPARED: usize = 1 << 28;

/// The windows that are shown as a whole.
pub(super) struct Windows<'a> {
    documents: HashMap<Document<'a>, Vec<Window<'a>>>,
    /// Bytes that may still be compared.
    left: usize,
}

/// Session, source and speaker.
type Document<'a> = (u64, &'a str, &'a str);

struct Window<'a> {
    position: u64,
    text: &'a str,
    /// Its place among the chosen.
    place: usize,
}

impl Default for Windows<'_> {
    fn default() -> Self {
        Self {
            documents: HashMap::new(),
            left: COMPARED,
        }
    }
}

impl<'a> Windows<'a> {
    pub(super) fn insert(&mut self, candidate: &Candidate<'a>, place: usize) {
        let window = Window {
            position: candidate.position,
            text: candidate.text,
            place,
        };
        let windows = self.documents.entry(document(candidate)).or_default();
        windows.push(window);
    }

    /// The bytes of a candidate that none of those beside it in its session shows; the place of one that shows all of them, if one does.
    pub(super) fn untold(&mut self, candidate: &Candidate<'a>) -> Result<Range<usize>, usize> {
        let text = candidate.text;
        let mut untold = 0..text.len();
        let windows = self.documents.get(&document(candidate));
        let is_near =
            |window: &&Window<'_>| window.position.abs_diff(candidate.position) <= WINDOWS_APART;
        for window in windows.into_iter().flatten().filter(is_near) {
            let Some(left) = self.left.checked_sub(text.len() + window.text.len()) else {
                break;
            };
            self.left = left;
            let rest = overlap::rest(text, window.text);
            untold = untold.start.max(rest.start)..untold.end.min(rest.end);
            if untold.is_empty() && !text.is_empty() {
                return Err(window.place);
            }
        }
        Ok(untold)
    }
}

fn document<'a>(candidate: &Candidate<'a>) -> Document<'a> {
    (candidate.session, candidate.source, candidate.speaker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparing_windows_comes_to_an_end() {
        let text = "The harbour and its ships, of which there are many, and the town.";
        let window = Candidate {
            text,
            ..Candidate::default()
        };
        let mut windows = Windows::default();
        windows.insert(&window, 7);
        assert_eq!(windows.untold(&window), Err(7));
        windows.left = 3 * text.len();
        assert_eq!(windows.untold(&window), Err(7));
        assert_eq!(windows.untold(&window), Ok(0..text.len()));
    }
}
