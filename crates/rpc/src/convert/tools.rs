//! Memory that a model asks for itself.

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, SessionId};
use memfleet_ports::tools::{
    CloseRequest, Closed, SchemaRequest, ToolCall, ToolResult, ToolSchema,
};

use super::time::time;
use super::words::number;
use super::{Checked, Fields};
use crate::{limits, proto};

impl From<SchemaRequest> for proto::GetToolSchemaRequest {
    fn from(request: SchemaRequest) -> Self {
        Self {
            format: number::<proto::ProviderFormat, _>(request.format),
            taken_names: request.taken_names,
        }
    }
}

impl Checked for proto::GetToolSchemaRequest {
    type Value = SchemaRequest;

    fn check(self, fields: &mut Fields) -> Option<SchemaRequest> {
        let format = fields.optional_word("format", self.format);
        let (names, most) = (self.taken_names, limits::VALUES);
        let names = fields.each("taken_names", names, most, |fields, name| {
            fields.text("", name, limits::TOOL_NAME)
        });
        Some(SchemaRequest {
            format: format?,
            taken_names: names?,
        })
    }
}

impl From<ToolSchema> for proto::ToolSchema {
    fn from(tool: ToolSchema) -> Self {
        Self {
            name: tool.name,
            tool: tool.tool,
            parameters: tool.parameters,
        }
    }
}

impl Checked for proto::ToolSchema {
    type Value = ToolSchema;

    fn check(self, _: &mut Fields) -> Option<ToolSchema> {
        Some(ToolSchema {
            name: self.name,
            tool: self.tool,
            parameters: self.parameters,
        })
    }
}

impl From<Vec<ToolSchema>> for proto::GetToolSchemaResponse {
    fn from(tools: Vec<ToolSchema>) -> Self {
        Self {
            tools: tools.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for proto::GetToolSchemaResponse {
    type Value = Vec<ToolSchema>;

    fn check(self, fields: &mut Fields) -> Option<Vec<ToolSchema>> {
        fields.messages("tools", self.tools, usize::MAX)
    }
}

impl TryFrom<ToolCall> for proto::ExecuteToolRequest {
    type Error = Fault;

    fn try_from(call: ToolCall) -> Result<Self, Fault> {
        Ok(Self {
            spaces: call.spaces.into_iter().map(Into::into).collect(),
            session: call.session.into(),
            session_aliases: call.aliases.into_iter().map(Into::into).collect(),
            exchange: call.exchange.into(),
            call_id: call.call_id,
            name: call.name,
            arguments: call.arguments,
            filter: Some(call.filter.try_into()?),
            model: Some(call.model.into()),
            policy: Some(call.policy.into()),
            tokenizer: call.tokenizer.unwrap_or_default(),
            now: call.now.map(time),
            round: call.round,
        })
    }
}

impl Checked for proto::ExecuteToolRequest {
    type Value = ToolCall;

    fn check(self, fields: &mut Fields) -> Option<ToolCall> {
        let spaces = fields.spaces(self.spaces);
        let session = fields.name("session", self.session, SessionId::new);
        let aliases = self.session_aliases;
        let aliases = fields.names("session_aliases", aliases, limits::VALUES, SessionId::new);
        let exchange = fields.name("exchange", self.exchange, ExchangeName::new);
        let call_id = fields.words("call_id", self.call_id, limits::CALL_ID);
        let name = fields.text("name", self.name, limits::TOOL_NAME);
        let arguments = fields.text("arguments", self.arguments, limits::TEXT);
        let filter = fields.message_or_default("filter", self.filter);
        let model = fields.message_or_default("model", self.model);
        let policy = fields.message_or_default("policy", self.policy);
        let tokenizer = fields.named_tokenizer(self.tokenizer);
        let now = fields.optional_time("now", self.now);
        Some(ToolCall {
            spaces: spaces?,
            session: session?,
            aliases: aliases?,
            exchange: exchange?,
            call_id: call_id?,
            round: self.round,
            name: name?,
            arguments: arguments?,
            filter: filter?,
            model: model?,
            policy: policy?,
            tokenizer: tokenizer?,
            now: now?,
        })
    }
}

impl From<ToolResult> for proto::ExecuteToolResponse {
    fn from(result: ToolResult) -> Self {
        Self {
            result: result.text,
            is_error: result.is_error,
            rounds_used: result.rounds_used,
            rounds_remaining: result.rounds_remaining,
            tokens_used: result.tokens_used,
            tokens_remaining: result.tokens_remaining,
            must_finalize: result.must_finalize,
            termination: number::<proto::Termination, _>(result.termination),
            items: result.items.into_iter().map(Into::into).collect(),
            degraded: result.degraded,
        }
    }
}

impl Checked for proto::ExecuteToolResponse {
    type Value = ToolResult;

    fn check(self, fields: &mut Fields) -> Option<ToolResult> {
        let termination = fields.optional_word("termination", self.termination);
        let items = fields.messages("items", self.items, usize::MAX);
        Some(ToolResult {
            text: self.result,
            is_error: self.is_error,
            rounds_used: self.rounds_used,
            rounds_remaining: self.rounds_remaining,
            tokens_used: self.tokens_used,
            tokens_remaining: self.tokens_remaining,
            must_finalize: self.must_finalize,
            termination: termination?,
            items: items?,
            degraded: self.degraded,
        })
    }
}

impl From<CloseRequest> for proto::CloseTurnRequest {
    fn from(request: CloseRequest) -> Self {
        Self {
            session: request.session.into(),
            exchange: request.exchange.into(),
            termination: number::<proto::Termination, _>(request.termination),
            model: request.model,
        }
    }
}

impl Checked for proto::CloseTurnRequest {
    type Value = CloseRequest;

    fn check(self, fields: &mut Fields) -> Option<CloseRequest> {
        let session = fields.name("session", self.session, SessionId::new);
        let exchange = fields.name("exchange", self.exchange, ExchangeName::new);
        let termination = fields.optional_word("termination", self.termination);
        let model = fields.text("model", self.model, limits::MODEL);
        Some(CloseRequest {
            session: session?,
            exchange: exchange?,
            termination: termination?,
            model: model?,
        })
    }
}

impl From<Closed> for proto::CloseTurnResponse {
    fn from(closed: Closed) -> Self {
        Self {
            termination: proto::Termination::from(closed.termination).into(),
            rounds_used: closed.rounds_used,
            tokens_used: closed.tokens_used,
            turn_ids: closed.turns.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Checked for proto::CloseTurnResponse {
    type Value = Closed;

    fn check(self, fields: &mut Fields) -> Option<Closed> {
        let termination = fields.word("termination", self.termination);
        let turns = fields.each("turn_ids", self.turn_ids, usize::MAX, |fields, id| {
            fields.id("", &id, "the id of a turn")
        });
        Some(Closed {
            termination: termination?,
            rounds_used: self.rounds_used,
            tokens_used: self.tokens_used,
            turns: turns?,
        })
    }
}
