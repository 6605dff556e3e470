//! Nothing acknowledged is lost, nothing is doubled, order is kept.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_e2e::{Journal, Node, call};
use memfleet_rpc::Client;
use rand::Rng;

use crate::{chance, space, stopped};

const KILLS: usize = 50;
const WRITERS: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_lose_nothing_acknowledged_and_double_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let mut random = chance();
    let mut journals: Vec<_> = (0..WRITERS)
        .map(|writer| Journal::new(&space(), writer.to_string()))
        .collect();
    for life in 0..KILLS {
        let node = Node::start(&store).await?;
        let client = node.client().await?;
        // A batch that ten processes in a row did not survive is put aside as a dead letter.
        if life % 5 == 4 {
            for journal in &journals {
                journal.settled(&client).await?;
            }
        }
        let work: Vec<_> = std::mem::take(&mut journals)
            .into_iter()
            .map(|journal| tokio::spawn(write(client.clone(), journal)))
            .collect();
        tokio::time::sleep(Duration::from_millis(random.random_range(5..300))).await;
        node.kill()?;
        for task in work {
            journals.push(task.await?);
        }
    }
    check(&store, &journals).await
}

/// Sends requests until the node is gone.
async fn write(client: Client, mut journal: Journal) -> Journal {
    while journal.send(&client, &call()).await.is_ok() {}
    journal
}

async fn check(store: &Path, journals: &[Journal]) -> Result<()> {
    let node = Node::start(store).await?;
    let client = node.client().await?;
    let acknowledged = journals.iter().map(|journal| journal.acknowledged().len());
    let acknowledged = acknowledged.sum::<usize>();
    ensure!(
        acknowledged > KILLS,
        "only {acknowledged} requests were acknowledged: the test tests nothing"
    );
    let mut turns = 0;
    for journal in journals {
        turns += journal.verify(&client).await?.len();
    }
    println!("{KILLS} kills, {acknowledged} requests acknowledged, {turns} turns stored");
    stopped(node)
}
