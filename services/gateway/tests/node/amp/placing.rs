//! Where the block goes, in neutral messages and in a provider's request, and that the requests of one exchange share it.

use memfleet_assembly::{Tokenizer, Tokenizers};
use memfleet_domain::assembly::{Decision, ProviderFormat, Reason, Strategy};
use memfleet_domain::ids::ExchangeName;
use memfleet_domain::turn::Role;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::assembly::{AssembleRequest, AssembledItem, Assembly, EditOperation, Prompt};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;
use serde_json::{Value, json};

use super::{assembled, kettle, message, prompted, session, tool_result, user};
use crate::assembling::assemble;
use crate::roles::{acme, said, space};

fn provider(format: ProviderFormat, body: &Value) -> AssembleRequest {
    AssembleRequest {
        prompt: Prompt::Provider {
            format,
            body: serde_json::to_vec(body).unwrap(),
        },
        patch: true,
        ..assemble("ada", "", 1_000)
    }
}

fn patched(answer: &memfleet_ports::assembly::Assembled) -> Value {
    serde_json::from_slice(answer.patched.as_deref().unwrap()).unwrap()
}

#[tokio::test]
async fn amp_001_append_is_an_edit_of_the_last_message_of_the_user() {
    let node = kettle().await;
    let messages = vec![
        message(Role::System, "Be brief."),
        user("What happened to my kettle?"),
    ];
    let answer = assembled(&node, prompted(messages)).await;
    assert_eq!(answer.decision, Decision::Injected);
    assert_eq!(answer.strategy_used, Strategy::Append);
    let [edit] = &answer.edits[..] else {
        panic!("{:?}", answer.edits);
    };
    assert_eq!(edit.operation, EditOperation::AppendText);
    assert_eq!(edit.message, Some(1));
    assert_eq!(edit.text, format!("\n\n{}", answer.block));
    assert!(answer.block.contains("My kettle broke"), "{}", answer.block);
}

#[tokio::test]
async fn amp_006_requests_of_one_exchange_get_the_same_bytes_at_the_same_place_after_one_search() {
    let node = kettle().await;
    let asked = user("What happened to my kettle?");
    let first = assembled(&node, in_session(prompted(vec![asked.clone()]))).await;
    // A round of the caller's tools later memory knows more, and the prompt is longer.
    node.told("ada", vec![said("My new kettle is red")]).await;
    let calls = message(Role::Assistant, "I look it up.");
    let later = in_session(prompted(vec![asked.clone(), calls, tool_result("42")]));
    let later = assembled(&node, later).await;
    assert_eq!(later.block, first.block);
    assert_eq!(later.edits, first.edits);
    assert_eq!(later.injection, first.injection);
    assert_eq!(later.gates[0].reason, Reason::Sticky);
    // Asked again it is another exchange; so it is under a name of the caller's.
    let again = vec![
        asked.clone(),
        message(Role::Assistant, "It broke."),
        asked.clone(),
    ];
    let again = assembled(&node, in_session(prompted(again))).await;
    assert!(again.block.contains("new kettle"), "{}", again.block);
    let mut named = in_session(prompted(vec![asked]));
    named.exchange = Some(ExchangeName::new("other").unwrap());
    let named = assembled(&node, named).await;
    assert!(named.block.contains("new kettle"), "{}", named.block);
}

fn in_session(mut request: AssembleRequest) -> AssembleRequest {
    request.query.session = Some(session("today"));
    request
}

#[tokio::test]
async fn amp_128_a_forgotten_turn_leaves_the_block_of_its_exchange_before_the_forget_answers() {
    let node = kettle().await;
    let request = || in_session(prompted(vec![user("What happened to my kettle?")]));
    let first = assembled(&node, request()).await;
    assert!(first.block.contains("broke"), "{}", first.block);
    let broke = first
        .items
        .iter()
        .filter_map(AssembledItem::turn)
        .collect::<Vec<_>>();
    let forget = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            turns: broke,
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    node.gateway.forget(&acme(), forget).await.unwrap();
    let second = assembled(&node, request()).await;
    assert!(!second.block.contains("broke"), "{}", second.block);
}

