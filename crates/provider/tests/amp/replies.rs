//! Replies in one piece (AMP items 27, 28, 33).

use crate::recorded::{REPLIES, reply};
use memfleet_provider::reply::{Answer, Calls, Finish, Reply, Usage, continuation, visible};
use memfleet_provider::tools::Names;
use memfleet_provider::{Edit, Format, Request};
use serde_json::Value;

pub fn answer(text: &str) -> Answer {
    Answer {
        text: text.to_owned(),
        is_error: false,
    }
}

#[test]
fn replies_of_all_formats_say_the_same() {
    for (format, body) in REPLIES {
        let reply = Reply::parse(format, body).unwrap();
        let names: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(
            names,
            ["memfleet_memory_search", "weather", "memfleet_memory_get"],
            "{format:?}"
        );
        let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
        assert_eq!(arguments["query"], "winter coat");
        assert_eq!(reply.finish, Finish::ToolCalls);
        let cached = if format == Format::OllamaChat { 0 } else { 64 };
        assert_eq!(
            reply.usage,
            Usage {
                input: 120,
                cached,
                output: 40
            }
        );
        assert_eq!(reply.calls_of(&Names::default()), Calls::Mixed);
        if format != Format::OpenaiResponses {
            assert_eq!(reply.text, "Let me look.");
        }
    }
}

#[test]
fn what_a_reader_sees_or_hears_is_the_text() {
    for (message, text) in [
        (
            r#"{"content":null,"refusal":"I can't help with that."}"#,
            "I can't help with that.",
        ),
        (
            r#"{"content":null,"audio":{"id":"a","data":"AA","transcript":"Hello there"}}"#,
            "Hello there",
        ),
        (
            r#"{"content":[{"type":"text","text":"One"},{"type":"refusal","refusal":" two"}]}"#,
            "One two",
        ),
    ] {
        let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
        let reply = Reply::parse(Format::OpenaiChat, body.as_bytes()).unwrap();
        assert_eq!(reply.text, text);
    }
    let body = br#"{"output":[{"type":"message","content":[{"type":"output_text","text":"One"},{"type":"refusal","refusal":" two"},{"type":"output_audio","transcript":" three"}]}],"status":"completed"}"#;
    let reply = Reply::parse(Format::OpenaiResponses, body).unwrap();
    assert_eq!(reply.text, "One two three");
}

#[test]
fn a_refusal_that_is_sent_back_is_what_the_assistant_said() {
    for (format, body) in [
        (
            Format::OpenaiChat,
            r#"{"messages":[{"role":"assistant","content":null,"refusal":"No."}]}"#,
        ),
        (
            Format::OpenaiChat,
            r#"{"messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"input":[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]}"#,
        ),
    ] {
        let request = Request::parse(format, body.as_bytes()).unwrap();
        let texts = request.conversation().texts().collect::<Vec<_>>();
        assert_eq!(texts, ["No."], "{body}");
    }
}

#[test]
fn amp_028_the_client_sees_nothing_of_memory() {
    for (format, body) in REPLIES {
        let seen = visible(format, body, &Names::default()).unwrap();
        let text = String::from_utf8(seen.clone()).unwrap();
        for word in ["memfleet", "call_m1", "call_m2", "winter coat"] {
            assert!(!text.contains(word), "{format:?} {word}: {text}");
        }
        let reply = Reply::parse(format, &seen).unwrap();
        assert_eq!(reply.calls.len(), 1);
        assert_eq!(reply.calls[0].name, "weather");
        assert_eq!(reply.finish, Finish::ToolCalls);
        assert_eq!(
            reply.reasoning,
            Reply::parse(format, body).unwrap().reasoning
        );
        assert_eq!(visible(format, &seen, &Names::default()).unwrap(), seen);
    }
}

