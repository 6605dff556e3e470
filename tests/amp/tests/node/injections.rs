//! Instructions that somebody hid in what is remembered (AMP item 111): whatever they say, they stay the text of an item.

use std::collections::HashMap;

use memfleet_assembly::{Nonce, ParsedItem, Template, parse, sanitise};
use memfleet_domain::assembly::{Decision, Strategy, TrustMode};
use memfleet_domain::ids::{ExchangeName, SessionId};
use memfleet_domain::turn::Trust;
use memfleet_ports::assembly::{AssembleRequest, Assembled, AssembledItem, Assembly, Prompt};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::NewTurn;
use memfleet_ports::tools::{ToolCall, ToolResult, Tools};
use memfleet_provider::conversation::PartKind;
use memfleet_provider::reply::{Answer, Reply, continuation};
use memfleet_provider::{Edit, Format, Request};
use serde::Deserialize;

use crate::roles::{Node, acme, recall, said, space};

#[derive(Deserialize)]
struct Payload {
    kind: String,
    text: String,
}

/// The corpus.
fn payloads() -> Vec<Payload> {
    serde_json::from_str(include_str!("../../injections.json")).unwrap()
}

/// A node that remembers all of them as things that people, models, tools and the web said; and each text by the id of its turn.
async fn told() -> (Node, HashMap<String, String>) {
    let node = Node::new().await;
    let trusts = [Trust::User, Trust::Assistant, Trust::Tool, Trust::Web];
    let turns = payloads()
        .into_iter()
        .enumerate()
        .map(|(at, payload)| NewTurn {
            session: SessionId::new(payload.kind).unwrap(),
            trust: trusts[at % trusts.len()],
            ..said(&payload.text)
        });
    let receipt = node.told("ada", turns.collect()).await;
    let ids = receipt.turns.iter().map(|turn| turn.id.to_string());
    let texts = payloads().into_iter().map(|payload| payload.text);
    (node, ids.zip(texts).collect())
}

/// A request that all of them fit into.
fn asking(
    prompt: Prompt,
    strategy: Strategy,
    trust: TrustMode,
    template: &Template,
) -> AssembleRequest {
    let mut query = recall("ada", "", &[]).query;
    query.k = 500;
    let mut request = AssembleRequest {
        prompt,
        ..AssembleRequest::ungated(query, 1_000_000)
    };
    let policy = &mut request.policy;
    policy.placing.strategies = Some(vec![strategy]);
    policy.format.trust = Some(trust);
    policy.format.template = Some(template.id.clone());
    (policy.budget.max_items, policy.budget.max_item_tokens) = (Some(0), Some(0));
    request
}

/// Fails unless a text holds a block of exactly these items.
fn reads_back(
    block: &str,
    nonce: Option<&str>,
    template: &Template,
    items: &[AssembledItem],
    texts: &HashMap<String, String>,
) {
    let nonce = nonce.map(|nonce| Nonce::new(nonce).unwrap());
    let around = nonce.map_or(block.to_owned(), |_| format!("before\n\n{block}\nafter"));
    let read = parse(&around, nonce, template).unwrap_or_else(|| panic!("{block}"));
    assert_eq!(read.len(), items.len(), "{block}");
    for (item, read) in items.iter().zip(&read) {
        let text = sanitise::text(&texts[&item.id], nonce);
        assert!(!item.excerpt);
        assert_eq!(read.text, text, "{block}");
        assert_eq!(read.speaker, "Ada");
        assert_eq!(
            read.key.map_or(String::new(), |key| format!("m{key}")),
            item.citation_key
        );
        is_labelled(read, item.trust);
    }
}

fn is_labelled(read: &ParsedItem, trust: Trust) {
    let expected = match trust {
        Trust::Tool => vec!["tool"],
        Trust::Web => vec!["web"],
        Trust::User | Trust::Assistant => vec![],
    };
    assert_eq!(read.labels, expected);
    assert_eq!((read.mark.as_deref(), read.date.as_deref()), (None, None));
}

/// Bodies in which the user asks something and other things stand beside.
const BODIES: [(Format, &str); 5] = [
    (
        Format::OpenaiChat,
        r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Who sails?"}],"seed":1.50,"x":{"y":[]}}"#,
    ),
    (
        Format::OpenaiResponses,
        r#"{"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"Who sails?"}]}],"store":false}"#,
    ),
    (
        Format::AnthropicMessages,
        r#"{"max_tokens":9,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":"Who sails?"}],"x":-0}"#,
    ),
    (
        Format::Gemini,
        r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Who sails?"}]}],"x":1E2}"#,
    ),
    (
        Format::OllamaChat,
        r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Who sails?"}],"keep_alive":"5m"}"#,
    ),
];

#[test]
fn amp_111_the_corpus_is_large_and_of_many_kinds() {
    let payloads = payloads();
    let kinds: std::collections::HashSet<_> = payloads.iter().map(|it| &it.kind).collect();
    assert!(payloads.len() >= 60 && kinds.len() >= 8);
}

#[tokio::test]
async fn amp_111_stored_instructions_read_back_as_the_items_that_they_are_and_forge_no_turn() {
    let (node, texts) = told().await;
    for (format, body) in BODIES {
        for strategy in [Strategy::Append, Strategy::System] {
            for trust in [
                TrustMode::Plain,
                TrustMode::Delimited,
                TrustMode::Datamarked,
            ] {
                for template in Template::shipped() {
                    let prompt = Prompt::Provider {
                        format,
                        body: body.as_bytes().to_vec(),
                    };
                    let request = AssembleRequest {
                        patch: true,
                        ..asking(prompt, strategy, trust, template)
                    };
                    let answer = node.gateway.assemble(&acme(), request).await.unwrap();
                    assert_eq!(answer.decision, Decision::Injected);
                    // Some say what others say.
                    assert!(
                        answer.items.len() >= texts.len() - 4,
                        "{}",
                        answer.items.len()
                    );
                    let nonce = (trust != TrustMode::Plain).then_some(answer.nonce.as_str());
                    reads_back(&answer.block, nonce, template, &answer.items, &texts);
                    is_patched(format, body, &answer);
                }
            }
        }
    }
}

