//! Servers that come back as they were some time ago.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memfleet_domain::ids::BatchId;
use memfleet_e2e::{Fleet, Journal, Tenant, call, listed};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;

use crate::traffic::space;

const PATIENCE: Duration = Duration::from_mins(1);

/// Sends until a request is acknowledged.
async fn sent(journal: &mut Journal, tenant: &Tenant) -> Result<BatchId> {
    let begun = Instant::now();
    while let Err(fault) = journal.send(&tenant.client, &call()).await {
        ensure!(begun.elapsed() < PATIENCE, "{fault}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(journal
        .acknowledged()
        .last()
        .expect("it was answered")
        .batch)
}

/// Sends ten requests and waits until they are stored.
async fn ten(journal: &mut Journal, tenant: &Tenant) -> Result<()> {
    for _ in 0..10 {
        sent(journal, tenant).await?;
    }
    journal.verify(&tenant.client).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_is_put_back_drops_nothing_that_it_acknowledges() -> Result<()> {
    let mut fleet = tokio::task::spawn_blocking(Fleet::start).await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let copies = tempfile::tempdir()?;
    let copy = copies.path().join("queue");
    ten(&mut Journal::new(&space(), "before"), &tenant).await?;
    fleet.nats.copy_to(&copy)?;
    fleet.nats.restart()?;
    ten(&mut Journal::new(&space(), "between"), &tenant).await?;
    let everything = ForgetRequest {
        space: space(),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    tenant.client.forget(&call(), everything).await?;
    fleet.nats.put_back(&copy)?;
    fleet.nats.restart()?;
    let mut journal = Journal::new(&space(), "after");
    ten(&mut journal, &tenant).await?;
    let turns = listed(&tenant.client, &space(), &TurnFilter::default()).await?;
    let is_new = |text: &str| text.starts_with("writer after ");
    ensure!(turns.iter().all(|turn| is_new(&turn.accepted.content.text)));
    let part = async || -> Result<bool> {
        let status = tenant.client.status(&call()).await?;
        let mut troubles = status.parts.into_iter().filter_map(|part| part.trouble);
        Ok(troubles.any(|trouble| trouble.contains("was put back to position")))
    };
    // The gateway may have been the second to look.
    let seen = part().await?
        || fleet
            .roles
            .iter()
            .any(|role| role.program.log().contains("was put back to position"));
    ensure!(seen, "no role says that the queue was put back");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_put_back_goes_on_with_what_waits() -> Result<()> {
    let mut fleet = tokio::task::spawn_blocking(Fleet::start).await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let copies = tempfile::tempdir()?;
    let copy = copies.path().join("store");
    let mut before = Journal::new(&space(), "before");
    ten(&mut before, &tenant).await?;
    fleet.postgres.copy_to(&copy)?;
    fleet.postgres.restart()?;
    // Stored after the copy, and lost with what was not copied.
    ten(&mut Journal::new(&space(), "between"), &tenant).await?;
    for name in ["constructor-1", "constructor-2"] {
        fleet.role(name).kill()?;
    }
    let mut waiting = Journal::new(&space(), "waiting");
    for _ in 0..10 {
        sent(&mut waiting, &tenant).await?;
    }
    fleet.postgres.put_back(&copy)?;
    fleet.postgres.restart()?;
    for role in &mut fleet.roles {
        role.program.stop()?;
        role.program.restart()?;
    }
    let mut after = Journal::new(&space(), "after");
    ten(&mut after, &tenant).await?;
    waiting.verify(&tenant.client).await?;
    before.verify(&tenant.client).await?;
    Ok(())
}
