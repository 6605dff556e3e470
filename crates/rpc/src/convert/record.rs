//! Records of an export, and what an import did with them.

use memfleet_domain::derivation::DecidedMemory;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::memory::{Imported, Record, SpaceRules};

use super::{Checked, Fields};
use crate::proto::record::Kind;
use crate::{limits, proto};

impl From<Record> for proto::Record {
    fn from(record: Record) -> Self {
        let kind = match record {
            Record::Space(name, settings) => Kind::Space(proto::SpaceRecord {
                name: name.into(),
                settings: Some(settings.into()),
            }),
            Record::Turn(turn) => Kind::Turn((*turn).into()),
            Record::Rules(rules) => Kind::Rules(proto::RulesRecord {
                hold: rules.hold.map(Into::into),
                policy: rules.policy.map(Into::into),
            }),
            Record::Decided(memory) => Kind::Decided((*memory).into()),
        };
        Self { kind: Some(kind) }
    }
}

impl Checked for proto::SpaceRecord {
    type Value = (SpaceId, SpaceSettings);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let name = fields.name("name", self.name, SpaceId::new);
        let settings = fields.message_or_default("settings", self.settings);
        Some((name?, settings?))
    }
}

impl Checked for proto::RulesRecord {
    type Value = SpaceRules;

    fn check(self, fields: &mut Fields) -> Option<SpaceRules> {
        let hold = self.hold.map(|hold| fields.message("hold", Some(hold)));
        let policy = self
            .policy
            .map(|policy| fields.message("policy", Some(policy)));
        Some(SpaceRules {
            hold: hold.map_or(Some(None), |hold| hold.map(Some))?,
            policy: policy.map_or(Some(None), |policy| policy.map(Some))?,
        })
    }
}

impl From<DecidedMemory> for proto::DecidedRecord {
    fn from(memory: DecidedMemory) -> Self {
        Self {
            document: serde_json::to_string(&memory)
                .expect("derived memory has string keys only and cannot fail to serialise"),
        }
    }
}

impl Checked for proto::DecidedRecord {
    type Value = DecidedMemory;

    fn check(self, fields: &mut Fields) -> Option<DecidedMemory> {
        if self.document.len() > limits::DECIDED_BYTES {
            let problem = format!("must be at most {} bytes", limits::DECIDED_BYTES);
            return fields.refuse("document", problem);
        }
        match serde_json::from_str::<DecidedMemory>(&self.document) {
            // Its problem, if it has one, is that of a record: an import names it and goes on.
            Ok(memory) => Some(memory),
            Err(error) => fields.refuse("document", format!("is no derived memory: {error}")),
        }
    }
}

impl Checked for proto::internal::RestoreRequest {
    type Value = (SpaceId, DecidedMemory);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let memory = fields.message("memory", self.memory);
        Some((space?, memory?))
    }
}

impl From<bool> for proto::internal::RestoreResponse {
    fn from(taken: bool) -> Self {
        Self { taken }
    }
}

impl Checked for proto::internal::RestoreResponse {
    type Value = bool;

    fn check(self, _: &mut Fields) -> Option<bool> {
        Some(self.taken)
    }
}

impl Checked for proto::Record {
    type Value = Record;

    fn check(self, fields: &mut Fields) -> Option<Record> {
        match self.kind {
            Some(Kind::Space(space)) => fields
                .message("space", Some(space))
                .map(|(name, settings)| Record::Space(name, settings)),
            Some(Kind::Turn(turn)) => fields
                .message("turn", Some(turn))
                .map(|turn| Record::Turn(Box::new(turn))),
            Some(Kind::Rules(rules)) => fields
                .message("rules", Some(rules))
                .map(|rules| Record::Rules(Box::new(rules))),
            Some(Kind::Decided(memory)) => fields
                .message("decided", Some(memory))
                .map(|memory| Record::Decided(Box::new(memory))),
            None => fields.refuse("", "must be a `space`, `rules`, a `turn` or `decided`"),
        }
    }
}

impl From<Record> for proto::ExportResponse {
    fn from(record: Record) -> Self {
        Self {
            record: Some(record.into()),
        }
    }
}

impl Checked for proto::ExportResponse {
    type Value = Record;

    fn check(self, fields: &mut Fields) -> Option<Record> {
        fields.message("record", self.record)
    }
}

impl From<Record> for proto::ExportSubjectResponse {
    fn from(record: Record) -> Self {
        Self {
            record: Some(record.into()),
        }
    }
}

impl Checked for proto::ExportSubjectResponse {
    type Value = Record;

    fn check(self, fields: &mut Fields) -> Option<Record> {
        fields.message("record", self.record)
    }
}

/// What one message of an import brings.
#[derive(Debug, Clone, PartialEq)]
pub enum ImportMessage {
    /// The first one: where to.
    Space(SpaceId),
    /// Every other one.
    Record(Record),
}

impl Checked for proto::ImportRequest {
    type Value = ImportMessage;

    fn check(self, fields: &mut Fields) -> Option<ImportMessage> {
        match self.kind {
            Some(proto::import_request::Kind::Space(name)) => fields
                .name("space", name, SpaceId::new)
                .map(ImportMessage::Space),
            Some(proto::import_request::Kind::Record(record)) => fields
                .message("record", Some(record))
                .map(ImportMessage::Record),
            None => fields.refuse("record", "is required"),
        }
    }
}

impl From<ImportMessage> for proto::ImportRequest {
    fn from(message: ImportMessage) -> Self {
        let kind = match message {
            ImportMessage::Space(space) => proto::import_request::Kind::Space(space.into()),
            ImportMessage::Record(record) => proto::import_request::Kind::Record(record.into()),
        };
        Self { kind: Some(kind) }
    }
}

impl From<Imported> for proto::ImportResponse {
    fn from(imported: Imported) -> Self {
        Self {
            accepted: imported.accepted,
            duplicates: imported.duplicates,
            forgotten: imported.forgotten,
            tokens: imported.batches.iter().map(ToString::to_string).collect(),
            decided: imported.decided,
            left_out: imported.left_out,
        }
    }
}

impl Checked for proto::ImportResponse {
    type Value = Imported;

    fn check(self, fields: &mut Fields) -> Option<Imported> {
        let batches = fields.each("tokens", self.tokens, usize::MAX, |fields, token| {
            fields.id("", &token, "the token of a receipt")
        });
        Some(Imported {
            accepted: self.accepted,
            duplicates: self.duplicates,
            forgotten: self.forgotten,
            decided: self.decided,
            left_out: self.left_out,
            batches: batches?,
        })
    }
}