/// Fails unless the block, and nothing else, is in the request: as the end of one text or as one part.
fn is_patched(format: Format, body: &str, answer: &Assembled) {
    let patched = answer.patched.as_deref().unwrap();
    let _: serde_json::Value = serde_json::from_slice(patched).unwrap();
    let (body, after) = (body.as_bytes(), patched);
    let same = body.iter().zip(after).take_while(|(a, b)| a == b).count();
    assert!(after[same..].ends_with(&body[same..]), "more has changed");

    let (before, after) = (
        Request::parse(format, body).unwrap(),
        Request::parse(format, patched).unwrap(),
    );
    let (before, after) = (before.conversation(), after.conversation());
    assert_eq!(before.messages.len(), after.messages.len());
    let contents = |conversation: &memfleet_provider::Conversation<'_>| {
        let messages = conversation.messages.iter().map(|it| it.content.clone());
        conversation
            .system
            .iter()
            .map(|it| it.parts.len())
            .chain(messages.map(|it| it.parts.len()))
            .sum::<usize>()
    };
    let [edit] = &answer.edits[..] else {
        panic!("{:?}", answer.edits);
    };
    let added = contents(after) - contents(before);
    assert!(added <= 1);
    let added: Vec<&str> = after
        .texts()
        .filter(|text| !before.texts().any(|known| known == *text))
        .collect();
    let [text] = added[..] else {
        panic!("{} texts have changed", added.len());
    };
    assert!(
        text == edit.text
            || text == format!("Who sails?{}", edit.text)
            || text == format!("Be brief.{}", edit.text)
    );
    assert!(edit.text.ends_with(&answer.block));
}

#[tokio::test]
async fn amp_111_results_of_tools_hold_them_as_items_and_stay_one_string_of_the_next_request() {
    let (node, texts) = told().await;
    let ids: Vec<&String> = texts.keys().collect();
    for (at, ids) in ids.chunks(10).enumerate() {
        let result = read(&node, at, ids).await;
        assert!(!result.is_error && !result.items.is_empty(), "{result:?}");
        let nonce = result.text.strip_prefix("<memory nonce=\"").unwrap();
        let nonce = nonce.split('"').next().unwrap().to_owned();
        reads_back(
            &result.text,
            Some(&nonce),
            Template::turns(),
            &result.items,
            &texts,
        );
        for (format, body) in BODIES {
            is_answered(format, body, &result.text);
        }
    }
}

/// What a model gets that reads these memories.
async fn read(node: &Node, at: usize, ids: &[&String]) -> ToolResult {
    let mut call = ToolCall {
        spaces: vec![space("ada")],
        session: SessionId::new("now").unwrap(),
        aliases: Vec::new(),
        exchange: ExchangeName::new(format!("e{at}")).unwrap(),
        call_id: "c1".to_owned(),
        round: 0,
        name: "memfleet_memory_get".to_owned(),
        arguments: serde_json::json!({ "ids": ids }).to_string(),
        filter: TurnFilter::default(),
        model: memfleet_domain::model_profile::ModelProfile::default(),
        policy: memfleet_domain::policy::Policy::default(),
        tokenizer: None,
        now: None,
    };
    call.policy.tools.result_tokens = Some(100_000);
    call.policy.budget.max_tokens = Some(100_000);
    node.gateway.execute_tool(&acme(), call).await.unwrap()
}

/// Fails unless the result is the text of one answer in the request that follows.
fn is_answered(format: Format, body: &str, text: &str) {
    let reply = Reply::parse(format, called(format).as_bytes()).unwrap();
    let answer = Answer {
        text: text.to_owned(),
        is_error: false,
    };
    let request = Request::parse(format, body.as_bytes()).unwrap();
    let messages = continuation(format, &reply, &[answer]);
    let expected = request.conversation().messages.len() + messages.len();
    let at = request.conversation().messages.len();
    let next = request
        .apply(&[Edit::InsertMessages { at, messages }])
        .unwrap();
    let next = Request::parse(format, &next).unwrap();
    let messages = &next.conversation().messages;
    assert_eq!(messages.len(), expected);
    let results = messages.iter().flat_map(|message| &message.content.parts);
    let results: Vec<_> = results
        .filter(|part| part.kind == PartKind::ToolResult)
        .filter_map(|part| part.text.as_deref())
        .collect();
    assert_eq!(results.len(), 1, "{format}");
    assert!(results[0] == text || results[0].contains(&serde_json::to_string(text).unwrap()));
}

/// A reply that asks memory once.
fn called(format: Format) -> &'static str {
    match format {
        Format::OpenaiChat => {
            r#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"memfleet_memory_get","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#
        }
        Format::OpenaiResponses => {
            r#"{"output":[{"type":"function_call","call_id":"c1","name":"memfleet_memory_get","arguments":"{}"}]}"#
        }
        Format::AnthropicMessages => {
            r#"{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"memfleet_memory_get","input":{}}],"stop_reason":"tool_use"}"#
        }
        Format::Gemini => {
            r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"memfleet_memory_get","args":{}}}]}}]}"#
        }
        Format::OllamaChat => {
            r#"{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"memfleet_memory_get","arguments":{}}}]},"done":true}"#
        }
    }
}
