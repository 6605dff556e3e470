//! Derivations in their versions; of narratives see `narrative`.

use memfleet_domain::derivation::{Body, Derivation, Origin};
use memfleet_domain::episode::Episode;
use memfleet_domain::fact::{Claim, Clause, Draft, FactLine, FactName, StatementLabels};
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::TimeRange;

use super::time::time;
use super::{Checked, Fields};
use crate::proto;
use crate::proto::derived_memory::Kind;

impl Fields {
    /// Ids of turns.
    pub(super) fn turn_ids(
        &mut self,
        field: &str,
        ids: Vec<String>,
        limit: usize,
    ) -> Option<Vec<TurnId>> {
        self.each(field, ids, limit, |fields, id| {
            fields.id("", &id, "the id of a turn")
        })
    }

    /// An id that may be left out; `what` says which.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn optional_id<T: std::str::FromStr>(
        &mut self,
        field: &str,
        text: &str,
        what: &str,
    ) -> Option<Option<T>> {
        if text.is_empty() {
            return Some(None);
        }
        self.id(field, text, what).map(Some)
    }

    /// When something was so: unlike a range that is asked for it may be empty.
    pub(super) fn interval(
        &mut self,
        field: &str,
        range: Option<proto::TimeRange>,
    ) -> Option<TimeRange> {
        let range = range.unwrap_or_default();
        self.inside(field, |fields| {
            let start = fields.optional_time("start", range.start);
            let end = fields.optional_time("end", range.end);
            Some(TimeRange {
                start: start?,
                end: end?,
            })
        })
    }
}

pub(super) fn range(range: TimeRange) -> proto::TimeRange {
    proto::TimeRange {
        start: range.start.map(time),
        end: range.end.map(time),
    }
}

fn texts(ids: &[TurnId]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}

