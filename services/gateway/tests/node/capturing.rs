//! What passes between a caller and a model is kept once, and without what memory put there.

use memfleet_domain::assembly::{ProviderFormat, TrustMode};
use memfleet_domain::ids::ExternalId;
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::{Metadata, Role, Turn};
use memfleet_ports::assembly::{Assembly, Content, Message, Prompt};
use memfleet_ports::capture::{Capture, RecordTurnRequest};
use memfleet_ports::conformance::samples::{batch_in, instant, session, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{NewTurn, PageRequest};
use memfleet_ports::policies::Policies;
use memfleet_ports::queue::{Bounds, IngestQueue};

use crate::assembling::assemble;
use crate::roles::{Node, acme, said, space};

pub fn record(prompt: Prompt) -> RecordTurnRequest {
    RecordTurnRequest {
        space: space("ada"),
        session: Some(session("chat")),
        exchange: None,
        prompt,
        answer: Vec::new(),
        partial: false,
        model: String::new(),
        assistant: None,
        user: None,
        event_time: None,
        metadata: Metadata::new(),
        include_system: false,
    }
}

pub fn messages(said: &[(Role, &str)]) -> Prompt {
    let message = |(role, text): &(Role, &str)| Message {
        role: *role,
        content: Content::Text((*text).to_owned()),
    };
    Prompt::Messages(said.iter().map(message).collect())
}

fn chat(body: &str) -> Prompt {
    Prompt::Provider {
        format: ProviderFormat::OpenaiChat,
        body: body.as_bytes().to_vec(),
    }
}

pub async fn stored(node: &Node) -> Vec<Turn> {
    node.settle().await;
    let scope = acme().scope(&space("ada"));
    let filter = TurnFilter {
        sessions: vec![session("chat")],
        ..TurnFilter::default()
    };
    node.store
        .list(&scope, &filter, 1_000, None)
        .await
        .unwrap()
        .items
}

pub fn texts(turns: &[Turn]) -> Vec<&str> {
    turns
        .iter()
        .map(|turn| turn.accepted.content.text.as_str())
        .collect()
}

#[tokio::test]
async fn amp_121_a_history_that_grows_is_kept_once() {
    let node = Node::new().await;
    let said = [
        (Role::User, "ok"),
        (Role::Assistant, "ok"),
        (Role::User, "ok"),
        (Role::User, "see /config, ### Task: answer in JSON format"),
    ];
    for settles in [false, true] {
        for length in 1..=said.len() {
            let request = RecordTurnRequest {
                event_time: Some(instant(length as i64)),
                ..record(messages(&said[..length]))
            };
            node.gateway.record_turn(&acme(), request).await.unwrap();
            if settles {
                node.settle().await;
            }
        }
    }
    let turns = stored(&node).await;
    assert_eq!(texts(&turns), said.map(|(_, text)| text));
    let letters = node
        .gateway
        .dead_letters(&acme(), Some(&space("ada")), PageRequest::default())
        .await;
    assert!(letters.unwrap().items.is_empty());
    let again = node
        .gateway
        .record_turn(&acme(), record(messages(&said)))
        .await;
    let again = again.unwrap();
    assert_eq!(
        (again.duplicates, again.turns.len(), again.token),
        (4, 0, None)
    );
}

#[tokio::test]
async fn amp_125_blocks_and_tools_are_left_out_and_an_answer_is_labelled() {
    let node = Node::new().await;
    let body = r#"{"model":"m","messages":[
        {"role":"system","content":"be brief"},
        {"role":"user","content":"Which kettle?\n\n<memory nonce=\"a1\">\nAda: the red one\n</memory nonce=\"a1\">"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"memfleet_memory_search","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"1","content":"secret result"}]}"#;
    let request = RecordTurnRequest {
        answer: b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The red\"}}]}\n\n"
            .to_vec(),
        ..record(chat(body))
    };
    let kept = node.gateway.record_turn(&acme(), request).await.unwrap();
    assert_eq!((kept.blocks_removed, kept.left_out), (1, 3));
    let turns = stored(&node).await;
    assert_eq!(texts(&turns), ["Which kettle?", "The red"]);
    let labels = &turns[1].accepted.metadata;
    assert_eq!(labels["partial"], "true");
    assert_eq!(labels["model"], "m");
}

#[tokio::test]
async fn a_session_that_nothing_tells_of_is_asked_for_by_name() {
    let node = Node::new().await;
    let request = RecordTurnRequest {
        session: None,
        ..record(messages(&[(Role::Assistant, "hello")]))
    };
    let fault = node
        .gateway
        .record_turn(&acme(), request)
        .await
        .unwrap_err();
    assert_eq!(fault.fields[0].field, "session");
}

#[tokio::test]
async fn amp_105_what_is_recorded_of_a_turn_does_not_come_back_in_it() {
    let node = Node::new().await;
    node.told("ada", vec![said("My kettle broke")]).await;
    let spoken = [(Role::User, "What about my kettle?")];
    let request = record(messages(&spoken));
    let kept = node.gateway.record_turn(&acme(), request).await.unwrap();
    node.settle().await;
    let mut request = assemble("ada", "What about my kettle?", 500);
    request.query.session = Some(session("chat"));
    request.wait_for = kept.token.into_iter().collect();
    let block = node.gateway.assemble(&acme(), request).await.unwrap();
    assert!(block.items.iter().all(|item| item.session != "chat"));
    assert!(!block.items.is_empty());
}

/// A policy with a pattern of keys, for the tenant.
async fn redacting(node: &Node) {
    let mut policy = Policy::default();
    policy.format.redactions = Some(vec!["sk-[a-z]{8}".to_owned()]);
    let caller = acme();
    let put = node.gateway.put_policy(&caller, None, policy, None);
    put.await.unwrap();
}

#[tokio::test]
async fn amp_113_what_matches_a_redaction_is_not_captured_wherever_the_message_is_cut() {
    let node = Node::new().await;
    redacting(&node).await;
    // A secret over the cut of a long message, one over two parts of a message, one in an answer.
    let long = format!("{}sk-abcdefgh tail", "x".repeat(65_530));
    let parts = r#"[{"type":"text","text":"it is sk-abc"},{"type":"text","text":"defgh, no?"}]"#;
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"{long}"}},{{"role":"user","content":{parts}}}]}}"#
    );
    let request = RecordTurnRequest {
        answer: br#"{"choices":[{"message":{"role":"assistant","content":"yes, sk-abcdefgh"},"finish_reason":"stop"}]}"#.to_vec(),
        ..record(chat(&body))
    };
    node.gateway.record_turn(&acme(), request).await.unwrap();
    let turns = stored(&node).await;
    let all = texts(&turns).concat();
    assert!(
        !all.contains("sk-") && !all.contains("defgh"),
        "{}",
        &all[65_500..]
    );
    assert_eq!(all.matches("[redacted]").count(), 3, "{}", &all[65_500..]);
    assert_eq!(texts(&turns)[turns.len() - 2], "it is [redacted], no?");
    assert!(
        turns
            .iter()
            .all(|turn| turn.accepted.content.text.len() <= 65_536)
    );
}

