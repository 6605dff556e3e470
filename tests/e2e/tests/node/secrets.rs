//! Secrets do not reach the log, however much is logged.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use memfleet_e2e::{OPERATOR_KEY, run, up};
use serde_json::Value;

/// Runs a command with a key.
fn with_key(url: &str, key: &str, arguments: &[&str]) -> Result<Output> {
    run(url, &[arguments, &["--api-key", key]].concat())
}

#[test]
fn no_secret_is_logged_by_a_node_that_logs_everything() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let log = directory.path().join("log");
    let mut process = up(&directory.path().join("memory.db"))?
        .env("MEMFLEET_AUTH__BOOTSTRAP_KEY", OPERATOR_KEY)
        .env("RUST_LOG", "trace")
        .stdout(Stdio::piped())
        .stderr(File::create(&log)?)
        .spawn()?;
    let output = process.stdout.take().context("it is piped")?;
    let first = BufReader::new(output)
        .lines()
        .next()
        .context("it starts")??;
    let address = first.split("listening on ").nth(1).context("an address")?;
    let url = format!("http://{}", address.trim());
    let made = with_key(&url, OPERATOR_KEY, &["key", "create", "agent", "--json"])?;
    let made: Value = serde_json::from_slice(&made.stdout)?;
    let secret = made["secret"].as_str().context("a secret")?;
    let used = with_key(&url, secret, &["status"])?;
    with_key(&url, "memfleet-a-guess-of-somebody", &["status"])?;
    with_key(&url, OPERATOR_KEY, &["key", "list"])?;
    process.kill()?;
    process.wait()?;
    ensure!(used.status.success(), "{used:?}");
    let log = fs::read_to_string(log)?;
    ensure!(log.contains("key made"), "the log is that of the node");
    for secret in [OPERATOR_KEY, secret, "memfleet-a-guess-of-somebody"] {
        ensure!(!log.contains(secret), "a secret is in the log");
    }
    Ok(())
}
