//! Fleets of their own: while parts of one are away (what it refuses, what goes on, and that nothing has to be restarted by hand),
//! what is seen of one from outside,
//! and what holds at every gateway.
#![allow(clippy::unwrap_used, reason = "tests")]

mod capturing;
#[path = "../scenarios/conversation.rs"]
mod conversation;
mod encrypted;
mod events;
mod graph;
mod leftover;
mod revoked;
mod traced;

use std::time::{Duration, Instant};

use anyhow::Result;
use memfleet_domain::FaultKind;
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, RememberRequest};

use conversation::{found, recall, remember, said, space, turns};

const PATIENCE: Duration = Duration::from_mins(1);

/// Remembers as soon as that works again.
async fn remembered(tenant: &Tenant, text: &str) -> Result<memfleet_domain::ids::BatchId> {
    let begun = Instant::now();
    loop {
        match remember(&tenant.client, "noor", vec![said("s", "Noor", 8, text)]).await {
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            token => return token,
        }
    }
}

async fn all(tenant: &Tenant, token: memfleet_domain::ids::BatchId) -> Result<usize> {
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[token]);
    let request = memfleet_ports::memory::RecallRequest {
        query: memfleet_ports::retriever::Query {
            k: 100,
            ..asked.query
        },
        ..asked
    };
    Ok(found(&tenant.client, request).await?.len())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_a_fleet_go_and_come_back() -> Result<()> {
    let mut fleet = tokio::task::spawn_blocking(Fleet::start).await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let token = remember(&tenant.client, "noor", turns()).await?;
    assert_eq!(all(&tenant, token).await?, 7);
    without_the_queue(&mut fleet, &tenant).await?;
    without_a_constructor(&mut fleet, &tenant).await?;
    without_a_retriever(&mut fleet, &tenant).await?;
    without_the_embedder(&mut fleet, &tenant).await?;
    without_the_database(&mut fleet, &tenant).await?;
    Ok(())
}

/// Writes are refused in time, reads go on.
async fn without_the_queue(fleet: &mut Fleet, tenant: &Tenant) -> Result<()> {
    fleet.nats.kill()?;
    let request = RememberRequest {
        space: space("noor"),
        turns: vec![said("s", "Noor", 8, "While the queue is away.")],
        idempotency_key: None,
    };
    let brief = Context::new(call().tenant, Duration::from_secs(15));
    let begun = Instant::now();
    let fault = tenant.client.remember(&brief, request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "within the deadline"
    );
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[]);
    assert_eq!(found(&tenant.client, asked).await?.len(), 7);
    fleet.nats.restart()?;
    let token = remembered(tenant, "The queue is back.").await?;
    assert_eq!(all(tenant, token).await?, 8);
    Ok(())
}

/// The other one does the work.
async fn without_a_constructor(fleet: &mut Fleet, tenant: &Tenant) -> Result<()> {
    fleet.role("constructor-1").kill()?;
    for number in 0..8 {
        let token = remembered(tenant, &format!("Line {number} with one constructor.")).await?;
        assert_eq!(all(tenant, token).await?, 9 + number);
    }
    fleet.role("constructor-1").restart()
}

/// The other one answers, whichever had the space.
async fn without_a_retriever(fleet: &mut Fleet, tenant: &Tenant) -> Result<()> {
    for name in ["retriever-1", "retriever-2"] {
        fleet.role(name).kill()?;
        let asked = recall("noor", "Biscuit", TurnFilter::default(), &[]);
        assert_eq!(found(&tenant.client, asked).await?.len(), 10);
        fleet.role(name).restart()?;
    }
    Ok(())
}

/// Words are found, and what is missing is said.
async fn without_the_embedder(fleet: &mut Fleet, tenant: &Tenant) -> Result<()> {
    fleet.role("embedder").kill()?;
    let token = remembered(tenant, "A xylophone without a vector.").await?;
    let asked = recall("noor", "xylophone", TurnFilter::default(), &[token]);
    let answer = tenant.client.recall(&call(), asked).await?;
    let first = &answer.hits[0].turn.accepted.content.text;
    assert!(
        first.contains("xylophone"),
        "{first}: {:?}",
        answer.degraded
    );
    assert!(!answer.degraded.is_empty(), "it says what is missing");
    fleet.role("embedder").restart()
}

/// Nothing can be answered, and all of it comes back.
async fn without_the_database(fleet: &mut Fleet, tenant: &Tenant) -> Result<()> {
    fleet.postgres.kill()?;
    let asked = recall("noor", "Biscuit", TurnFilter::default(), &[]);
    let fault = tenant.client.recall(&call(), asked).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
    fleet.postgres.restart()?;
    let token = remembered(tenant, "The database is back.").await?;
    assert_eq!(all(tenant, token).await?, 18);
    Ok(())
}