#[test]
fn amp_028_a_reply_that_called_only_memory_ends_like_an_answer() {
    for (format, body) in REPLIES {
        let names = Names::default();
        let body = String::from_utf8(body.to_vec())
            .unwrap()
            .replace("\"weather\"", "\"memfleet_memory_get\"");
        assert_eq!(
            Reply::parse(format, body.as_bytes())
                .unwrap()
                .calls_of(&names),
            Calls::Memory
        );
        let seen = visible(format, body.as_bytes(), &names).unwrap();
        let reply = Reply::parse(format, &seen).unwrap();
        assert!(reply.calls.is_empty());
        assert_eq!(reply.finish, Finish::Stop, "{format:?}");
        assert!(!String::from_utf8(seen).unwrap().contains("tool_calls"));
    }
}

#[test]
fn amp_033_the_models_turn_goes_back_byte_for_byte() {
    for (format, body) in REPLIES {
        let reply = Reply::parse(format, body).unwrap();
        let answers = [answer("coat: blue"), answer("4 °C"), answer("t1 …")];
        let messages = continuation(format, &reply, &answers);
        let body = String::from_utf8(body.to_vec()).unwrap();
        for message in &reply.messages {
            let sent = match format {
                Format::AnthropicMessages => {
                    &message[r#"{"role":"assistant","content":"#.len()..message.len() - 1]
                }
                _ => message.as_str(),
            };
            assert!(body.contains(sent), "{format:?}");
        }
        for block in &reply.reasoning {
            assert!(
                messages
                    .iter()
                    .any(|message| message.contains(block.as_str()))
            );
        }
    }
}

#[test]
fn amp_027_every_call_is_answered_once_in_the_next_request() {
    for (format, body) in REPLIES {
        let reply = Reply::parse(format, body).unwrap();
        let mut answers = [answer("coat: \"blue\""), answer("4 °C"), answer("gone")];
        answers[2].is_error = true;
        let request = Request::parse(format, crate::recorded::request(format)).unwrap();
        let edits = [Edit::InsertMessages {
            at: request.conversation().messages.len(),
            messages: continuation(format, &reply, &answers),
        }];
        let next = request.apply(&edits).unwrap();
        let next = Request::parse(format, &next).unwrap();
        let added = &next.conversation().messages[request.conversation().messages.len()..];
        let parts = added.iter().flat_map(|message| &message.content.parts);
        let results: Vec<&str> = parts
            .filter(|part| part.kind == memfleet_provider::conversation::PartKind::ToolResult)
            .map(|part| part.text.as_deref().unwrap())
            .collect();
        assert_eq!(results.len(), 3, "{format:?}");
        for (result, answer) in results.iter().zip(&answers) {
            let json = serde_json::to_string(&answer.text).unwrap();
            assert!(
                *result == answer.text || result.contains(&json),
                "{format:?} {result}"
            );
        }
    }
}

#[test]
fn rounds_add_up() {
    let mut usage = Reply::parse(Format::Gemini, reply(Format::Gemini))
        .unwrap()
        .usage;
    usage += usage;
    assert_eq!(
        usage,
        Usage {
            input: 240,
            cached: 128,
            output: 80
        }
    );
    usage += Usage {
        input: u64::MAX,
        cached: 0,
        output: 0,
    };
    assert_eq!(usage.input, u64::MAX);
}

#[test]
fn what_is_no_reply_is_refused_or_empty() {
    for &format in Format::ALL {
        for body in [
            "",
            "[]",
            "{\"choices\":[1],\"candidates\":[1]}",
            "{\"choices\":3,\"content\":3,\"output\":3,\"message\":3,\"candidates\":3}",
        ] {
            assert!(
                Reply::parse(format, body.as_bytes()).is_err(),
                "{format:?} {body}"
            );
        }
    }
    let blocked = br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#;
    let reply = Reply::parse(Format::Gemini, blocked).unwrap();
    assert!(reply.is_empty());
    assert_eq!(reply.finish, Finish::Filtered);
}