#[tokio::test]
async fn amp_113_no_id_of_a_captured_turn_tells_what_was_redacted() {
    let node = Node::new().await;
    redacting(&node).await;
    for (secret, kept) in [("sk-abcdefgh", (1, 0)), ("sk-hgfedcba", (0, 1))] {
        let text = format!("my key is {secret}");
        let request = record(messages(&[(Role::User, &text)]));
        let recorded = node.gateway.record_turn(&acme(), request).await.unwrap();
        let told = (recorded.turns.len(), recorded.duplicates);
        assert_eq!(told, kept, "an id is of what is stored");
    }
}

#[tokio::test]
async fn an_answer_that_is_none_of_its_provider_is_refused_and_a_failure_is_none() {
    let node = Node::new().await;
    let recorded = async |answer: &str| {
        let mut request = record(chat(r#"{"messages":[{"role":"user","content":"hello"}]}"#));
        request.answer = answer.as_bytes().to_vec();
        node.gateway.record_turn(&acme(), request).await
    };
    for wrong in [
        "<html>502 Bad Gateway</html>",
        r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}]}"#,
        "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
        "data: [DONE]\n\n",
    ] {
        let fault = recorded(wrong).await.unwrap_err();
        assert_eq!(fault.fields[0].field, "provider_response", "{wrong}");
    }
    assert!(stored(&node).await.is_empty());
    for failed in [
        r#"{"error":{"message":"overloaded"}}"#,
        "data: {\"error\":{\"message\":\"overloaded\"}}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n",
    ] {
        assert!(recorded(failed).await.is_ok(), "{failed}");
    }
    assert_eq!(texts(&stored(&node).await), ["hello"]);
}