#[tokio::test]
async fn amp_007_amp_008_without_a_message_of_a_user_nothing_is_injected_and_nothing_changes() {
    let node = kettle().await;
    let system = prompted(vec![message(Role::System, "Be brief.")]);
    let empty = provider(
        ProviderFormat::OpenaiChat,
        &json!({"model": "m", "messages": []}),
    );
    for request in [system, empty] {
        let body = match &request.prompt {
            Prompt::Provider { body, .. } => Some(body.clone()),
            _ => None,
        };
        let answer = assembled(&node, request).await;
        assert_eq!(answer.decision, Decision::Skipped);
        assert_eq!(answer.reason, Some(Reason::NoTarget));
        assert!(answer.edits.is_empty() && answer.block.is_empty());
        assert_eq!(answer.patched, body);
    }
}

#[tokio::test]
async fn amp_013_a_patched_request_has_the_block_and_is_otherwise_as_it_came() {
    let node = kettle().await;
    for (format, body, pointer) in [
        (
            ProviderFormat::OpenaiChat,
            json!({"x": 1.50, "messages": [{"role": "user", "content": "my kettle?"}]}),
            "/messages/0/content",
        ),
        (
            ProviderFormat::AnthropicMessages,
            json!({"max_tokens": 9, "messages": [{"role": "user", "content": "my kettle?"}]}),
            "/messages/0/content",
        ),
        (
            ProviderFormat::OllamaChat,
            json!({"model": "x", "messages": [{"role": "user", "content": "my kettle?"}]}),
            "/messages/0/content",
        ),
        (
            ProviderFormat::OpenaiResponses,
            json!({"model": "x", "input": "my kettle?"}),
            "/input",
        ),
    ] {
        let answer = assembled(&node, provider(format, &body)).await;
        let mut now = patched(&answer);
        let text = now.pointer_mut(pointer).unwrap();
        let expected = format!("my kettle?\n\n{}", answer.block);
        assert_eq!(text.as_str(), Some(expected.as_str()), "{format}");
        *text = "my kettle?".into();
        assert_eq!(now, body);
    }
}

#[tokio::test]
async fn amp_014_amp_017_system_falls_back_to_append_where_the_model_knows_none() {
    let node = kettle().await;
    let request = |supports_system| {
        let mut request = prompted(vec![user("What happened to my kettle?")]);
        request.policy.placing.strategies = Some(vec![Strategy::System, Strategy::Append]);
        request.model.supports_system = supports_system;
        request
    };
    let system = assembled(&node, request(None)).await;
    assert_eq!(system.edits[0].operation, EditOperation::InsertSystem);
    assert_eq!(system.strategy_used, Strategy::System);
    let fallen = assembled(&node, request(Some(false))).await;
    assert_eq!(fallen.decision, Decision::Fallback);
    assert_eq!(fallen.reason, Some(Reason::SystemUnsupported));
    assert_eq!(fallen.strategy_requested, Strategy::System);
    assert_eq!(fallen.strategy_used, Strategy::Append);
}

#[tokio::test]
async fn amp_019_amp_034_tools_are_offered_unless_the_client_forbids_them() {
    let node = kettle().await;
    let request = |choice: &str| {
        let body = json!({
            "messages": [{"role": "user", "content": "my kettle?"}],
            "tools": [{"type": "function", "function": {"name": "mine"}}],
            "tool_choice": choice,
        });
        let mut request = provider(ProviderFormat::OpenaiChat, &body);
        request.policy.placing.strategies = Some(vec![Strategy::Tool, Strategy::Append]);
        request
    };
    let offered = assembled(&node, request("auto")).await;
    assert_eq!(offered.strategy_used, Strategy::Tool);
    assert_eq!(offered.reason, Some(Reason::ToolsOffered));
    assert!(offered.block.is_empty());
    assert!(
        offered
            .edits
            .iter()
            .all(|edit| edit.operation == EditOperation::AddTool)
    );
    assert_eq!(patched(&offered)["messages"][0]["content"], "my kettle?");
    let fallen = assembled(&node, request("none")).await;
    assert_eq!(fallen.strategy_used, Strategy::Append);
    assert_eq!(fallen.reason, Some(Reason::ToolChoiceConflict));
}

