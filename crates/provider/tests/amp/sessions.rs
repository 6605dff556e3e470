//! Sessions and turns of requests (AMP items 6, 103).

use crate::recorded::{REPLIES, REQUESTS, reply, request};
use crate::replies::answer;
use memfleet_provider::reply::{Reply, continuation};
use memfleet_provider::session::{Origin, Transcript, asked, derived_id, given};
use memfleet_provider::{Edit, Format, Request};

#[test]
fn amp_103_ids_that_a_client_gives_come_first() {
    for (format, id) in [
        (Format::OpenaiChat, Some("S-1")),
        (Format::OpenaiResponses, Some("conv_7")),
        (
            Format::AnthropicMessages,
            Some("0f8fad5b-d9cb-469f-a165-70867728950e"),
        ),
        (Format::Gemini, None),
        (Format::OllamaChat, None),
    ] {
        let request = Request::parse(format, request(format)).unwrap();
        let conversation = request.conversation();
        let found = given(None, conversation);
        assert_eq!(found.as_ref().map(|(id, _)| &**id), id);
        assert!(found.is_none_or(|(_, origin)| origin == Origin::Metadata));
        let (id, origin) = given(Some("Header"), conversation).unwrap();
        assert_eq!((&*id, origin), ("Header", Origin::Explicit));
        assert_eq!(
            given(Some(" "), conversation).map(|(_, origin)| origin),
            id_origin(format)
        );
    }
}

fn id_origin(format: Format) -> Option<Origin> {
    let named = !matches!(format, Format::Gemini | Format::OllamaChat);
    named.then_some(Origin::Metadata)
}

#[test]
fn amp_049_words_of_a_message_never_become_a_session() {
    let body = br#"{"messages":[{"role":"user","content":"use session S-1, session_id: S-1"}]}"#;
    let request = Request::parse(Format::OpenaiChat, body).unwrap();
    assert_eq!(given(None, request.conversation()), None);
}

#[test]
fn amp_103_derived_ids_are_the_same_for_the_same_and_differ_otherwise() {
    let ids: Vec<String> = REQUESTS
        .iter()
        .flat_map(|(format, body)| {
            let request = Request::parse(*format, body).unwrap();
            let transcript = Transcript::of(&request.conversation().messages);
            assert_eq!(
                derived_id(&["a"], &transcript, ""),
                derived_id(&["a"], &transcript, "")
            );
            [("a", ""), ("b", ""), ("a", "1")]
                .map(|(scope, twin)| derived_id(&[scope], &transcript, twin))
        })
        .collect();
    let different: std::collections::HashSet<&String> = ids.iter().collect();
    assert_eq!(different.len(), ids.len());
}

#[test]
fn amp_006_tool_rounds_are_of_the_same_turn_and_the_next_question_is_not() {
    for (format, _) in REPLIES {
        let request = Request::parse(format, request(format)).unwrap();
        let key = asked(request.conversation()).key();
        let reply = Reply::parse(format, reply(format)).unwrap();
        let mut messages = continuation(format, &reply, &[answer("a"), answer("b"), answer("c")]);
        let at = request.conversation().messages.len();
        let round = request
            .apply(&[Edit::InsertMessages {
                at,
                messages: messages.clone(),
            }])
            .unwrap();
        let round = Request::parse(format, &round).unwrap();
        assert_eq!(asked(round.conversation()).key(), key, "{format:?}");
        messages.push(match format {
            Format::Gemini => r#"{"parts":[{"text":"next"}]}"#.to_owned(),
            _ => r#"{"role":"user","content":"next"}"#.to_owned(),
        });
        let next = request
            .apply(&[Edit::InsertMessages { at, messages }])
            .unwrap();
        let next = Request::parse(format, &next).unwrap();
        assert_ne!(asked(next.conversation()).key(), key);
    }
}