/// A caller that keeps its messages as they were sent, blocks and all, sends them again with each exchange.
#[tokio::test]
async fn amp_125_blocks_without_marks_of_earlier_exchanges_do_not_come_back() {
    let node = Node::new().await;
    let mut policy = Policy::default();
    policy.format.trust = Some(TrustMode::Plain);
    let call = acme();
    let put = node.gateway.put_policy(&call, None, policy, None);
    put.await.unwrap();
    let told = NewTurn {
        session: session("before"),
        ..said("My kettle broke on Sunday")
    };
    node.told("ada", vec![told]).await;
    let mut spoken = Vec::new();
    let questions = ["What of my kettle?", "And when was my kettle fine?"];
    for question in questions {
        spoken.push((Role::User, question.to_owned()));
        let said: Vec<_> = spoken
            .iter()
            .map(|(role, text)| (*role, text.as_str()))
            .collect();
        let mut request = assemble("ada", "", 1_000);
        request.prompt = messages(&said);
        request.query.session = Some(session("chat"));
        request.policy.exclusion.in_prompt = Some(false);
        let answer = node.gateway.assemble(&acme(), request).await.unwrap();
        assert!(
            answer.block.contains("broke") && !answer.block.contains("nonce"),
            "{answer:?}"
        );
        spoken.last_mut().unwrap().1 += &answer.edits[0].text;
        spoken.push((Role::Assistant, format!("An answer to: {question}")));
        let said: Vec<_> = spoken
            .iter()
            .map(|(role, text)| (*role, text.as_str()))
            .collect();
        let recorded = node
            .gateway
            .record_turn(&acme(), record(messages(&said)))
            .await;
        assert!(recorded.unwrap().blocks_removed > 0);
    }
    let kept = stored(&node).await;
    let mut kept = texts(&kept);
    kept.sort_unstable();
    let mut all: Vec<_> = questions
        .iter()
        .map(|it| format!("An answer to: {it}"))
        .collect();
    all.extend(questions.map(str::to_owned));
    all.sort_unstable();
    assert_eq!(kept, all);
}

#[tokio::test]
async fn what_was_forgotten_stays_away_when_the_history_is_sent_again() {
    let node = Node::new().await;
    let said = [
        (Role::User, "My PIN is 4711."),
        (Role::Assistant, "ok"),
        (Role::User, "And my cat is Tom."),
        (Role::User, "My PIN is 4711."),
    ];
    let context = acme();
    let send = async |count: usize| {
        let request = record(messages(&said[..count]));
        let recorded = node.gateway.record_turn(&context, request).await.unwrap();
        (
            recorded.turns.len(),
            recorded.duplicates,
            recorded.forgotten,
        )
    };
    assert_eq!(send(2).await, (2, 0, 0));
    let turns = stored(&node).await;
    let filter = TurnFilter {
        turns: vec![turns[0].accepted.id],
        ..TurnFilter::default()
    };
    let scope = context.scope(&space("ada"));
    node.erasure.erase(&scope, &filter).await.unwrap();
    assert_eq!(send(2).await, (0, 1, 1));
    // The history goes on, and says the same in a new message.
    assert_eq!(send(4).await, (2, 1, 1));
    let turns = stored(&node).await;
    assert_eq!(
        texts(&turns),
        ["ok", "And my cat is Tom.", "My PIN is 4711."]
    );
}

/// The id under which a version before recorded a message: a digest without the key of the space.
fn plain_id(role: Role, text: &str) -> ExternalId {
    let mut hasher = blake3::Hasher::new_derive_key("memfleet gateway 2026 captured message");
    hasher.update(&[role as u8]);
    hasher.update(&0_u64.to_be_bytes());
    hasher.update(&0_u64.to_be_bytes());
    hasher.update(text.as_bytes());
    let digest = hasher.finalize().to_hex();
    ExternalId::new(format!("captured-{}", &digest[..32])).unwrap()
}

#[tokio::test]
async fn what_a_version_before_recorded_is_known_again() {
    let node = Node::new().await;
    let scope = acme().scope(&space("ada"));
    let before = |text: &str| {
        let id = plain_id(Role::User, text);
        turn_in(&scope, "chat", id.as_str(), text)
    };
    let batch = batch_in(&scope, "before", vec![before("one"), before("two")]);
    let published = node.store.publish(&batch, instant(0), Bounds::NONE).await;
    published.unwrap();
    node.settle().await;
    let gone = stored(&node).await[0].accepted.id;
    let filter = TurnFilter {
        turns: vec![gone],
        ..TurnFilter::default()
    };
    node.erasure.erase(&scope, &filter).await.unwrap();
    let history = [
        (Role::User, "one"),
        (Role::User, "two"),
        (Role::User, "three"),
    ];
    let request = record(messages(&history));
    let recorded = node.gateway.record_turn(&acme(), request).await.unwrap();
    let counts = (
        recorded.turns.len(),
        recorded.duplicates,
        recorded.forgotten,
    );
    assert_eq!(counts, (1, 1, 1));
    assert_eq!(texts(&stored(&node).await), ["two", "three"]);
}

#[tokio::test]
async fn nobody_who_guesses_what_was_said_finds_its_id() {
    let node = Node::new().await;
    let ids = async || {
        let request = record(messages(&[(Role::User, "My PIN is 4471.")]));
        node.gateway.record_turn(&acme(), request).await.unwrap();
        let turns = stored(&node).await;
        turns[0].accepted.external_id.clone().unwrap()
    };
    let first = ids().await;
    assert_ne!(first, plain_id(Role::User, "My PIN is 4471."));
    // The key goes with the space.
    let everything = TurnFilter::default();
    let scope = acme().scope(&space("ada"));
    node.erasure.erase(&scope, &everything).await.unwrap();
    assert_ne!(ids().await, first);
}
