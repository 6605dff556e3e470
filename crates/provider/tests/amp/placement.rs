//! Where memory goes (AMP sections A and B).

use crate::recorded::{REQUESTS, request};
use memfleet_provider::conversation::{Content, Message, Part, PartKind, Role};
use memfleet_provider::placement::{
    Nowhere, Obstacle, Placement, Profile, SEPARATOR, Site, Strategy, place,
};
use memfleet_provider::{Conversation, Edit, Format, Place, Reason, Request};

pub const BLOCK: &str =
    "<memory nonce=\"n1\">\nAda: \"I live in Oslo\\.\" 日本🙂\u{1}\n</memory nonce=\"n1\">";

fn placed(conversation: &Conversation<'_>, strategy: Strategy) -> Placement {
    place(conversation, &[strategy], Profile::default(), false).unwrap()
}

/// The body with the block in it.
fn with_block(format: Format, body: &[u8], strategy: Strategy) -> (Vec<u8>, Vec<Edit>) {
    let request = Request::parse(format, body).unwrap();
    let edits = placed(request.conversation(), strategy).edits(Some(format), BLOCK);
    (request.apply(&edits).unwrap(), edits)
}

/// What was put in, given that all else is as it was.
fn inserted<'a>(before: &[u8], after: &'a [u8]) -> &'a [u8] {
    let same = |(one, other): &(&u8, &u8)| one == other;
    let prefix = before.iter().zip(after).take_while(same).count();
    let rest = before.len() - prefix;
    assert_eq!(
        &before[prefix..],
        &after[after.len() - rest..],
        "other bytes changed"
    );
    &after[prefix..after.len() - rest]
}

fn user(text: &str) -> Message<'_> {
    Message::text(Role::User, text)
}

fn nowhere(messages: Vec<Message<'_>>) -> Nowhere {
    let conversation = Conversation {
        messages,
        ..Conversation::default()
    };
    let allowed = [Strategy::Append, Strategy::System];
    place(&conversation, &allowed, Profile::default(), false).unwrap_err()
}

#[test]
fn amp_001_append_changes_one_place_of_the_body_and_nothing_else() {
    for (format, body) in REQUESTS {
        let (after, edits) = with_block(format, body, Strategy::Append);
        assert_eq!(edits.len(), 1);
        let inserted = String::from_utf8(inserted(body, &after).to_vec()).unwrap();
        assert!(inserted.contains("I live in Oslo"), "{inserted}");
        let before = Request::parse(format, body).unwrap();
        let reread = Request::parse(format, &after).unwrap();
        let expected = before.conversation().edited(Some(format), &edits).unwrap();
        assert_eq!(reread.conversation(), &expected);
    }
}

#[test]
fn amp_002_the_users_text_is_a_prefix_of_the_new_text() {
    for format in [Format::OpenaiChat, Format::OllamaChat] {
        let body = request(format);
        let (after, _) = with_block(format, body, Strategy::Append);
        let (before, after) = (
            Request::parse(format, body).unwrap(),
            Request::parse(format, &after).unwrap(),
        );
        let at = memfleet_provider::query::target(before.conversation()).unwrap();
        let text = |request: &Request<'_>| {
            let content = &request.conversation().messages[at].content;
            content.texts().next().unwrap().to_owned()
        };
        assert_eq!(text(&after), format!("{}{SEPARATOR}{BLOCK}", text(&before)));
    }
}

#[test]
fn amp_003_lists_get_one_new_part_at_their_end() {
    let body = request(Format::AnthropicMessages);
    let (after, edits) = with_block(Format::AnthropicMessages, body, Strategy::Append);
    assert!(matches!(
        edits[0],
        Edit::AppendPart {
            place: Place::Message(0),
            ..
        }
    ));
    let reread = Request::parse(Format::AnthropicMessages, &after).unwrap();
    let parts = &reread.conversation().messages[0].content.parts;
    let kinds: Vec<PartKind> = parts.iter().map(|part| part.kind).collect();
    let text = PartKind::Text;
    assert_eq!(kinds, [text, PartKind::Image, text, text]);
    assert_eq!(parts[3].text.as_deref(), Some(BLOCK));
}

#[test]
fn amp_004_the_block_comes_after_a_cached_part_and_has_no_marker() {
    let body = request(Format::AnthropicMessages);
    let (after, _) = with_block(Format::AnthropicMessages, body, Strategy::Append);
    let reread = Request::parse(Format::AnthropicMessages, &after).unwrap();
    let parts = &reread.conversation().messages[0].content.parts;
    assert!(parts[2].cached && !parts[3].cached);
    assert_eq!(parts[2].text.as_deref(), Some("See the picture."));
}

