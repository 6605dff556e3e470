//! What is read of a request, and what is refused.

use crate::recorded::{REQUESTS, request};
use memfleet_provider::conversation::{PartKind, ToolChoice};
use memfleet_provider::{Edit, Format, Inapplicable, Place, Reason, Request};

fn refused(format: Format, body: &str) -> String {
    Request::parse(format, body.as_bytes())
        .unwrap_err()
        .to_string()
}

#[test]
fn everything_that_a_request_says_is_read() {
    let chat = Request::parse(Format::OpenaiChat, request(Format::OpenaiChat)).unwrap();
    let conversation = chat.conversation();
    assert_eq!(conversation.model.as_deref(), Some("gpt-4o-mini"));
    assert!(conversation.streams);
    assert_eq!(conversation.max_output_tokens, Some(512));
    assert_eq!(conversation.tools[0].name, "weather");
    let call = &conversation.messages[2].content.parts[0];
    assert_eq!(call.kind, PartKind::ToolCall);
    assert_eq!(call.text.as_deref(), Some("{\"city\":\"Oslo\"}"));
    let ollama = Request::parse(Format::OllamaChat, request(Format::OllamaChat)).unwrap();
    assert_eq!(ollama.conversation().window_tokens, Some(8192));
    assert_eq!(ollama.conversation().max_output_tokens, None);
    assert!(!ollama.conversation().streams);
    let gemini = Request::parse(Format::Gemini, request(Format::Gemini)).unwrap();
    let names: Vec<&str> = gemini
        .conversation()
        .tools
        .iter()
        .map(|tool| &*tool.name)
        .collect();
    assert_eq!(names, ["googleSearch", "weather"]);
    let texts: Vec<&str> = gemini.conversation().texts().take(2).collect();
    assert_eq!(texts, ["Sei knapp.", "Was ist das?"]);
}

