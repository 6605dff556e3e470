//! Memory tools and what is captured.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{ProviderFormat, Termination};
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::{Metadata, Role};
use memfleet_ports::assembly::{Content, Message, Prompt};
use memfleet_ports::capture::{Capture, RecordTurnRequest, Recorded};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::tools::{
    CloseRequest, Closed, SchemaRequest, ToolCall, ToolResult, ToolSchema, Tools,
};

use crate::node::{self, Node};
use crate::{connected, context};

fn schema() -> ToolSchema {
    ToolSchema {
        name: "memfleet_memory_search".into(),
        tool: "{}".into(),
        parameters: "{}".into(),
    }
}

fn result() -> ToolResult {
    ToolResult {
        text: "Ada: hello".into(),
        rounds_used: 1,
        termination: Some(Termination::RoundLimit),
        items: node::assembled().items,
        ..ToolResult::default()
    }
}

fn closed() -> Closed {
    Closed {
        termination: Termination::ModelAnswered,
        rounds_used: 2,
        tokens_used: 30,
        turns: Vec::new(),
    }
}

fn recorded() -> Recorded {
    Recorded {
        token: Some(node::batch()),
        turns: Vec::new(),
        duplicates: 1,
        left_out: 2,
        blocks_removed: 3,
        forgotten: 4,
        session: session(),
        session_origin: None,
    }
}

fn session() -> SessionId {
    SessionId::new("monday").unwrap()
}

#[async_trait]
impl Tools for Node {
    async fn tool_schema(
        &self,
        context: &Context,
        request: SchemaRequest,
    ) -> Result<Vec<ToolSchema>, Fault> {
        self.note(context, format!("{request:?}"));
        Ok(vec![schema()])
    }

    async fn execute_tool(&self, context: &Context, call: ToolCall) -> Result<ToolResult, Fault> {
        self.note(context, format!("{call:?}"));
        Ok(result())
    }

    async fn close_turn(&self, context: &Context, request: CloseRequest) -> Result<Closed, Fault> {
        self.note(context, format!("{request:?}"));
        Ok(closed())
    }
}

#[async_trait]
impl Capture for Node {
    async fn record_turn(
        &self,
        context: &Context,
        request: RecordTurnRequest,
    ) -> Result<Recorded, Fault> {
        self.note(context, format!("{request:?}"));
        Ok(recorded())
    }
}

#[tokio::test]
async fn the_calls_of_a_tool_loop_arrive_and_are_answered() {
    let (node, client) = connected().await;
    let asked = SchemaRequest {
        format: Some(ProviderFormat::Gemini),
        taken_names: vec!["search".into()],
    };
    let tools = client.tool_schema(&context(), asked.clone()).await;
    assert_eq!(tools, Ok(vec![schema()]));
    assert_eq!(node.last().1, format!("{asked:?}"));
    let call = ToolCall {
        spaces: vec![SpaceId::new("ada").unwrap()],
        session: session(),
        aliases: Vec::new(),
        exchange: ExchangeName::new("e1").unwrap(),
        call_id: "c1".into(),
        round: 2,
        name: schema().name,
        arguments: "{\"query\":".into(),
        filter: TurnFilter::default(),
        model: ModelProfile::default(),
        policy: Policy::default(),
        tokenizer: None,
        now: None,
    };
    let told = client.execute_tool(&context(), call.clone()).await;
    assert_eq!(told, Ok(result()));
    assert_eq!(node.last().1, format!("{call:?}"));
    let close = CloseRequest {
        session: session(),
        exchange: call.exchange,
        termination: Some(Termination::ToolsRejected),
        model: "small".into(),
    };
    let end = client.close_turn(&context(), close.clone()).await;
    assert_eq!(end, Ok(closed()));
    assert_eq!(node.last().1, format!("{close:?}"));
}

#[tokio::test]
async fn a_turn_is_recorded() {
    let (node, client) = connected().await;
    let message = Message {
        role: Role::User,
        content: Content::Text("hello".into()),
    };
    let request = RecordTurnRequest {
        space: SpaceId::new("ada").unwrap(),
        session: Some(session()),
        exchange: None,
        prompt: Prompt::Messages(vec![message]),
        answer: Vec::new(),
        partial: true,
        model: "small".into(),
        assistant: None,
        user: None,
        event_time: None,
        metadata: Metadata::new(),
        include_system: false,
    };
    let answer = client.record_turn(&context(), request.clone()).await;
    assert_eq!(answer, Ok(recorded()));
    assert_eq!(node.last().1, format!("{request:?}"));
}