#[test]
fn amp_005_results_of_tools_are_no_target() {
    for (format, target) in [
        (Format::AnthropicMessages, 0),
        (Format::OpenaiResponses, 0),
        (Format::OllamaChat, 1),
    ] {
        let request = Request::parse(format, request(format)).unwrap();
        assert_eq!(
            memfleet_provider::query::target(request.conversation()),
            Some(target)
        );
    }
}

#[test]
fn amp_007_no_messages_are_no_error_and_no_target() {
    assert_eq!(nowhere(Vec::new()), Nowhere::NoTarget);
    for (format, body) in [
        (Format::OpenaiChat, "{\"messages\":[]}"),
        (Format::OpenaiResponses, "{\"model\":\"m\"}"),
        (Format::AnthropicMessages, "{\"messages\":[ ]}"),
        (Format::Gemini, "{\"contents\":[]}"),
        (Format::OllamaChat, "{\"messages\":[]}"),
    ] {
        let request = Request::parse(format, body.as_bytes()).unwrap();
        let placed = place(
            request.conversation(),
            &[Strategy::Append],
            Profile::default(),
            true,
        );
        assert_eq!(placed, Err(Nowhere::NoTarget));
        assert_eq!(request.apply(&[]).unwrap(), body.as_bytes());
    }
}

#[test]
fn amp_008_without_a_users_message_there_is_no_target() {
    let others = [
        Role::System,
        Role::Developer,
        Role::Assistant,
        Role::Tool,
        Role::Other,
    ];
    let messages = others.map(|role| Message::text(role, "x"));
    assert_eq!(nowhere(messages.to_vec()), Nowhere::NoTarget);
}

#[test]
fn amp_009_pictures_alone_need_a_query_of_the_caller() {
    let body =
        br#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}]}"#;
    let request = Request::parse(Format::Gemini, body).unwrap();
    let allowed = [Strategy::Append];
    let without = place(request.conversation(), &allowed, Profile::default(), false);
    assert_eq!(without, Err(Nowhere::NoQueryText));
    let with = place(request.conversation(), &allowed, Profile::default(), true).unwrap();
    let after = request
        .apply(&with.edits(Some(Format::Gemini), "B"))
        .unwrap();
    let expected = br#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"B"}]}]}"#;
    assert_eq!(after, expected);
    assert_eq!(nowhere(vec![user("\u{3000}\n")]), Nowhere::NoQueryText);
}

#[test]
fn amp_010_a_prefill_stays_last() {
    let messages = vec![user("q"), Message::text(Role::Assistant, "{")];
    let conversation = Conversation {
        messages,
        ..Conversation::default()
    };
    let placement = placed(&conversation, Strategy::Append);
    let edited = conversation
        .edited(None, &placement.edits(None, "B"))
        .unwrap();
    assert_eq!(edited.messages[0].content, Content::text("q\n\nB"));
    assert_eq!(edited.messages[1], conversation.messages[1]);
}

#[test]
fn amp_011_of_two_messages_of_the_user_the_last_is_changed() {
    let conversation = Conversation {
        messages: vec![user("a"), user("b")],
        ..Conversation::default()
    };
    let edits = placed(&conversation, Strategy::Append).edits(None, "B");
    let place = Place::Message(1);
    assert_eq!(
        edits,
        [Edit::AppendText {
            place,
            text: "\n\nB".to_owned()
        }]
    );
}

#[test]
fn amp_012_content_keeps_its_shape_and_null_is_refused() {
    let body = br#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":null}]}"#;
    for format in [
        Format::OpenaiChat,
        Format::AnthropicMessages,
        Format::OllamaChat,
    ] {
        let error = Request::parse(format, body).unwrap_err();
        assert_eq!(
            (error.path.as_str(), error.reason),
            ("messages[1].content", Reason::Null)
        );
    }
    for format in [
        Format::OpenaiChat,
        Format::AnthropicMessages,
        Format::OllamaChat,
    ] {
        let body = br#"{"messages":[{"role":"user","content":""}]}"#;
        let request = Request::parse(format, body).unwrap();
        let placement = place(
            request.conversation(),
            &[Strategy::Append],
            Profile::default(),
            true,
        );
        let after = request
            .apply(&placement.unwrap().edits(Some(format), "B"))
            .unwrap();
        assert_eq!(after, br#"{"messages":[{"role":"user","content":"B"}]}"#);
    }
}

#[test]
fn amp_014_the_system_strategy_changes_the_system_prompt_only() {
    for (format, body) in REQUESTS {
        let (after, edits) = with_block(format, body, Strategy::System);
        inserted(body, &after);
        let before = Request::parse(format, body).unwrap();
        let reread = Request::parse(format, &after).unwrap();
        let expected = before.conversation().edited(Some(format), &edits).unwrap();
        assert_eq!(reread.conversation(), &expected);
        let others = |conversation: &Conversation<'_>| {
            let messages = conversation.messages.iter().filter(|m| !m.role.is_system());
            format!("{:?}", messages.collect::<Vec<_>>())
        };
        assert_eq!(others(reread.conversation()), others(before.conversation()));
    }
}

