//! What entered which prompt.

use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TurnId};
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::PastInjection;
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::audit::range;
use super::page::{page_token, parts};
use super::time::time;
use super::{Checked, Fields};
use crate::proto;

/// What an id names, as faults say it.
const ID: &str = "the id of an injection";

impl Checked for proto::GetInjectionRequest {
    type Value = InjectionId;

    fn check(self, fields: &mut Fields) -> Option<InjectionId> {
        fields.id("id", &self.id, ID)
    }
}

impl From<PastInjection> for proto::Injection {
    fn from(injection: PastInjection) -> Self {
        let hex = |hash: [u8; 32]| blake3::Hash::from_bytes(hash).to_hex().to_string();
        Self {
            id: injection.id.to_string(),
            at: Some(time(injection.at)),
            caller: injection.caller,
            request_id: injection.request_id,
            session: injection.session.map(String::from).unwrap_or_default(),
            exchange: injection.exchange.map(String::from).unwrap_or_default(),
            spaces: injection.spaces.into_iter().map(Into::into).collect(),
            answer: Some(injection.answer.into()),
            block: injection.block.unwrap_or_default(),
            block_hash: injection.block_hash.map(hex).unwrap_or_default(),
            forgotten: injection.forgotten,
        }
    }
}

impl Checked for proto::Injection {
    type Value = PastInjection;

    fn check(self, fields: &mut Fields) -> Option<PastInjection> {
        let id = fields.id("id", &self.id, ID);
        let at = fields.message("at", self.at);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let exchange = fields.optional_name("exchange", self.exchange, ExchangeName::new);
        let spaces = fields.names("spaces", self.spaces, usize::MAX, SpaceId::new);
        let answer = fields.message("answer", self.answer);
        let block_hash = fields.block_hash(&self.block_hash);
        Some(PastInjection {
            id: id?,
            at: at?,
            caller: self.caller,
            request_id: self.request_id,
            session: session?,
            exchange: exchange?,
            spaces: spaces?,
            answer: answer?,
            block: (!self.block.is_empty()).then_some(self.block),
            block_hash: block_hash?,
            forgotten: self.forgotten,
        })
    }
}

#[expect(
    clippy::option_option,
    reason = "the outer one says whether the field was right"
)]
impl Fields {
    fn block_hash(&mut self, text: &str) -> Option<Option<[u8; 32]>> {
        if text.is_empty() {
            return Some(None);
        }
        match blake3::Hash::from_hex(text) {
            Ok(hash) => Some(Some(hash.into())),
            Err(_) => self.refuse("block_hash", "must be 64 hexadecimal digits"),
        }
    }
}

impl From<PastInjection> for proto::GetInjectionResponse {
    fn from(injection: PastInjection) -> Self {
        Self {
            injection: Some(injection.into()),
        }
    }
}

impl Checked for proto::GetInjectionResponse {
    type Value = PastInjection;

    fn check(self, fields: &mut Fields) -> Option<PastInjection> {
        fields.message("injection", self.injection)
    }
}

impl From<(InjectionFilter, PageRequest)> for proto::ListInjectionsRequest {
    fn from((filter, page): (InjectionFilter, PageRequest)) -> Self {
        let (of_turn, turn) = filter.turn.unzip();
        Self {
            space: filter
                .space
                .or(of_turn)
                .map(String::from)
                .unwrap_or_default(),
            session: filter.session.map(String::from).unwrap_or_default(),
            turn_id: turn.map(|turn| turn.to_string()).unwrap_or_default(),
            time: range(filter.time),
            page_size: page.limit,
            page_token: page.after.map(|token| token.0).unwrap_or_default(),
        }
    }
}

impl Checked for proto::ListInjectionsRequest {
    type Value = (InjectionFilter, PageRequest);

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let space = fields.optional_name("space", self.space, SpaceId::new);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let turn = fields.optional_id::<TurnId>("turn_id", &self.turn_id, "the id of a turn");
        let time = fields.message_or_default("time", self.time);
        let page = fields.page(self.page_size, self.page_token);
        let (space, turn) = (space?, turn?);
        let turn = match (&space, turn) {
            (_, None) => None,
            (Some(space), Some(turn)) => Some((space.clone(), turn)),
            (None, Some(_)) => return fields.refuse("space", "must say where the turn lies"),
        };
        let filter = InjectionFilter {
            session: session?,
            space,
            turn,
            time: time?,
        };
        Some((filter, page?))
    }
}

impl From<Page<PastInjection>> for proto::ListInjectionsResponse {
    fn from(page: Page<PastInjection>) -> Self {
        let (injections, next_page_token) = parts(page);
        Self {
            injections,
            next_page_token,
        }
    }
}

impl Checked for proto::ListInjectionsResponse {
    type Value = Page<PastInjection>;

    fn check(self, fields: &mut Fields) -> Option<Page<PastInjection>> {
        let items = fields.messages("injections", self.injections, usize::MAX);
        Some(Page {
            items: items?,
            next: page_token(self.next_page_token),
        })
    }
}
