//! A forget that was acknowledged stays; one that was not is whole or not begun, and no other session loses a turn.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::ids::SessionId;
use memfleet_e2e::{Node, call, in_files, listed, said};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_ports::refresher::ForgetRequest;
use memfleet_rpc::Client;

use crate::{chance, killed_during, space, stopped, told};

const KILLS: usize = 12;
const TURNS: usize = 8;

fn of_session(n: usize) -> TurnFilter {
    TurnFilter {
        sessions: vec![SessionId::new(format!("session-{n}")).unwrap()],
        ..TurnFilter::default()
    }
}

fn forget(n: usize) -> ForgetRequest {
    ForgetRequest {
        space: space(),
        filter: of_session(n),
        everything: false,
        dry_run: false,
    }
}

/// The words that only this session holds.
fn words(n: usize) -> String {
    format!("xylophone{n:02}q")
}

async fn fill(store: &Path) -> Result<()> {
    let node = Node::start(store).await?;
    let client = node.client().await?;
    for n in 0..KILLS {
        let session = format!("session-{n}");
        let turns = (0..TURNS).map(|turn| {
            let text = format!("Turn {turn} is about the {}", words(n));
            said(&session, None, &text)
        });
        told(&client, turns.collect()).await?;
    }
    stopped(node)
}

/// How many turns each session has.
async fn counts(client: &Client) -> Result<Vec<usize>> {
    let mut counts = Vec::new();
    for n in 0..KILLS {
        counts.push(listed(client, &space(), &of_session(n)).await?.len());
    }
    Ok(counts)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_a_forget_leaves_it_whole_or_not_begun() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    fill(&store).await?;
    let mut random = chance();
    let mut acknowledged = Vec::new();
    for n in 0..KILLS {
        let work = move |client: Client| async move { client.forget(&call(), forget(n)).await };
        let longest = Duration::from_millis(300);
        let receipt = killed_during(&store, longest, &mut random, work).await?;
        if let Some(receipt) = receipt {
            ensure!(receipt.erased.turns.len() == TURNS, "{receipt:?}");
            acknowledged.push(n);
        }
    }
    let node = Node::start(&store).await?;
    let client = node.client().await?;
    let counts = counts(&client).await?;
    println!("{counts:?}, acknowledged {acknowledged:?}");
    ensure!(
        counts.iter().all(|count| [0, TURNS].contains(count)),
        "a forget was done by half: {counts:?}"
    );
    ensure!(
        acknowledged.iter().all(|n| counts[*n] == 0),
        "acknowledged, and it came back"
    );
    // Makes up for a scrub that was cut short, whether or not the node has done so by itself.
    client.forget(&call(), forget(KILLS)).await?;
    for (n, count) in counts.iter().enumerate() {
        let left = in_files(&store, &words(n))?;
        ensure!(left == (*count > 0), "the words of session {n}: {left}");
    }
    stopped(node)
}
