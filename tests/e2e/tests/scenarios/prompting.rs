//! Memory in prompts over the wire (AMP): the gates, the place of the block, the running session, the exchange, a provider's request.

use anyhow::Result;
use memfleet_domain::assembly::{Decision, ProviderFormat, Reason};
use memfleet_domain::ids::SessionId;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::turn::Role;
use memfleet_e2e::call;
use memfleet_ports::assembly::{AssembleRequest, Assembly, Content, GateRequest, Message, Prompt};
use memfleet_ports::filter::TurnFilter;
use serde_json::{Value, json};

use crate::conversation::{recall, remember, space, turns};
use crate::system::fresh;

/// As a backend asks before it calls its model, with time for a machine that is busy.
fn request(prompt: Prompt) -> AssembleRequest {
    let mut query = recall("noor", "", TurnFilter::default(), &[]).query;
    query.k = 100;
    query.session = Some(SessionId::new("prompting").unwrap());
    let mut request = AssembleRequest {
        prompt,
        ..AssembleRequest::new(query)
    };
    request.policy.failure.deadline_ms = Some(60_000);
    request
}

fn user(text: &str) -> Prompt {
    Prompt::Messages(vec![Message {
        role: Role::User,
        content: Content::Text(text.to_owned()),
    }])
}

const QUESTION: &str = "What is Noor's dog afraid of?";

#[tokio::test]
async fn a_prompt_gets_the_block_that_answers_it_once_for_the_whole_exchange() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let first = AssembleRequest {
        wait_for: vec![token],
        ..request(user(QUESTION))
    };
    let first = fresh.client.assemble(&call(), first).await?;
    assert_eq!(first.decision, Decision::Injected, "{first:?}");
    assert!(first.block.contains("afraid of thunder"), "{}", first.block);
    assert_eq!(first.edits[0].text, format!("\n\n{}", first.block));
    // Under the name that the answer gave: without it the same question is a new one.
    let again = AssembleRequest {
        exchange: first.exchange.clone(),
        ..request(user(QUESTION))
    };
    let again = fresh.client.assemble(&call(), again).await?;
    assert_eq!(again.block, first.block);
    assert_eq!(again.gates[0].reason, Reason::Sticky);
    assert_eq!(again.injection, first.injection);
    Ok(())
}

#[tokio::test]
async fn small_talk_gets_none_and_a_user_without_memory_neither() -> Result<()> {
    let fresh = fresh().await?;
    let nobody = fresh
        .client
        .assemble(&call(), request(user(QUESTION)))
        .await?;
    assert_eq!(nobody.reason, Some(Reason::UnknownSpace), "{nobody:?}");
    let token = remember(&fresh.client, "noor", turns()).await?;
    let thanks = AssembleRequest {
        wait_for: vec![token],
        ..request(user("thanks a lot!"))
    };
    let thanks = fresh.client.assemble(&call(), thanks).await?;
    assert_eq!(thanks.reason, Some(Reason::Pleasantry), "{thanks:?}");
    let gate = GateRequest {
        text: "Danke dir!".to_owned(),
        prompt: Prompt::Unknown,
        spaces: vec![space("noor")],
        policy: memfleet_domain::policy::Policy::default(),
    };
    assert!(!fresh.client.gate(&call(), gate).await?.pass);
    Ok(())
}

#[tokio::test]
async fn a_request_of_a_provider_comes_back_with_the_block_and_nothing_else_changed() -> Result<()>
{
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let body = json!({
        "model": "claude-x",
        "max_tokens": 512,
        "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
        "something_new": [1.50, null],
    });
    let asked = AssembleRequest {
        patch: true,
        wait_for: vec![token],
        ..request(Prompt::Provider {
            format: ProviderFormat::AnthropicMessages,
            body: serde_json::to_vec(&body)?,
        })
    };
    let answer = fresh.client.assemble(&call(), asked).await?;
    let mut patched: Value = serde_json::from_slice(answer.patched.as_deref().unwrap())?;
    let parts = patched["messages"][0]["content"].as_array_mut().unwrap();
    let added = parts.pop().unwrap();
    assert_eq!(added["text"].as_str(), Some(answer.block.as_str()));
    assert_eq!(patched, body);
    assert!(answer.budget.approximate, "{:?}", answer.budget);
    Ok(())
}

#[tokio::test]
async fn a_profile_of_the_tenant_bounds_what_enters() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let profile = ModelProfile {
        name: "tiny-*".to_owned(),
        window_tokens: Some(2_000),
        reserved_output_tokens: Some(1_000),
        tokenizer: Some("cl100k_base".to_owned()),
        ..ModelProfile::default()
    };
    let (_, version) = fresh
        .client
        .put_model_profile(&call(), profile.clone())
        .await?;
    assert_eq!(version, 1);
    assert!(
        fresh
            .client
            .model_profiles(&call())
            .await?
            .contains(&profile)
    );
    let mut asked = AssembleRequest {
        wait_for: vec![token],
        ..request(user(QUESTION))
    };
    asked.model.name = "tiny-1".to_owned();
    let answer = fresh.client.assemble(&call(), asked).await?;
    assert_eq!(answer.budget.tokenizer, "cl100k_base");
    assert_eq!(answer.budget.limited_by, "budget.percent_of_window");
    assert_eq!(answer.budget.effective_tokens, 200);
    assert!(answer.budget.added_tokens <= 200);
    Ok(())
}
