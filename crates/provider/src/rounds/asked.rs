//! What a question is known again by.

use crate::digest;
use crate::tools::{Ask, Get, Search};
use std::collections::BTreeSet;

/// What an ask is known again by: its words without regard to case, blanks and punctuation, and its filters. The limit is left out, so that
/// "the same, but more" is no new question; ids count as a set.
pub(super) fn key(ask: &Ask) -> String {
    match ask {
        Ask::Search(search) => search_key(search),
        Ask::Get(Get { ids }) => {
            let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
            let parts: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes()).collect();
            digest::of("memfleet provider 2026 ids asked", &parts)
        }
    }
}

fn search_key(search: &Search) -> String {
    let time = |time: Option<chrono::DateTime<chrono::Utc>>| {
        time.map_or_else(String::new, |time| time.timestamp_micros().to_string())
    };
    let parts = [
        normalised(&search.query),
        time(search.time_from),
        time(search.time_to),
        search.session.clone().unwrap_or_default(),
        format!("{:?}", search.granularity.unwrap_or_default()),
    ];
    let parts: Vec<&[u8]> = parts.iter().map(String::as_bytes).collect();
    digest::of("memfleet provider 2026 query asked", &parts)
}

/// Words in lower case with single blanks between. Text without letters or digits stays as it is.
fn normalised(query: &str) -> String {
    let lower = query.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| {
            c.is_whitespace() || c.is_ascii_punctuation() || "?!。、，！？；：…“”„‘’«»".contains(c)
        })
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        return query.trim().to_owned();
    }
    words.join(" ")
}
