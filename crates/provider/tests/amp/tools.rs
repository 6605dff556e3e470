//! The tools in requests (AMP section C).

use crate::recorded::{REQUESTS, request};
use memfleet_provider::placement::{Obstacle, Profile, Strategy, place};
use memfleet_provider::tools::{
    Ask, BadArguments, Get, Granularity, MAX_QUERY_BYTES, Names, Search, definitions, finalize,
    get_schema, neutral_definitions, search_schema,
};
use memfleet_provider::{Edit, Format, Request};
use proptest::prelude::*;
use serde_json::{Value, json};

fn with_tools(format: Format, body: &[u8]) -> (Vec<u8>, Names) {
    let request = Request::parse(format, body).unwrap();
    let allowed = [Strategy::Tool];
    let placement = place(request.conversation(), &allowed, Profile::default(), false).unwrap();
    let after = request.apply(&placement.edits(Some(format), "")).unwrap();
    (after, Names::free(request.conversation()).unwrap())
}

fn tool_names(format: Format, body: &[u8]) -> Vec<String> {
    let request = Request::parse(format, body).unwrap();
    let tools = request.conversation().tools.iter();
    tools.map(|tool| tool.name.clone().into_owned()).collect()
}

#[test]
fn amp_019_the_tool_strategy_adds_definitions_only() {
    for (format, body) in REQUESTS {
        let (after, names) = with_tools(format, body);
        let before = Request::parse(format, body).unwrap();
        let reread = Request::parse(format, &after).unwrap();
        assert_eq!(
            reread.conversation().messages,
            before.conversation().messages
        );
        assert_eq!(reread.conversation().system, before.conversation().system);
        let mut expected = tool_names(format, body);
        expected.extend([names.search, names.get]);
        assert_eq!(tool_names(format, &after), expected);
    }
}

#[test]
fn amp_020_the_definitions_mean_the_same_in_every_shape() {
    let names = Names::default();
    let neutral: Vec<Value> = neutral_definitions(&names)
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect();
    assert_eq!(neutral[0]["parameters"], search_schema());
    assert_eq!(neutral[1]["parameters"], get_schema());
    for &format in Format::ALL {
        for (definition, neutral) in definitions(format, &names).iter().zip(&neutral) {
            let definition: Value = serde_json::from_str(definition).unwrap();
            let (function, field) = match format {
                Format::OpenaiChat | Format::OllamaChat => (&definition["function"], "parameters"),
                Format::AnthropicMessages => (&definition, "input_schema"),
                Format::OpenaiResponses | Format::Gemini => (&definition, "parameters"),
            };
            assert_eq!(function["name"], neutral["name"]);
            assert_eq!(function["description"], neutral["description"]);
            let mut expected = neutral["parameters"].clone();
            if format == Format::Gemini {
                expected
                    .as_object_mut()
                    .unwrap()
                    .remove("additionalProperties");
            }
            assert_eq!(function[field], expected);
        }
    }
}

#[test]
fn amp_020_the_search_is_bounded_and_wants_a_query() {
    let schema = search_schema();
    assert_eq!(schema["required"], json!(["query"]));
    let limit = &schema["properties"]["limit"];
    assert_eq!(
        (&limit["minimum"], &limit["maximum"]),
        (&json!(1), &json!(20))
    );
    for optional in ["time_from", "time_to", "session", "granularity"] {
        assert!(schema["properties"][optional].is_object(), "{optional}");
    }
}

#[test]
fn amp_021_names_that_are_taken_get_a_number() {
    let tool = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let mut tools = vec![
        tool("memfleet_memory_search"),
        tool("memfleet_memory_get_2"),
    ];
    let body = |tools: &[Value]| {
        json!({"messages": [{"role": "user", "content": "q"}], "tools": tools}).to_string()
    };
    let text = body(&tools);
    let (after, names) = with_tools(Format::AnthropicMessages, text.as_bytes());
    assert_eq!(names.search, "memfleet_memory_search_3");
    assert_eq!(names.get, "memfleet_memory_get_3");
    assert!(
        String::from_utf8(after)
            .unwrap()
            .starts_with(text.strip_suffix("]}").unwrap())
    );
    tools.extend((2..100).map(|number| tool(&format!("memfleet_memory_search_{number}"))));
    let text = body(&tools);
    let request = Request::parse(Format::AnthropicMessages, text.as_bytes()).unwrap();
    let allowed = [Strategy::Tool, Strategy::Append];
    let placement = place(request.conversation(), &allowed, Profile::default(), false).unwrap();
    assert_eq!(placement.strategy, Strategy::Append);
    assert_eq!(
        placement.passed_over,
        [(Strategy::Tool, Obstacle::ToolNameConflict)]
    );
}

