//! Records of an export, and what an import did with them.

use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::memory::{Imported, Record};

use super::{Checked, Fields};
use crate::proto;
use crate::proto::record::Kind;

impl From<Record> for proto::Record {
    fn from(record: Record) -> Self {
        let kind = match record {
            Record::Space(name, settings) => Kind::Space(proto::SpaceRecord {
                name: name.into(),
                settings: Some(settings.into()),
            }),
            Record::Turn(turn) => Kind::Turn((*turn).into()),
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
            None => fields.refuse("", "must be a `space` or a `turn`"),
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
            batches: batches?,
        })
    }
}
