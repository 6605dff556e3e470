//! The other requests of the Memory service, and their answers.

use memfleet_domain::Fault;
use memfleet_domain::ids::{BatchId, IdempotencyKey, SessionId, SpaceId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_ports::erasure::{DependentCounts, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::{PageRequest, RememberRequest};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};

use super::page::{page_token, parts};
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<RememberRequest> for proto::RememberRequest {
    fn from(request: RememberRequest) -> Self {
        Self {
            space: request.space.into(),
            turns: request.turns.into_iter().map(Into::into).collect(),
            idempotency_key: request
                .idempotency_key
                .map(String::from)
                .unwrap_or_default(),
        }
    }
}

impl Checked for proto::RememberRequest {
    type Value = RememberRequest;

    fn check(self, fields: &mut Fields) -> Option<RememberRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turns = fields.messages("turns", self.turns, limits::TURNS);
        let turns = fields.some("turns", turns);
        let key =
            fields.optional_name("idempotency_key", self.idempotency_key, IdempotencyKey::new);
        Some(RememberRequest {
            space: space?,
            turns: turns?,
            idempotency_key: key?,
        })
    }
}

impl Checked for proto::GetRequest {
    type Value = (SpaceId, Vec<TurnId>, Vec<BatchId>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let ids = fields.each("turn_ids", self.turn_ids, limits::VALUES, |fields, id| {
            fields.id("", &id, "the id of a turn")
        });
        let ids = fields.some("turn_ids", ids);
        let wait_for = fields.wait_for(self.wait_for);
        Some((space?, ids?, wait_for?))
    }
}

impl From<Vec<Turn>> for proto::GetResponse {
    fn from(turns: Vec<Turn>) -> Self {
        Self {
            turns: turns.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::GetResponse {
    type Value = Vec<Turn>;

    fn check(self, fields: &mut Fields) -> Option<Vec<Turn>> {
        fields.messages("turns", self.turns, usize::MAX)
    }
}

impl Checked for proto::ListRequest {
    type Value = (SpaceId, TurnFilter, PageRequest, Vec<BatchId>);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let filter = fields.message_or_default("filter", self.filter);
        let page = fields.page(self.page_size, self.page_token);
        let wait_for = fields.wait_for(self.wait_for);
        Some((space?, filter?, page?, wait_for?))
    }
}

impl From<Page<Turn>> for proto::ListResponse {
    fn from(page: Page<Turn>) -> Self {
        let (turns, next_page_token) = parts(page);
        Self {
            turns,
            next_page_token,
        }
    }
}

impl Checked for proto::ListResponse {
    type Value = Page<Turn>;

    fn check(self, fields: &mut Fields) -> Option<Page<Turn>> {
        let items = fields.messages("turns", self.turns, usize::MAX)?;
        Some(Page {
            items,
            next: page_token(self.next_page_token),
        })
    }
}

impl Checked for proto::HistoryRequest {
    type Value = (SpaceId, TurnId);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let turn = fields.id("turn_id", &self.turn_id, "the id of a turn");
        Some((space?, turn?))
    }
}

impl From<Vec<Turn>> for proto::HistoryResponse {
    fn from(turns: Vec<Turn>) -> Self {
        Self {
            turns: turns.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::HistoryResponse {
    type Value = Vec<Turn>;

    fn check(self, fields: &mut Fields) -> Option<Vec<Turn>> {
        fields.messages("turns", self.turns, usize::MAX)
    }
}

impl TryFrom<ForgetRequest> for proto::ForgetRequest {
    type Error = Fault;

    fn try_from(request: ForgetRequest) -> Result<Self, Fault> {
        Ok(Self {
            space: request.space.into(),
            filter: Some(request.filter.try_into()?),
            everything: request.everything,
            dry_run: request.dry_run,
        })
    }
}

impl Checked for proto::ForgetRequest {
    type Value = ForgetRequest;

    fn check(self, fields: &mut Fields) -> Option<ForgetRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let filter = fields.message_or_default("filter", self.filter);
        let filter: TurnFilter = match (filter?, self.everything) {
            (filter, true) if !filter.is_everything() => {
                return fields.refuse("filter", "must set no condition when `everything` is set");
            }
            (filter, false) if filter.is_everything() => {
                return fields.refuse(
                    "filter",
                    "must set a condition; to forget the whole space set `everything`",
                );
            }
            (filter, _) => filter,
        };
        Some(ForgetRequest {
            space: space?,
            filter,
            everything: self.everything,
            dry_run: self.dry_run,
        })
    }
}

impl From<ForgetReceipt> for proto::ForgetResponse {
    fn from(receipt: ForgetReceipt) -> Self {
        let lists_cut = receipt.is_cut();
        let erased = receipt.erased;
        Self {
            turn_ids: erased.turns.iter().map(ToString::to_string).collect(),
            emptied_sessions: erased
                .emptied_sessions
                .into_iter()
                .map(Into::into)
                .collect(),
            passages: erased.passages,
            undelivered: erased.undelivered,
            unreadable: erased.unreadable,
            space_removed: erased.space,
            dry_run: receipt.dry_run,
            turns: receipt.turns,
            sessions: receipt.sessions,
            lists_cut,
            dependents: Some(erased.dependents.into()),
        }
    }
}

impl From<DependentCounts> for proto::Dependents {
    fn from(dependents: DependentCounts) -> Self {
        Self {
            facts: dependents.facts,
            episodes: dependents.episodes,
            fragments: dependents.fragments,
            narratives: dependents.narratives,
            identities: dependents.identities,
            blocks: dependents.blocks,
            exchanges: dependents.exchanges,
        }
    }
}

impl From<proto::Dependents> for DependentCounts {
    fn from(dependents: proto::Dependents) -> Self {
        Self {
            facts: dependents.facts,
            episodes: dependents.episodes,
            fragments: dependents.fragments,
            narratives: dependents.narratives,
            identities: dependents.identities,
            blocks: dependents.blocks,
            exchanges: dependents.exchanges,
        }
    }
}

impl Checked for proto::ForgetResponse {
    type Value = ForgetReceipt;

    fn check(self, fields: &mut Fields) -> Option<ForgetReceipt> {
        let turns = fields.each("turn_ids", self.turn_ids, usize::MAX, |fields, id| {
            fields.id("", &id, "the id of a turn")
        });
        let sessions = fields.names(
            "emptied_sessions",
            self.emptied_sessions,
            usize::MAX,
            SessionId::new,
        );
        let erased = Erased {
            turns: turns?,
            emptied_sessions: sessions?,
            passages: self.passages,
            undelivered: self.undelivered,
            unreadable: self.unreadable,
            versions: 0,
            dependents: self.dependents.unwrap_or_default().into(),
            space: self.space_removed,
        };
        Some(ForgetReceipt {
            erased,
            turns: self.turns,
            sessions: self.sessions,
            dry_run: self.dry_run,
        })
    }
}

impl Checked for proto::WatchIngestionRequest {
    type Value = (SpaceId, BatchId);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let batch = fields.id("token", &self.token, "the token of a receipt");
        Some((space?, batch?))
    }
}

impl Checked for proto::ExportRequest {
    type Value = (SpaceId, TurnFilter);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.name("space", self.space, SpaceId::new);
        let filter = fields.message_or_default("filter", self.filter);
        Some((space?, filter?))
    }
}
