//! The pieces of JSON that are put into a request, in the shape of its provider.

use crate::Format;
use crate::json::quoted;

/// A new part of a list of parts.
pub(crate) fn text_part(format: Format, text: &str) -> String {
    let text = quoted(text);
    match format {
        Format::Gemini => format!(r#"{{"text":{text}}}"#),
        Format::OpenaiResponses => format!(r#"{{"type":"input_text","text":{text}}}"#),
        _ => format!(r#"{{"type":"text","text":{text}}}"#),
    }
}

/// The name of the field that holds the system prompt; `None` where it is a message.
pub(crate) fn system_field(format: Format) -> Option<&'static str> {
    match format {
        Format::OpenaiChat | Format::OllamaChat => None,
        Format::OpenaiResponses => Some("instructions"),
        Format::AnthropicMessages => Some("system"),
        Format::Gemini => Some("systemInstruction"),
    }
}

/// A new system prompt: the value of its field, or a message.
pub(crate) fn system(format: Format, text: &str) -> String {
    let quoted = quoted(text);
    match format {
        Format::OpenaiChat | Format::OllamaChat => {
            format!(r#"{{"role":"system","content":{quoted}}}"#)
        }
        Format::OpenaiResponses | Format::AnthropicMessages => quoted,
        Format::Gemini => format!(r#"{{"parts":[{}]}}"#, text_part(format, text)),
    }
}

/// The field that forbids tools and its value; `None` where there is no such thing.
pub(crate) fn no_tools(format: Format) -> Option<(&'static str, &'static str)> {
    match format {
        Format::OpenaiChat | Format::OpenaiResponses => Some(("tool_choice", r#""none""#)),
        Format::AnthropicMessages => Some(("tool_choice", r#"{"type":"none"}"#)),
        Format::Gemini => Some(("functionCallingConfig", r#"{"mode":"NONE"}"#)),
        Format::OllamaChat => None,
    }
}
