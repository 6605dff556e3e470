//! What can go wrong with one request, with what decides whether it is sent again. Nothing of a body is kept: only what it hints at.

use std::borrow::Cow;
use std::time::Duration;

use async_openai::error::OpenAIError;
use memfleet_ports::language_model::ModelFault;
use memfleet_ports::usage::Kind;

/// Why a request came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The endpoint was not reached; nothing was sent.
    #[error("the endpoint cannot be reached")]
    NotReached,
    /// The connection broke after something was sent.
    #[error("the connection to the endpoint broke")]
    Broken,
    /// The endpoint answered with a status that is no success.
    #[error("the endpoint answered with status {code}")]
    Status {
        /// HTTP status.
        code: u16,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
        /// What it says of our request.
        hint: Hint,
    },
    /// There was no answer in time; `slow` where it had long enough.
    #[error("no answer in time")]
    TimedOut {
        /// Whether that says something of the endpoint.
        slow: bool,
    },
    /// The circuit breaker is open, this much longer.
    #[error("the endpoint failed several times just now")]
    Open(Duration),
    /// No place became free.
    #[error("too many calls at the same time")]
    Busy,
    /// A budget does not cover it.
    #[error("over budget")]
    OverBudget(Kind),
    /// What is used cannot be counted.
    #[error("what models use cannot be counted at present")]
    Uncounted,
    /// The model will not.
    #[error("{0}")]
    Refused(&'static str),
    /// Not what the protocol says.
    #[error("{0}")]
    Garbage(&'static str),
}

/// What the body of an error mentions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent observations")]
pub struct Hint {
    /// The newer name of the limit of tokens.
    pub newer_limit: bool,
    /// `temperature`.
    pub temperature: bool,
    /// `stream_options`.
    pub stream_options: bool,
    /// That the prompt is too long.
    pub too_long: bool,
    /// That the account has nothing left.
    pub quota: bool,
}

impl Hint {
    /// Of this body.
    pub fn of(body: &str) -> Self {
        Self {
            newer_limit: body.contains("max_completion_tokens"),
            temperature: body.contains("temperature"),
            stream_options: body.contains("stream_options"),
            too_long: body.contains("context_length") || body.contains("context length"),
            quota: body.contains("insufficient_quota"),
        }
    }
}

impl Failure {
    /// Whether the same request may succeed in a moment.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotReached | Self::Broken => true,
            Self::Status { code, hint, .. } => match code {
                408 | 425 | 500..=599 => *code != 501,
                429 => !hint.quota,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether it speaks against the endpoint rather than the request.
    pub fn is_of_endpoint(&self) -> bool {
        match self {
            Self::NotReached | Self::Broken => true,
            Self::TimedOut { slow } => *slow,
            Self::Status { code, .. } => {
                matches!(code, 401 | 402 | 403 | 404 | 408 | 425 | 429 | 500..=599)
            }
            _ => false,
        }
    }

    /// Whether the input may be what it fails on. Who has too much to do, or was not reached, has not looked at it.
    pub fn may_be_of_input(&self) -> bool {
        match self {
            Self::Broken => true,
            Self::TimedOut { slow } => *slow,
            Self::Status { code, .. } => matches!(code, 500..=599) && !matches!(code, 503 | 529),
            _ => false,
        }
    }

    /// Whether the endpoint surely charged nothing.
    pub fn is_free(&self) -> bool {
        matches!(self, Self::NotReached | Self::Status { .. })
    }

    /// When the endpoint wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Open(left) => Some(*left),
            _ => None,
        }
    }
}

/// What the key may do is a matter of configuration; a status that speaks of the request will not change.
fn status(code: u16) -> Result<&'static str, &'static str> {
    match code {
        401 | 403 => Ok("the endpoint refuses the key: see `language_model.key`"),
        402 => Ok("the account at the endpoint has nothing left"),
        404 => {
            Ok("the endpoint does not know the model or the path: see `language_model.base_url`")
        }
        429 => Ok("the endpoint has too much to do, or the account has nothing left"),
        300..=399 => Ok("the endpoint is elsewhere: see `language_model.base_url`"),
        408 | 425 | 500..=599 => Ok("the endpoint failed"),
        413 => Err("the prompt is too long"),
        _ => Err("the endpoint does not take the request"),
    }
}

impl From<Failure> for ModelFault {
    fn from(failure: Failure) -> Self {
        let retry_after = failure.retry_after();
        match failure {
            Failure::OverBudget(kind) => Self::OverBudget(kind),
            Failure::TimedOut { .. } => Self::TimedOut,
            Failure::Refused(why) => Self::Refused(why.into()),
            Failure::Garbage(why) => Self::Garbage(why.into()),
            Failure::Status { code, .. } => match status(code) {
                Ok(why) => Self::Unavailable {
                    why: why.into(),
                    retry_after,
                },
                Err(why) => Self::Refused(why.into()),
            },
            other => Self::Unavailable {
                why: Cow::Owned(other.to_string()),
                retry_after,
            },
        }
    }
}

impl From<Failure> for OpenAIError {
    fn from(failure: Failure) -> Self {
        Self::Boxed(Box::new(failure))
    }
}

impl From<OpenAIError> for Failure {
    fn from(error: OpenAIError) -> Self {
        match error {
            OpenAIError::Boxed(inner) => match inner.downcast::<Self>() {
                Ok(failure) => *failure,
                Err(_) => Self::Garbage("it is not HTTP as we know it"),
            },
            OpenAIError::Reqwest(_) | OpenAIError::StreamError(_) => Self::Broken,
            _ => Self::Garbage("it is not what the protocol says"),
        }
    }
}
