//! A space that is forgotten while the graph of its fleet is away leaves it when that is back, and what is written anew under its name comes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use memfleet_domain::Scope;
use memfleet_domain::ids::TenantId;
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_neo4j::{Neo4jGraph, Options};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::graph::Graph;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_servers::Neo4j;

use crate::conversation::{remember, said, space};

const PATIENCE: Duration = Duration::from_mins(3);

fn asked(url: &str) -> Result<Neo4jGraph> {
    Ok(Neo4jGraph::new(&Options {
        url: url.to_owned(),
        user: "neo4j".to_owned(),
        password: "password".to_owned(),
        database: "neo4j".to_owned(),
        ca: None,
        connections: 1,
        timeout: PATIENCE,
    })?)
}

/// Waits until the graph names these and nobody else.
async fn named(graph: &Neo4jGraph, expected: &[&str]) -> Result<()> {
    let scope = Scope {
        tenant: TenantId::new("tenant-0")?,
        space: space("noor"),
    };
    let begun = Instant::now();
    loop {
        let page = graph.entities(&scope, "", 100, None).await?;
        let names: Vec<String> = page.items.into_iter().map(|it| it.name).collect();
        if names == expected {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("the graph names {names:?}");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn tell(tenant: &Tenant, text: &str) -> Result<()> {
    let turns = vec![said("s", "Noor", 8, text)];
    remember(&tenant.client, "noor", turns).await.map(drop)
}

async fn forget_everything(tenant: &Tenant) -> Result<()> {
    let everything = ForgetRequest {
        space: space("noor"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    tenant.client.forget(&call(), everything).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_that_is_forgotten_while_the_graph_is_away_leaves_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut server = Neo4j::start(folder.path())?;
    let settings = [("MEMFLEET_GRAPH__URL", server.url())];
    let fleet = tokio::task::spawn_blocking(move || Fleet::start_with_settings(&settings));
    let fleet = fleet.await??;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let graph = asked(&server.url())?;
    tell(&tenant, "I live in Rome.").await?;
    named(&graph, &["noor", "Rome"]).await?;

    server.kill()?;
    forget_everything(&tenant).await?;
    tell(&tenant, "I live in Oslo.").await?;
    server.restart()?;
    named(&graph, &["noor", "Oslo"]).await?;

    forget_everything(&tenant).await?;
    named(&graph, &[]).await
}
