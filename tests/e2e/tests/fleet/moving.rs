//! A space moves between a node and a fleet, both ways, line by line.

use anyhow::Result;
use memfleet_e2e::{Node, Tenant, known_keys};
use tempfile::TempDir;

use crate::system::fresh;
use crate::transfer::{difference, fill, sent};

/// A tenant of a node on a store of its own.
async fn on_a_node() -> Result<(Tenant, Node, TempDir)> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let node = Node::launch(&store, &[("MEMFLEET_AUTH__KEYS", &known_keys())])?;
    Ok((Tenant::connect(&node.url(), 0).await?, node, directory))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_space_moves_from_a_node_to_a_fleet_and_back() -> Result<()> {
    let (single, fleet) = (on_a_node().await?, fresh().await?);
    fill(&single.0.client).await?;
    let (lines, arrived) = sent(&single.0, &fleet)?;
    assert!(
        lines.lines().eq(arrived.lines()),
        "{}",
        difference(&lines, &arrived)
    );
    let again = on_a_node().await?;
    let (_, returned) = sent(&fleet, &again.0)?;
    assert!(
        lines.lines().eq(returned.lines()),
        "{}",
        difference(&lines, &returned)
    );
    Ok(())
}
