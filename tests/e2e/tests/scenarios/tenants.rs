//! Two tenants on one system: keys decide who one is, and guessed names lead nowhere.

use anyhow::Result;
use futures::TryStreamExt;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::{Fault, FaultKind};
use memfleet_e2e::{call, run};
use memfleet_ports::assembly::Assembly;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_rpc::Client;

use crate::conversation::{found, recall, remember, said, space, turns};
use crate::system::fresh;

/// What acme has and globex guesses.
async fn guessed(acme: &Client) -> Result<(BatchId, TurnId)> {
    let token = remember(acme, "noor", turns()).await?;
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[token]);
    let hits = acme.recall(&call(), asked).await?.hits;
    Ok((token, hits[0].turn.accepted.id))
}

/// The faults of every call that names a space of another tenant, or of nobody.
async fn faults(client: &Client, name: &str, token: BatchId, turn: TurnId) -> Vec<Fault> {
    let (named, all) = (space(name), TurnFilter::default());
    let page = PageRequest::default;
    let forget = ForgetRequest {
        space: named.clone(),
        filter: all.clone(),
        everything: true,
        dry_run: false,
    };
    let mut faults = vec![
        client
            .recall(&call(), recall(name, "x", all.clone(), &[]))
            .await
            .err(),
        client
            .recall(&call(), recall(name, "x", all.clone(), &[token]))
            .await
            .err(),
        client.get(&call(), &named, &[turn], &[]).await.err(),
        client.list(&call(), &named, &all, page(), &[]).await.err(),
        client.history(&call(), &named, turn).await.err(),
        client.sessions(&call(), &named, page()).await.err(),
        client.forget(&call(), forget).await.err(),
    ];
    let watched = async {
        client
            .watch(&call(), &named, token)
            .await?
            .try_collect::<Vec<_>>()
            .await
    };
    faults.push(watched.await.err());
    let exported = async {
        client
            .export(&call(), &named, &all)
            .await?
            .try_collect::<Vec<_>>()
            .await
    };
    faults.push(exported.await.err());
    faults.into_iter().map(Option::unwrap).collect()
}

#[tokio::test]
async fn what_another_tenant_has_looks_like_what_nobody_has() -> Result<()> {
    let fresh = fresh().await?;
    let (acme, globex) = (&fresh.client, &fresh.other().await?.client);
    let (token, turn) = guessed(acme).await?;
    let (theirs, nobodys) = (
        faults(globex, "noor", token, turn).await,
        faults(globex, "nobody", token, turn).await,
    );
    for (theirs, nobodys) in theirs.into_iter().zip(nobodys) {
        assert_eq!(theirs.kind, FaultKind::NotFound, "{theirs}");
        assert_eq!(theirs.message.replace("noor", "nobody"), nobodys.message);
        assert_eq!(
            (theirs.reason, theirs.metadata),
            (nobodys.reason, nobodys.metadata)
        );
    }
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[]);
    assert_eq!(found(acme, asked).await?.len(), 7, "nothing was forgotten");
    assert!(
        globex
            .spaces(&call(), PageRequest::default())
            .await?
            .items
            .is_empty()
    );
    Ok(())
}

#[tokio::test]
async fn guessed_ids_mean_nothing_in_ones_own_space() -> Result<()> {
    let fresh = fresh().await?;
    let (acme, globex) = (&fresh.client, &fresh.other().await?.client);
    let (token, turn) = guessed(acme).await?;
    // The same space, session and external id as acme's first turn.
    let own = said(
        "monday",
        "Mallory",
        8,
        "I adopted a greyhound called Biscuit.",
    );
    let written = remember(globex, "noor", vec![own]).await?;
    let all = TurnFilter::default;
    let asked = recall("noor", "Biscuit", all(), &[written]);
    assert_eq!(globex.recall(&call(), asked).await?.searched, 1);
    assert!(
        globex
            .get(&call(), &space("noor"), &[turn], &[])
            .await?
            .is_empty()
    );
    let waiting = recall("noor", "Biscuit", all(), &[token]);
    let fault = globex.recall(&call(), waiting).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotFound);
    let mut replacing = said("monday", "Mallory", 8, "Overwritten!");
    replacing.replaces = Some(turn);
    let written = remember(globex, "noor", vec![replacing]).await?;
    let asked = recall("noor", "Biscuit", all(), &[written]);
    assert_eq!(found(globex, asked).await?.len(), 1, "a dead letter");
    let kept = acme.get(&call(), &space("noor"), &[turn], &[]).await?;
    assert_eq!(kept[0].replaced, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_known_key_nothing_is_answered() -> Result<()> {
    let fresh = fresh().await?;
    for (key, reason) in [
        (None, "CREDENTIAL_MISSING"),
        (Some("a guess"), "CREDENTIAL_UNKNOWN"),
    ] {
        let client = Client::connect(fresh.url(), key).await?;
        let asked = recall("noor", "x", TurnFilter::default(), &[]);
        let texts = ["x".to_owned()];
        let faults = [
            client.recall(&call(), asked).await.err(),
            client.status(&call()).await.err(),
            client.spaces(&call(), PageRequest::default()).await.err(),
            client
                .count_tokens(&call(), "o200k_base", &texts)
                .await
                .err(),
        ];
        for fault in faults.map(Option::unwrap) {
            assert_eq!(fault.kind, FaultKind::Unauthenticated);
            assert_eq!(fault.reason, reason);
        }
    }
    let refused = run(fresh.url(), &["spaces"])?;
    assert_eq!(refused.status.code(), Some(6));
    let allowed = run(fresh.url(), &["spaces", "--api-key", fresh.key()])?;
    assert_eq!(allowed.status.code(), Some(0));
    Ok(())
}
