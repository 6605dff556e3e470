//! The head of an item: who said it, what it is where that is not plain, and what became of it.
//!
//! `Speaker [label, label] (mark)`. Names hold neither brackets, parentheses, colons nor commas,
//! and a mark no parentheses, so neither forges a part of it.

use super::dates::local;
use crate::candidate::{Candidate, Granularity, Outdated, Trust, Validity};
use crate::options::Options;
use crate::sanitise;

/// Stands for a name that is not known.
pub(super) const NOBODY: &str = "?";

/// The head of an item, without its key and the colon.
pub(crate) fn head(candidate: &Candidate<'_>, options: &Options<'_>) -> String {
    let name = sanitise::speaker(candidate.speaker, options.enclosure.nonce());
    let labels = labels(candidate, options).join(", ");
    let mark = mark(candidate, options);
    match (name.is_empty(), labels.is_empty()) {
        (true, true) => format!("{NOBODY}{mark}"),
        (true, false) => format!("[{labels}]{mark}"),
        (false, true) => format!("{name}{mark}"),
        (false, false) => format!("{name} [{labels}]{mark}"),
    }
}

fn labels(candidate: &Candidate<'_>, options: &Options<'_>) -> Vec<String> {
    let template = options.template;
    let mut labels = Vec::new();
    if template.shows_granularity && candidate.granularity != Granularity::Verbatim {
        labels.push(candidate.granularity.word().to_owned());
    }
    if template.shows_trust && !matches!(candidate.trust, Trust::User | Trust::Assistant) {
        labels.push(candidate.trust.word().to_owned());
    }
    if template.shows_source && !candidate.source.is_empty() {
        let source = sanitise::name(candidate.source, options.enclosure.nonce());
        labels.push(format!("via {source}"));
    }
    if candidate.superseded_by.is_some() {
        labels.push("superseded".to_owned());
    }
    if template.shows_validity || candidate.superseded_by.is_some() {
        labels.extend(validity(candidate.valid, options));
    }
    labels
}

/// `2023-05-08 to 2024-03-01`, `since 2023-05-08` or `until 2024-03-01`.
fn validity(valid: Validity, options: &Options<'_>) -> Option<String> {
    let day = |time: Option<_>| time.and_then(|time| local(time, options));
    match (day(valid.from), day(valid.until)) {
        (None, None) => None,
        (Some(from), None) => Some(format!("since {from}")),
        (None, Some(until)) => Some(format!("until {until}")),
        (Some(from), Some(until)) => Some(format!("{from} to {until}")),
    }
}

fn mark(candidate: &Candidate<'_>, options: &Options<'_>) -> String {
    match candidate.outdated {
        None => String::new(),
        Some(Outdated::Wrong) => " (this was wrong)".to_owned(),
        Some(Outdated::Corrected(text)) => {
            let text = sanitise::sentence(text, options.enclosure.nonce());
            format!(" (corrected: {text})")
        }
        Some(Outdated::Since(time)) => local(time, options)
            .map_or(" (no longer so)".to_owned(), |day| {
                format!(" (no longer so since {day})")
            }),
    }
}
