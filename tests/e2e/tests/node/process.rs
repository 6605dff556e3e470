//! The process itself: how it starts, why it does not, and how it stops.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result};
use futures::TryStreamExt;
use memfleet_domain::ids::BatchId;
use memfleet_e2e::{Node, call, run, up};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::Memory;
use memfleet_rpc::Client;
use memfleet_rpc::proto::memory_client::MemoryClient;
use tokio::sync::Notify;
use tonic::Code;
use tonic_types::StatusExt;

use crate::conversation::{recall, remember, said, space};
use crate::refusals::{reason, request, turn};
use crate::system::{fresh, open};

/// What a node that cannot start prints on standard error; it ends with code 1.
fn failed_start(store: &Path) -> Result<String> {
    let output = up(store)?.stdout(Stdio::piped()).output()?;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout)?, "", "it never listened");
    Ok(String::from_utf8(output.stderr)?)
}

/// Writes until the node is gone; what was acknowledged.
async fn write(
    client: Client,
    writer: u32,
    acknowledged: Arc<AtomicU32>,
    first: Arc<Notify>,
) -> Vec<BatchId> {
    let mut tokens = Vec::new();
    for number in 0.. {
        let turn = said("s", "Ada", 8, &format!("Writer {writer} line {number}"));
        let Ok(token) = remember(&client, "ada", vec![turn]).await else {
            break;
        };
        tokens.push(token);
        if acknowledged.fetch_add(1, Ordering::SeqCst) == 20 {
            first.notify_one();
        }
    }
    tokens
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_asked_to_stop_finishes_its_work_and_ends_with_0() -> Result<()> {
    let fresh = fresh().await?;
    let (acknowledged, running) = (Arc::default(), Arc::new(Notify::new()));
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let client = fresh.client.clone();
            tokio::spawn(write(
                client,
                writer,
                Arc::clone(&acknowledged),
                running.clone(),
            ))
        })
        .collect();
    running.notified().await;
    let code = tokio::task::spawn_blocking(|| fresh.node.stop()).await??;
    assert_eq!(code, 0);
    let mut tokens = Vec::new();
    for writer in writers {
        tokens.extend(writer.await?);
    }
    assert!(tokens.len() > 20);
    let wal = fresh.store.with_extension("db-wal");
    assert_eq!(
        wal.metadata().map_or(0, |wal| wal.len()),
        0,
        "the file is whole"
    );
    let (_node, tenant) = open(&fresh.store).await?;
    for token in tokens {
        let states = tenant.client.watch(&call(), &space("ada"), token).await?;
        assert!(!states.try_collect::<Vec<_>>().await?.is_empty());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_named_and_left_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let letter = "this is a letter and not a database ".repeat(1_000);
    std::fs::write(&store, &letter)?;
    let error = failed_start(&store)?;
    assert!(error.contains("the store is damaged"), "{error}");
    assert!(error.contains("memory.db"), "{error}");
    assert_eq!(std::fs::read_to_string(&store)?, letter);
    Ok(())
}

#[test]
fn the_log_names_the_file_that_was_opened() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (store, log) = (
        directory.path().join("memory.db"),
        directory.path().join("log"),
    );
    let mut process = up(&store)?
        .stdout(Stdio::piped())
        .stderr(File::create(&log)?)
        .spawn()?;
    let output = process.stdout.take().context("it is piped")?;
    let first = BufReader::new(output).lines().next();
    process.kill()?;
    process.wait()?;
    assert!(first.context("it starts")??.contains("listening on"));
    let log = std::fs::read_to_string(&log)?;
    let opened = log
        .lines()
        .find(|line| line.contains("opened the database"));
    let opened = opened.context("a line about the file")?;
    assert!(opened.contains(&store.display().to_string()), "{opened}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_file_is_damaged_too() -> Result<()> {
    let fresh = fresh().await?;
    let turns = (0..200).map(|n| said("s", "Ada", 8, &format!("Line {n} of many")));
    let token = remember(&fresh.client, "ada", turns.collect()).await?;
    let asked = recall("ada", "line", TurnFilter::default(), &[token]);
    fresh.client.recall(&call(), asked).await?;
    assert_eq!(fresh.node.stop()?, 0);
    let file = std::fs::File::options().write(true).open(&fresh.store)?;
    file.set_len(5 * 16_384)?;
    let error = failed_start(&fresh.store)?;
    assert!(error.contains("the store is damaged"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_refused_and_its_user_goes_on() -> Result<()> {
    let fresh = fresh().await?;
    let error = failed_start(&fresh.store)?;
    assert!(
        error.contains("in use by another memfleet process"),
        "{error}"
    );
    assert!(error.contains("memory.db"), "{error}");
    let turn = said("s", "Ada", 8, "Still here");
    let token = remember(&fresh.client, "ada", vec![turn]).await?;
    let asked = recall("ada", "here", TurnFilter::default(), &[token]);
    assert_eq!(fresh.client.recall(&call(), asked).await?.hits.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_does_not_exist_is_named() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let elsewhere = directory.path().join("no such folder").join("memory.db");
    let output = up(&store)?
        .env(
            "MEMFLEET_STORE__URL",
            format!("sqlite:{}", elsewhere.display()),
        )
        .output()?;
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr)?;
    assert!(error.contains("no such folder"), "{error}");
    Ok(())
}

#[test]
fn a_wrong_configuration_says_every_problem_at_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let output = up(&directory.path().join("memory.db"))?
        .env("MEMFLEET_STORE__URL", "postgres:x")
        .env("MEMFLEET_MODEL__QUEUE", "0")
        .output()?;
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr)?;
    for problem in ["store.url", "model.queue"] {
        assert!(error.contains(problem), "{error}");
    }
    Ok(())
}

#[test]
fn a_call_to_a_node_that_is_not_there_says_so_and_ends_with_5() -> Result<()> {
    let free = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let url = format!("http://{free}");
    for command in [
        &["recall", "anything", "--space", "ada"][..],
        &["spaces"],
        &["status"],
        &["export", "ada"],
    ] {
        let output = run(&url, command)?;
        assert_eq!(output.status.code(), Some(5), "{command:?}");
        assert_eq!(String::from_utf8(output.stdout)?, "");
        let error = String::from_utf8(output.stderr)?;
        assert_eq!(error.lines().count(), 1, "{error}");
        for part in [url.as_str(), "CONNECTION_FAILED", "`memfleet up`"] {
            assert!(error.contains(part), "{error}");
        }
    }
    let output = run(&url, &["spaces", "--json"])?;
    let error = String::from_utf8(output.stderr)?;
    assert!(
        error.contains("\"reason\":\"CONNECTION_FAILED\""),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_back() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let bound = [("MEMFLEET_INGESTION__MAX_QUEUED_TURNS", "1")];
    let node = Node::launch(&directory.path().join("memory.db"), &bound)?;
    let mut client = MemoryClient::connect(node.url()).await?;
    // Enough that most of it still waits when the next one comes.
    let many = (0..500).map(|n| turn(&format!("This is turn number {n} of many")));
    client.remember(request("ada", many.collect())).await?;
    let one = request("ada", vec![turn("one")]);
    let status = client.remember(one).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(reason(&status), "QUEUE_FULL");
    let retry = status.get_details_retry_info().unwrap().retry_delay;
    assert!(retry.is_some_and(|wait| !wait.is_zero()));
    Ok(())
}
