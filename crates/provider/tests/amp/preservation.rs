//! Random requests of every format, with fields nobody knows: an edit shows, and nothing else changes (AMP item 13).

use memfleet_provider::placement::{Profile, Strategy as Placing, place};
use memfleet_provider::{Edit, Format, Request};
use proptest::prelude::*;

/// JSON that is valid and unusual.
fn any_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1.50e+05".to_owned()),
        Just("-0".to_owned()),
        Just("12345678901234567890123".to_owned()),
        Just("1E400".to_owned()),
        Just(r#""\u00e9\/\ud83d\ude42""#.to_owned()),
        Just(r#""\ud800""#.to_owned()),
        any::<String>().prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(|items| format!("[ {}]", items.join(" ,\t"))),
            prop::collection::vec(inner, 0..3).prop_map(|items| {
                let members = items
                    .iter()
                    .enumerate()
                    .map(|(n, item)| format!("\"k{n}\" :{item}"));
                format!("{{\n{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Members in a random order, with some that nobody knows among them.
fn object(known: Vec<(&'static str, String)>) -> impl Strategy<Value = String> {
    let unknown = prop::collection::vec(any_json(), 0..3);
    let members = unknown.prop_map(move |unknown| {
        let mut members: Vec<String> = known
            .iter()
            .map(|(name, value)| format!("{} : {value}", quoted(name)))
            .collect();
        let unknown = unknown.into_iter().enumerate();
        members.extend(unknown.map(|(n, value)| format!("\"x_{n}\":{value}")));
        members
    });
    members
        .prop_shuffle()
        .prop_map(|members| format!("{{ {} }}", members.join(", ")))
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("where was I?".to_owned()),
        Just(String::new())
    ]
}

fn text_part(format: Format, text: &str) -> Vec<(&'static str, String)> {
    let text = ("text", quoted(text));
    match format {
        Format::Gemini => vec![text],
        Format::OpenaiResponses => vec![("type", quoted("input_text")), text],
        _ => vec![("type", quoted("text")), text],
    }
}

fn part(format: Format) -> impl Strategy<Value = String> {
    prop_oneof![
        texts().prop_flat_map(move |text| object(text_part(format, &text))),
        any_json(),
        Just(r#"{"type":"x_unknown","data":[1.0,{"a":"\u0041"}]}"#.to_owned()),
        Just(r#"{"type":"image","source":{},"cache_control":{"type":"ephemeral"}}"#.to_owned()),
    ]
}

fn content(format: Format) -> BoxedStrategy<String> {
    let list = prop::collection::vec(part(format), 0..4)
        .prop_map(|parts| format!("[{}]", parts.join(" , ")));
    let text = texts().prop_map(|text| quoted(&text));
    match format {
        Format::Gemini => prop_oneof![
            list,
            part(format).prop_filter("a part alone", |part| part.starts_with('{'))
        ]
        .boxed(),
        Format::OllamaChat => text.boxed(),
        _ => prop_oneof![list, text].boxed(),
    }
}

fn message(format: Format) -> impl Strategy<Value = String> {
    let roles: &[&str] = match format {
        Format::Gemini => &["user", "model", "x_role"],
        Format::AnthropicMessages => &["user", "assistant"],
        _ => &["system", "developer", "user", "assistant", "x_role"],
    };
    let name = if format == Format::Gemini {
        "parts"
    } else {
        "content"
    };
    (prop::sample::select(roles), content(format))
        .prop_flat_map(move |(role, content)| object(vec![("role", quoted(role)), (name, content)]))
}

fn system(format: Format) -> BoxedStrategy<Option<(&'static str, String)>> {
    let text = texts().prop_map(|text| quoted(&text));
    let some = match format {
        Format::OpenaiChat | Format::OllamaChat => return Just(None).boxed(),
        Format::OpenaiResponses => prop_oneof![text, Just("null".to_owned())]
            .prop_map(|v| ("instructions", v))
            .boxed(),
        Format::AnthropicMessages => content(format).prop_map(|value| ("system", value)).boxed(),
        Format::Gemini => content(format)
            .prop_map(|value| ("systemInstruction", format!("{{\"parts\":{value}}}")))
            .boxed(),
    };
    prop::option::of(some).boxed()
}

fn tools(format: Format) -> impl Strategy<Value = Option<(&'static str, String)>> {
    let tools: &[&str] = match format {
        Format::Gemini => &[
            "null",
            "[]",
            r#"[{"googleSearch":{}}]"#,
            r#"[{"googleSearch":{}},{"functionDeclarations":[{"name":"a"},{"name":"b"}]}]"#,
            r#"[{"function_declarations":[]}]"#,
        ],
        Format::OpenaiChat | Format::OllamaChat => &[
            "null",
            "[ ]",
            r#"[{"type":"function","function":{"name":"memfleet_memory_search"}} ]"#,
        ],
        _ => &["null", "[]", r#"[{"name":"a"} , {"type":"web_search"}]"#],
    };
    prop::option::of(prop::sample::select(tools).prop_map(|tools| ("tools", tools.to_owned())))
}

fn body(format: Format) -> impl Strategy<Value = String> {
    let field = match format {
        Format::Gemini => "contents",
        Format::OpenaiResponses => "input",
        _ => "messages",
    };
    let list = prop::collection::vec(message(format), 0..4)
        .prop_map(|messages| format!("[{} ]", messages.join(",")));
    let messages = match format {
        Format::OpenaiResponses => {
            prop_oneof![list, texts().prop_map(|text| quoted(&text))].boxed()
        }
        _ => list.boxed(),
    };
    (messages, system(format), tools(format)).prop_flat_map(move |(messages, system, tools)| {
        let members = [Some((field, messages)), system, tools];
        object(members.into_iter().flatten().collect())
    })
}

fn any_body() -> impl Strategy<Value = (Format, String)> {
    prop::sample::select(Format::ALL).prop_flat_map(|format| (Just(format), body(format)))
}

/// Tells if `after` is `before` with something put in, and nothing else, except that a list of one
/// may have got its brackets.
fn only_gained(before: &str, after: &str) -> bool {
    let without = |(at, _): (usize, &str)| [&after[..at], &after[at + 1..]].concat();
    let mut unbracketed = after.match_indices('[').map(without);
    is_put_in(before, after) || unbracketed.any(|after| is_put_in(before, &after))
}

/// Tells if `after` is `before` with one text put in, except that one `null` may have given way.
fn is_put_in(before: &str, after: &str) -> bool {
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let prefix = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = &before[prefix..];
    let tail = rest.strip_prefix(b"null").unwrap_or(rest);
    after[prefix..].ends_with(rest) || after[prefix..].ends_with(tail)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn amp_013_unknown_fields_and_number_formatting_survive((format, body) in any_body(), block in any::<String>()) {
        let request = Request::parse(format, body.as_bytes()).unwrap();
        for strategy in [Placing::Append, Placing::System, Placing::Tool] {
            let Ok(placement) = place(request.conversation(), &[strategy], Profile::default(), true) else { continue };
            let edits = placement.edits(Some(format), &block);
            let after = String::from_utf8(request.apply(&edits).unwrap()).unwrap();
            prop_assert!(only_gained(&body, &after), "{}\n{}", body, after);
            let reread = Request::parse(format, after.as_bytes()).unwrap();
            let expected = request.conversation().edited(Some(format), &edits).unwrap();
            prop_assert_eq!(reread.conversation(), &expected);
        }
    }

    #[test]
    fn edits_together_give_a_body_that_can_be_read((format, body) in any_body(), at in 0_usize..4) {
        let request = Request::parse(format, body.as_bytes()).unwrap();
        let before = request.conversation();
        let message = match format {
            Format::Gemini => r#"{"role":"user","parts":[{"text":"new"}]}"#,
            _ => r#"{"role":"user","content":"new"}"#,
        };
        let mut edits = vec![Edit::InsertMessages { at: at.min(before.messages.len()), messages: vec![message.to_owned(); 2] }];
        edits.extend([Placing::Append, Placing::System, Placing::Tool].into_iter().filter_map(|strategy| {
            Some(place(before, &[strategy], Profile::default(), true).ok()?.edits(Some(format), "B"))
        }).flatten());
        if edits.iter().any(|edit| matches!(edit, Edit::AddTool { .. })) && format != Format::OllamaChat {
            edits.push(Edit::ForbidTools);
        }
        let inserted_system = format == Format::OpenaiChat || format == Format::OllamaChat;
        let inserted_system = inserted_system && edits.iter().any(|edit| matches!(edit, Edit::InsertSystem { .. }));
        let after = request.apply(&edits).unwrap();
        let reread = Request::parse(format, &after).unwrap();
        prop_assert_eq!(
            reread.conversation().messages.len(),
            before.messages.len() + 2 + usize::from(inserted_system)
        );
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in any::<prop::sample::Index>(), (format, body) in any_body()) {
        let _ = Request::parse(format, &bytes);
        let mut body = body.into_bytes();
        let at = cut.index(body.len());
        body[at] = bytes.first().copied().unwrap_or(b'"');
        if let Ok(request) = Request::parse(format, &body) {
            let _ = request.apply(&[Edit::ForbidTools, Edit::InsertSystem { text: "x".to_owned() }]);
        }
        body.truncate(at);
        prop_assert!(Request::parse(format, &body).is_err());
    }
}