/// What is absent where it says nothing.
fn said(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl From<Clause> for proto::Clause {
    fn from(clause: Clause) -> Self {
        Self {
            pattern: proto::Pattern::from(clause.pattern).into(),
            subject: clause.subject,
            predicate: clause.predicate,
            object: clause.object.unwrap_or_default(),
            complement: clause.complement.unwrap_or_default(),
            negated: clause.negated,
        }
    }
}

impl Checked for proto::Clause {
    type Value = Clause;

    fn check(self, fields: &mut Fields) -> Option<Clause> {
        Some(Clause {
            pattern: fields.word("pattern", self.pattern)?,
            subject: self.subject,
            predicate: self.predicate,
            object: said(self.object),
            complement: said(self.complement),
            negated: self.negated,
        })
    }
}

impl From<StatementLabels> for proto::StatementLabels {
    fn from(labels: StatementLabels) -> Self {
        Self {
            kind: proto::StatementKind::from(labels.kind).into(),
            kind_probability: labels.kind_probability,
            owner: proto::StatementOwner::from(labels.owner).into(),
            owner_probability: labels.owner_probability,
            negated: labels.negated,
            keep: labels.keep,
            kept: labels.kept,
            ends: labels.ends,
        }
    }
}

impl Checked for proto::StatementLabels {
    type Value = StatementLabels;

    fn check(self, fields: &mut Fields) -> Option<StatementLabels> {
        Some(StatementLabels {
            kind: fields.word("kind", self.kind)?,
            kind_probability: fields.probability("kind_probability", self.kind_probability)?,
            owner: fields.word("owner", self.owner)?,
            owner_probability: fields.probability("owner_probability", self.owner_probability)?,
            negated: fields.probability("negated", self.negated)?,
            keep: fields.probability("keep", self.keep)?,
            kept: self.kept,
            ends: fields.probability("ends", self.ends)?,
            // They belong to the reader and are no part of the interface.
            vectors: None,
        })
    }
}

impl Checked for proto::Claim {
    type Value = Claim;

    fn check(self, _: &mut Fields) -> Option<Claim> {
        Some(Claim {
            subject: self.subject,
            attribute: self.attribute,
            value: self.value,
        })
    }
}

impl From<Derivation> for proto::DerivedMemory {
    fn from(derivation: Derivation) -> Self {
        let withdrawn = derivation.is_withdrawn();
        let Derivation {
            id,
            version,
            body,
            turns,
            valid,
            known,
            origin,
            change,
            succeeded_by,
        } = derivation;
        let kind = match body {
            Body::Fact(draft) => Kind::Fact(proto::Fact {
                id: id.to_string(),
                version,
                turn_ids: texts(&turns),
                valid: Some(range(valid)),
                known: Some(range(known)),
                withdrawn,
                extractor: match origin {
                    Origin::Extracted(extractor) => extractor,
                    Origin::Corrected => String::new(),
                },
                change_id: change.to_string(),
                succeeded_by: succeeded_by.map(|id| id.to_string()).unwrap_or_default(),
                ..said_by(*draft)
            }),
            Body::Episode(episode) => Kind::Episode(proto::Episode {
                id: id.to_string(),
                version,
                title: episode.title,
                summary: episode.summary,
                session: episode.session.into(),
                turn_ids: texts(&turns),
                participants: episode.participants.into_iter().map(Into::into).collect(),
                span: Some(range(episode.span)),
                trigger: episode
                    .trigger
                    .map(|trigger| proto::EpisodeTrigger::from(trigger).into())
                    .unwrap_or_default(),
                valid: Some(range(valid)),
                known: Some(range(known)),
                extractor: episode.extractor,
                change_id: change.to_string(),
            }),
            Body::Fragment(fragment) => Kind::Fragment(proto::Fragment {
                id: id.to_string(),
                version,
                narrative_id: fragment.narrative.to_string(),
                subplot: fragment.subplot,
                session: fragment.session.into(),
                headline: fragment.headline,
                turn_ids: texts(&turns),
                span: Some(range(fragment.span)),
                valid: Some(range(valid)),
                known: Some(range(known)),
                binder: fragment.binder,
                change_id: change.to_string(),
            }),
            Body::Narrative(narrative) => Kind::Narrative(proto::Narrative {
                id: id.to_string(),
                version,
                headline: narrative.headline,
                owner: narrative.owner.into(),
                characters: narrative.characters.into_iter().map(Into::into).collect(),
                subplots: narrative.subplots.into_iter().map(Into::into).collect(),
                momentum: proto::Momentum::from(narrative.momentum).into(),
                turn_ids: texts(&turns),
                valid: Some(range(valid)),
                known: Some(range(known)),
                author: narrative.author,
                change_id: change.to_string(),
            }),
            Body::Identity(identity) => Kind::Identity(proto::Identity {
                id: id.to_string(),
                version,
                entity: Some(identity.entity.into()),
                other: Some(identity.other.into()),
                same: identity.same,
                turn_ids: texts(&turns),
                valid: Some(range(valid)),
                known: Some(range(known)),
                change_id: change.to_string(),
            }),
        };
        Self { kind: Some(kind) }
    }
}

/// A message with what a draft says, and nothing of its version.
fn said_by(draft: Draft) -> proto::Fact {
    proto::Fact {
        text: draft.text,
        clause: draft.clause.map(Into::into),
        statement: draft.statement.map(Into::into),
        claim: Some(proto::Claim {
            subject: draft.claim.subject,
            attribute: draft.claim.attribute,
            value: draft.claim.value,
        }),
        stance: proto::Stance::from(draft.stance).into(),
        said_at: draft.said_at.map(time),
        evidence_start: draft.evidence.start,
        evidence_end: draft.evidence.end,
        confidence: draft.confidence,
        topics: draft.topics,
        names: draft.names.into_iter().map(Into::into).collect(),
        line: draft.line.map(Into::into),
        ..proto::Fact::default()
    }
}

impl From<FactLine> for proto::FactLine {
    fn from(line: FactLine) -> Self {
        Self {
            text: line.text,
            probability: line.probability,
            start: line.bytes.start,
            end: line.bytes.end,
        }
    }
}

impl Checked for proto::FactLine {
    type Value = FactLine;

    fn check(self, fields: &mut Fields) -> Option<FactLine> {
        let probability = fields.probability("probability", self.probability);
        Some(FactLine {
            text: self.text,
            bytes: self.start..self.end,
            probability: probability?,
        })
    }
}

impl From<FactName> for proto::FactName {
    fn from(name: FactName) -> Self {
        Self {
            text: name.text,
            kind: proto::NameKind::from(name.kind).into(),
        }
    }
}

impl Checked for proto::FactName {
    type Value = FactName;

    fn check(self, fields: &mut Fields) -> Option<FactName> {
        let kind = fields.word("kind", self.kind);
        Some(FactName {
            text: self.text,
            kind: kind?,
        })
    }
}

impl Checked for proto::Fact {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        let id = fields.id("id", &self.id, "the id of a fact");
        let clause = fields.optional("clause", self.clause);
        let statement = fields.optional("statement", self.statement);
        let claim = fields.message("claim", self.claim);
        let stance = fields.word("stance", self.stance);
        let is_corrected = self.extractor.is_empty();
        if !is_corrected && matches!((&clause, &statement), (Some(None), Some(None))) {
            fields.refuse::<()>("clause", "is required where `statement` is not set");
        }
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let turns = fields.some("turn_ids", turns);
        let valid = fields.interval("valid", self.valid);
        let known = fields.interval("known", self.known);
        let said_at = fields.optional_time("said_at", self.said_at);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        let successor = fields.optional_id("succeeded_by", &self.succeeded_by, "the id of a fact");
        let names = fields.messages("names", self.names, usize::MAX);
        let line = fields.optional("line", self.line);
        let (turns, valid) = (turns?, valid?);
        let draft = Draft {
            text: self.text,
            clause: clause?,
            statement: statement?,
            claim: claim?,
            stance: stance?,
            said_at: said_at?,
            evidence: self.evidence_start..self.evidence_end,
            valid,
            related: turns[1..].to_vec(),
            confidence: self.confidence,
            topics: self.topics,
            names: names?,
            line: line?,
        };
        Some(Derivation {
            id: id?,
            version: self.version,
            body: Body::Fact(Box::new(draft)),
            turns,
            valid,
            known: known?,
            origin: said(self.extractor).map_or(Origin::Corrected, Origin::Extracted),
            change: change?,
            succeeded_by: successor?,
        })
    }
}

