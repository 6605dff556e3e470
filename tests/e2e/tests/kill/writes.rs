//! Nothing acknowledged is lost, nothing is doubled, order is kept.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::Fault;
use memfleet_domain::ids::{BatchId, IdempotencyKey};
use memfleet_e2e::{Node, call};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, RememberRequest};
use memfleet_rpc::Client;
use rand::Rng;

use crate::{chance, listed, said, settled, space, stopped};

const KILLS: u32 = 50;
const WRITERS: u32 = 3;

/// What one writer has sent: requests are numbered, and a request without an answer is sent again, unchanged.
#[derive(Default)]
struct Writer {
    next: u32,
    acknowledged: Vec<(BatchId, Vec<String>)>,
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_kills_lose_nothing_acknowledged_and_double_nothing() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let mut random = chance();
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| Arc::new(Mutex::new(Writer::default())))
        .collect();
    for _ in 0..KILLS {
        let node = Node::start(&store).await?;
        let client = node.client().await?;
        let work: Vec<_> = writers
            .iter()
            .enumerate()
            .map(|(number, writer)| {
                tokio::spawn(write(client.clone(), number as u32, writer.clone()))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(random.random_range(5..300))).await;
        node.kill()?;
        for task in work {
            task.await?;
        }
    }
    check(&store, &writers).await
}

/// Sends requests until the node is gone.
async fn write(client: Client, number: u32, writer: Arc<Mutex<Writer>>) {
    loop {
        let next = writer.lock().unwrap().next;
        let (request, texts) = request(number, next);
        match client.remember(&call(), request).await {
            Ok(receipt) => {
                let mut writer = writer.lock().unwrap();
                writer.acknowledged.push((receipt.batch, texts));
                writer.next += 1;
            }
            Err(_gone) => return,
        }
    }
}

/// The request with this number: even ones are named by an idempotency key, odd ones by their turns' external ids.
fn request(writer: u32, number: u32) -> (RememberRequest, Vec<String>) {
    let size = number % 4 + 1;
    let named = number % 2 == 1;
    let texts: Vec<_> = (0..size)
        .map(|turn| format!("writer {writer} request {number:05} turn {turn}"))
        .collect();
    let session = format!("session-{writer}");
    let turn = |text: &String| said(&session, named.then_some(text.as_str()), text);
    let request = RememberRequest {
        space: space(),
        turns: texts.iter().map(turn).collect(),
        idempotency_key: (!named)
            .then(|| IdempotencyKey::new(format!("{writer}-{number}")).unwrap()),
    };
    (request, texts)
}

async fn check(store: &Path, writers: &[Arc<Mutex<Writer>>]) -> Result<()> {
    let node = Node::start(store).await?;
    let client = node.client().await?;
    let acknowledged: Vec<_> = writers
        .iter()
        .flat_map(|writer| writer.lock().unwrap().acknowledged.clone())
        .collect();
    ensure!(
        acknowledged.len() > KILLS as usize,
        "only {} requests were acknowledged: the test tests nothing",
        acknowledged.len()
    );
    let batches: Vec<_> = acknowledged.iter().map(|(batch, _)| *batch).collect();
    let stored = everything(&client, &batches).await?;

    let mut seen = HashSet::new();
    for texts in stored.values() {
        let doubled: Vec<_> = texts
            .iter()
            .filter(|text| !seen.insert((*text).clone()))
            .collect();
        ensure!(doubled.is_empty(), "stored twice: {doubled:?}");
        ensure!(texts.is_sorted(), "the order of acceptance was not kept");
    }
    let lost: Vec<_> = acknowledged
        .iter()
        .flat_map(|(_, texts)| texts)
        .filter(|text| !seen.contains(*text))
        .collect();
    ensure!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    println!(
        "{KILLS} kills, {} requests acknowledged, {} turns stored",
        acknowledged.len(),
        seen.len()
    );
    stopped(node)
}

/// The texts of every session, in the session's order.
async fn everything(
    client: &Client,
    batches: &[BatchId],
) -> Result<BTreeMap<String, Vec<String>>, Fault> {
    settled(client, batches).await?;
    let mut stored = BTreeMap::<String, Vec<String>>::new();
    for turn in listed(client, &TurnFilter::default()).await? {
        let texts = stored.entry(turn.accepted.session.to_string());
        texts.or_default().push(turn.accepted.content.text);
    }
    Ok(stored)
}
