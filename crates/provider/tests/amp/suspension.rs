//! A mixed reply, what the client makes of it, and the request that follows (AMP items 27, 28, 33).

use crate::recorded::{REPLIES, reply};
use crate::replies::answer;
use memfleet_provider::conversation::{PartKind, Role};
use memfleet_provider::reply::{Reply, visible};
use memfleet_provider::suspended::{Suspended, Unresumable};
use memfleet_provider::tools::Names;
use memfleet_provider::{Format, Request};
use serde_json::{Value, json};

fn suspended(format: Format) -> Suspended {
    let reply = Reply::parse(format, reply(format)).unwrap();
    let before = match format {
        Format::Gemini => r#"{"role":"model","parts":[{"text":"hidden"}]}"#,
        _ => r#"{"role":"assistant","content":"hidden"}"#,
    };
    let answers = vec![answer("first"), answer("second")];
    let kept = Suspended::new(
        format,
        &Names::default(),
        reply,
        vec![before.to_owned()],
        answers,
    );
    serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap()
}

/// What a client sends that saw the visible reply and ran its tool.
fn next_request(format: Format, result: &str) -> String {
    let seen = visible(format, reply(format), &Names::default()).unwrap();
    let seen: Value = serde_json::from_slice(&seen).unwrap();
    let question = "What should I wear?";
    let body = match format {
        Format::OpenaiChat => json!({"messages": [
            {"role": "user", "content": question},
            seen["choices"][0]["message"],
            {"role": "tool", "tool_call_id": "call_w2", "content": result},
        ]}),
        Format::OpenaiResponses => {
            let mut input = vec![json!({"role": "user", "content": question})];
            input.extend(seen["output"].as_array().unwrap().clone());
            input.push(
                json!({"type": "function_call_output", "call_id": "call_w2", "output": result}),
            );
            json!({"input": input})
        }
        Format::AnthropicMessages => json!({"messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": seen["content"]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_w2", "content": result}]},
        ]}),
        Format::Gemini => json!({"contents": [
            {"role": "user", "parts": [{"text": question}]},
            seen["candidates"][0]["content"],
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": result}}}]},
        ]}),
        Format::OllamaChat => json!({"messages": [
            {"role": "user", "content": question},
            seen["message"],
            {"role": "tool", "tool_name": "weather", "content": result},
        ]}),
    };
    body.to_string()
}

#[test]
fn amp_027_both_sets_of_calls_are_answered_exactly_once() {
    for (format, _) in REPLIES {
        let body = next_request(format, "4 °C");
        let request = Request::parse(format, body.as_bytes()).unwrap();
        let edits = suspended(format).resume(&request).unwrap();
        let after = request.apply(&edits).unwrap();
        let resumed = Request::parse(format, &after).unwrap();
        let parts = || {
            resumed
                .conversation()
                .messages
                .iter()
                .flat_map(|m| &m.content.parts)
        };
        let calls: Vec<&str> = parts()
            .filter(|part| part.kind == PartKind::ToolCall)
            .map(|part| part.call.as_ref().unwrap().name.as_deref().unwrap())
            .collect();
        assert_eq!(
            calls,
            ["memfleet_memory_search", "weather", "memfleet_memory_get"],
            "{format:?}"
        );
        let results: Vec<&str> = parts()
            .filter(|part| part.kind == PartKind::ToolResult)
            .map(|part| part.text.as_deref().unwrap())
            .collect();
        assert_eq!(results.len(), 3, "{format:?}");
        for text in ["first", "second", "4 °C"] {
            let count = results
                .iter()
                .filter(|result| result.contains(text))
                .count();
            assert_eq!(count, 1, "{format:?} {text}");
        }
        assert!(String::from_utf8_lossy(&after).contains("hidden"));
        let roles: Vec<Role> = resumed
            .conversation()
            .messages
            .iter()
            .map(|m| m.role)
            .collect();
        assert_eq!(
            roles[..3],
            [Role::User, Role::Assistant, Role::Assistant],
            "{format:?}"
        );
    }
}

