//! After the harm: the whole of what each tenant was told, held against what the fleet has and what its indexes find.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memfleet_domain::turn::Turn;
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_ports::maintenance::{GraphCheck, Maintenance};
use memfleet_ports::memory::{Memory, PageRequest};

use crate::traffic::{Seen, among, space};

/// How long the fleet may take until everything is stored and has its vectors.
const PATIENCE: Duration = Duration::from_mins(5);

/// How many turns one search names.
const SEARCHED: usize = 100;

/// Fails where something was lost, doubled, reordered, or is stored and not found.
pub async fn of(fleet: &mut Fleet, seen: &Seen) -> Result<String> {
    for role in &mut fleet.roles {
        ensure!(
            role.program.is_alive()?,
            "{} ended by itself:\n{}",
            role.name,
            role.program.log()
        );
    }
    let (mut requests, mut stored, mut letters, mut related) = (0, 0, 0, 0);
    for (tenant, journal) in &seen.tenants {
        letters += replayed(tenant).await?;
        let turns = journal.verify(&tenant.client).await?;
        complete(tenant).await?;
        found(tenant, &turns).await?;
        related += sound(tenant).await?;
        requests += journal.acknowledged().len();
        stored += turns.len();
    }
    ensure!(requests > 0, "nothing was acknowledged: nothing was tested");
    ensure!(related > 0, "no fact was stated: the graph was not tested");
    Ok(format!(
        "{requests} requests acknowledged, {stored} turns stored and found, {related} triplets in the graph: 0 lost, 0 doubled, 0 leaked ({letters} dead letters replayed)"
    ))
}

/// A batch that several processes died of is a dead letter: acknowledged, kept, and stored when it is replayed.
async fn replayed(tenant: &Tenant) -> Result<usize> {
    let page = PageRequest {
        limit: 1000,
        after: None,
    };
    let letters = tenant
        .client
        .dead_letters(&call(), Some(&space()), page)
        .await?;
    if !letters.items.is_empty() {
        tenant.client.replay(&call(), &space(), &[]).await?;
    }
    Ok(letters.items.len())
}

/// Waits until searches miss nothing: no part is in trouble, every turn has its vectors.
async fn complete(tenant: &Tenant) -> Result<()> {
    let begun = Instant::now();
    loop {
        let found = tenant.client.recall(&call(), among(&[], &[], 1)).await?;
        if found.degraded.is_empty() {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "still degraded: {:?}",
            found.degraded
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The index has every turn that the ledger has, and nothing else.
async fn found(tenant: &Tenant, turns: &[Turn]) -> Result<()> {
    for turns in turns.chunks(SEARCHED) {
        let ids = turns.iter().map(|turn| turn.accepted.id);
        let ids = ids.collect::<Vec<_>>();
        let asked = among(&ids, &[], SEARCHED as u32);
        let answer = tenant.client.recall(&call(), asked).await?;
        let hits = answer.hits.iter().map(|hit| hit.turn.accepted.id);
        let hits = hits.collect::<HashSet<_>>();
        let missing = ids.iter().filter(|id| !hits.contains(id));
        let missing = missing.collect::<Vec<_>>();
        ensure!(missing.is_empty(), "stored, and not found: {missing:?}");
    }
    let answer = tenant.client.recall(&call(), among(&[], &[], 1)).await?;
    ensure!(
        answer.searched == turns.len() as u64,
        "{} turns are stored, {} were searched",
        turns.len(),
        answer.searched
    );
    Ok(())
}

/// Waits until the graph says what the facts say, and nothing else: how many triplets that is.
async fn sound(tenant: &Tenant) -> Result<u64> {
    let begun = Instant::now();
    loop {
        let check = checked(tenant).await?;
        if (check.behind, check.missing, check.different, check.surplus) == (0, 0, 0, 0) {
            return Ok(check.compared);
        }
        ensure!(begun.elapsed() < PATIENCE, "the graph: {check:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// The graph of the tenant's space, all pages of it.
async fn checked(tenant: &Tenant) -> Result<GraphCheck> {
    let mut whole = GraphCheck::default();
    loop {
        let after = whole.next.take();
        let (call, space) = (call(), space());
        let page = tenant.client.verify_graph(&call, &space, after.as_ref());
        let page = page.await?;
        whole = GraphCheck {
            compared: whole.compared + page.compared,
            missing: whole.missing + page.missing,
            different: whole.different + page.different,
            surplus: whole.surplus + page.surplus,
            behind: page.behind,
            next: page.next,
        };
        if whole.next.is_none() {
            return Ok(whole);
        }
    }
}
