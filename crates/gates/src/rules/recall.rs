//! References to memory: a phrase of the lists anywhere in the utterance. To be wrong costs one search, so nothing is read around it.

use super::Hit;
use super::lexicon::Lexicon;
use super::tokens::Tokens;

/// Bytes that are read at the beginning of a text, and at the end of a longer one, where questions stand.
const READ: usize = 1024;

/// The first reference to memory.
pub fn find(lexicon: &Lexicon, text: &str) -> Option<Hit> {
    if text.len() <= 2 * READ {
        return find_in(lexicon, text);
    }
    let head = &text[..text.floor_char_boundary(READ)];
    let tail = &text[text.ceil_char_boundary(text.len() - READ)..];
    find_in(lexicon, head).or_else(|| find_in(lexicon, tail))
}

fn find_in(lexicon: &Lexicon, text: &str) -> Option<Hit> {
    let tokens = Tokens::read(text).tokens;
    let ids = tokens
        .iter()
        .map(|token| lexicon.ids(token))
        .collect::<Vec<_>>();
    let mut found = (0..ids.len()).flat_map(|start| lexicon.recall.at(&ids, start));
    let (_, phrase) = found.next()?;
    Some(Hit {
        rule: format!("recall.{}", phrase.language),
        pattern: phrase.text.clone(),
    })
}
