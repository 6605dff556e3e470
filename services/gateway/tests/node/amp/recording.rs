//! What entered a prompt is written down, as far as the policy says, and where it came from.

use memfleet_domain::assembly::{AuditMode, Decision, Reason};

use super::{assembled, kettle, prompted, user};
use crate::policies::audit;
use crate::roles::acme;

#[tokio::test]
async fn amp_091_amp_092_an_injection_says_where_each_item_comes_from_and_how_it_came_about() {
    let node = kettle().await;
    let answer = assembled(&node, prompted(vec![user("What happened to my kettle?")])).await;
    for item in &answer.items {
        assert_eq!(item.session, "monday");
        assert_eq!(item.speaker, "Ada");
        assert_eq!(item.sources[0].system, "memfleet");
        assert_eq!(item.sources[0].id, item.id);
        assert!(
            item.recorded_at.is_some() && item.relevance.is_some(),
            "{item:?}"
        );
        assert!(item.tokens > 0 && item.content_hash.len() == 64);
    }
    let stages: Vec<_> = answer
        .timings
        .iter()
        .map(|(stage, _)| stage.as_str())
        .collect();
    assert_eq!(stages, ["prompt", "search", "needs", "select", "record"]);
    assert_eq!(answer.versions["template"], "turns 1");
    assert!(!answer.versions["scorer"].is_empty());
    assert_eq!(answer.budget.tokenizer, "o200k_base");
    assert!(answer.budget.added_tokens <= answer.budget.effective_tokens);
    assert_eq!(answer.budget.limited_by, "budget.max_tokens");
}

#[tokio::test]
async fn amp_094_amp_095_injections_and_skips_are_kept_as_the_policy_says() {
    let node = kettle().await;
    let request = || prompted(vec![user("What happened to my kettle?")]);
    let store = &node.gateway.injections;
    let tenant = acme().tenant;
    let full = assembled(&node, request()).await;
    let kept = store
        .get(&tenant, full.injection.unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(kept.block.as_deref(), Some(full.block.as_str()));
    assert_eq!(kept.turns.len(), full.items.len());
    assert!(!kept.record.contains("broke"), "{}", kept.record);

    audit(&node.gateway, None, AuditMode::Redacted).await;
    let redacted = assembled(&node, request()).await;
    let kept = store
        .get(&tenant, redacted.injection.unwrap())
        .await
        .unwrap()
        .unwrap();
    let hash = blake3::hash(redacted.block.as_bytes());
    assert_eq!(
        (kept.block, kept.block_hash),
        (None, Some(*hash.as_bytes()))
    );

    audit(&node.gateway, None, AuditMode::Off).await;
    assert_eq!(assembled(&node, request()).await.injection, None);

    audit(&node.gateway, None, AuditMode::Full).await;
    let mut skipped = request();
    skipped.policy.budget.max_tokens = Some(0);
    let skipped = assembled(&node, skipped).await;
    assert_eq!(skipped.decision, Decision::Skipped);
    assert_eq!(skipped.reason, Some(Reason::BudgetZero));
    let kept = store
        .get(&tenant, skipped.injection.unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!((kept.decision.as_str(), kept.block), ("skipped", None));
}

#[tokio::test]
async fn amp_113_what_matches_a_redaction_is_not_shown() {
    let node = kettle().await;
    let mut request = prompted(vec![user("What happened to my kettle?")]);
    request.policy.format.redactions = Some(vec!["Sun[a-z]+".to_owned()]);
    let answer = assembled(&node, request.clone()).await;
    assert!(
        answer.block.contains("broke on [redacted]"),
        "{}",
        answer.block
    );
    request.policy.format.redactions = Some(vec!["(".to_owned()]);
    let fault = memfleet_ports::assembly::Assembly::assemble(&node.gateway, &acme(), request)
        .await
        .unwrap_err();
    assert_eq!(fault.fields[0].field, "policy.format.redactions[0]");
}
