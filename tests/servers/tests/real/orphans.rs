//! Servers whose starter is killed.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use memfleet_servers::{Durability, Nats, Postgres};

use crate::processes::{await_end, family, wait_until};

const FOLDER: &str = "MEMFLEET_SERVERS_TEST_ORPHANS";
const STARTED: &str = "started: ";

#[test]
fn servers_and_their_data_go_when_their_starter_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut starter = Command::new(env::current_exe().unwrap())
        .args(["orphans::start_and_stay", "--exact", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(starter.stdout.take().unwrap()).lines();
    let started = lines.map_while(Result::ok).find_map(|line| {
        let (_, ids) = line.split_once(STARTED)?;
        Some(ids.to_owned())
    });
    let processes = family(starter.id());
    let started: Vec<u32> = started
        .unwrap()
        .split(' ')
        .map(|id| id.parse().unwrap())
        .collect();
    assert!(started.iter().all(|id| processes.contains(id)));
    starter.kill().unwrap();
    starter.wait().unwrap();
    await_end(&processes);
    // The supervisor may not remove a folder from one that belongs to root, but nothing is left in it.
    for name in ["postgres", "nats"] {
        let home = folder.path().join(name);
        wait_until(|| is_empty(&home));
    }
}

fn is_empty(folder: &Path) -> bool {
    folder
        .read_dir()
        .map_or(true, |mut entries| entries.next().is_none())
}

/// The starter of the test above, in a process of its own.
#[test]
fn start_and_stay() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let folder = Path::new(&folder);
    let postgres = Postgres::start(folder, Durability::Process).unwrap();
    let nats = Nats::start(folder, "").unwrap();
    let (postgres_id, nats_id) = (postgres.process().unwrap(), nats.process().unwrap());
    println!("\n{STARTED}{postgres_id} {nats_id}");
    loop {
        std::thread::park();
    }
}
