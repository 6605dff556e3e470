//! Language models behind the agents. What they say is a proposal: callers check it, and have a rule for when there is no reply.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use tokio::time::Instant;

use crate::usage::{Amount, Kind};

/// Who asks: each agent may have a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Agent {
    /// Facts and episodes from turns.
    Constructor,
    /// A query in its context.
    Retriever,
    /// Relevance and conflicts.
    Judge,
    /// Settling conflicts.
    Refresher,
    /// Narratives.
    Consolidator,
    /// Answers to questions.
    Answer,
}

impl Agent {
    /// Every agent.
    pub const ALL: [Self; 6] = [
        Self::Constructor,
        Self::Retriever,
        Self::Judge,
        Self::Refresher,
        Self::Consolidator,
        Self::Answer,
    ];

    /// Its name in configuration, metrics and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Constructor => "constructor",
            Self::Retriever => "retriever",
            Self::Judge => "judge",
            Self::Refresher => "refresher",
            Self::Consolidator => "consolidator",
            Self::Answer => "answer",
        }
    }
}

/// A prompt as it was at some version; stored with what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PromptId {
    /// What it is for.
    pub name: &'static str,
    /// Raised with every change of its words.
    pub version: u32,
}

impl fmt::Display for PromptId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.v{}", self.name, self.version)
    }
}

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Voice {
    /// Instructions.
    System,
    /// What the agent asks.
    User,
    /// What the model said before.
    Assistant,
}

/// One message of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who says it.
    pub voice: Voice,
    /// What.
    pub text: String,
}

/// One question to a model.
#[derive(Debug, Clone)]
pub struct Call {
    /// Who asks.
    pub agent: Agent,
    /// With which prompt.
    pub prompt: PromptId,
    /// What is said, in order.
    pub messages: Vec<Message>,
    /// The JSON schema of the reply, as JSON; absent for free text.
    pub schema: Option<Arc<str>>,
    /// When the caller stops waiting.
    pub deadline: Instant,
}

/// What a model said.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The words; checked by nobody yet.
    pub text: String,
    /// What it cost.
    pub usage: Usage,
    /// Whether it was said to an equal call before.
    pub cached: bool,
    /// Which model said it.
    pub model: Arc<str>,
}

/// What one reply cost; nothing for a cached one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens read.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Money, in millionths of the currency that prices are given in.
    pub micros: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens_in: self.tokens_in + other.tokens_in,
            tokens_out: self.tokens_out + other.tokens_out,
            micros: self.micros + other.micros,
        }
    }

    /// What a budget counts of it.
    pub fn amount(self, calls: u64) -> Amount {
        Amount {
            calls,
            tokens: self.tokens_in + self.tokens_out,
            micros: self.micros,
        }
    }
}

/// Part of a reply on its way.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// More of its words.
    Text(String),
    /// It is complete. A stream that ends without this, or with a fault, was cut off.
    End {
        /// What it cost.
        usage: Usage,
        /// Which model said it.
        model: Arc<str>,
    },
}

/// A reply on its way.
pub type Pieces = BoxStream<'static, Result<Piece, ModelFault>>;

/// Why there is no reply. Messages never hold anything of a prompt, a reply or a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelFault {
    /// The endpoint is down, refuses our key, is overloaded, or was so a moment ago (an open circuit breaker).
    #[error("the model is not available: {why}")]
    Unavailable {
        /// What is wrong with it.
        why: Cow<'static, str>,
        /// When it is worth another try, if that is known.
        retry_after: Option<Duration>,
    },
    /// The tenant's budget of the day does not cover the call. Nothing was sent.
    #[error("the budget of the day for {0} does not cover the call")]
    OverBudget(Kind),
    /// The deadline, or the longest time of a call, passed.
    #[error("the model took too long")]
    TimedOut,
    /// The model will not answer this, or the endpoint does not take the request.
    #[error("the model refused: {0}")]
    Refused(Cow<'static, str>),
    /// What came is no reply: cut off, empty, too long, or not what the protocol says.
    #[error("the model's reply is of no use: {0}")]
    Garbage(Cow<'static, str>),
}

impl ModelFault {
    /// An endpoint that cannot be used at present.
    pub fn unavailable(why: impl Into<Cow<'static, str>>) -> Self {
        Self::Unavailable {
            why: why.into(),
            retry_after: None,
        }
    }

    /// Its cause in metrics and traces.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "unavailable",
            Self::OverBudget(_) => "over_budget",
            Self::TimedOut => "timed_out",
            Self::Refused(_) => "refused",
            Self::Garbage(_) => "garbage",
        }
    }

    /// Whether the same call may have a reply later: what a rule did in its place is then worth doing again.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { .. } | Self::OverBudget(_) | Self::TimedOut => true,
            Self::Refused(_) | Self::Garbage(_) => false,
        }
    }
}

impl From<ModelFault> for Fault {
    fn from(fault: ModelFault) -> Self {
        let message = fault.to_string();
        let (kind, reason, wait) = match fault {
            ModelFault::Unavailable { retry_after, .. } => {
                (FaultKind::Unavailable, "MODEL_UNAVAILABLE", retry_after)
            }
            ModelFault::OverBudget(_) => (FaultKind::ResourceExhausted, "MODEL_BUDGET", None),
            ModelFault::TimedOut => (FaultKind::DeadlineExceeded, "MODEL_TIMEOUT", None),
            ModelFault::Refused(_) => (FaultKind::FailedPrecondition, "MODEL_REFUSED", None),
            ModelFault::Garbage(_) => (FaultKind::Unavailable, "MODEL_GARBAGE", None),
        };
        let fault = Self::new(kind, reason, message);
        match wait {
            Some(wait) => fault.retry_after(wait),
            None => fault,
        }
    }
}

/// A model, or several behind one endpoint.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Which model answers an agent; stored with what came of it.
    fn name(&self, agent: Agent) -> Arc<str>;

    /// One reply, within the deadline of the call and the budget of the tenant.
    async fn complete(&self, tenant: &TenantId, call: &Call) -> Result<Reply, ModelFault>;

    /// The same in pieces, as they are said.
    async fn stream(&self, tenant: &TenantId, call: &Call) -> Result<Pieces, ModelFault>;

    /// The reply to this call was of no use: an equal call asks again instead of having it from a cache.
    fn discard(&self, tenant: &TenantId, call: &Call);
}
