//! A fleet whose graph is away: what else it does goes on, and the graph is caught up with.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use memfleet_domain::ids::{BatchId, TenantId};
use memfleet_domain::{FaultKind, Scope};
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_neo4j::{Neo4jGraph, Options};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::graph::{Graph, GraphWrite};
use memfleet_ports::knowledge_api::{EntityRequest, KnowledgeService};
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::PageRequest;

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
        let homes = edges.iter();
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
    let fleet = tokio::task::spawn_blocking(Fleet::start_with_graph);
    let mut fleet = fleet.await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let first = vec![said("s", "Noor", 8, "I live in Rome.")];
    remember(&tenant.client, "noor", first).await?;
    assert_eq!(homes(&tenant, 1).await?, ["Rome"]);

    let graph = fleet.graph.as_mut().expect("it was started");
    graph.kill()?;
    let later = vec![said("s", "Noor", 20, "I live in Oslo.")];
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
    let url = graph.url();
    let mut found = homes(&tenant, 2).await?;
    found.sort();
    assert_eq!(found, ["Oslo", "Rome"]);

    lose(&tenant, &url).await?;
    let (call, noor) = (call(), space("noor"));
    let sound = tenant.client.verify_graph(&call, &noor, None).await?;
    assert!(sound.missing >= 2, "{sound:?}");
    rebuild(&tenant).await?;
    assert_eq!(homes(&tenant, 2).await?.len(), 2);
    let sound = tenant.client.verify_graph(&call, &noor, None).await?;
    assert_eq!((sound.missing, sound.different), (0, 0));
    Ok(())
}

/// What the graph says of Noor is gone, as after a restore of an older day.
async fn lose(tenant: &Tenant, url: &str) -> Result<()> {
    let page = PageRequest::default();
    let found = tenant
        .client
        .neighbours(&call(), &asked(None), page)
        .await?;
    let edges = found.edges.items;
    let graph = Neo4jGraph::new(&Options {
        url: url.to_owned(),
        user: "neo4j".to_owned(),
        password: "password".to_owned(),
        database: "neo4j".to_owned(),
        ca: None,
        connections: 1,
        timeout: PATIENCE,
    })?;
    let scope = Scope {
        tenant: TenantId::new("tenant-0")?,
        space: space("noor"),
    };
    let lost = GraphWrite {
        replaced: edges.iter().map(|edge| edge.triplet.fact).collect(),
        ..GraphWrite::default()
    };
    Ok(graph.write(&scope, lost).await?)
}

async fn rebuild(tenant: &Tenant) -> Result<()> {
    let mut after = None;
    loop {
        let (call, noor) = (call(), space("noor"));
        let client = &tenant.client;
        let page = client.rebuild_graph(&call, &noor, after.as_ref()).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
