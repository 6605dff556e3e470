//! Small exchanges in the shape of each provider, written by hand.

use memfleet_provider::Format;

macro_rules! recorded {
    ($name:literal) => {
        include_bytes!(concat!("../recorded/", $name)).as_slice()
    };
}

pub const REQUESTS: [(Format, &[u8]); 7] = [
    (Format::OpenaiChat, recorded!("requests/openai_chat.json")),
    (
        Format::OpenaiChat,
        recorded!("requests/openai_chat_images.json"),
    ),
    (
        Format::OpenaiResponses,
        recorded!("requests/openai_responses.json"),
    ),
    (
        Format::OpenaiResponses,
        recorded!("requests/openai_responses_text.json"),
    ),
    (
        Format::AnthropicMessages,
        recorded!("requests/anthropic_messages.json"),
    ),
    (Format::Gemini, recorded!("requests/gemini.json")),
    (Format::OllamaChat, recorded!("requests/ollama_chat.json")),
];

/// Each calls memory, the client's `weather`, and memory again.
pub const REPLIES: [(Format, &[u8]); 5] = [
    (Format::OpenaiChat, recorded!("replies/openai_chat.json")),
    (
        Format::OpenaiResponses,
        recorded!("replies/openai_responses.json"),
    ),
    (
        Format::AnthropicMessages,
        recorded!("replies/anthropic_messages.json"),
    ),
    (Format::Gemini, recorded!("replies/gemini.json")),
    (Format::OllamaChat, recorded!("replies/ollama_chat.json")),
];

/// The same replies, streamed.
pub const STREAMS: [(Format, &[u8]); 5] = [
    (Format::OpenaiChat, recorded!("streams/openai_chat.txt")),
    (
        Format::OpenaiResponses,
        recorded!("streams/openai_responses.txt"),
    ),
    (
        Format::AnthropicMessages,
        recorded!("streams/anthropic_messages.txt"),
    ),
    (Format::Gemini, recorded!("streams/gemini.txt")),
    (Format::OllamaChat, recorded!("streams/ollama_chat.txt")),
];

/// The request of a format with the most in it.
pub fn request(format: Format) -> &'static [u8] {
    REQUESTS.iter().find(|(of, _)| *of == format).unwrap().1
}

pub fn reply(format: Format) -> &'static [u8] {
    REPLIES.iter().find(|(of, _)| *of == format).unwrap().1
}

pub fn stream(format: Format) -> &'static [u8] {
    STREAMS.iter().find(|(of, _)| *of == format).unwrap().1
}
