//! Legal holds, and what retention leaves of a space, with the refresher that does it.

use std::time::Duration;

use memfleet_domain::FaultKind;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::admin::Admin;
use memfleet_ports::audit::{AuditFilter, AuditKind};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge_api::KnowledgeService;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_refresher::retention::Removed;
use tokio_util::sync::CancellationToken;

use crate::administering::{administrator, with_operator};
use crate::knowing::moved;
use crate::roles::{Node, acme, call_of, named, request, space};
use crate::transfer::{export, imported};

const DAY: i64 = 86_400;

fn everything(dry_run: bool) -> ForgetRequest {
    ForgetRequest {
        space: space("ada"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run,
    }
}

async fn hold(node: &Node, held: bool) {
    let (call, ada) = (acme(), space("ada"));
    let set = node
        .gateway
        .set_legal_hold(&call, &ada, held, "case 7".into());
    let set = set.await.unwrap().hold;
    assert_eq!(
        set.map(|hold| hold.reason),
        held.then(|| "case 7".to_owned())
    );
}

async fn put(node: &Node, settings: SpaceSettings) {
    let (call, ada) = (acme(), space("ada"));
    node.gateway.put_space(&call, &ada, settings).await.unwrap();
}

async fn turns(node: &Node) -> u64 {
    let spaces = node.gateway.spaces(&acme(), PageRequest::default()).await;
    spaces.unwrap().items[0].turns
}

fn newest(turns: u32) -> SpaceSettings {
    SpaceSettings {
        retention_turns: Some(turns),
        ..SpaceSettings::default()
    }
}

#[tokio::test]
async fn a_space_on_hold_keeps_everything_until_it_is_released() {
    let node = Node::new().await;
    let told = vec![named("1", "One"), named("2", "Two"), named("3", "Three")];
    node.told("ada", told).await;
    hold(&node, true).await;
    for dry_run in [true, false] {
        let refused = node.gateway.forget(&acme(), everything(dry_run)).await;
        let fault = refused.unwrap_err();
        assert_eq!(
            (fault.kind, fault.reason.as_ref()),
            (FaultKind::FailedPrecondition, "LEGAL_HOLD")
        );
        assert_eq!(fault.fields[0].field, "space");
        assert!(fault.message.contains("Spaces.SetLegalHold"), "{fault}");
        assert!(fault.metadata.contains_key("held_since"));
    }
    // Neither settings nor an import lift it, and a turn may be replaced: the old one is kept.
    put(&node, newest(1)).await;
    let records = export(&node, "ada", &TurnFilter::default()).await;
    imported(&node, "ada", records).await;
    assert_eq!(
        node.refresher.apply_retention().await,
        Ok(Removed::default())
    );
    assert_eq!(turns(&node).await, 3);
    hold(&node, false).await;
    let removed = node.refresher.apply_retention().await.unwrap();
    assert_eq!((removed.turns, turns(&node).await), (2, 1));
    let receipt = node.gateway.forget(&acme(), everything(false)).await;
    assert!(receipt.unwrap().erased.space);
}

#[tokio::test]
async fn a_hold_is_of_a_space_that_exists_and_is_written_down_with_its_reason() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let (gateway, ada) = (&node.gateway, space("ada"));
    let missing = gateway.set_legal_hold(&acme, &ada, true, "case 7".into());
    assert_eq!(missing.await.unwrap_err().kind, FaultKind::NotFound);
    let told = request("ada", vec![named("1", "One")]);
    gateway.remember(&acme, told).await.unwrap();
    node.settle().await;
    for (held, reason) in [(true, "case 7"), (false, "case 7 is closed")] {
        let set = gateway.set_legal_hold(&acme, &ada, held, reason.into());
        assert_eq!(set.await.unwrap().hold.is_some(), held);
    }
    let stop = CancellationToken::new();
    stop.cancel();
    gateway.access.run(stop).await;
    let filter = AuditFilter {
        kinds: vec![AuditKind::HoldSet, AuditKind::HoldLifted],
        ..AuditFilter::default()
    };
    let log = gateway.audit(&acme, None, filter, PageRequest::default());
    let log = log.await.unwrap().items;
    let log: Vec<_> = log
        .iter()
        .map(|record| (record.kind, record.detail["reason"].as_str()))
        .collect();
    assert_eq!(
        log,
        [
            (AuditKind::HoldLifted, "case 7 is closed"),
            (AuditKind::HoldSet, "case 7")
        ]
    );
}

#[tokio::test]
async fn retention_leaves_the_newest_turns_and_searches_find_no_other() {
    let node = Node::new().await;
    let told = vec![
        named("1", "A greyhound"),
        named("2", "A whippet"),
        named("3", "A beagle"),
    ];
    node.told("ada", told).await;
    put(&node, newest(2)).await;
    assert_eq!(
        node.found("ada", "greyhound").await.unwrap()[0],
        "A greyhound"
    );
    let removed = node.refresher.apply_retention().await.unwrap();
    assert_eq!((removed.turns, turns(&node).await), (1, 2));
    let found = node.found("ada", "greyhound").await.unwrap();
    assert!(!found.contains(&"A greyhound".to_owned()), "{found:?}");
}

#[tokio::test]
async fn retention_removes_facts_that_hold_no_longer_and_leaves_those_that_do() {
    let moved = moved().await;
    let node = &moved.node;
    let kept = SpaceSettings {
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    put(node, kept).await;
    node.clock.set(DAY);
    assert_eq!(
        node.refresher.apply_retention().await,
        Ok(Removed::default())
    );
    node.clock.set(DAY + 31);
    let removed = node.refresher.apply_retention().await.unwrap();
    assert_eq!((removed.turns, removed.versions), (0, 2));
    let call = call_of("acme", Duration::from_mins(1));
    let versions = async |id| {
        let versions = node.gateway.versions(&call, &space("ada"), id).await;
        versions.map(|versions| versions.len())
    };
    let gone = versions(moved.rome.id).await.unwrap_err();
    assert_eq!(gone.kind, FaultKind::NotFound);
    assert_eq!(versions(moved.oslo.id).await, Ok(1));
    // The change that closed it is gone with it, and both turns are there as before.
    let reverted = node
        .gateway
        .revert(&call, &space("ada"), moved.settling)
        .await;
    assert_eq!(reverted.unwrap_err().kind, FaultKind::NotFound);
    assert_eq!(turns(node).await, 2);
}

#[tokio::test]
async fn a_change_whose_version_before_is_gone_cannot_be_undone() {
    let moved = moved().await;
    let node = &moved.node;
    let corrected = moved.corrected(moved.oslo.id).await;
    let kept = SpaceSettings {
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    put(node, kept).await;
    node.clock.set(9 * DAY);
    let removed = node.refresher.apply_retention().await.unwrap();
    assert!(removed.versions > 0);
    let reverted = node
        .gateway
        .revert(&acme(), &space("ada"), corrected.change)
        .await;
    let fault = reverted.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::FailedPrecondition, "VERSION_REMOVED")
    );
    let current = node
        .gateway
        .versions(&acme(), &space("ada"), moved.oslo.id)
        .await;
    assert_eq!(current.unwrap(), [corrected]);
}
