//! Conflicts between facts, and the changes of derived memory.

use memfleet_domain::derivation::{Change, Conflict};
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::Disagreement;

use super::derivation::fact;
use super::time::time;
use super::{Checked, Fields};
use crate::proto;

impl From<Disagreement> for proto::Conflict {
    fn from(disagreement: Disagreement) -> Self {
        let conflict = disagreement.conflict;
        Self {
            id: conflict.id.to_string(),
            older_id: conflict.older.to_string(),
            newer_id: conflict.newer.to_string(),
            contradiction: proto::Contradiction::from(conflict.contradiction).into(),
            ends: conflict.ends.map(time),
            found_at: Some(time(conflict.found_at)),
            status: proto::ConflictStatus::from(conflict.status).into(),
            judge: conflict.judge,
            probability: conflict.probability,
            older: disagreement.older.and_then(fact),
            newer: disagreement.newer.and_then(fact),
        }
    }
}

impl Checked for proto::Conflict {
    type Value = Disagreement;

    fn check(self, fields: &mut Fields) -> Option<Disagreement> {
        let id = fields.id("id", &self.id, "the id of a conflict");
        let older_id = fields.id("older_id", &self.older_id, "the id of a fact");
        let newer_id = fields.id("newer_id", &self.newer_id, "the id of a fact");
        let contradiction = fields.word("contradiction", self.contradiction);
        let ends = fields.optional_time("ends", self.ends);
        let found_at = fields.message("found_at", self.found_at);
        let status = fields.word("status", self.status);
        let older = match self.older {
            Some(older) => fields.message("older", Some(older)).map(Some),
            None => Some(None),
        };
        let newer = match self.newer {
            Some(newer) => fields.message("newer", Some(newer)).map(Some),
            None => Some(None),
        };
        let conflict = Conflict {
            id: id?,
            older: older_id?,
            newer: newer_id?,
            contradiction: contradiction?,
            ends: ends?,
            found_at: found_at?,
            status: status?,
            judge: self.judge,
            probability: self.probability,
        };
        Some(Disagreement {
            conflict,
            older: older?,
            newer: newer?,
        })
    }
}

impl From<Recorded> for proto::Change {
    fn from(recorded: Recorded) -> Self {
        let change = recorded.change;
        let text = |id: Option<_>| {
            id.map_or_else(String::new, |id: memfleet_domain::ids::ChangeId| {
                id.to_string()
            })
        };
        Self {
            id: change.id.to_string(),
            kind: proto::ChangeKind::from(change.kind).into(),
            at: Some(time(change.at)),
            reason: change.reason,
            conflict_id: change.conflict.map(|id| id.to_string()).unwrap_or_default(),
            reverts: text(change.reverts),
            reverted_by: text(recorded.reverted_by),
            wrote: recorded.wrote.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::Change {
    type Value = Recorded;

    fn check(self, fields: &mut Fields) -> Option<Recorded> {
        let id = fields.id("id", &self.id, "the id of a change");
        let kind = fields.word("kind", self.kind);
        let at = fields.message("at", self.at);
        let conflict = fields.optional_id("conflict_id", &self.conflict_id, "the id of a conflict");
        let reverts = fields.optional_id("reverts", &self.reverts, "the id of a change");
        let reverted_by =
            fields.optional_id("reverted_by", &self.reverted_by, "the id of a change");
        let wrote = fields.messages("wrote", self.wrote, usize::MAX);
        let change = Change {
            id: id?,
            kind: kind?,
            at: at?,
            reason: self.reason,
            conflict: conflict?,
            reverts: reverts?,
        };
        Some(Recorded {
            change,
            wrote: wrote?,
            reverted_by: reverted_by?,
        })
    }
}
