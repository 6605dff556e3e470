//! Facts, episodes, narratives and changes as people and programs read them.

use std::borrow::Cow;

use memfleet_domain::derivation::{Body, ChangeKind, Derivation, Origin};
use memfleet_domain::time::TimeRange;
use memfleet_ports::knowledge::Recorded;
use serde_json::{Value, json};

use super::{Palette, printable, time};

/// What is derived as JSON, flat.
pub fn derivation_json(derivation: &Derivation) -> Value {
    let mut value = match &derivation.body {
        Body::Fact(fact) => json!({
            "kind": "fact",
            "text": fact.text,
            "about": fact.claim.subject,
            "attribute": fact.claim.attribute,
            "value": fact.claim.value,
            "negated": fact.is_negated(),
            "confidence": super::exact(&fact.confidence),
            "statement": fact.statement.as_ref().map(|labels| json!({
                "kind": labels.kind.name(),
                "owner": labels.owner.name(),
                "negated": super::exact(&labels.negated),
                "keep": super::exact(&labels.keep),
                "kept": labels.kept,
            })),
            "line": fact.line.as_ref().map(|line| json!({
                "text": line.text,
                "probability": super::exact(&line.probability),
            })),
            "names": fact.names.iter().map(|name| json!({
                "text": name.text,
                "kind": name.kind.name(),
            })).collect::<Vec<_>>(),
            "topics": fact.topics,
        }),
        Body::Episode(episode) => json!({
            "kind": "episode",
            "title": episode.title,
            "summary": episode.summary,
            "session": episode.session,
            "participants": episode.participants,
            "span": episode.span,
            "trigger": episode.trigger,
        }),
        Body::Fragment(fragment) => json!({
            "kind": "fragment",
            "narrative": fragment.narrative,
            "subplot": fragment.subplot,
            "headline": fragment.headline,
            "session": fragment.session,
            "span": fragment.span,
        }),
        Body::Narrative(narrative) => json!({
            "kind": "narrative",
            "headline": narrative.headline,
            "owner": narrative.owner,
            "characters": narrative.characters,
            "subplots": narrative.subplots,
            "momentum": narrative.momentum,
        }),
        Body::Identity(identity) => json!({
            "kind": "identity",
            "entity": identity.entity.name,
            "other": identity.other.name,
            "same": identity.same,
        }),
    };
    value["id"] = json!(derivation.id);
    value["version"] = json!(derivation.version);
    value["turns"] = json!(derivation.turns);
    value["valid"] = json!(derivation.valid);
    value["known"] = json!(derivation.known);
    value["withdrawn"] = json!(derivation.is_withdrawn());
    value["extractor"] = match &derivation.origin {
        Origin::Extracted(extractor) => json!(extractor),
        Origin::Corrected => Value::Null,
    };
    value["change"] = json!(derivation.change);
    value["succeeded_by"] = json!(derivation.succeeded_by);
    value
}

/// A change as JSON, with what it wrote.
pub fn change_json(recorded: &Recorded) -> Value {
    let change = &recorded.change;
    json!({
        "id": change.id,
        "kind": change.kind,
        "at": change.at,
        "reason": change.reason,
        "conflict": change.conflict,
        "reverts": change.reverts,
        "reverted_by": recorded.reverted_by,
        "wrote": recorded.wrote.iter().map(derivation_json).collect::<Vec<_>>(),
    })
}

/// Words of a fact's line in a profile, or of anything else that is derived.
pub fn listed(derivation: &Derivation) -> Cow<'_, str> {
    match &derivation.body {
        Body::Fact(fact) => Cow::Borrowed(fact.listed()),
        _ => said(derivation),
    }
}

/// What is derived, in a line.
pub fn said(derivation: &Derivation) -> Cow<'_, str> {
    let words = match &derivation.body {
        Body::Fact(fact) => &fact.text,
        Body::Episode(episode) => &episode.title,
        Body::Fragment(fragment) => &fragment.headline,
        Body::Narrative(narrative) => &narrative.headline,
        Body::Identity(identity) => {
            let (entity, other) = (&identity.entity.name, &identity.other.name);
            let not = if identity.same { "" } else { "not " };
            return Cow::Owned(format!("{entity} is {not}the same as {other}"));
        }
    };
    Cow::Borrowed(words)
}

/// When it holds: `since …`, `… to …`, `never`.
pub fn held(derivation: &Derivation) -> String {
    if derivation.is_withdrawn() {
        return "never".to_owned();
    }
    span(derivation.valid)
}

/// The same of an interval.
pub fn span(TimeRange { start, end }: TimeRange) -> String {
    match (start, end) {
        (None, None) => "always".to_owned(),
        (Some(start), None) => format!("since {}", time(start)),
        (None, Some(end)) => format!("until {}", time(end)),
        (Some(start), Some(end)) => format!("{} to {}", time(start), time(end)),
    }
}

/// A change as a heading and a line for each version that it wrote.
pub fn change_lines(palette: Palette, recorded: &Recorded) -> String {
    let change = &recorded.change;
    let kind = match change.kind {
        ChangeKind::Derived => "derived",
        ChangeKind::Updated => "updated",
        ChangeKind::Corrected => "corrected",
        ChangeKind::Reverted => "reverted",
        ChangeKind::Rebuilt => "rebuilt",
    };
    let undone = match recorded.reverted_by {
        Some(by) => palette.dim(&format!("  (undone by {by})")),
        None => String::new(),
    };
    let heading = format!(
        "{}  {}  {}  {}{undone}",
        change.id,
        time(change.at),
        palette.strong(kind),
        printable(&change.reason)
    );
    let wrote = recorded.wrote.iter().map(|derivation| {
        let (id, version) = (derivation.id, derivation.version);
        let text = printable(&said(derivation)).replace('\n', " ");
        let held = palette.dim(&held(derivation));
        format!("    {id} v{version}  {text}  {held}")
    });
    let lines: Vec<_> = [heading].into_iter().chain(wrote).collect();
    lines.join("\n")
}
