//! The shapes of requests and replies that are understood.

use serde::{Deserialize, Serialize};

/// Whose API a body belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `OpenAI` chat completions, and the many servers that speak it.
    OpenaiChat,
    /// `OpenAI` responses.
    OpenaiResponses,
    /// Anthropic messages.
    AnthropicMessages,
    /// Gemini `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Ollama `/api/chat`.
    OllamaChat,
}

impl Format {
    /// Every format, for tests and listings.
    pub const ALL: [Self; 5] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::AnthropicMessages,
        Self::Gemini,
        Self::OllamaChat,
    ];
}
