//! Accepting turns: retries are recognised, contradictions are refused, and a full queue says when to come back.

use std::time::Duration;

use memfleet_domain::ids::SpaceId;
use memfleet_domain::ingestion::TurnState;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::{Fault, FaultKind};
use memfleet_gateway::Options;
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::queue::Depth;
use memfleet_ports::refresher::ForgetRequest;

use crate::roles::{Node, acme, call_of, keyed, named, request, said, space};

async fn texts(node: &Node, name: &str) -> Vec<String> {
    let all = TurnFilter::default();
    let listed = node
        .gateway
        .list(&acme(), &space(name), &all, PageRequest::default(), &[])
        .await;
    let items = listed.unwrap().items.into_iter();
    items.map(|turn| turn.accepted.content.text).collect()
}

#[tokio::test]
async fn a_retry_gets_the_receipt_of_the_first_time_and_changes_nothing() {
    let node = Node::new().await;
    let by_key = keyed("ada", "k", vec![said("One"), said("Two")]);
    let by_ids = request("ada", vec![named("3", "Three"), named("4", "Four")]);
    for request in [by_key, by_ids] {
        let first = node
            .gateway
            .remember(&acme(), request.clone())
            .await
            .unwrap();
        assert!(!first.duplicate);
        let queued = node
            .gateway
            .remember(&acme(), request.clone())
            .await
            .unwrap();
        node.settle().await;
        let stored = node.gateway.remember(&acme(), request).await.unwrap();
        for (again, state) in [(queued, TurnState::Queued), (stored, TurnState::Stored)] {
            assert!(again.duplicate);
            assert_eq!(again.batch, first.batch);
            for (again, first) in again.turns.iter().zip(&first.turns) {
                assert_eq!((again.id, again.state), (first.id, state));
            }
        }
    }
    node.settle().await;
    assert_eq!(texts(&node, "ada").await, ["One", "Two", "Three", "Four"]);
}

#[tokio::test]
async fn without_a_key_or_ids_the_same_words_are_said_twice() {
    let node = Node::new().await;
    for _ in 0..2 {
        node.told("ada", vec![said("Hello")]).await;
    }
    assert_eq!(texts(&node, "ada").await, ["Hello", "Hello"]);
}

fn both_hashes(fault: &Fault) -> bool {
    let hash = |name: &str| fault.metadata.get(name).cloned();
    let (stored, given) = (hash("stored_hash"), hash("given_hash"));
    stored.is_some() && given.is_some() && stored != given
}

#[tokio::test]
async fn a_key_that_was_used_with_other_turns_is_refused() {
    let node = Node::new().await;
    let first = keyed("ada", "k", vec![said("One")]);
    node.gateway.remember(&acme(), first).await.unwrap();
    let other = keyed("ada", "k", vec![said("Something else")]);
    let while_queued = node.gateway.remember(&acme(), other.clone()).await;
    node.settle().await;
    let when_stored = node.gateway.remember(&acme(), other).await;
    for refused in [while_queued, when_stored] {
        let fault = refused.unwrap_err();
        assert_eq!(fault.kind, FaultKind::AlreadyExists);
        assert_eq!(fault.reason, "IDEMPOTENCY_CONFLICT");
        assert!(both_hashes(&fault), "{fault:?}");
    }
    node.settle().await;
    assert_eq!(texts(&node, "ada").await, ["One"]);
}

#[tokio::test]
async fn an_external_id_with_other_content_is_refused_and_named() {
    let node = Node::new().await;
    node.told("ada", vec![named("1", "The original")]).await;
    let turns = vec![named("2", "New"), named("1", "Not the original")];
    let fault = node.remember("ada", turns).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::AlreadyExists);
    assert_eq!(fault.reason, "EXTERNAL_ID_CONFLICT");
    assert_eq!(fault.fields[0].field, "turns[1].external_id");
    assert!(both_hashes(&fault), "{fault:?}");
    node.settle().await;
    assert_eq!(texts(&node, "ada").await, ["The original"]);
}

#[tokio::test]
async fn an_external_id_that_is_told_otherwise_is_no_matter_of_a_key() {
    let node = Node::new().await;
    let tell = async |text| node.remember("ada", vec![named("1", text)]).await;
    tell("The original").await.unwrap();
    let while_queued = tell("Not the original").await.unwrap_err();
    node.settle().await;
    let when_stored = tell("Not the original").await.unwrap_err();
    for fault in [while_queued, when_stored] {
        assert_eq!(fault.reason, "EXTERNAL_ID_CONFLICT");
        assert!(both_hashes(&fault), "{fault:?}");
    }
}

#[tokio::test]
async fn one_request_cannot_name_a_turn_twice() {
    let node = Node::new().await;
    let turns = vec![named("1", "One"), named("1", "Two")];
    let fault = node.remember("ada", turns).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidArgument);
    assert_eq!(fault.fields[0].field, "turns[1].external_id");
}

#[tokio::test]
async fn a_full_queue_takes_no_more_and_says_when_to_come_back() {
    let node = Node::with(Options {
        max_queued_turns: 6,
        ..Options::default()
    })
    .await;
    let two = || vec![said("a"), said("b")];
    node.remember("ada", two()).await.unwrap();
    let fault = node.remember("ada", two()).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::ResourceExhausted);
    assert_eq!(fault.reason, "QUEUE_FULL");
    assert!(fault.retry_after.is_some_and(|wait| wait > Duration::ZERO));
    node.settle().await;
    node.remember("ada", two()).await.unwrap();
}

