//! Keys: what they allow and where, how they end, and what is written down of them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use memfleet_domain::access::{Grant, Quota, Right, SpacePattern};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, FaultKind};
use memfleet_e2e::{OPERATOR_KEY, Tenant, call};
use memfleet_ports::admin::{Admin, Issued, NewKey, Rotation};
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_rpc::Client;
use serde_json::Value;

use crate::conversation::{recall, remember, said, space, turns};
use crate::system::fresh;

/// How long a change may take to hold everywhere.
const SECONDS: Duration = Duration::from_secs(30);

fn new_key(rights: &[Right], spaces: &[&str]) -> NewKey {
    let spaces = spaces.iter().map(|text| SpacePattern::new(*text));
    NewKey {
        tenant: None,
        label: "under test".to_owned(),
        grant: Grant {
            rights: rights.iter().copied().collect(),
            spaces: spaces.collect::<Result<_, _>>().unwrap(),
        },
        is_operator: false,
        calls_per_minute: None,
        expires_at: None,
    }
}

/// A key of the tenant, and a client with it.
async fn with_key(tenant: &Tenant, key: NewKey) -> Result<(Issued, Client)> {
    let issued = tenant.client.create_key(&call(), key).await?;
    let client = Client::connect(tenant.url(), Some(&issued.secret)).await?;
    Ok((issued, client))
}

fn reason<T>(answer: Result<T, Fault>) -> String {
    match answer {
        Ok(_) => "allowed".to_owned(),
        Err(fault) => fault.reason.into_owned(),
    }
}

