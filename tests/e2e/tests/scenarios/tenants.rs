//! Two tenants on one system: keys decide who one is, and guessed names lead nowhere.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, FaultKind};
use memfleet_e2e::{call, run};
use memfleet_ports::assembly::{AssembleRequest, Assembly};
use memfleet_ports::conformance::samples::filters_for;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Answers, Memory, PageRequest, RememberRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_rpc::Client;

use crate::conversation::{found, recall, remember, said, space, turns};
use crate::system::fresh;

/// What acme has and globex guesses.
struct Guessed {
    token: BatchId,
    turn: Turn,
    letter: u64,
}

async fn guessed(acme: &Client) -> Result<Guessed> {
    let token = remember(acme, "noor", turns()).await?;
    let mut refused = said("monday", "Noor", 8, "No, she is five.");
    refused.replaces = Some(TurnId::from_bytes([7; 16]));
    let refused = remember(acme, "noor", vec![refused]).await?;
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[token, refused]);
    let hits = acme.recall(&call(), asked).await?.hits;
    Ok(Guessed {
        token,
        turn: hits[0].turn.clone(),
        letter: letters(acme).await?[0],
    })
}

async fn letters(acme: &Client) -> Result<Vec<u64>> {
    let page = PageRequest::default();
    let letters = acme
        .dead_letters(&call(), Some(&space("noor")), page)
        .await?;
    let letters = letters.items.iter().map(|letter| letter.acceptance);
    Ok(letters.collect())
}

/// The faults of every call that names a space of another tenant, or of nobody.
async fn faults(client: &Client, name: &str, guessed: &Guessed) -> Vec<Fault> {
    let (named, page) = (space(name), PageRequest::default);
    let (turn, token) = (guessed.turn.accepted.id, guessed.token);
    let mut faults = vec![
        client.get(&call(), &named, &[turn], &[]).await.err(),
        client.history(&call(), &named, turn).await.err(),
        client.sessions(&call(), &named, page()).await.err(),
        client
            .dead_letters(&call(), Some(&named), page())
            .await
            .err(),
        client.replay(&call(), &named, &[]).await.err(),
        client
            .replay(&call(), &named, &[guessed.letter])
            .await
            .err(),
        drained(client.watch(&call(), &named, token).await).await,
    ];
    for filter in filters_for(&guessed.turn.accepted) {
        faults.extend(faults_with(client, name, &filter, token).await);
    }
    faults.into_iter().map(Option::unwrap).collect()
}

/// Those of the calls that take a filter.
async fn faults_with(
    client: &Client,
    name: &str,
    filter: &TurnFilter,
    token: BatchId,
) -> Vec<Option<Fault>> {
    let (named, page) = (space(name), PageRequest::default());
    let recall = |wait_for: &[BatchId]| recall(name, "x", filter.clone(), wait_for);
    let assemble = AssembleRequest::ungated(recall(&[]).query, 100);
    let forget = |dry_run| ForgetRequest {
        space: named.clone(),
        filter: filter.clone(),
        everything: filter.is_everything(),
        dry_run,
    };
    vec![
        client.recall(&call(), recall(&[])).await.err(),
        client.recall(&call(), recall(&[token])).await.err(),
        client.assemble(&call(), assemble).await.err(),
        client.list(&call(), &named, filter, page, &[]).await.err(),
        client.forget(&call(), forget(true)).await.err(),
        client.forget(&call(), forget(false)).await.err(),
        drained(client.export(&call(), &named, filter).await).await,
    ]
}

/// The fault that answers a call, or ends what it streams.
async fn drained<T>(answers: Result<Answers<T>, Fault>) -> Option<Fault> {
    let items = async { answers?.try_collect::<Vec<_>>().await };
    items.await.err()
}

#[tokio::test]
async fn what_another_tenant_has_looks_like_what_nobody_has() -> Result<()> {
    let fresh = fresh().await?;
    let (acme, globex) = (&fresh.client, &fresh.other().await?.client);
    let guessed = guessed(acme).await?;
    let (theirs, nobodys) = (
        faults(globex, "noor", &guessed).await,
        faults(globex, "nobody", &guessed).await,
    );
    for (theirs, nobodys) in theirs.into_iter().zip(nobodys) {
        assert_eq!(theirs.kind, FaultKind::NotFound, "{theirs}");
        assert_eq!(theirs.message.replace("noor", "nobody"), nobodys.message);
        assert_eq!(
            (theirs.reason, theirs.metadata),
            (nobodys.reason, nobodys.metadata)
        );
    }
    for filter in filters_for(&guessed.turn.accepted) {
        let asked = recall("noor", "Biscuit", filter.clone(), &[]);
        assert!(!found(acme, asked).await?.is_empty(), "{filter:?}");
    }
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[]);
    assert_eq!(found(acme, asked).await?.len(), 7, "nothing was forgotten");
    assert_eq!(letters(acme).await?, [guessed.letter], "nor replayed");
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
async fn what_a_tenant_writes_meets_nothing_of_another() -> Result<()> {
    let fresh = fresh().await?;
    let (acme, globex) = (&fresh.client, &fresh.other().await?.client);
    let guessed = guessed(acme).await?;
    let all = TurnFilter::default();
    let records = acme.export(&call(), &space("noor"), &all).await?;
    let records: Vec<_> = records.try_collect().await?;
    let forget = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter {
            turns: vec![guessed.turn.accepted.id],
            ..all.clone()
        },
        everything: false,
        dry_run: false,
    };
    acme.forget(&call(), forget).await?;
    // Ids of turns that acme has, and of one that it forgot.
    let records = stream::iter(records.into_iter().map(Ok)).boxed();
    let imported = globex.import(&call(), &space("noor"), records).await?;
    let counts = (imported.accepted, imported.duplicates, imported.forgotten);
    assert_eq!(counts, (7, 0, 0));
    let asked = recall("noor", "Biscuit", all.clone(), &imported.batches);
    assert_eq!(found(globex, asked).await?.len(), 7);
    // The request that acme sent, external ids and all.
    let request = RememberRequest {
        space: space("noor"),
        turns: turns(),
        idempotency_key: None,
    };
    let (context, requests) = (call(), stream::iter([request]));
    let receipts = globex.remember_stream(&context, requests).await?;
    let receipts: Vec<_> = receipts.try_collect().await?;
    assert!(!receipts[0].duplicate);
    let asked = recall("noor", "Biscuit", all, &[]);
    assert_eq!(found(acme, asked).await?.len(), 6);
    Ok(())
}

#[tokio::test]
async fn guessed_ids_mean_nothing_in_ones_own_space() -> Result<()> {
    let fresh = fresh().await?;
    let (acme, globex) = (&fresh.client, &fresh.other().await?.client);
    let Guessed { token, turn, .. } = guessed(acme).await?;
    let turn = turn.accepted.id;
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
