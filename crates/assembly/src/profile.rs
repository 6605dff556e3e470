//! The section *who this is*: what holds of the person who speaks, at the beginning of a block. It
//! depends on nothing of the prompt, so the cache of a provider keeps it from call to call.

use crate::duplicates::Said;
use crate::options::{Enclosure, Nonce, Options};
use crate::render;
use chrono::{DateTime, Utc};
use std::collections::HashSet;

/// A statement about the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileLine<'a> {
    /// Who said it; rendered before the text.
    pub speaker: &'a str,
    /// When it was said, if known; rendered before the text, where the template shows dates.
    pub event_time: Option<DateTime<Utc>>,
    /// Verbatim words, in one line.
    pub text: &'a str,
}

/// A rendered section. Without a line the text is empty and the counts are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSection {
    /// Beginning of the block, without a line end behind it.
    pub text: String,
    /// Tokens of `text`, counted as a whole.
    pub tokens: usize,
    /// Tokens by which the text before it grows, the separator included, if nothing follows it.
    pub added_tokens: usize,
    /// Nonce that encloses it; empty where nothing does.
    pub nonce: String,
    /// Lines that it shows, in its order.
    pub shown: Vec<ShownLine>,
}

/// A line that a section shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownLine {
    /// Its place among the lines that there were.
    pub line: usize,
    /// Its tokens, counted alone.
    pub tokens: usize,
}

impl ProfileSection {
    /// The section as [`Options::lead`] of the rest of its block.
    pub fn lead(&self) -> String {
        let end = match (self.text.is_empty(), self.nonce.is_empty()) {
            (true, _) => "",
            (false, true) => "\n\n",
            (false, false) => "\n",
        };
        format!("{}{end}", self.text)
    }

    /// The key of a line, counted from 1, where the template shows keys.
    pub fn key(number: usize) -> String {
        format!("p{number}")
    }
}

/// The section with as many of the lines, the most worth first, as fit `most` tokens and the budget
/// of the options. A line that does not fit gives way to shorter ones behind it, and copies by one
/// speaker count once. `nonce` makes the nonce of the lines that are shown, given their places; it
/// takes the place of that of the options.
pub fn profile_section(
    lines: &[ProfileLine<'_>],
    most: usize,
    options: &Options<'_>,
    nonce: impl Fn(&[usize]) -> String,
) -> ProfileSection {
    let most = most.min(options.budget_tokens);
    let mut places = fitting(lines, most, options);
    while !places.is_empty() {
        let nonce = match options.enclosure {
            Enclosure::Plain => String::new(),
            _ => nonce(&places),
        };
        let section = rendered(lines, &places, nonce, options);
        let is_added = section.added_tokens <= options.budget_tokens;
        if section.tokens <= most && is_added {
            return section;
        }
        places.pop();
    }
    ProfileSection::default()
}

/// Places of lines that fit by the sum of their counts.
fn fitting(lines: &[ProfileLine<'_>], most: usize, options: &Options<'_>) -> Vec<usize> {
    let (open, close) = render::profile_frame(options);
    let mut room = most.saturating_sub(options.tokenizer.count(&[open, close].concat()));
    let (mut said, mut places) = (HashSet::new(), Vec::new());
    for (place, line) in lines.iter().enumerate() {
        if !said.insert(Said::of(line.speaker, line.text)) {
            continue;
        }
        let Some(text) = render::profile_line(places.len() + 1, line, options) else {
            continue;
        };
        if let Some(left) = room.checked_sub(options.tokenizer.count(&text)) {
            room = left;
            places.push(place);
        }
    }
    places
}

fn rendered(
    lines: &[ProfileLine<'_>],
    places: &[usize],
    nonce: String,
    options: &Options<'_>,
) -> ProfileSection {
    let enclosure = options.enclosure.with(Nonce::new(&nonce));
    let options = &Options {
        enclosure,
        ..options.clone()
    };
    let (mut text, close) = render::profile_frame(options);
    let mut shown = Vec::with_capacity(places.len());
    for &line in places {
        let rendered = render::profile_line(shown.len() + 1, &lines[line], options);
        if let Some(rendered) = rendered {
            let tokens = options.tokenizer.count(&rendered);
            shown.push(ShownLine { line, tokens });
            text.push_str(&rendered);
        }
    }
    if close.is_empty() {
        text.truncate(text.trim_end_matches('\n').len());
    }
    text.push_str(&close);
    let place = options.place;
    let addition = [place.separator, &text].concat();
    let tokens = options.tokenizer.count(&text);
    let added_tokens = options.tokenizer.added(place.before, &addition);
    let is_enclosed = enclosure != Enclosure::Plain;
    ProfileSection {
        text,
        tokens,
        added_tokens,
        nonce: if is_enclosed { nonce } else { String::new() },
        shown,
    }
}

#[cfg(test)]
mod tests;
