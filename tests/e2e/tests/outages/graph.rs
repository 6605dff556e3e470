//! A fleet whose graph is away: what else it does goes on, and the graph is caught up with.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use memfleet_domain::FaultKind;
use memfleet_domain::ids::BatchId;
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge_api::{EntityRequest, KnowledgeService};
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::PageRequest;
use memfleet_servers::Neo4j;

use crate::conversation::{found, recall, remember, said, space};

const PATIENCE: Duration = Duration::from_mins(2);

fn asked(token: Option<BatchId>) -> EntityRequest {
    EntityRequest {
        space: space("noor"),
        entity: "Noor".to_owned(),
        at: None,
        wait_for: token.into_iter().collect(),
    }
}

/// Where Noor lives or lived, as soon as the graph has so many homes.
async fn homes(tenant: &Tenant, expected: usize) -> Result<Vec<String>> {
    let begun = Instant::now();
    loop {
        let page = PageRequest::default();
        let neighbours = tenant.client.neighbours(&call(), &asked(None), page).await;
        let edges = neighbours.map(|it| it.edges.items).unwrap_or_default();
        let homes = edges
            .iter()
            .filter(|it| it.triplet.predicate == "residence");
        let homes: Vec<_> = homes.map(|it| it.object.name.clone()).collect();
        if homes.len() == expected {
            return Ok(homes);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the graph has {homes:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether the gateway says that its graph works.
async fn graph_works(tenant: &Tenant) -> Result<bool> {
    let status = tenant.client.status(&call()).await?;
    let part = status.parts.iter().find(|part| part.name == "graph");
    Ok(part.is_some_and(|part| part.since.is_none()))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_graph_the_rest_goes_on_and_it_is_caught_up_with() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut graph = Neo4j::start(folder.path())?;
    let settings = [("MEMFLEET_GRAPH__URL", graph.url())];
    let fleet = tokio::task::spawn_blocking(move || Fleet::start_with_settings(&settings));
    let fleet = fleet.await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let first = vec![said("s", "Noor", 8, "I live in Rome.")];
    remember(&tenant.client, "noor", first).await?;
    assert_eq!(homes(&tenant, 1).await?, ["Rome"]);

    graph.kill()?;
    let later = vec![said("s", "Noor", 20, "Big news: I moved to Oslo!")];
    let token = remember(&tenant.client, "noor", later).await?;
    let page = PageRequest::default();
    let fault = tenant.client.neighbours(&call(), &asked(None), page).await;
    let fault = fault.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
    let query = recall(
        "noor",
        "Where does Noor live?",
        TurnFilter::default(),
        &[token],
    );
    assert_eq!(found(&tenant.client, query).await?.len(), 2);
    let begun = Instant::now();
    while graph_works(&tenant).await? {
        assert!(begun.elapsed() < PATIENCE, "the status says nothing of it");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    graph.restart()?;
    let mut found = homes(&tenant, 2).await?;
    found.sort();
    assert_eq!(found, ["Oslo", "Rome"]);
    Ok(())
}
