//! The file form of an export: one JSON object a line, and back without a loss.
//!
//! The first line is the space, the next one its legal hold and policy where it has one of them;
//! then come its turns in the order of acceptance, then what callers decided about facts and names,
//! by id. An export of one person goes on with the next space.
//!
//! Times are RFC 3339 in UTC with up to six decimals; ids are UUIDs; roles are `user`, `assistant`,
//! `system`, `tool`, trust labels `user`, `assistant`, `tool`,
//! `web`. What is absent is `null` or left out; `metadata` and `media` are always there; unknown keys are skipped.
//!
//! ```json
//! {"record":"space","name":"ada","settings":{"language":null,"time_zone":"Europe/Zurich","retention_days":null,"retention_turns":null,"retention_superseded_days":null}}
//! {"record":"rules","hold":{"since":"…","reason":"case 7"},"policy":{…}}
//! {"record":"turn","id":"…","session":"s1","external_id":null,"speaker":"Ada","role":"user","content":{"text":"Hi","media":[{"uri":"…","mime_type":"image/jpeg","caption":"a dog"}]},"event_time":"2023-05-08T13:56:00Z","recorded_at":"2026-01-02T03:04:05.678901Z","metadata":{},"trust":"user","replaces":null,"position":0,"replaced":{"by":"…","at":"…"}}
//! {"record":"decided","versions":[{"derivation":{…},"change":{…}},…],"conflicts":[…]}
//! ```

use std::borrow::Cow;

use memfleet_domain::derivation::DecidedMemory;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::policy::Policy;
use memfleet_domain::space::{LegalHold, SpaceSettings};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::memory::{Record, SpaceRules};
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
    Rules {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<Cow<'a, LegalHold>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        policy: Option<Cow<'a, Policy>>,
    },
    Turn(Cow<'a, Turn>),
    Decided(Cow<'a, DecidedMemory>),
}

/// The record as one line, without its line end.
pub fn write(record: &Record) -> String {
    let line = match record {
        Record::Space(name, settings) => Line::Space {
            name: Cow::Borrowed(name),
            settings: Cow::Borrowed(settings),
        },
        Record::Rules(rules) => Line::Rules {
            hold: rules.hold.as_ref().map(Cow::Borrowed),
            policy: rules.policy.as_ref().map(Cow::Borrowed),
        },
        Record::Turn(turn) => Line::Turn(Cow::Borrowed(turn)),
        Record::Decided(memory) => Line::Decided(Cow::Borrowed(memory)),
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
        Ok(Line::Rules { hold, policy }) => Record::Rules(Box::new(SpaceRules {
            hold: hold.map(Cow::into_owned),
            policy: policy.map(Cow::into_owned),
        })),
        Ok(Line::Turn(turn)) => Record::Turn(Box::new(turn.into_owned())),
        Ok(Line::Decided(memory)) => Record::Decided(Box::new(memory.into_owned())),
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