#[test]
fn amp_023_the_last_call_cannot_ask_memory_and_keeps_the_clients_tools() {
    for (format, body) in REQUESTS {
        let (with, names) = with_tools(format, body);
        let request = Request::parse(format, &with).unwrap();
        let edits = finalize(format, request.conversation(), &names);
        let last = request.apply(&edits).unwrap();
        let reread = Request::parse(format, &last).unwrap();
        let client = tool_names(format, body);
        let forbidden =
            reread.conversation().tool_choice == memfleet_provider::conversation::ToolChoice::None;
        match (client.is_empty(), format) {
            (false, _) | (true, Format::OllamaChat) => assert_eq!(last, body, "{format:?}"),
            (true, _) => assert!(forbidden, "{format:?}"),
        }
        assert!(
            finalize(
                format,
                Request::parse(format, body).unwrap().conversation(),
                &names
            )
            .is_empty()
        );
    }
}

#[test]
fn amp_023_gemini_keeps_what_else_its_tool_settings_say() {
    let body = br#"{"contents":[{"parts":[{"text":"q"}]}],"toolConfig":{"retrievalConfig":{"languageCode":"de"}}}"#;
    let (with, names) = with_tools(Format::Gemini, body);
    let request = Request::parse(Format::Gemini, &with).unwrap();
    let last = request
        .apply(&finalize(Format::Gemini, request.conversation(), &names))
        .unwrap();
    let last: Value = serde_json::from_slice(&last).unwrap();
    assert_eq!(last["toolConfig"]["retrievalConfig"]["languageCode"], "de");
    assert_eq!(last["toolConfig"]["functionCallingConfig"]["mode"], "NONE");
    assert_eq!(
        last["tools"][0]["functionDeclarations"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn tools_are_taken_away_wherever_they_stand() {
    let body = br#"{"contents":[],"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}, {"name":"c"}]} , {"googleSearch":{}},{"functionDeclarations":[{"name":"d"}]}]}"#;
    let request = Request::parse(Format::Gemini, body).unwrap();
    let without = |names: &[&str]| {
        let edits = names.iter().map(|name| Edit::RemoveTool {
            name: (*name).to_owned(),
        });
        let bytes = request.apply(&edits.collect::<Vec<_>>()).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let tools = |text: &str| format!("{{\"contents\":[],\"tools\":[{text}]}}");
    let rest = "{\"googleSearch\":{}},{\"functionDeclarations\":[{\"name\":\"d\"}]}";
    assert_eq!(
        without(&["a", "c"]),
        tools(&format!(
            "{{\"functionDeclarations\":[{{\"name\":\"b\"}}]}} , {rest}"
        ))
    );
    assert_eq!(without(&["a", "b", "c"]), tools(rest));
    assert_eq!(
        without(&["a", "b", "c", "d"]),
        tools("{\"googleSearch\":{}}")
    );
    assert_eq!(
        without(&["googleSearch", "a", "b", "c", "d"]),
        "{\"contents\":[]}"
    );
}

#[test]
fn amp_025_a_model_without_tools_gets_memory_in_one_shot() {
    let request = Request::parse(Format::OllamaChat, request(Format::OllamaChat)).unwrap();
    let profile = Profile {
        supports_tools: false,
        ..Profile::default()
    };
    let allowed = [Strategy::Tool, Strategy::Append];
    let placement = place(request.conversation(), &allowed, profile, false).unwrap();
    assert_eq!(
        placement.passed_over,
        [(Strategy::Tool, Obstacle::ToolsUnsupported)]
    );
    assert_eq!(placement.strategy, Strategy::Append);
}

#[test]
fn amp_034_a_client_that_chooses_tools_gets_memory_in_one_shot() {
    for choice in [
        r#""none""#,
        r#"{"type":"function","function":{"name":"f"}}"#,
    ] {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"q"}}],"tools":[],"tool_choice":{choice}}}"#
        );
        let request = Request::parse(Format::OpenaiChat, body.as_bytes()).unwrap();
        let allowed = [Strategy::Tool, Strategy::System];
        let placement = place(request.conversation(), &allowed, Profile::default(), false).unwrap();
        assert_eq!(
            placement.passed_over,
            [(Strategy::Tool, Obstacle::ToolChoiceConflict)]
        );
    }
    let body = br#"{"n":3,"messages":[{"role":"user","content":"q"}]}"#;
    let request = Request::parse(Format::OpenaiChat, body).unwrap();
    let allowed = [Strategy::Tool, Strategy::Append];
    let placement = place(request.conversation(), &allowed, Profile::default(), false).unwrap();
    assert_eq!(
        placement.passed_over,
        [(Strategy::Tool, Obstacle::SeveralCandidates)]
    );
}

