//! Records of the audit log.

use memfleet_domain::ids::{KeyId, SessionId, SpaceId, TenantId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord, AuditedTurn};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<AuditedTurn> for proto::AuditedTurn {
    fn from(turn: AuditedTurn) -> Self {
        Self {
            space: turn.space.into(),
            session: turn.session.map(String::from).unwrap_or_default(),
            turn_id: turn.turn.to_string(),
        }
    }
}

impl Checked for proto::AuditedTurn {
    type Value = AuditedTurn;

    fn check(self, fields: &mut Fields) -> Option<AuditedTurn> {
        let space = fields.name("space", self.space, SpaceId::new);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        Some(AuditedTurn {
            space: space?,
            session: session?,
            turn: turn?,
        })
    }
}

impl From<AuditRecord> for proto::AuditRecord {
    fn from(record: AuditRecord) -> Self {
        Self {
            at: Some(time(record.at)),
            kind: record.kind.name().to_owned(),
            caller: record.caller,
            request_id: record.request_id,
            space: record.space.map(String::from).unwrap_or_default(),
            key_id: record.key.map(|id| id.to_string()).unwrap_or_default(),
            turns: record.turns.into_iter().map(Into::into).collect(),
            detail: record.detail,
        }
    }
}

impl Fields {
    fn audit_kind(&mut self, field: &str, name: &str) -> Option<AuditKind> {
        name.parse()
            .map_or_else(|description| self.refuse(field, description), Some)
    }
}

/// A page of records and whose they are: the wire does not repeat that.
pub(crate) struct RecordsOf(pub TenantId, pub proto::ListAuditResponse);

impl Checked for RecordsOf {
    type Value = Page<AuditRecord>;

    fn check(self, fields: &mut Fields) -> Option<Page<AuditRecord>> {
        let Self(tenant, page) = self;
        let items = fields.each("records", page.records, usize::MAX, |fields, record| {
            let at = fields.message("at", record.at);
            let kind = fields.audit_kind("kind", &record.kind);
            let space = fields.optional_name("space", record.space, SpaceId::new);
            let key = match record.key_id.as_str() {
                "" => Some(None),
                id => fields
                    .id::<KeyId>("key_id", id, "the id of a key")
                    .map(Some),
            };
            let turns = fields.messages("turns", record.turns, usize::MAX);
            Some(AuditRecord {
                at: at?,
                tenant: tenant.clone(),
                kind: kind?,
                caller: record.caller,
                request_id: record.request_id,
                space: space?,
                key: key?,
                turns: turns?,
                detail: record.detail,
            })
        });
        Some(Page {
            items: items?,
            next: page_token(page.next_page_token),
        })
    }
}

impl From<Page<AuditRecord>> for proto::ListAuditResponse {
    fn from(page: Page<AuditRecord>) -> Self {
        let (records, next_page_token) = parts(page);
        Self {
            records,
            next_page_token,
        }
    }
}

impl Checked for proto::ListAuditRequest {
    type Value = (Option<TenantId>, AuditFilter, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let tenant = fields.tenant(self.tenant);
        let kinds = fields.each("kinds", self.kinds, limits::SPACES, |fields, name| {
            fields.audit_kind("", &name)
        });
        let time = fields.message_or_default("time", self.time);
        let page = fields.page(self.page_size, self.page_token);
        let filter = AuditFilter {
            kinds: kinds?,
            time: time?,
        };
        Some((tenant?, filter, page?))
    }
}

/// A range of time on the wire.
pub(crate) fn range(range: TimeRange) -> Option<proto::TimeRange> {
    (!range.is_open()).then(|| proto::TimeRange {
        start: range.start.map(time),
        end: range.end.map(time),
    })
}