#[test]
fn a_choice_of_tools_is_read_in_every_shape() {
    let choice = |format, fields: &str| {
        let messages = match format {
            Format::Gemini => "\"contents\":[]",
            Format::OpenaiResponses => "\"input\":[]",
            _ => "\"messages\":[]",
        };
        let body = format!("{{{messages},{fields}}}");
        let request = Request::parse(format, body.as_bytes()).unwrap();
        request.conversation().tool_choice
    };
    for (format, fields, expected) in [
        (
            Format::OpenaiChat,
            r#""tool_choice":"none""#,
            ToolChoice::None,
        ),
        (
            Format::OpenaiChat,
            r#""tool_choice":"required""#,
            ToolChoice::Required,
        ),
        (
            Format::OpenaiChat,
            r#""tool_choice":{"type":"function","function":{"name":"f"}}"#,
            ToolChoice::Forced,
        ),
        (
            Format::OpenaiResponses,
            r#""tool_choice":{"type":"web_search"}"#,
            ToolChoice::Forced,
        ),
        (
            Format::OpenaiResponses,
            r#""tool_choice":"auto""#,
            ToolChoice::Auto,
        ),
        (
            Format::AnthropicMessages,
            r#""tool_choice":{"type":"tool","name":"f"}"#,
            ToolChoice::Forced,
        ),
        (
            Format::AnthropicMessages,
            r#""tool_choice":{"type":"none"}"#,
            ToolChoice::None,
        ),
        (
            Format::Gemini,
            r#""toolConfig":{"functionCallingConfig":{"mode":"NONE"}}"#,
            ToolChoice::None,
        ),
        (
            Format::Gemini,
            r#""tool_config":{"function_calling_config":{"mode":"ANY","allowed_function_names":["f"]}}"#,
            ToolChoice::Forced,
        ),
        (Format::Gemini, r#""toolConfig":{}"#, ToolChoice::Auto),
    ] {
        assert_eq!(choice(format, fields), expected, "{fields}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_path() {
    let chat = Format::OpenaiChat;
    assert_eq!(refused(chat, "{}"), "messages: is missing");
    assert_eq!(refused(chat, "[]"), "body: is not an object");
    assert_eq!(
        refused(chat, r#"{"messages":{}}"#),
        "messages: is not an array"
    );
    assert_eq!(
        refused(chat, r#"{"messages":[1]}"#),
        "messages[0]: is not an object"
    );
    assert_eq!(
        refused(chat, r#"{"messages":[{"content":"a"}]}"#),
        "messages[0].role: is missing"
    );
    assert_eq!(
        refused(
            chat,
            r#"{"messages":[{"role":"user","content":[{"type":"text"}]}]}"#
        ),
        "messages[0].content[0].text: is missing"
    );
    assert_eq!(
        refused(chat, r#"{"messages":[{"role":"user","content":"\ud83d"}]}"#),
        "messages[0].content: holds half of a surrogate pair"
    );
    assert_eq!(
        refused(chat, r#"{"messages":[],"messages":[]}"#),
        "body: the key \"messages\" stands there twice"
    );
    assert_eq!(
        refused(
            Format::Gemini,
            r#"{"contents":[],"systemInstruction":{"parts":[]},"system_instruction":{"parts":[]}}"#
        ),
        "body: the key \"system_instruction\" stands there twice"
    );
    assert_eq!(
        refused(
            Format::OpenaiResponses,
            r#"{"input":[{"type":"message","role":"user","content":7}]}"#
        ),
        "input[0].content: is not a string or an array"
    );
    assert_eq!(
        refused(Format::AnthropicMessages, r#"{"messages":[],"tools":[3]}"#),
        "tools[0]: is not an object"
    );
}

#[test]
fn amp_118_a_large_picture_passes_and_deep_nesting_does_not() {
    let picture = "A".repeat(20 << 20);
    let body = format!(
        r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"q"}},{{"type":"image","source":{{"data":"{picture}"}}}}]}}]}}"#
    );
    let request = Request::parse(Format::AnthropicMessages, body.as_bytes()).unwrap();
    let place = Place::Message(0);
    let after = request
        .apply(&[Edit::AppendPart {
            place,
            text: "B".to_owned(),
        }])
        .unwrap();
    assert_eq!(
        after.len(),
        body.len() + r#",{"type":"text","text":"B"}"#.len()
    );
    let deep = format!(
        r#"{{"messages":[],"x":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let error = Request::parse(Format::OpenaiChat, deep.as_bytes()).unwrap_err();
    assert_eq!(error.reason, Reason::TooDeep(128));
}

#[test]
fn a_list_of_one_may_be_its_element_alone() {
    let body = br#"{"system_instruction":{"parts":{"text":"be kind"}}, "contents": {"role":"user","parts":{"text":"q"}},"tools":{"functionDeclarations":{"name":"f"}}}"#;
    let request = Request::parse(Format::Gemini, body).unwrap();
    let conversation = request.conversation();
    assert_eq!(
        conversation.texts().take(2).collect::<Vec<_>>(),
        ["be kind", "q"]
    );
    assert_eq!(conversation.tools[0].name, "f");
    let changed = |edits: &[Edit]| String::from_utf8(request.apply(edits).unwrap()).unwrap();
    let added = changed(&[
        Edit::AppendPart {
            place: Place::Message(0),
            text: "m".to_owned(),
        },
        Edit::InsertMessages {
            at: 0,
            messages: vec![r#"{"parts":[]}"#.to_owned()],
        },
        Edit::AddTool {
            definition: r#"{"name":"g"}"#.to_owned(),
        },
    ]);
    assert_eq!(
        added,
        r#"{"system_instruction":{"parts":{"text":"be kind"}}, "contents": [{"parts":[]},{"role":"user","parts":[{"text":"q"},{"text":"m"}]}],"tools":{"functionDeclarations":[{"name":"f"},{"name":"g"}]}}"#
    );
    for (messages, contents) in [
        (vec![], "[]"),
        (vec!["1".to_owned(), "2".to_owned()], "[1,2]"),
    ] {
        let replaced = changed(&[Edit::ReplaceMessage { at: 0, messages }]);
        assert!(
            replaced.contains(&format!("\"contents\": {contents},")),
            "{replaced}"
        );
    }
    let without = changed(&[Edit::RemoveTool {
        name: "f".to_owned(),
    }]);
    assert!(!without.contains("tools"), "{without}");
}

#[test]
fn edits_without_a_place_are_refused() {
    let text = || "x".to_owned();
    for (format, body) in REQUESTS {
        let request = Request::parse(format, body).unwrap();
        let place = Place::Message(99);
        let error = request.apply(&[Edit::AppendText {
            place,
            text: text(),
        }]);
        assert_eq!(error, Err(Inapplicable::NoMessage(99)));
        let error = request.apply(&[Edit::AddTool {
            definition: "{".to_owned(),
        }]);
        assert_eq!(error, Err(Inapplicable::NotJson));
        let error = request.apply(&[Edit::RemoveTool {
            name: "none such".to_owned(),
        }]);
        assert!(matches!(error, Err(Inapplicable::NoTool(_))));
    }
    let request = Request::parse(
        Format::AnthropicMessages,
        request(Format::AnthropicMessages),
    )
    .unwrap();
    let both = [
        Edit::ReplaceMessage {
            at: 0,
            messages: vec!["{}".to_owned()],
        },
        Edit::AppendPart {
            place: Place::Message(0),
            text: text(),
        },
    ];
    assert_eq!(request.apply(&both), Err(Inapplicable::Conflict));
    assert_eq!(
        request.apply(&[Edit::InsertSystem { text: text() }]),
        Err(Inapplicable::SystemExists)
    );
}

#[test]
fn what_is_inserted_comes_before_what_replaces_the_same_message() {
    let body = br#"{"messages":[{"role":"user","content":"a"}, {"role":"user","content":"b"}]}"#;
    let request = Request::parse(Format::OpenaiChat, body).unwrap();
    let edits = [
        Edit::ReplaceMessage {
            at: 1,
            messages: vec!["3".to_owned(), "4".to_owned()],
        },
        Edit::InsertMessages {
            at: 1,
            messages: vec!["1".to_owned(), "2".to_owned()],
        },
        Edit::InsertMessages {
            at: 2,
            messages: vec!["5".to_owned()],
        },
        Edit::InsertSystem {
            text: "s".to_owned(),
        },
    ];
    let after = String::from_utf8(request.apply(&edits).unwrap()).unwrap();
    let system = r#"{"role":"system","content":"s"}"#;
    let first = r#"{"role":"user","content":"a"}"#;
    assert_eq!(
        after,
        format!(r#"{{"messages":[{system},{first}, 1,2,3,4,5]}}"#)
    );
}
