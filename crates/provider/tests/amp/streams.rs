//! Streamed replies (AMP section D).

use crate::recorded::{REPLIES, STREAMS, reply, stream};
use memfleet_provider::Format;
use memfleet_provider::reply::{Calls, Finish, Reply, Usage, with_hidden};
use memfleet_provider::stream::{Assembler, Frame, Framing, Outcome, Parser, Policy, Screen};
use memfleet_provider::tools::Names;
use proptest::prelude::*;

fn frames(format: Format, bytes: &[u8]) -> Vec<Frame> {
    let mut parser = Parser::new(Framing::of(format));
    let mut frames = parser.push(bytes).unwrap();
    frames.extend(parser.finish());
    frames
}

fn assembled(format: Format, bytes: &[u8]) -> Reply {
    let mut assembler = Assembler::new(format);
    for frame in frames(format, bytes) {
        assembler.push(&frame).unwrap();
    }
    assert!(!assembler.failed());
    assembler.finish().unwrap()
}

fn screened(format: Format, bytes: &[u8], policy: Policy) -> (Outcome, Vec<u8>) {
    run(Screen::new(format, Names::default(), policy), format, bytes)
}

fn run(mut screen: Screen, format: Format, bytes: &[u8]) -> (Outcome, Vec<u8>) {
    let mut out = Vec::new();
    for frame in frames(format, bytes) {
        out.extend(screen.push(frame));
    }
    let (outcome, rest) = screen.finish();
    out.extend(rest);
    (outcome, out)
}

/// The stream with the names replaced, so that it calls nobody's tools but these.
fn calling(format: Format, memory: &str, client: &str) -> String {
    let text = String::from_utf8(stream(format).to_vec()).unwrap();
    text.replace("memfleet_memory_search", memory)
        .replace("memfleet_memory_get", memory)
        .replace("\"weather\"", &format!("\"{client}\""))
}

#[test]
fn a_streamed_reply_is_the_reply_in_one_piece() {
    for (format, body) in REPLIES {
        let whole = Reply::parse(format, body).unwrap();
        let streamed = assembled(format, stream(format));
        assert_eq!(streamed.text, whole.text, "{format:?}");
        assert_eq!(streamed.calls, whole.calls, "{format:?}");
        assert_eq!(streamed.finish, whole.finish);
        assert_eq!(streamed.usage, whole.usage);
        assert_eq!(streamed.reasoning, whole.reasoning, "{format:?}");
    }
}

