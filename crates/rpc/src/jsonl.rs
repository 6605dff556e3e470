//! The file form of an export: one JSON object a line, and back without a loss.
//!
//! The first line is the space, every other one a turn in the order of acceptance; an export of one
//! person goes on with the next space and its turns. Times are RFC 3339 in UTC with up to six decimals; ids are UUIDs; roles are `user`, `assistant`, `system`, `tool`, trust labels `user`, `assistant`, `tool`,
//! `web`. What is absent is `null` or left out; `metadata` and `media` are always there; unknown keys are skipped.
//!
//! ```json
//! {"record":"space","name":"ada","settings":{"language":null,"time_zone":"Europe/Zurich","retention_days":null,"retention_turns":null,"retention_superseded_days":null}}
//! {"record":"turn","id":"…","session":"s1","external_id":null,"speaker":"Ada","role":"user","content":{"text":"Hi","media":[{"uri":"…","mime_type":"image/jpeg","caption":"a dog"}]},"event_time":"2023-05-08T13:56:00Z","recorded_at":"2026-01-02T03:04:05.678901Z","metadata":{},"trust":"user","replaces":null,"position":0,"replaced":{"by":"…","at":"…"}}
//! ```

use std::borrow::Cow;

use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::memory::Record;
use serde::{Deserialize, Serialize};

use crate::convert::accept;
use crate::proto;

#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line<'a> {
    Space {
        name: Cow<'a, SpaceId>,
        settings: Cow<'a, SpaceSettings>,
    },
    Turn(Cow<'a, Turn>),
}

/// The record as one line, without its line end.
pub fn write(record: &Record) -> String {
    let line = match record {
        Record::Space(name, settings) => Line::Space {
            name: Cow::Borrowed(name),
            settings: Cow::Borrowed(settings),
        },
        Record::Turn(turn) => Line::Turn(Cow::Borrowed(turn)),
    };
    serde_json::to_string(&line)
        .expect("records have string keys only and cannot fail to serialise")
}

/// Reads one line, held to the limits of a request ([`crate::limits`]). The fault is `INVALID_ARGUMENT`.
pub fn read(line: &str) -> Result<Record, Fault> {
    let record = match serde_json::from_str(line) {
        Ok(Line::Space { name, settings }) => {
            Record::Space(name.into_owned(), settings.into_owned())
        }
        Ok(Line::Turn(turn)) => Record::Turn(Box::new(turn.into_owned())),
        Err(error) => {
            let message = format!("the line is not a record of an export: {error}");
            return Err(Fault::new(
                FaultKind::InvalidArgument,
                "RECORD_MALFORMED",
                message,
            ));
        }
    };
    accept(proto::Record::from(record))
}

#[cfg(test)]
mod tests;
