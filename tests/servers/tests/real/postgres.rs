//! PostgreSQL, asked by its own client.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use memfleet_servers::{Durability, Postgres, fetch};

use crate::processes::{await_end, family};

fn psql(server: &Postgres, statement: &str) -> Command {
    let mut command = Command::new(server.binaries().join("psql"));
    command.args([
        "--no-psqlrc",
        "-v",
        "ON_ERROR_STOP=1",
        "-qAt",
        "-d",
        &server.url(),
        "-c",
    ]);
    command.arg(statement).stdin(Stdio::null());
    command
}

fn query(server: &Postgres, statement: &str) -> Result<String, String> {
    let output = psql(server, statement).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

/// A client whose statement does not end by itself.
fn busy_client(server: &Postgres) -> Child {
    let mut client = psql(server, "select pg_sleep(600)");
    client
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn start(folder: &Path) -> Postgres {
    Postgres::start(folder, Durability::Process).unwrap()
}

#[test]
fn what_was_committed_survives_a_stop_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path());
    let url = server.url();
    query(&server, "create table t (n int)").unwrap();

    query(&server, "insert into t values (1)").unwrap();
    server.stop().unwrap();
    assert_eq!(server.process(), None);
    query(&server, "select 1").unwrap_err();
    server.restart().unwrap();

    query(&server, "insert into t values (2)").unwrap();
    let mut client = busy_client(&server);
    let processes = family(server.process().unwrap());
    assert!(processes.len() > 2, "{processes:?}");
    server.kill().unwrap();
    await_end(&processes);
    client.wait().unwrap();
    server.restart().unwrap();

    assert_eq!(query(&server, "select sum(n) from t").unwrap(), "3");
    assert_eq!(server.url(), url);
}

#[test]
fn two_servers_hold_vectors_and_do_not_see_each_other() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let durabilities = [Durability::Process, Durability::Machine];
    let starts = |at: usize| Postgres::start(folders[at].path(), durabilities[at]).unwrap();
    let servers = std::thread::scope(|scope| {
        let first = scope.spawn(|| starts(0));
        [starts(1), first.join().unwrap()]
    });
    for (server, fsync) in servers.iter().zip(["on", "off"]) {
        assert_eq!(query(server, "show fsync").unwrap(), fsync);
        query(server, "create extension vector").unwrap();
        let distance = query(server, "select '[1,2]'::halfvec(2) <-> '[1,0]'::halfvec(2)");
        assert_eq!(distance.unwrap(), "2");
        let mut dump = Command::new(server.binaries().join("pg_dump"));
        assert!(dump.arg(server.url()).output().unwrap().status.success());
    }
}

#[test]
fn a_paused_server_goes_on_or_leaves_nothing_when_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    server.pause().unwrap();
    let mut client = psql(&server, "select 1")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // That nothing happens cannot be awaited.
    std::thread::sleep(Duration::from_millis(200));
    assert!(client.try_wait().unwrap().is_none());
    server.resume().unwrap();
    assert!(client.wait().unwrap().success());

    let mut client = busy_client(&server);
    let processes = family(server.process().unwrap());
    server.pause().unwrap();
    drop(server);
    await_end(&processes);
    client.wait().unwrap();
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path());
    server.stop().unwrap();
    let data = folder.path().join("postgres/data");
    std::fs::write(data.join("postgresql.auto.conf"), "no_such_setting = 1\n").unwrap();
    let error = format!("{:#}", server.restart().unwrap_err());
    assert!(error.contains("no_such_setting"), "{error}");
}

#[test]
fn programs_that_are_there_are_not_fetched_again() {
    let first = fetch::postgres().unwrap();
    let begun = Instant::now();
    assert_eq!(fetch::postgres().unwrap(), first);
    // No network is asked in this time, nor any package tool.
    assert!(begun.elapsed() < Duration::from_millis(100));
}