#[test]
fn a_streamed_refusal_and_a_streamed_transcript_are_the_text() {
    let chunk = |delta: &str| format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n");
    for deltas in [
        [r#"{"refusal":"I can't "}"#, r#"{"refusal":"say."}"#],
        [
            r#"{"audio":{"transcript":"I can't "}}"#,
            r#"{"audio":{"transcript":"say."}}"#,
        ],
    ] {
        let stream = deltas.map(chunk).concat();
        let reply = assembled(Format::OpenaiChat, stream.as_bytes());
        assert_eq!(reply.text, "I can't say.");
    }
}

#[test]
fn amp_033_streamed_reasoning_goes_back_as_it_came() {
    let anthropic = assembled(Format::AnthropicMessages, stream(Format::AnthropicMessages));
    let thinking = r#"{"type":"thinking","thinking":"A coat?","signature":"EqQBCgIYAhIM+/8="}"#;
    let start = format!(
        r#"{{"role":"assistant","content":[{thinking},{{"type":"text","text":"Let me look."}},"#
    );
    assert!(
        anthropic.messages[0].starts_with(&start),
        "{}",
        anthropic.messages[0]
    );
    assert!(anthropic.messages[0].contains(r#""input":{"city":"Oslo","deg":1.0}"#));
    let gemini = assembled(Format::Gemini, stream(Format::Gemini));
    assert!(gemini.messages[0].contains(r#""thoughtSignature":"CiQBAVSoXO4=""#));
    let responses = assembled(Format::OpenaiResponses, stream(Format::OpenaiResponses));
    assert!(responses.messages[0].contains("gAAAAABo+/0="));
}

#[test]
fn amp_037_a_stream_without_memory_passes_byte_for_byte() {
    for (format, _) in STREAMS {
        let text = calling(format, "lookup", "weather");
        for policy in [
            Policy::Hold,
            Policy::LiveAfter(3),
            Policy::Live,
            Policy::default(),
        ] {
            let (outcome, out) = screened(format, text.as_bytes(), policy);
            assert_eq!(outcome, Outcome::Passed);
            // Pings do not wait, so they may come earlier than they came.
            let without_pings = |bytes: &[u8]| {
                let frames = frames(format, bytes).into_iter();
                let frames =
                    frames.filter(|f| f.data.is_some() && f.event.as_deref() != Some("ping"));
                frames.map(|frame| frame.bytes).collect::<Vec<_>>()
            };
            assert_eq!(
                without_pings(&out),
                without_pings(text.as_bytes()),
                "{format:?} {policy:?}"
            );
            if policy == Policy::Live {
                assert_eq!(out, text.as_bytes());
            }
        }
    }
}

#[test]
fn amp_038_a_memory_round_sends_nothing_but_pings() {
    for (format, _) in STREAMS {
        let text = calling(format, "memfleet_memory_search", "memfleet_memory_get");
        let (outcome, out) = screened(format, text.as_bytes(), Policy::Hold);
        assert_eq!(outcome, Outcome::Hidden);
        for frame in frames(format, &out) {
            let is_ping = frame.data.is_none() || frame.event.as_deref() == Some("ping");
            assert!(is_ping, "{format:?} {frame:?}");
        }
        let reply = assembled(format, text.as_bytes());
        assert_eq!(reply.calls_of(&Names::default()), Calls::Memory);
    }
}

#[test]
fn amp_038_the_last_round_is_live_from_its_first_word() {
    for format in [
        Format::OpenaiChat,
        Format::AnthropicMessages,
        Format::Gemini,
        Format::OllamaChat,
    ] {
        let mut screen = Screen::new(format, Names::default(), Policy::Live);
        for frame in frames(format, calling(format, "lookup", "weather").as_bytes()) {
            assert_eq!(screen.push(frame.clone()), frame.bytes);
        }
    }
}

#[test]
fn amp_028_a_mixed_stream_shows_the_clients_calls_only_and_without_gaps() {
    for (format, _) in STREAMS {
        for policy in [Policy::Hold, Policy::LiveAfter(3), Policy::default()] {
            let (outcome, out) = screened(format, stream(format), policy);
            assert_eq!(outcome, Outcome::Mixed, "{format:?}");
            let text = String::from_utf8(out.clone()).unwrap();
            for word in ["memfleet", "call_m1", "call_m2", "winter", "fc_2"] {
                assert!(!text.contains(word), "{format:?} {word}: {text}");
            }
            let seen = assembled(format, &out);
            let expected = Reply::parse(
                format,
                &memfleet_provider::reply::visible(format, reply(format), &Names::default())
                    .unwrap(),
            );
            let expected = expected.unwrap();
            assert_eq!(seen.calls, expected.calls);
            assert_eq!(seen.text, expected.text);
            assert_eq!(seen.finish, expected.finish);
        }
    }
    let (_, out) = screened(Format::OpenaiChat, stream(Format::OpenaiChat), Policy::Hold);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains(r#"{"tool_calls":[{"index":0,"id":"call_w2""#),
        "{text}"
    );
    let (_, out) = screened(
        Format::AnthropicMessages,
        stream(Format::AnthropicMessages),
        Policy::Hold,
    );
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.contains(r#""index":2,"content_block":{"type":"tool_use","id":"call_w2""#),
        "{text}"
    );
}

/// The stream without the numbers of its calls, as some servers have it.
fn unnumbered(stream: &[u8]) -> String {
    let text = String::from_utf8(stream.to_vec()).unwrap();
    (0..3).fold(text, |text, index| {
        text.replace(
            &format!(r#""tool_calls":[{{"index":{index},"#),
            r#""tool_calls":[{"#,
        )
    })
}

#[test]
fn amp_028_calls_without_numbers_go_by_their_order() {
    let format = Format::OpenaiChat;
    let text = unnumbered(stream(format));
    let calls = assembled(format, stream(format)).calls;
    assert_eq!(assembled(format, text.as_bytes()).calls, calls);
    for policy in [Policy::Hold, Policy::LiveAfter(3), Policy::default()] {
        let (outcome, out) = screened(format, text.as_bytes(), policy);
        assert_eq!(outcome, Outcome::Mixed);
        let out = String::from_utf8(out).unwrap();
        for word in ["memfleet", "call_m1", "call_m2", "winter", "t1"] {
            assert!(!out.contains(word), "{word}: {out}");
        }
        assert!(out.contains(r#""delta":{"tool_calls":[{"id":"call_w2","type":"function""#));
        assert_eq!(assembled(format, out.as_bytes()).calls, calls[1..2]);
    }
}

#[test]
fn amp_028_a_call_without_a_number_begins_with_its_id_or_its_name() {
    let format = Format::OpenaiChat;
    let chunk = |calls: &str| {
        format!(r#"data: {{"choices":[{{"index":0,"delta":{{"tool_calls":[{calls}]}}}}]}}"#)
            + "\n\n"
    };
    let memory = r#""function":{"name":"memfleet_memory_search","arguments":"{\"query\":"}"#;
    let weather = r#""function":{"name":"weather","arguments":"{\"city\":"}"#;
    let rest = |text: &str| format!(r#""function":{{"arguments":"\"{text}\"}}"}}"#);
    let streams = [
        // By id alone, the name comes later; the id is said again.
        vec![
            r#"{"id":"m"}"#.to_owned(),
            format!("{{{memory}}}"),
            format!(r#"{{"id":"m",{}}}"#, rest("winter")),
            format!(r#"{{"id":"w",{weather}}}"#),
            format!("{{{}}}", rest("Oslo")),
        ],
        // By name alone, and a number that is none.
        vec![
            format!(r#"{{"id":"","index":null,{weather}}}"#),
            format!(r#"{{"index":null,{}}}"#, rest("Oslo")),
            format!("{{{memory}}}"),
            format!("{{{}}}", rest("winter")),
        ],
        // All in one chunk.
        vec![format!(
            r#"{{"id":"m",{memory}}},{{{}}},{{"id":"w",{weather}}},{{{}}}"#,
            rest("winter"),
            rest("Oslo")
        )],
        // Both at once, by their ids.
        vec![
            format!(r#"{{"id":"m",{memory}}}"#),
            format!(r#"{{"id":"w",{weather}}}"#),
            format!(r#"{{"id":"m",{}}}"#, rest("winter")),
            format!(r#"{{"id":"w",{}}}"#, rest("Oslo")),
        ],
        // One without a number after one with.
        vec![
            format!(r#"{{"index":0,"id":"m",{memory}}}"#),
            format!("{{{}}}", rest("winter")),
            format!(r#"{{"id":"w",{weather}}}"#),
            format!("{{{}}}", rest("Oslo")),
        ],
    ];
    for chunks in streams {
        let text: String = chunks.iter().map(|calls| chunk(calls)).collect();
        assert_eq!(assembled(format, text.as_bytes()).calls.len(), 2, "{text}");
        let (outcome, out) = screened(format, text.as_bytes(), Policy::Hold);
        assert_eq!(outcome, Outcome::Mixed);
        let calls = assembled(format, &out).calls;
        let out = String::from_utf8(out).unwrap();
        assert!(
            !out.contains("memfleet") && !out.contains("winter"),
            "{out}"
        );
        assert!(!out.contains(r#""id":"m""#), "{out}");
        assert_eq!(calls.len(), 1, "{out}");
        assert_eq!(calls[0].name, "weather");
        assert_eq!(calls[0].arguments, r#"{"city":"Oslo"}"#);
    }
}

#[test]
fn amp_038_a_stream_that_was_interrupted_goes_on_in_the_next_round() {
    let format = Format::AnthropicMessages;
    let first = calling(format, "memfleet_memory_search", "memfleet_memory_get");
    let (outcome, mut out) = screened(format, first.as_bytes(), Policy::LiveAfter(3));
    assert_eq!(outcome, Outcome::Interrupted { blocks: 2 });
    let second = calling(format, "lookup", "weather");
    let screen = Screen::resumed(format, Names::default(), Policy::Live, 2);
    let (outcome, rest) = run(screen, format, second.as_bytes());
    assert_eq!(outcome, Outcome::Passed);
    out.extend(rest);
    let text = String::from_utf8(out.clone()).unwrap();
    assert_eq!(text.matches("event: message_start").count(), 1);
    assert_eq!(text.matches("event: message_stop").count(), 1);
    let reply = assembled(format, &out);
    assert_eq!(reply.text, "Let me look.Let me look.");
    assert_eq!(reply.calls.len(), 3);
    for index in 0..7 {
        assert_eq!(
            text.matches(&format!(r#"_start","index":{index},"#))
                .count(),
            1
        );
    }
    for format in [Format::OpenaiChat, Format::Gemini, Format::OllamaChat] {
        let first = calling(format, "memfleet_memory_search", "memfleet_memory_get");
        let (outcome, mut out) = screened(format, first.as_bytes(), Policy::LiveAfter(3));
        assert!(matches!(outcome, Outcome::Interrupted { .. }), "{format:?}");
        assert_eq!(assembled(format, &out).finish, Finish::Unknown);
        let screen = Screen::resumed(format, Names::default(), Policy::Live, 0);
        out.extend(
            run(
                screen,
                format,
                calling(format, "lookup", "weather").as_bytes(),
            )
            .1,
        );
        let reply = assembled(format, &out);
        assert_eq!(
            (reply.text.as_str(), reply.calls.len()),
            ("Let me look.Let me look.", 3)
        );
        assert_eq!(reply.finish, Finish::ToolCalls);
    }
}

#[test]
fn amp_038_the_cost_of_hidden_rounds_is_in_what_the_client_reads() {
    let hidden = Usage {
        input: 1_000,
        cached: 100,
        output: 10,
    };
    for (format, body) in REPLIES {
        let mut expected = Reply::parse(format, body).unwrap().usage;
        expected += hidden;
        if format == Format::OllamaChat {
            expected.cached = 0;
        }
        let whole = with_hidden(format, body, hidden).unwrap();
        assert_eq!(Reply::parse(format, &whole).unwrap().usage, expected);
        let text = calling(format, "lookup", "weather");
        let screen = Screen::new(format, Names::default(), Policy::Live).counting(hidden);
        let (outcome, out) = run(screen, format, text.as_bytes());
        assert_eq!(outcome, Outcome::Passed);
        let reply = assembled(format, &out);
        assert_eq!(reply.usage, expected, "{format:?}");
        assert_eq!(reply.calls.len(), 3);
        assert_eq!(with_hidden(format, body, Usage::default()).unwrap(), body);
    }
}

#[test]
fn amp_040_an_error_in_the_stream_reaches_the_client() {
    for (format, error) in [
        (
            Format::OpenaiChat,
            "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
        ),
        (
            Format::OpenaiResponses,
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{}}\n\n",
        ),
        (
            Format::AnthropicMessages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
        ),
        (Format::Gemini, "data: {\"error\":{\"code\":503}}\n\n"),
        (Format::OllamaChat, "{\"error\":\"out of memory\"}\n"),
    ] {
        let text = calling(format, "lookup", "weather");
        let half = frames(format, text.as_bytes());
        let mut bytes: Vec<u8> = half[..3]
            .iter()
            .flat_map(|frame| frame.bytes.clone())
            .collect();
        bytes.extend(error.as_bytes());
        let (outcome, out) = screened(format, &bytes, Policy::Hold);
        assert_eq!(outcome, Outcome::Failed);
        assert!(String::from_utf8(out).unwrap().ends_with(error));
        let mut assembler = Assembler::new(format);
        frames(format, &bytes)
            .iter()
            .for_each(|frame| assembler.push(frame).unwrap());
        assert!(assembler.failed());
        assert_eq!(assembler.finish().unwrap().finish, Finish::Unknown);
    }
}

#[test]
fn a_stream_that_breaks_off_is_still_a_request_that_can_be_read() {
    for (format, bytes) in STREAMS {
        for cut in 0..bytes.len() {
            let mut parser = Parser::new(Framing::of(format));
            let mut assembler = Assembler::new(format);
            for frame in parser.push(&bytes[..cut]).unwrap() {
                assembler.push(&frame).unwrap();
            }
            let reply = assembler.finish().unwrap();
            for message in &reply.messages {
                let _: serde_json::Value = serde_json::from_str(message).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn amp_041_the_reply_is_the_same_whatever_the_chunks(
        which in 0_usize..5, cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20), crlf in any::<bool>(),
    ) {
        let (format, bytes) = STREAMS[which];
        let mut text = String::from_utf8(bytes.to_vec()).unwrap().replace("Let me", "Läß mich 日本 🙂");
        if crlf { text = text.replace('\n', "\r\n"); }
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut parser = Parser::new(Framing::of(format));
        let mut assembler = Assembler::new(format);
        for pair in cuts.windows(2) {
            for frame in parser.push(&bytes[pair[0]..pair[1]]).unwrap() {
                assembler.push(&frame).unwrap();
            }
        }
        prop_assert_eq!(assembler.finish().unwrap(), assembled(format, bytes));
    }

    #[test]
    fn no_frame_makes_it_panic(which in 0_usize..5, data in any::<String>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let (format, bytes) = STREAMS[which];
        let mut bytes = bytes.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes.extend(format!("data: {data}\n\n{{{data}}}\n").bytes());
        let mut assembler = Assembler::new(format);
        for frame in frames(format, &bytes) {
            let _ = assembler.push(&frame);
        }
        let _ = assembler.finish();
        for policy in [Policy::Hold, Policy::Live, Policy::LiveAfter(2)] {
            screened(format, &bytes, policy);
        }
    }
}
