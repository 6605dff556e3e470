//! The `Tools` service (AMP, multi-turn retrieval): what a model asks of memory by itself, in rounds.
//!
//! `retrieval` is what an exchange keeps of it, `running` one call from the state to its result, `looking` what a call finds, `wording` the
//! words of a result, `rejections` the models that take no tools. How rounds and tokens are counted is `memfleet_provider::rounds`.

mod looking;
mod rejections;
mod retrieval;
mod running;
mod wording;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::Termination;
use memfleet_ports::context::Context;
use memfleet_ports::store::StoreError;
use memfleet_ports::tools::{
    CloseRequest, Closed, SchemaRequest, ToolCall, ToolResult, ToolSchema, Tools,
};
use memfleet_provider::conversation::{Conversation, Tool};
use memfleet_provider::tools::{
    Names, definitions, get_schema, neutral_definitions, search_schema,
};
use tracing::instrument;

use crate::Gateway;
use crate::memory::names;
pub use rejections::ToolRejections;
pub use retrieval::Retrieval;

/// How often a call is done over where others wrote to the exchange meanwhile: each that is late once waits for one that was not.
const ATTEMPTS: usize = 32;

#[async_trait]
impl Tools for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn tool_schema(
        &self,
        context: &Context,
        request: SchemaRequest,
    ) -> Result<Vec<ToolSchema>, Fault> {
        let tools = request.taken_names.iter().map(|name| Tool {
            name: name.as_str().into(),
            definition: "".into(),
        });
        let conversation = Conversation {
            tools: tools.collect(),
            ..Conversation::default()
        };
        let names = Names::free(&conversation).ok_or_else(|| {
            Fault::invalid(
                "taken_names",
                "leave none of the names that memory tools may have",
            )
        })?;
        let tools = match request.format {
            Some(format) => definitions(format, &names),
            None => neutral_definitions(&names),
        };
        let named = [(names.search, search_schema()), (names.get, get_schema())];
        let tools = tools.into_iter().zip(named);
        let tools = tools.map(|(tool, (name, parameters))| ToolSchema {
            name,
            tool,
            parameters: parameters.to_string(),
        });
        Ok(tools.collect())
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&call.spaces), tool = %call.name))]
    async fn execute_tool(&self, context: &Context, call: ToolCall) -> Result<ToolResult, Fault> {
        self.run_tool(context, &call).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn close_turn(&self, context: &Context, request: CloseRequest) -> Result<Closed, Fault> {
        let told = request.termination.unwrap_or(Termination::ModelAnswered);
        if told == Termination::ToolsRejected && !request.model.is_empty() {
            let now = self.clock.now();
            self.rejections.note(context, &request.model, now);
        }
        for _ in 0..ATTEMPTS {
            let mut held = self
                .held(context, &request.session, &request.exchange)
                .await?;
            let tools = held.state.tools.take();
            let mut retrieval = tools.unwrap_or_else(|| Retrieval::unlimited(self.clock.now()));
            let termination = retrieval.end(told);
            let closed = Closed {
                termination,
                rounds_used: retrieval.turn.rounds_used(),
                tokens_used: held.tokens,
                turns: retrieval.turns(),
            };
            held.state.tools = Some(retrieval);
            match self.write(context, &held, None).await? {
                Ok(_) => return Ok(closed),
                Err(StoreError::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(busy())
    }
}

/// Others write to the exchange all the time.
pub(crate) fn busy() -> Fault {
    StoreError::Stale {
        what: "the exchange",
        expected: 0,
        current: 0,
    }
    .into()
}