impl Checked for proto::Episode {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        let id = fields.id("id", &self.id, "the id of an episode");
        let session = fields.name("session", self.session, SessionId::new);
        let turns = fields.turn_ids("turn_ids", self.turn_ids, usize::MAX);
        let turns = fields.some("turn_ids", turns);
        let participants =
            fields.names("participants", self.participants, usize::MAX, Speaker::new);
        let span = fields.interval("span", self.span);
        let trigger = match self.trigger {
            0 => Some(None),
            trigger => fields.word("trigger", trigger).map(Some),
        };
        let valid = fields.interval("valid", self.valid);
        let known = fields.interval("known", self.known);
        let change = fields.id("change_id", &self.change_id, "the id of a change");
        let episode = Episode {
            session: session?,
            title: self.title,
            summary: self.summary,
            participants: participants?,
            span: span?,
            trigger: trigger?,
            extractor: self.extractor.clone(),
        };
        Some(Derivation {
            id: id?,
            version: self.version,
            body: Body::Episode(Box::new(episode)),
            turns: turns?,
            valid: valid?,
            known: known?,
            origin: Origin::Extracted(self.extractor),
            change: change?,
            succeeded_by: None,
        })
    }
}

impl Checked for proto::DerivedMemory {
    type Value = Derivation;

    fn check(self, fields: &mut Fields) -> Option<Derivation> {
        match self.kind {
            Some(Kind::Fact(fact)) => fields.message("fact", Some(fact)),
            Some(Kind::Episode(episode)) => fields.message("episode", Some(episode)),
            Some(Kind::Fragment(fragment)) => fields.message("fragment", Some(fragment)),
            Some(Kind::Narrative(narrative)) => fields.message("narrative", Some(narrative)),
            Some(Kind::Identity(identity)) => fields.message("identity", Some(identity)),
            None => fields.refuse(
                "",
                "must be a `fact`, an `episode`, a `fragment`, a `narrative` or an `identity`",
            ),
        }
    }
}

/// A fact, where it is one.
pub(super) fn fact(derivation: Derivation) -> Option<proto::Fact> {
    match proto::DerivedMemory::from(derivation).kind {
        Some(Kind::Fact(fact)) => Some(fact),
        _ => None,
    }
}

/// An episode, where it is one.
pub(super) fn episode(derivation: Derivation) -> Option<proto::Episode> {
    match proto::DerivedMemory::from(derivation).kind {
        Some(Kind::Episode(episode)) => Some(episode),
        _ => None,
    }
}

/// A fragment, where it is one.
pub(super) fn fragment(derivation: Derivation) -> Option<proto::Fragment> {
    match proto::DerivedMemory::from(derivation).kind {
        Some(Kind::Fragment(fragment)) => Some(fragment),
        _ => None,
    }
}

/// A narrative, where it is one.
pub(super) fn narrative(derivation: Derivation) -> Option<proto::Narrative> {
    match proto::DerivedMemory::from(derivation).kind {
        Some(Kind::Narrative(narrative)) => Some(narrative),
        _ => None,
    }
}