#[tokio::test]
async fn a_queue_is_full_by_its_bytes_too() {
    let node = Node::with(Options {
        max_queued_bytes: 8_000,
        ..Options::default()
    })
    .await;
    let long = || vec![said(&"x".repeat(3_000))];
    node.remember("ada", long()).await.unwrap();
    let fault = node.remember("bob", long()).await.unwrap_err();
    assert_eq!(fault.reason, "QUEUE_FULL");
    node.remember("ada", vec![said("short")]).await.unwrap();
}

#[tokio::test]
async fn a_tenant_with_a_long_backlog_shuts_out_and_holds_up_nobody() {
    let node = Node::with(Options {
        max_queued_turns: 600,
        ..Options::default()
    })
    .await;
    let many = || (0..75).map(|n| said(&format!("Turn {n}"))).collect();
    for _ in 0..4 {
        node.remember("ada", many()).await.unwrap();
    }
    let fault = node.remember("ada", vec![said("x")]).await.unwrap_err();
    assert_eq!(fault.reason, "QUEUE_FULL");
    for tenant in ["globex", "initech"] {
        let context = call_of(tenant, Duration::from_mins(1));
        for text in ["one", "two"] {
            let request = request("theirs", vec![said(text)]);
            node.gateway.remember(&context, request).await.unwrap();
        }
    }
    for _ in 0..3 {
        node.round().await;
    }
    let context = call_of("globex", Duration::from_mins(1));
    let status = node.gateway.status(&context).await.unwrap();
    assert_eq!(status.queue.turns, 0, "served before the backlog is done");
    let status = node.gateway.status(&acme()).await.unwrap();
    assert_eq!(status.queue.turns, 75);
}

#[tokio::test]
async fn what_is_queued_when_a_forget_comes_does_not_come_back() {
    let node = Node::new().await;
    let receipt = node.remember("ada", vec![said("Forget me")]).await.unwrap();
    let forget = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    let call = acme();
    let forgetting = node.gateway.forget(&call, forget);
    let (forgotten, ()) = tokio::join!(forgetting, node.settle());
    assert_eq!(forgotten.unwrap().erased.turns, [receipt.turns[0].id]);
    node.settle().await;
    let fault = node.found("ada", "forget").await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotFound);
    let again = node.told("ada", vec![said("Something new")]).await;
    assert_ne!(again.batch, receipt.batch);
    assert_eq!(texts(&node, "ada").await, ["Something new"]);
}

#[tokio::test]
async fn a_dead_letter_is_listed_and_replayed_once_its_cause_is_gone() {
    let node = Node::new().await;
    let older = named("old", "The older words");
    let edit = |old| {
        let mut turn = named("new", "The newer words");
        turn.replaces = Some(old);
        turn
    };
    // The id of a turn that will come later is known to whoever names turns.
    let ada: SpaceId = space("ada");
    let old = memfleet_domain::ids::TurnId::of_external(
        &acme().scope(&ada),
        &older.session,
        older.external_id.as_ref().unwrap(),
    );
    node.told("ada", vec![edit(old)]).await;
    let letters = node
        .gateway
        .dead_letters(&acme(), Some(&ada), PageRequest::default())
        .await
        .unwrap();
    assert!(letters.items[0].reason.starts_with("REPLACED_TURN_UNKNOWN"));
    node.told("ada", vec![older]).await;
    let replayed = node.gateway.replay(&acme(), &ada, &[]).await;
    assert_eq!(replayed.unwrap(), 1);
    node.settle().await;
    assert_eq!(texts(&node, "ada").await, ["The newer words"]);
}

#[tokio::test]
async fn a_language_is_one_of_those_that_are_known_or_the_codes_are_named() {
    let node = Node::new().await;
    let set = async |code: &str| {
        let settings = SpaceSettings {
            language: Some(code.to_owned()),
            ..SpaceSettings::default()
        };
        node.gateway
            .put_space(&acme(), &space("ada"), settings)
            .await
    };
    for known in ["en", "pt", "und"] {
        set(known).await.unwrap();
    }
    for unknown in ["zz", "pt-BR", "EN", "english"] {
        let fault = set(unknown).await.unwrap_err();
        assert_eq!(fault.fields[0].field, "settings.language");
        let description = &fault.fields[0].description;
        assert!(description.contains("pt, ro, ru"), "{description}");
    }
}

#[tokio::test]
async fn a_key_is_new_again_once_its_space_was_forgotten_as_a_whole() {
    let node = Node::new().await;
    let told = || keyed("ada", "k", vec![said("Anew")]);
    for _ in 0..2 {
        let receipt = node.gateway.remember(&acme(), told()).await.unwrap();
        assert!(!receipt.duplicate);
        node.settle().await;
        assert_eq!(node.found("ada", "anew").await.unwrap(), ["Anew"]);
        let forget = ForgetRequest {
            space: space("ada"),
            filter: TurnFilter::default(),
            everything: true,
            dry_run: false,
        };
        node.gateway.forget(&acme(), forget).await.unwrap();
    }
}

#[tokio::test]
async fn the_status_shows_the_parts_and_no_more_of_the_queue_than_is_the_callers() {
    let node = Node::new().await;
    node.remember("ada", vec![said("One")]).await.unwrap();
    let failed = Fault::internal("it failed");
    node.gateway
        .health
        .report("retention", Some(&failed), instant(7));
    let theirs = call_of("globex", Duration::from_mins(1));
    let status = node.gateway.status(&theirs).await.unwrap();
    assert_eq!(status.queue, Depth::default());
    let part = |name: &str| status.parts.iter().find(|part| part.name == name);
    assert_eq!(part("store").unwrap().trouble, None);
    assert_eq!(
        part("retention").unwrap().trouble.as_deref(),
        Some("it failed")
    );
    let status = node.gateway.status(&acme()).await.unwrap();
    assert_eq!(status.queue.turns, 1);
}
