//! `kill -9` at random moments: while turns are written, forgotten, replayed and imported. `KILL_SEED=<number>` repeats a run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fleet_switching;
mod forgets;
mod imports;
mod replays;
mod switching;
mod writes;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_e2e::{Node, call, settled};
use memfleet_ports::memory::{Memory, NewTurn, RememberRequest};
use memfleet_rpc::Client;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Environment variable with the seed of the moments.
const SEED: &str = "KILL_SEED";

/// Chance that differs from run to run; a run that failed is repeated with the seed that it printed.
fn chance() -> StdRng {
    let seed = match std::env::var(SEED) {
        Ok(given) => given
            .parse()
            .unwrap_or_else(|_| panic!("{SEED} must be a number from 0 to {}", u64::MAX)),
        Err(_) => SystemClock.now().timestamp_micros() as u64,
    };
    println!("to draw the same moments again: {SEED}={seed}");
    StdRng::seed_from_u64(seed)
}

/// Starts a node, does `work` there until some moment within `longest`, and kills the node: the answer, if there was one.
async fn killed_during<T, F>(
    store: &Path,
    longest: Duration,
    random: &mut StdRng,
    work: impl FnOnce(Client) -> F,
) -> Result<Option<T>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Fault>> + Send + 'static,
{
    let node = Node::start(store).await?;
    let work = tokio::spawn(work(node.client().await?));
    tokio::time::sleep(longest.mul_f64(random.random())).await;
    node.kill()?;
    Ok(work.await?.ok())
}

fn space() -> SpaceId {
    SpaceId::new("kill").unwrap()
}

/// Remembers turns and waits until they have left the queue, as turns or as dead letters.
async fn told(client: &Client, turns: Vec<NewTurn>) -> Result<()> {
    let request = RememberRequest {
        space: space(),
        turns,
        idempotency_key: None,
    };
    let receipt = client.remember(&call(), request).await?;
    settled(client, &space(), &[receipt.batch]).await?;
    Ok(())
}

/// A node that stops as it should is a node that is sound.
fn stopped(node: Node) -> Result<()> {
    ensure!(node.stop()? == 0, "the node did not stop cleanly");
    Ok(())
}