#[tokio::test]
async fn a_request_that_is_no_json_or_cannot_be_patched_names_the_field() {
    let node = kettle().await;
    let mut request = provider(ProviderFormat::Gemini, &json!({}));
    request.prompt = Prompt::Provider {
        format: ProviderFormat::Gemini,
        body: b"{\"contents\": [".to_vec(),
    };
    let fault = |request| async {
        let fault: Fault = node.gateway.assemble(&acme(), request).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidArgument);
        fault.fields[0].field.clone()
    };
    assert_eq!(fault(request).await, "provider_request.body");
    let unpatchable = AssembleRequest {
        patch: true,
        ..prompted(vec![user("my kettle?")])
    };
    assert_eq!(fault(unpatchable).await, "patch");
}

#[tokio::test]
async fn amp_119_an_exchange_is_given_again_only_to_who_asks_the_same_spaces() {
    let node = kettle().await;
    node.told("bob", vec![said("Bob has no kettle")]).await;
    let asked = vec![user("What happened to my kettle?")];
    let ada = assembled(&node, in_session(prompted(asked.clone()))).await;
    assert!(ada.block.contains("broke"), "{}", ada.block);
    let mut other = in_session(prompted(asked));
    other.query.spaces = vec![space("bob")];
    let bob = assembled(&node, other).await;
    assert!(!bob.block.contains("broke"), "{}", bob.block);
    assert!(bob.block.contains("no kettle"), "{}", bob.block);
}

/// All texts of a request, as far as they are the client's or memory's.
fn tokens(tokenizer: &Tokenizer, body: &Value) -> usize {
    match body {
        Value::String(text) => tokenizer.count(text),
        Value::Array(all) => all.iter().map(|it| tokens(tokenizer, it)).sum(),
        Value::Object(all) => all.values().map(|it| tokens(tokenizer, it)).sum(),
        _ => 0,
    }
}

#[tokio::test]
async fn amp_064_what_is_added_is_within_the_budget_by_every_strategy_and_provider() {
    let node = kettle().await;
    let question = "What happened to my kettle?";
    let bodies = [
        (
            ProviderFormat::OpenaiChat,
            json!({"messages": [{"role": "user", "content": question}]}),
        ),
        (
            ProviderFormat::OpenaiChat,
            json!({"messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": [{"type": "text", "text": question}]}]}),
        ),
        (ProviderFormat::OpenaiResponses, json!({"input": question})),
        (
            ProviderFormat::AnthropicMessages,
            json!({"max_tokens": 100, "system": "Be brief", "messages": [{"role": "user", "content": question}]}),
        ),
        (
            ProviderFormat::Gemini,
            json!({"contents": [{"role": "user", "parts": [{"text": question}]}]}),
        ),
        (
            ProviderFormat::OllamaChat,
            json!({"messages": [{"role": "user", "content": question}]}),
        ),
    ];
    let tokenizer = Tokenizers::default().get("o200k_base").unwrap();
    let mut added = 0;
    for (format, body) in bodies {
        for strategy in [Strategy::Append, Strategy::System, Strategy::Tool] {
            for budget in [0, 20, 40, 60, 90, 200, 400, 800] {
                let mut request = provider(format, &body);
                request.tokenizer = Some("o200k_base".into());
                request.policy.placing.strategies = Some(vec![strategy]);
                request.policy.budget.max_tokens = Some(budget);
                let answer = assembled(&node, request).await;
                let told = answer.budget.added_tokens;
                let new = tokens(&tokenizer, &patched(&answer)) - tokens(&tokenizer, &body);
                assert!(
                    told <= budget,
                    "{strategy:?} of {format:?}: {told} of {budget}"
                );
                // Words of the format beside a text, such as the role of a message that is made, are the provider's to count.
                let of_format = if strategy == Strategy::Tool {
                    told as usize
                } else {
                    2
                };
                assert!(
                    new <= told as usize + of_format,
                    "{strategy:?} of {format:?}: {new}, {told} told"
                );
                added += usize::from(told > 0);
            }
        }
    }
    assert!(added > 50, "{added}");
}