#[test]
fn amp_035_a_request_without_tools_never_gains_an_empty_list() {
    for (format, body) in REQUESTS {
        let request = Request::parse(format, body).unwrap();
        for strategy in [Strategy::Append, Strategy::System] {
            let placement = place(
                request.conversation(),
                &[strategy],
                Profile::default(),
                false,
            )
            .unwrap();
            let after = request.apply(&placement.edits(Some(format), "B")).unwrap();
            let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("\"tools\"").count();
            assert_eq!(count(&after), count(body));
        }
    }
    let body = br#"{"messages":[{"role":"user","content":"q"}]}"#;
    let (with, names) = with_tools(Format::OllamaChat, body);
    let request = Request::parse(Format::OllamaChat, &with).unwrap();
    let without = request
        .apply(&finalize(
            Format::OllamaChat,
            request.conversation(),
            &names,
        ))
        .unwrap();
    assert_eq!(without, body);
}

fn ask(name: &str, arguments: &str) -> Result<Ask, BadArguments> {
    Ask::parse(&Names::default(), name, arguments)
}

#[test]
fn amp_031_arguments_are_checked_one_by_one() {
    let search = |arguments: &str| ask("memfleet_memory_search", arguments);
    let full = r#"{"query":"日本","limit":20,"time_from":"2024-01-01T00:00:00+02:00","time_to":"2024-02-01T00:00:00Z","session":"s","granularity":"episode"}"#;
    let Ask::Search(parsed) = search(full).unwrap() else {
        panic!()
    };
    assert_eq!(parsed.granularity, Some(Granularity::Episode));
    assert_eq!(
        parsed.time_from.unwrap().to_rfc3339(),
        "2023-12-31T22:00:00+00:00"
    );
    let nulls = search(r#"{"query":"a","limit":null,"session":null}"#).unwrap();
    let plain = Search {
        query: "a".to_owned(),
        ..Search::default()
    };
    assert_eq!(nulls, Ask::Search(plain));
    assert_eq!(search(r#"{"query":" "}"#), Err(BadArguments::BlankQuery));
    let long = format!("{{\"query\":\"{}\"}}", "ä".repeat(MAX_QUERY_BYTES / 2 + 1));
    assert_eq!(
        search(&long),
        Err(BadArguments::LongQuery(MAX_QUERY_BYTES + 2))
    );
    for limit in ["0", "21"] {
        assert_eq!(
            search(&format!("{{\"query\":\"a\",\"limit\":{limit}}}")),
            Err(BadArguments::Limit)
        );
    }
    let backwards =
        r#"{"query":"a","time_from":"2024-02-01T00:00:00Z","time_to":"2024-01-01T00:00:00Z"}"#;
    assert_eq!(search(backwards), Err(BadArguments::EmptyTimeRange));
    assert_eq!(
        search(r#"{"query":"a","session":"\n"}"#),
        Err(BadArguments::Session)
    );
    for bad in [
        "[]",
        "null",
        "{\"query\":",
        "\"query\"",
        "{}{}",
        "\u{feff}{}",
    ] {
        assert_eq!(search(bad), Err(BadArguments::NotAnObject), "{bad}");
    }
    for (bad, word) in [
        ("", "query"),
        ("{}", "query"),
        (r#"{"query":7}"#, "string"),
        (r#"{"query":"a","user_id":"eve"}"#, "user_id"),
        (r#"{"query":"a","time_from":"yesterday"}"#, "wrong"),
        (r#"{"query":"a","query":"b"}"#, "twice"),
        (r#"{"query":"a","granularity":"all"}"#, "episode"),
    ] {
        let text = search(bad).unwrap_err().to_string();
        assert!(
            text.contains(word) && !text.contains(" line "),
            "{bad}: {text}"
        );
    }
    assert_eq!(ask("weather", "{}"), Err(BadArguments::UnknownTool));
    let get = |arguments: &str| ask("memfleet_memory_get", arguments);
    assert_eq!(
        get(r#"{"ids":["a"]}"#),
        Ok(Ask::Get(Get {
            ids: vec!["a".to_owned()]
        }))
    );
    assert_eq!(get(r#"{"ids":[]}"#), Err(BadArguments::Ids));
    assert_eq!(get(r#"{"ids":["a",""]}"#), Err(BadArguments::Ids));
    assert_eq!(
        get(&json!({"ids": vec!["a"; 21]}).to_string()),
        Err(BadArguments::Ids)
    );
}

proptest! {
    #[test]
    fn amp_031_no_arguments_make_it_panic(text in any::<String>(), query in any::<String>()) {
        for name in ["memfleet_memory_search", "memfleet_memory_get"] {
            let _ = ask(name, &text);
            let _ = ask(name, &json!({"query": query, "ids": [query]}).to_string());
        }
    }
}
