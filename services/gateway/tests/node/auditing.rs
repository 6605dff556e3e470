//! What the audit log has of what was done: who, what and which turns, and not a word of them.

use memfleet_domain::ids::Speaker;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::admin::Admin;
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use tokio_util::sync::CancellationToken;

use crate::administering::{administrator, with_operator};
use crate::roles::{Node, recall, request, said, space};

/// The whole log, the oldest first, once everything is written.
pub async fn log(node: &Node, context: &Context) -> Vec<AuditRecord> {
    let stop = CancellationToken::new();
    stop.cancel();
    node.gateway.access.run(stop).await;
    let filter = AuditFilter::default();
    let page = node
        .gateway
        .audit(context, None, filter, PageRequest::default());
    let mut records = page.await.unwrap().items;
    records.reverse();
    records
}

fn assemble(name: &str, text: &str) -> AssembleRequest {
    AssembleRequest::ungated(recall(name, text, &[]).query, 1_000)
}

#[tokio::test]
async fn acts_and_injections_are_logged_by_ids() {
    let (node, _, operator) = with_operator().await;
    let mut acme = administrator(&node, &operator, "acme").await;
    acme.request_id = "call-7".into();
    let gateway = &node.gateway;
    let settings = SpaceSettings {
        retention_days: Some(30),
        ..SpaceSettings::default()
    };
    gateway
        .put_space(&acme, &space("ada"), settings)
        .await
        .unwrap();
    let told = request("ada", vec![said("Biscuit is a greyhound")]);
    let receipt = gateway.remember(&acme, told).await.unwrap();
    node.settle().await;
    let asked = assemble("ada", "greyhound");
    assert_eq!(gateway.assemble(&acme, asked).await.unwrap().items.len(), 1);
    gateway.replay(&acme, &space("ada"), &[]).await.unwrap();
    let forget = |dry_run| ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            speakers: vec![Speaker::new("Ada").unwrap()],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run,
    };
    gateway.forget(&acme, forget(true)).await.unwrap();
    gateway.forget(&acme, forget(false)).await.unwrap();
    let records = log(&node, &acme).await;
    let mut kinds: Vec<_> = records.iter().map(|record| record.kind.name()).collect();
    kinds.sort_unstable();
    assert_eq!(
        kinds,
        [
            "forget_begun",
            "forgotten",
            "injected",
            "key_created",
            "replay_begun",
            "space_set"
        ]
    );
    let of = |kind| records.iter().find(|record| record.kind == kind).unwrap();
    let injected = of(AuditKind::Injected);
    assert_eq!(injected.caller, acme.caller.as_ref().unwrap().name);
    assert_eq!(injected.request_id, "call-7");
    assert_eq!(injected.turns[0].turn, receipt.turns[0].id);
    assert!(injected.turns[0].session.is_some());
    assert_eq!(of(AuditKind::SpaceSet).detail["retention_days"], "30");
    let text = format!("{records:?}");
    assert!(
        !text.contains("greyhound") && !text.contains("Ada"),
        "{text}"
    );
}

#[tokio::test]
async fn refusals_of_administrative_calls_are_logged() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let refused = node.gateway.tenants(&acme, PageRequest::default()).await;
    refused.unwrap_err();
    let records = log(&node, &acme).await;
    let last = records.last().unwrap();
    assert_eq!(last.kind, AuditKind::Refused);
    assert_eq!(last.detail["method"], "Admin.ListTenants");
    assert_eq!(last.caller, acme.caller.as_ref().unwrap().name);
}