#[test]
fn amp_015_a_system_text_is_a_prefix_and_a_system_list_gets_a_part() {
    let (after, _) = with_block(
        Format::OpenaiResponses,
        request(Format::OpenaiResponses),
        Strategy::System,
    );
    let reread = Request::parse(Format::OpenaiResponses, &after).unwrap();
    let system = reread.conversation().system.clone().unwrap();
    assert_eq!(system, Content::text(format!("Be kind.{SEPARATOR}{BLOCK}")));
    let (after, _) = with_block(Format::Gemini, request(Format::Gemini), Strategy::System);
    let reread = Request::parse(Format::Gemini, &after).unwrap();
    let system = reread.conversation().system.clone().unwrap();
    assert_eq!(
        system,
        Content::list(vec![Part::text("Sei knapp."), Part::text(BLOCK)])
    );
}

#[test]
fn amp_016_a_system_prompt_is_made_in_the_providers_shape() {
    for (format, before, after) in [
        (
            Format::OpenaiChat,
            r#"{"messages":[{"role":"user","content":"q"}]}"#,
            r#"{"messages":[{"role":"system","content":"B"},{"role":"user","content":"q"}]}"#,
        ),
        (
            Format::OllamaChat,
            r#"{"messages":[{"role":"user","content":"q"}]}"#,
            r#"{"messages":[{"role":"system","content":"B"},{"role":"user","content":"q"}]}"#,
        ),
        (
            Format::OpenaiResponses,
            r#"{"instructions":null,"input":"q"}"#,
            r#"{"instructions":"B","input":"q"}"#,
        ),
        (
            Format::AnthropicMessages,
            r#"{"messages":[{"role":"user","content":"q"}] }"#,
            r#"{"messages":[{"role":"user","content":"q"}],"system":"B" }"#,
        ),
        (
            Format::Gemini,
            r#"{"contents":[{"parts":[{"text":"q"}]}]}"#,
            r#"{"contents":[{"parts":[{"text":"q"}]}],"systemInstruction":{"parts":[{"text":"B"}]}}"#,
        ),
    ] {
        let request = Request::parse(format, before.as_bytes()).unwrap();
        let edits = placed(request.conversation(), Strategy::System).edits(Some(format), "B");
        assert_eq!(
            String::from_utf8(request.apply(&edits).unwrap()).unwrap(),
            after
        );
    }
}

#[test]
fn amp_016_of_several_system_messages_the_last_leading_one_changes() {
    let system = |text| Message::text(Role::System, text);
    let conversation = Conversation {
        messages: vec![
            system("a"),
            Message::text(Role::Developer, "b"),
            user("q"),
            system("c"),
        ],
        ..Conversation::default()
    };
    let placement = placed(&conversation, Strategy::System);
    assert!(matches!(
        placement.site,
        Site::After {
            place: Place::Message(1),
            ..
        }
    ));
}

#[test]
fn amp_017_a_model_without_system_role_falls_back_and_says_so() {
    let request = Request::parse(Format::OllamaChat, request(Format::OllamaChat)).unwrap();
    let profile = Profile {
        supports_system: false,
        ..Profile::default()
    };
    let allowed = [Strategy::System, Strategy::Append];
    let placement = place(request.conversation(), &allowed, profile, false).unwrap();
    assert_eq!(placement.strategy, Strategy::Append);
    assert_eq!(
        placement.passed_over,
        [(Strategy::System, Obstacle::SystemUnsupported)]
    );
    let none = place(request.conversation(), &allowed[..1], profile, false);
    assert_eq!(none, Err(Nowhere::Blocked(Obstacle::SystemUnsupported)));
}

#[test]
fn amp_018_a_cached_system_part_stays_and_the_block_comes_last() {
    let body = request(Format::AnthropicMessages);
    let (after, _) = with_block(Format::AnthropicMessages, body, Strategy::System);
    let reread = Request::parse(Format::AnthropicMessages, &after).unwrap();
    let parts = &reread.conversation().system.as_ref().unwrap().parts;
    assert_eq!(parts.len(), 2);
    assert!(parts[0].cached && !parts[1].cached);
    assert_eq!(parts[1].text.as_deref(), Some(BLOCK));
}

#[test]
fn an_empty_block_makes_no_edit() {
    for (format, body) in REQUESTS {
        let request = Request::parse(format, body).unwrap();
        let edits = placed(request.conversation(), Strategy::Append).edits(Some(format), "");
        assert_eq!(request.apply(&edits).unwrap(), body);
    }
}
