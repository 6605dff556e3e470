//! A node whose clock steps forth and back by an hour.

use anyhow::{Result, ensure};
use memfleet_e2e::{Journal, Node, call};
use memfleet_ports::memory::Memory;

use crate::shim::PreloadShim;
use crate::traffic::{among, space};

/// Adds the shim's number of seconds to the time of day.
const SOURCE: &str = r"
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, id, now);
    if (!failed && id == CLOCK_REALTIME && cell) now->tv_sec += *cell;
    return failed;
}
";

/// In seconds.
const STEPS: [i64; 4] = [3600, 0, -3600, 0];

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_loses_and_reorders_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let shim = PreloadShim::compile(folder.path(), SOURCE)?;
    let environment = shim.environment();
    let environment = environment
        .each_ref()
        .map(|(name, it)| (*name, it.as_str()));
    let node = Node::launch(&folder.path().join("memory.db"), &environment)?;
    let client = node.client().await?;
    let mut journal = Journal::new(&space(), "clock");
    for seconds in STEPS {
        shim.set(seconds)?;
        for _ in 0..20 {
            journal.send(&client, &call()).await?;
            let last = journal
                .acknowledged()
                .last()
                .expect("it was answered")
                .clone();
            let found = client
                .recall(&call(), among(&last.turns, &[&last], 10))
                .await?;
            ensure!(
                found.hits.len() == last.turns.len(),
                "{seconds} s: {found:?}"
            );
        }
    }
    let turns = journal.verify(&client).await?;
    ensure!(!turns.is_empty());
    Ok(())
}
