//! Rendering: sessions in the order of time, headings by day, one line a turn, the enclosure.
//!
//! ```text
//! <memory nonce="…">
//! 2023-05-08
//! Caroline: I went to the group.
//!  Continuation lines are indented.
//! </memory nonce="…">
//! ```
//! Only the renderer writes at the start of a line, so what stands there is a heading, a speaker, or the enclosure. What is no longer
//! so is marked between speaker and text: `Caroline (no longer so since 2023-06-01): I live in Rome.`

use crate::candidate::{Candidate, Outdated};
use crate::options::Options;
use crate::sanitise;
use chrono::{DateTime, NaiveDate, Utc};
use std::collections::HashMap;

/// A turn that will be shown, as its candidate and its rendered lines.
pub(crate) struct Line<'c> {
    pub(crate) candidate: &'c Candidate<'c>,
    pub(crate) text: &'c str,
}

/// What a turn's heading depends on; turns with the same key stand under one heading.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HeadingKey {
    session: Option<u64>,
    day: Option<NaiveDate>,
}

/// The lines of a turn: `Speaker: text`, each ended by a line feed. `None` if nothing of the text is visible.
pub(crate) fn line(
    candidate: &Candidate<'_>,
    shown: &str,
    options: &Options<'_>,
) -> Option<String> {
    let body = sanitise::body(shown, options.nonce);
    (!body.is_empty()).then(|| {
        let speaker = sanitise::name(candidate.speaker, options.nonce);
        format!("{speaker}{}: {body}\n", mark(candidate, options))
    })
}

fn mark(candidate: &Candidate<'_>, options: &Options<'_>) -> String {
    match candidate.outdated {
        None => String::new(),
        Some(Outdated::Wrong) => " (this was wrong)".to_owned(),
        Some(Outdated::Corrected(text)) => {
            format!(" (corrected: {})", sanitise::name(text, options.nonce))
        }
        Some(Outdated::ChangedBy(time)) => local(time, options)
            .map_or(" (changed since)".to_owned(), |day| {
                format!(" (changed by {day})")
            }),
        Some(Outdated::Since(time)) => local(time, options)
            .map_or(" (no longer so)".to_owned(), |day| {
                format!(" (no longer so since {day})")
            }),
    }
}

/// The heading that a turn stands under: sessions of the same day share it.
pub(crate) fn heading_key(candidate: &Candidate<'_>, options: &Options<'_>) -> HeadingKey {
    let day = day(candidate, options);
    HeadingKey {
        session: day.is_none().then_some(candidate.session),
        day,
    }
}

fn day(candidate: &Candidate<'_>, options: &Options<'_>) -> Option<NaiveDate> {
    local(candidate.event_time?, options)
}

/// The day of an instant in the zone of the block.
fn local(time: DateTime<Utc>, options: &Options<'_>) -> Option<NaiveDate> {
    // `naive_local` would overflow at the ends of the calendar.
    let offset = chrono::Offset::fix(&chrono::TimeZone::offset_from_utc_datetime(
        &options.time_zone,
        &time.naive_utc(),
    ));
    Some(time.naive_utc().checked_add_offset(offset)?.date())
}

/// The heading over the first turn of a group, with its line end; a blank line where there is no date to show.
pub(crate) fn heading(first: &Candidate<'_>, options: &Options<'_>) -> String {
    day(first, options).map_or_else(|| "\n".to_owned(), |day| format!("{day}\n"))
}

/// What stands before and after the turns.
pub(crate) fn enclosure(options: &Options<'_>) -> (String, String) {
    let (mut open, mut close) = (String::new(), String::new());
    if let Some(nonce) = options.nonce {
        open = format!("<memory nonce=\"{}\">\n", nonce.as_str());
        close = format!("</memory nonce=\"{}\">", nonce.as_str());
    }
    (open, close)
}

/// The block's text; sorts the turns into the order in which they stand in it.
pub(crate) fn block<'c, L: AsRef<Line<'c>>>(lines: &mut [L], options: &Options<'_>) -> String {
    sort(lines);
    let (open, close) = enclosure(options);
    let mut out = open;
    let mut previous: Option<HeadingKey> = None;
    for line in lines.iter().map(AsRef::as_ref) {
        let key = heading_key(line.candidate, options);
        let first = previous.is_none();
        if previous != Some(key) && !(first && key.day.is_none()) {
            out.push_str(&heading(line.candidate, options));
        }
        out.push_str(line.text);
        previous = Some(key);
    }
    if close.is_empty() {
        out.truncate(out.trim_end_matches('\n').len());
    }
    out.push_str(&close);
    out
}

/// Sessions by the time of their first turn shown, turns by their place in the session.
fn sort<'c, L: AsRef<Line<'c>>>(lines: &mut [L]) {
    let mut firsts = HashMap::new();
    for line in lines.iter().map(AsRef::as_ref) {
        let time = line.candidate.effective_time();
        let first = firsts.entry(line.candidate.session).or_insert(time);
        *first = time.min(*first);
    }
    lines.sort_by(|left, right| {
        let (left, right) = (left.as_ref().candidate, right.as_ref().candidate);
        let sessions = firsts[&left.session].cmp(&firsts[&right.session]);
        sessions.then_with(|| left.by_place(right))
    });
}
