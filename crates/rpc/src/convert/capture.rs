//! What passes between a caller and a model.

use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, Speaker};
use memfleet_ports::assembly::Prompt;
use memfleet_ports::capture::{RecordTurnRequest, Recorded};

use super::prompt::fields_of;
use super::time::time;
use super::words::number;
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<RecordTurnRequest> for proto::RecordTurnRequest {
    fn from(request: RecordTurnRequest) -> Self {
        let (messages, provider_request) = fields_of(request.prompt);
        Self {
            space: request.space.into(),
            session: request.session.map(Into::into).unwrap_or_default(),
            exchange: request.exchange.map(Into::into).unwrap_or_default(),
            messages,
            provider_request,
            provider_response: request.answer,
            partial: request.partial,
            model: request.model,
            assistant: request.assistant.map(Into::into).unwrap_or_default(),
            user: request.user.map(Into::into).unwrap_or_default(),
            event_time: request.event_time.map(time),
            metadata: request.metadata,
            include_system: request.include_system,
        }
    }
}

impl Checked for proto::RecordTurnRequest {
    type Value = RecordTurnRequest;

    fn check(self, fields: &mut Fields) -> Option<RecordTurnRequest> {
        let space = fields.name("space", self.space, SpaceId::new);
        let session = fields.optional_name("session", self.session, SessionId::new);
        let exchange = fields.optional_name("exchange", self.exchange, ExchangeName::new);
        let prompt = fields.prompt(self.messages, self.provider_request);
        let model = fields.text("model", self.model, limits::MODEL);
        let assistant = fields.optional_name("assistant", self.assistant, Speaker::new);
        let user = fields.optional_name("user", self.user, Speaker::new);
        let event_time = fields.optional_time("event_time", self.event_time);
        let metadata = fields.metadata("metadata", self.metadata);
        let shown = match (&prompt, self.provider_response.is_empty()) {
            (Some(Prompt::Unknown), _) => fields.refuse(
                "messages",
                "must be given, or a `provider_request` in their stead",
            ),
            (Some(Prompt::Messages(_)), false) => {
                fields.refuse("provider_response", "needs a `provider_request`")
            }
            _ => Some(()),
        };
        shown?;
        Some(RecordTurnRequest {
            space: space?,
            session: session?,
            exchange: exchange?,
            prompt: prompt?,
            answer: self.provider_response,
            partial: self.partial,
            model: model?,
            assistant: assistant?,
            user: user?,
            event_time: event_time?,
            metadata: metadata?,
            include_system: self.include_system,
        })
    }
}

impl From<Recorded> for proto::RecordTurnResponse {
    fn from(recorded: Recorded) -> Self {
        Self {
            token: recorded.token.map_or_else(String::new, |id| id.to_string()),
            turns: recorded.turns.into_iter().map(Into::into).collect(),
            duplicates: recorded.duplicates,
            left_out: recorded.left_out,
            blocks_removed: recorded.blocks_removed,
            session: recorded.session.into(),
            session_origin: number::<proto::SessionOrigin, _>(recorded.session_origin),
            forgotten: recorded.forgotten,
        }
    }
}

impl Checked for proto::RecordTurnResponse {
    type Value = Recorded;

    fn check(self, fields: &mut Fields) -> Option<Recorded> {
        let token = fields.optional_id("token", &self.token, "the token of a receipt");
        let turns = fields.messages("turns", self.turns, usize::MAX);
        let session = fields.name("session", self.session, SessionId::new);
        let origin = fields.optional_word("session_origin", self.session_origin);
        Some(Recorded {
            token: token?,
            turns: turns?,
            duplicates: self.duplicates,
            forgotten: self.forgotten,
            left_out: self.left_out,
            blocks_removed: self.blocks_removed,
            session: session?,
            session_origin: origin?,
        })
    }
}