/// Waits until a call ends so.
async fn until(expected: &str, mut attempt: impl AsyncFnMut() -> String) -> Result<()> {
    let waited = tokio::time::timeout(SECONDS, async {
        while attempt().await != expected {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    waited.await.with_context(|| format!("no {expected}"))
}

#[tokio::test]
async fn a_key_allows_its_rights_in_its_spaces_and_nothing_else() -> Result<()> {
    let fresh = fresh().await?;
    for name in ["team/one", "team/two", "other"] {
        let token = remember(&fresh.client, name, turns()).await?;
        let all = TurnFilter::default();
        fresh
            .client
            .recall(&call(), recall(name, "x", all, &[token]))
            .await?;
    }
    let (_, reader) = with_key(&fresh, new_key(&[Right::Read], &["team/*"])).await?;
    let all = TurnFilter::default;
    reader
        .recall(&call(), recall("team/one", "x", all(), &[]))
        .await?;
    let beyond = reader
        .recall(&call(), recall("other", "x", all(), &[]))
        .await;
    assert_eq!(
        beyond.as_ref().unwrap_err().kind,
        FaultKind::PermissionDenied
    );
    assert_eq!(reason(beyond), "SPACE_NOT_GRANTED");
    let nowhere = reader
        .recall(&call(), recall("nowhere", "x", all(), &[]))
        .await;
    assert_eq!(
        reason(nowhere),
        "SPACE_NOT_GRANTED",
        "it says not what exists"
    );
    let told = vec![said("s", "Ada", 1, "x")];
    let writing = remember(&reader, "team/one", told).await;
    assert_eq!(cause(&writing.unwrap_err()), "RIGHT_WRITE_MISSING");
    let managing = reader.keys(&call(), None, PageRequest::default()).await;
    assert_eq!(reason(managing), "RIGHT_ADMIN_MISSING");
    let listed = reader.spaces(&call(), PageRequest::default()).await?;
    let names: Vec<_> = listed.items.iter().map(|space| space.id.as_str()).collect();
    assert_eq!(names, ["team/one", "team/two"]);
    Ok(())
}

#[tokio::test]
async fn a_revoked_key_and_one_that_was_rotated_away_end_within_seconds() -> Result<()> {
    let fresh = fresh().await?;
    let (issued, client) = with_key(&fresh, new_key(&[Right::Read], &[])).await?;
    client.status(&call()).await?;
    let rotation = Rotation {
        tenant: None,
        id: issued.key.id,
        grace: Some(Duration::from_mins(1)),
    };
    let next = fresh.client.rotate_key(&call(), rotation).await?;
    client.status(&call()).await?;
    let renewed = Client::connect(fresh.url(), Some(&next.secret)).await?;
    renewed.status(&call()).await?;
    for key in [issued.key.id, next.key.id] {
        fresh.client.revoke_key(&call(), None, key).await?;
    }
    for client in [&client, &renewed] {
        until("CREDENTIAL_REVOKED", async || {
            reason(client.status(&call()).await)
        })
        .await?;
    }
    let listed = fresh
        .client
        .keys(&call(), None, PageRequest::default())
        .await?;
    let old = listed.items.iter().find(|key| key.id == issued.key.id);
    assert_eq!(old.unwrap().replaced_by, Some(next.key.id));
    Ok(())
}

#[tokio::test]
async fn a_key_of_another_tenant_cannot_be_seen_or_touched() -> Result<()> {
    let fresh = fresh().await?;
    let other = fresh.other().await?;
    let (theirs, _) = with_key(&other, new_key(&[Right::Read], &[])).await?;
    let (client, id) = (&fresh.client, theirs.key.id);
    let rotation = |tenant| Rotation {
        tenant,
        id,
        grace: None,
    };
    assert_eq!(
        reason(client.revoke_key(&call(), None, id).await),
        "NOT_FOUND"
    );
    assert_eq!(
        reason(client.rotate_key(&call(), rotation(None)).await),
        "NOT_FOUND"
    );
    let page = PageRequest::default;
    assert!(client.keys(&call(), None, page()).await?.items.is_empty());
    let named = || Some(theirs.key.tenant.clone());
    let key = NewKey {
        tenant: named(),
        ..new_key(&[Right::Read], &[])
    };
    let filter = AuditFilter::default();
    for answer in [
        reason(client.create_key(&call(), key).await),
        reason(client.keys(&call(), named(), page()).await),
        reason(client.revoke_key(&call(), named(), id).await),
        reason(client.rotate_key(&call(), rotation(named())).await),
        reason(client.account(&call(), named(), TimeRange::default()).await),
        reason(client.audit(&call(), named(), filter, page()).await),
        reason(client.tenants(&call(), page()).await),
        reason(
            client
                .set_quota(&call(), &theirs.key.tenant, Quota::default())
                .await,
        ),
    ] {
        assert_eq!(answer, "RIGHT_OPERATOR_MISSING");
    }
    Ok(())
}

#[tokio::test]
async fn quotas_are_an_operators_to_set_and_say_when_to_come_back() -> Result<()> {
    let fresh = fresh().await?;
    let operator = Tenant::with(fresh.url(), OPERATOR_KEY).await?;
    remember(&fresh.client, "noor", vec![said("s", "Ada", 1, "one")]).await?;
    let own = fresh
        .client
        .account(&call(), None, TimeRange::default())
        .await?
        .tenant;
    let quota = Quota {
        calls_per_minute: None,
        turns: Some(1),
        spaces: None,
    };
    operator.client.set_quota(&call(), &own, quota).await?;
    // Each attempt is of another turn: one that was accepted before the first was counted is accepted for ever.
    let mut attempts = 0;
    until("STORAGE_QUOTA", async || {
        attempts += 1;
        let turn = said("s", "Ada", 2, &format!("turn {attempts}"));
        let more = remember(&fresh.client, "noor", vec![turn]).await;
        more.map_or_else(|error| cause(&error), |_| "accepted".to_owned())
    })
    .await?;
    let slow = NewKey {
        calls_per_minute: Some(1),
        ..new_key(&[Right::Read], &[])
    };
    let (_, client) = with_key(&fresh, slow).await?;
    client.status(&call()).await?;
    let fault = client.status(&call()).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::ResourceExhausted, "RATE_LIMITED")
    );
    assert!(
        fault
            .retry_after
            .is_some_and(|wait| wait > Duration::from_secs(1))
    );
    Ok(())
}

fn cause(error: &anyhow::Error) -> String {
    let fault = error.downcast_ref::<Fault>();
    fault.map_or_else(|| error.to_string(), |fault| fault.reason.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_entered_a_prompt_is_written_down_by_ids() -> Result<()> {
    let fresh = fresh().await?;
    let token = remember(&fresh.client, "noor", turns()).await?;
    let all = TurnFilter::default();
    fresh
        .client
        .recall(&call(), recall("noor", "x", all, &[token]))
        .await?;
    let asked = ["--relevance", "0", "Who is Biscuit?"];
    fresh.printed(&[&["assemble", "--space", "noor"], &asked[..]].concat())?;
    let filter = || AuditFilter {
        kinds: vec![AuditKind::Injected],
        ..AuditFilter::default()
    };
    let mut found = Vec::<AuditRecord>::new();
    until("written", async || {
        let (now, page) = (call(), PageRequest::default());
        let read = fresh.client.audit(&now, None, filter(), page);
        found = read.await.map(|page| page.items).unwrap_or_default();
        if found.is_empty() {
            "not yet"
        } else {
            "written"
        }
        .to_owned()
    })
    .await?;
    let turn = &found[0].turns[0];
    let read = fresh
        .client
        .get(&call(), &space("noor"), &[turn.turn], &[])
        .await?;
    assert_eq!(Some(&read[0].accepted.session), turn.session.as_ref());
    assert!(found[0].caller.starts_with("config:"));
    assert!(!found[0].request_id.is_empty());
    let printed = fresh.printed(&["audit", "--kind", "injected", "--json"])?;
    assert!(!printed.contains("Biscuit") && printed.contains(&turn.turn.to_string()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_managed_from_the_command_line() -> Result<()> {
    let fresh = fresh().await?;
    let made = fresh.printed(&[
        "key",
        "create",
        "agent",
        "--rights",
        "read",
        "--expires-in",
        "90d",
        "--json",
    ])?;
    let made: Value = serde_json::from_str(&made)?;
    let (id, secret) = (
        made["id"].as_str().unwrap(),
        made["secret"].as_str().unwrap(),
    );
    let agent = Tenant::with(fresh.url(), secret).await?;
    agent.printed(&["spaces"])?;
    let refused = agent.run(&["key", "list"])?;
    assert_eq!(refused.status.code(), Some(6));
    let listed = fresh.printed(&["key", "list", "--json"])?;
    assert!(listed.contains(id) && !listed.contains(secret), "{listed}");
    let next: Value = serde_json::from_str(&fresh.printed(&["key", "rotate", id, "--json"])?)?;
    ensure!(next["secret"] != made["secret"], "{next}");
    fresh.printed(&["key", "revoke", id])?;
    until("6", async || {
        let code = agent.run(&["status"]).map(|output| output.status.code());
        code.ok().flatten().unwrap_or_default().to_string()
    })
    .await?;
    fresh.printed(&["tenants", "usage"])?;
    let refused = fresh.run(&["tenants", "list"])?;
    assert_eq!(refused.status.code(), Some(6));
    Ok(())
}
