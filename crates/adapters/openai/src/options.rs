//! What can be set of models: where they are, what they may cost, and how long they may take.

use std::time::Duration;

use memfleet_ports::language_model::Agent;
use memfleet_ports::usage::Limits;
use secrecy::SecretString;

/// An OpenAI-compatible endpoint and how it is used.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is, up to what stands before `/chat/completions`: `https://api.openai.com/v1`.
    pub base_url: String,
    /// Its key; absent where it asks for none.
    pub key: Option<SecretString>,
    /// What each agent uses.
    pub agents: Agents,
    /// Longest time of opening a connection. Default 5 s.
    pub connect_timeout: Duration,
    /// Longest pause within a streamed reply. Default 20 s.
    pub idle_timeout: Duration,
    /// How often a request is sent again that the endpoint could not serve. Default 2.
    pub retries: usize,
    /// Requests at the same time. Default 8.
    pub concurrency: usize,
    /// Calls that wait for a place among them; one more is refused. Default 64.
    pub waiting: usize,
    /// Largest reply in bytes. Default 1 MiB.
    pub reply_limit: usize,
    /// Memory for replies that are given to equal calls again, in bytes; 0 keeps none. Default 16 MiB.
    pub cache: u64,
    /// When the endpoint is left alone.
    pub breaker: Breaker,
    /// What a tenant may use in a day (UTC). Default without limit.
    pub budget: Limits,
    /// Whether prompts and replies are written to the log, for debugging: they hold what people said. Default false.
    pub trace_payloads: bool,
}

/// The circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row that open it. Default 5.
    pub failures: u32,
    /// For how long; doubled with each probe that fails. Default 10 s.
    pub pause: Duration,
    /// The longest pause. Default 5 min.
    pub longest: Duration,
}

/// What each agent uses.
#[derive(Debug, Clone, PartialEq)]
pub struct Agents {
    /// Facts and episodes.
    pub constructor: AgentOptions,
    /// Queries.
    pub retriever: AgentOptions,
    /// Relevance and conflicts.
    pub judge: AgentOptions,
    /// Settling conflicts.
    pub refresher: AgentOptions,
    /// Narratives.
    pub consolidator: AgentOptions,
    /// Answers.
    pub answer: AgentOptions,
}

/// What one agent uses.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentOptions {
    /// Name of the model, as the endpoint knows it.
    pub model: String,
    /// Temperature; absent leaves it to the endpoint. Default 0.
    pub temperature: Option<f32>,
    /// Most tokens of a reply. Default 2048.
    pub max_tokens: u32,
    /// Longest time of a call, retries included. Default 30 s.
    pub timeout: Duration,
    /// Price of a million tokens read, in any currency. Default 0.
    pub price_in: f64,
    /// Price of a million tokens written. Default 0.
    pub price_out: f64,
}

impl AgentOptions {
    /// The defaults, with a model.
    pub fn with_model(model: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            temperature: Some(0.0),
            max_tokens: 2048,
            timeout: Duration::from_secs(30),
            price_in: 0.0,
            price_out: 0.0,
        }
    }

    /// What tokens cost, in millionths: a price for a million tokens is one in millionths for each.
    pub(crate) fn micros(&self, tokens_in: u64, tokens_out: u64) -> u64 {
        (tokens_in as f64 * self.price_in + tokens_out as f64 * self.price_out).ceil() as u64
    }
}

impl Agents {
    /// The defaults, with one model for all.
    pub fn with_model(model: &str) -> Self {
        let every = AgentOptions::with_model(model);
        Self {
            constructor: every.clone(),
            retriever: every.clone(),
            judge: every.clone(),
            refresher: every.clone(),
            consolidator: every.clone(),
            answer: every,
        }
    }

    /// What this agent uses.
    pub fn of(&self, agent: Agent) -> &AgentOptions {
        match agent {
            Agent::Constructor => &self.constructor,
            Agent::Retriever => &self.retriever,
            Agent::Judge => &self.judge,
            Agent::Refresher => &self.refresher,
            Agent::Consolidator => &self.consolidator,
            Agent::Answer => &self.answer,
        }
    }
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            pause: Duration::from_secs(10),
            longest: Duration::from_mins(5),
        }
    }
}

impl Options {
    /// The defaults, with an endpoint and one model for all.
    pub fn new(base_url: impl Into<String>, model: &str) -> Self {
        Self {
            base_url: base_url.into(),
            key: None,
            agents: Agents::with_model(model),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(20),
            retries: 2,
            concurrency: 8,
            waiting: 64,
            reply_limit: 1 << 20,
            cache: 16 << 20,
            breaker: Breaker::default(),
            budget: Limits::default(),
            trace_payloads: false,
        }
    }
}
