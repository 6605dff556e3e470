//! The port: calls as the agents make them.

use std::sync::Arc;

use async_openai::Client;
use async_trait::async_trait;
use memfleet_domain::Clock;
use memfleet_domain::ids::TenantId;
use memfleet_ports::events::{Event, Events};
use memfleet_ports::language_model::{
    Agent, Call, LanguageModel, ModelFault, Pieces, Reply, Usage,
};
use memfleet_ports::usage::UsageLedger;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::breaker::Breaker;
use crate::budget::Budget;
use crate::cache::{self, AGE, Replies};
use crate::dialect::Dialects;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::options::{AgentOptions, Options};
use crate::places::Places;
use crate::requests::Sent;
use crate::suspects::Suspects;
use crate::trace::Trace;
use crate::transport::{self, Exchange};
use crate::wire::{Counted, Response};

/// The models of an endpoint. Clones are the same.
#[derive(Clone)]
pub struct OpenAi(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub options: Options,
    pub client: Client<Endpoint>,
    pub places: Places,
    pub breaker: Breaker,
    pub suspects: Suspects,
    pub budget: Budget,
    pub dialects: Dialects,
    replies: Replies,
}

impl OpenAi {
    /// Over HTTP; nothing is sent before the first call.
    pub fn new(
        options: Options,
        ledger: Arc<dyn UsageLedger>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, transport::Error> {
        let exchange = transport::http(&options)?;
        Self::over(exchange, options, ledger, clock)
    }

    /// Over whatever carries requests.
    pub fn over(
        exchange: Exchange,
        options: Options,
        ledger: Arc<dyn UsageLedger>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, transport::Error> {
        let endpoint = Endpoint::new(&options.base_url, options.key.as_ref());
        let examined = transport::examined(exchange, options.reply_limit);
        let client = Client::build(transport::composer()?, endpoint).with_http_service(examined);
        Ok(Self(Arc::new(Parts {
            client,
            places: Places::new(options.concurrency, options.waiting),
            breaker: Breaker::new(options.breaker),
            suspects: Suspects::default(),
            budget: Budget {
                ledger,
                clock,
                limits: options.budget,
            },
            dialects: Dialects::default(),
            replies: Replies::new(options.cache),
            options,
        })))
    }

    /// Lets go of replies that may quote what is forgotten, and of old ones, until `shutdown`.
    pub async fn follow(&self, events: &Events, shutdown: CancellationToken) {
        let replies = &self.0.replies;
        let mut heard = events.listen();
        let mut aging = tokio::time::interval(AGE / 4);
        loop {
            let event = tokio::select! {
                () = shutdown.cancelled() => return,
                _ = aging.tick() => {
                    replies.expire();
                    continue;
                }
                event = heard.recv() => event,
            };
            match event {
                Ok(Event::Forgotten { scope }) => replies.forget(Some(&scope.tenant)),
                Ok(Event::Settled { .. } | Event::Derived { .. }) => {}
                // A forget may be among the missed events.
                Ok(Event::Missed) | Err(RecvError::Lagged(_)) => replies.forget(None),
                Err(RecvError::Closed) => return,
            }
        }
    }

    pub(crate) fn key(&self, tenant: &TenantId, call: &Call) -> cache::Key {
        cache::key(tenant, &self.agent(call).model, call)
    }

    pub(crate) fn agent(&self, call: &Call) -> &AgentOptions {
        self.0.options.agents.of(call.agent)
    }

    /// When a call ends at the latest.
    pub(crate) fn deadline(&self, call: &Call) -> Instant {
        call.deadline.min(Instant::now() + self.agent(call).timeout)
    }

    async fn ask(&self, tenant: &TenantId, call: &Call) -> Result<Reply, Failure> {
        let deadline = self.deadline(call);
        let _place = self.0.places.take(deadline).await?;
        let (sent, reserved) = self.persist(tenant, call, deadline, false).await?;
        let Sent::Whole(body) = sent else {
            return Err(Failure::Garbage("it is a stream"));
        };
        let (usage, text) = read(body, reserved.most, self.agent(call));
        self.0.budget.settle(&reserved, usage).await;
        Ok(Reply {
            text: text?,
            usage,
            cached: false,
            model: self.name(call.agent),
        })
    }
}

/// What a reply cost, and its words. Where the endpoint does not count, it cost the most that it can.
fn read(body: Value, most: Usage, options: &AgentOptions) -> (Usage, Result<String, Failure>) {
    match Response::of(body) {
        Ok(response) => (
            cost(response.counted(), most, options),
            response.into_text(),
        ),
        Err(failure) => (most, Err(failure)),
    }
}

/// What counted tokens cost.
pub(crate) fn cost(counted: Option<Counted>, most: Usage, options: &AgentOptions) -> Usage {
    let counts = counted.filter(|counted| counted.prompt_tokens > 0);
    counts.map_or(most, |counted| Usage {
        tokens_in: counted.prompt_tokens,
        tokens_out: counted.completion_tokens,
        micros: options.micros(counted.prompt_tokens, counted.completion_tokens),
    })
}

#[async_trait]
impl LanguageModel for OpenAi {
    fn name(&self, agent: Agent) -> Arc<str> {
        self.0.options.agents.of(agent).model.as_str().into()
    }

    async fn complete(&self, tenant: &TenantId, call: &Call) -> Result<Reply, ModelFault> {
        let trace = Trace::begin(call, &self.agent(call).model, self.0.options.trace_payloads);
        let key = self.key(tenant, call);
        if let Some(text) = self.0.replies.get(&key) {
            trace.cached();
            return Ok(Reply {
                text: text.to_string(),
                usage: Usage::default(),
                cached: true,
                model: self.name(call.agent),
            });
        }
        let began = self.0.replies.begin();
        let asked = self.ask(tenant, call).instrument(trace.span()).await;
        let asked = asked.map_err(ModelFault::from);
        if let Ok(reply) = &asked {
            self.0.replies.put(key, tenant, &reply.text, began);
            trace.said(&reply.text);
        }
        trace.end(asked.as_ref().map(|reply| reply.usage));
        asked
    }

    async fn stream(&self, tenant: &TenantId, call: &Call) -> Result<Pieces, ModelFault> {
        let trace = Trace::begin(call, &self.agent(call).model, self.0.options.trace_payloads);
        let opened = self.open(tenant, call).instrument(trace.span()).await;
        match opened {
            Ok(streaming) => Ok(streaming.pieces(trace)),
            Err(failure) => {
                let fault = ModelFault::from(failure);
                trace.end(Err(&fault));
                Err(fault)
            }
        }
    }

    fn discard(&self, tenant: &TenantId, call: &Call) {
        self.0.replies.remove(&self.key(tenant, call));
    }
}