#[test]
fn amp_033_the_turn_of_a_mixed_reply_is_what_the_provider_sent() {
    for (format, body) in REPLIES {
        let text = next_request(format, "4 °C");
        let request = Request::parse(format, text.as_bytes()).unwrap();
        let after = request
            .apply(&suspended(format).resume(&request).unwrap())
            .unwrap();
        let after = String::from_utf8(after).unwrap();
        let reply = Reply::parse(format, body).unwrap();
        for block in reply.reasoning {
            assert!(after.contains(&block), "{format:?} {block}");
        }
        if format != Format::OpenaiResponses {
            assert!(after.contains(&reply.messages[0]));
        }
    }
}

#[test]
fn amp_027_a_stored_response_needs_the_answers_only() {
    let body = br#"{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"call_w2","output":"4"}]}"#;
    let request = Request::parse(Format::OpenaiResponses, body).unwrap();
    let edits = suspended(Format::OpenaiResponses).resume(&request).unwrap();
    let after: Value = serde_json::from_slice(&request.apply(&edits).unwrap()).unwrap();
    let ids: Vec<&str> = after["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|i| i["call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["call_m1", "call_m2", "call_w2"]);
}

#[test]
fn amp_027_a_request_that_does_not_answer_is_told_apart() {
    for (format, _) in REPLIES {
        let kept = suspended(format);
        let other = crate::recorded::request(format);
        let other = Request::parse(format, other).unwrap();
        assert!(kept.resume(&other).is_err(), "{format:?}");
        let body: Value = serde_json::from_str(&next_request(format, "x")).unwrap();
        let field = match format {
            Format::Gemini => "contents",
            Format::OpenaiResponses => "input",
            _ => "messages",
        };
        let mut unanswered = body.clone();
        unanswered[field].as_array_mut().unwrap().pop();
        let text = unanswered.to_string();
        let request = Request::parse(format, text.as_bytes()).unwrap();
        assert_eq!(
            kept.resume(&request),
            Err(Unresumable::Unanswered),
            "{format:?}"
        );
        let mut twice = body;
        let messages = twice[field].as_array_mut().unwrap();
        messages.push(messages.last().unwrap().clone());
        let text = twice.to_string();
        let request = Request::parse(format, text.as_bytes()).unwrap();
        assert_eq!(
            kept.resume(&request),
            Err(Unresumable::Unanswered),
            "{format:?}"
        );
    }
    let request = Request::parse(Format::OpenaiChat, br#"{"messages":[]}"#).unwrap();
    assert_eq!(
        suspended(Format::Gemini).resume(&request),
        Err(Unresumable::Format)
    );
}

#[test]
fn amp_027_one_call_answered_twice_does_not_stand_for_two() {
    let call = |id: &str, name: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}});
    let client = [call("a", "weather"), call("b", "weather")];
    let mut all = client.to_vec();
    all.insert(1, call("m", "memfleet_memory_search"));
    let message = json!({"role": "assistant", "content": null, "tool_calls": all});
    let body =
        json!({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).to_string();
    let reply = Reply::parse(Format::OpenaiChat, body.as_bytes()).unwrap();
    let kept = Suspended::new(
        Format::OpenaiChat,
        &Names::default(),
        reply,
        Vec::new(),
        Vec::new(),
    );
    let next = |first: &str, second: &str| {
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": "x"});
        let calls = json!({"role": "assistant", "content": null, "tool_calls": client});
        json!({"messages": [calls, result(first), result(second)]}).to_string()
    };
    let twice = next("a", "a");
    let request = Request::parse(Format::OpenaiChat, twice.as_bytes()).unwrap();
    assert_eq!(kept.resume(&request), Err(Unresumable::Unanswered));
    let each = next("b", "a");
    let request = Request::parse(Format::OpenaiChat, each.as_bytes()).unwrap();
    let after = request.apply(&kept.resume(&request).unwrap()).unwrap();
    let after: Value = serde_json::from_slice(&after).unwrap();
    assert_eq!(after["messages"][0], message);
    // Memory had no answer: the model is told so rather than left without.
    assert_eq!(after["messages"][1]["tool_call_id"], "m");
    assert_eq!(after["messages"].as_array().unwrap().len(), 4);
}
