//! The public API of memory that a model asks for itself (AMP, multi-turn retrieval).

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{ProviderFormat, Termination};
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TurnId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::assembly::AssembledItem;
use crate::context::Context;
use crate::filter::TurnFilter;

/// In which shape, and beside which tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaRequest {
    /// Whose shape; absent: our own.
    pub format: Option<ProviderFormat>,
    /// Names of the caller's tools.
    pub taken_names: Vec<String>,
}

/// A memory tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSchema {
    /// Its name in this request.
    pub name: String,
    /// The tool as JSON.
    pub tool: String,
    /// JSON Schema of its arguments.
    pub parameters: String,
}

/// A call that a model made.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The spaces to search as one; at least one.
    pub spaces: Vec<SpaceId>,
    /// The running conversation.
    pub session: SessionId,
    /// Conversations that are excluded like it.
    pub aliases: Vec<SessionId>,
    /// The exchange.
    pub exchange: ExchangeName,
    /// The provider's id of the call.
    pub call_id: String,
    /// Which reply of the model it is in, from 1; 0: a round of its own.
    pub round: u32,
    /// The tool.
    pub name: String,
    /// What the model wrote for its arguments.
    pub arguments: String,
    /// Which turns may be used.
    pub filter: TurnFilter,
    /// The model.
    pub model: ModelProfile,
    /// How memory enters, over what space and tenant say.
    pub policy: Policy,
    /// Name of the tokenizer; absent: the model's.
    pub tokenizer: Option<String>,
    /// The present of the question.
    pub now: Option<Timestamp>,
}

/// What the model is told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolResult {
    /// The words.
    pub text: String,
    /// Whether they tell of a mistake in the call.
    pub is_error: bool,
    /// Rounds of the exchange so far …
    pub rounds_used: u32,
    /// … and left.
    pub rounds_remaining: u32,
    /// Tokens of its results so far …
    pub tokens_used: u32,
    /// … and left.
    pub tokens_remaining: u32,
    /// Whether the model must answer now, without memory tools (AMP item 23).
    pub must_finalize: bool,
    /// Why, where retrieval has ended.
    pub termination: Option<Termination>,
    /// What the words hold.
    pub items: Vec<AssembledItem>,
    /// What was missing, by name.
    pub degraded: Vec<String>,
}

/// An exchange to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseRequest {
    /// The running conversation.
    pub session: SessionId,
    /// The exchange.
    pub exchange: ExchangeName,
    /// How the caller saw it end; absent: the model answered.
    pub termination: Option<Termination>,
    /// Name of the model, where it refused tools; may be empty.
    pub model: String,
}

/// How an exchange went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// How it ended.
    pub termination: Termination,
    /// Rounds that it had.
    pub rounds_used: u32,
    /// Tokens that were injected or given as results.
    pub tokens_used: u32,
    /// The turns that were given, each once.
    pub turns: Vec<TurnId>,
}

/// The `Tools` service.
#[async_trait]
pub trait Tools: Send + Sync {
    /// The memory tools as a request to a model has them.
    async fn tool_schema(
        &self,
        context: &Context,
        request: SchemaRequest,
    ) -> Result<Vec<ToolSchema>, Fault>;

    /// Runs a call. What the model got wrong is a result, no fault; the same call again has the same result.
    async fn execute_tool(&self, context: &Context, call: ToolCall) -> Result<ToolResult, Fault>;

    /// Ends the retrieval of an exchange.
    async fn close_turn(&self, context: &Context, request: CloseRequest) -> Result<Closed, Fault>;
}
