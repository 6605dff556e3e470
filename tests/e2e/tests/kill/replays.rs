//! A dead letter is a letter or back in the queue, never both or neither.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::Scope;
use memfleet_domain::ids::{ExternalId, SessionId, TenantId, TurnId};
use memfleet_e2e::{Node, call, listed, said};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{NewTurn, PageRequest};
use memfleet_rpc::Client;

use crate::{chance, killed_during, space, stopped, told};

const KILLS: usize = 10;
const LETTERS: usize = 6;

/// The turn that the `n`-th edit replaces.
fn old(n: usize) -> TurnId {
    let scope = Scope {
        tenant: TenantId::new("default").unwrap(),
        space: space(),
    };
    let session = SessionId::new("s").unwrap();
    let external = ExternalId::new(format!("old-{n}")).unwrap();
    TurnId::of_external(&scope, &session, &external)
}

/// Edits of turns that are told only afterwards: dead letters that a replay can store.
async fn fill(store: &Path) -> Result<Vec<u64>> {
    let node = Node::start(store).await?;
    let client = node.client().await?;
    for n in 0..KILLS * LETTERS {
        let edit = NewTurn {
            replaces: Some(old(n)),
            ..said("s", Some(&format!("new-{n}")), &format!("Edit number {n}"))
        };
        told(&client, vec![edit]).await?;
    }
    let olds = (0..KILLS * LETTERS).map(|n| said("s", Some(&format!("old-{n}")), "Before"));
    told(&client, olds.collect()).await?;
    let letters = letters(&client).await?;
    stopped(node)?;
    Ok(letters)
}

async fn letters(client: &Client) -> Result<Vec<u64>> {
    let page = PageRequest {
        limit: 1000,
        after: None,
    };
    let letters = client.dead_letters(&call(), Some(&space()), page).await?;
    let acceptances = letters.items.iter().map(|letter| letter.acceptance);
    Ok(acceptances.collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_during_a_replay_loses_and_doubles_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let all = fill(&store).await?;
    ensure!(all.len() == KILLS * LETTERS, "{} letters", all.len());
    let mut random = chance();
    for letters in all.chunks(LETTERS) {
        let letters = letters.to_vec();
        let work = async move |client: Client| client.replay(&call(), &space(), &letters).await;
        let longest = Duration::from_millis(40);
        killed_during(&store, longest, &mut random, work).await?;
    }
    let node = Node::start(&store).await?;
    let client = node.client().await?;
    // What was not replayed by then is a letter still.
    let left = letters(&client).await?;
    println!("{} of {} letters are left", left.len(), all.len());
    client.replay(&call(), &space(), &[]).await?;
    told(&client, vec![said("s", None, "The last one")]).await?;
    ensure!(letters(&client).await?.is_empty(), "a letter came back");
    let turns = listed(&client, &space(), &TurnFilter::default()).await?;
    let mut texts: Vec<_> = turns
        .into_iter()
        .map(|turn| turn.accepted.content.text)
        .collect();
    texts.sort();
    let mut expected: Vec<_> = (0..KILLS * LETTERS)
        .map(|n| format!("Edit number {n}"))
        .chain(["The last one".to_owned()])
        .collect();
    expected.sort();
    ensure!(texts == expected, "stored: {texts:?}");
    stopped(node)
}
