//! One tenant beside another that behaves badly.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use memfleet_e2e::{Node, binary, key, known_keys, run};
use serde_json::Value;

/// Arguments of the short form of the benchmark: every call is answered, in a time that has the
/// noise of a busy machine and of a build without optimisation in it.
const SHORT: [&str; 14] = [
    "--length", "1s", "--pairs", "1", "--turns", "200", "--many", "100", "--p50", "10", "--p99",
    "20", "--floor", "1s",
];

/// Tries of the short form, of which one has to be within its bounds: other tests run meanwhile.
const TRIES: usize = 3;

/// The benchmark in its short form, or with the narrow bounds of its own where `NEIGHBOURS` is set
/// (`cargo xtask neighbours`).
#[test]
fn whatever_one_tenant_does_the_calls_of_another_are_answered() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let keys = known_keys();
    let environment = [("MEMFLEET_AUTH__KEYS", keys.as_str())];
    let node = Node::launch(&directory.path().join("memory.db"), &environment)?;
    let (own, theirs) = (key(0), key(1));
    let out = directory.path().join("neighbours.json");
    let arguments = [
        "bench",
        "neighbours",
        "--api-key",
        &own,
        "--neighbour-api-key",
        &theirs,
        "--json",
        out.to_str().unwrap(),
    ];
    let is_full = std::env::var_os("NEIGHBOURS").is_some();
    let short = if is_full { &[][..] } else { &SHORT[..] };
    let arguments = [&arguments[..], short].concat();
    let mut tries = if is_full { 1 } else { TRIES };
    let measured = loop {
        let measured = node.run(&arguments)?;
        println!("{}", String::from_utf8_lossy(&measured.stdout));
        tries -= 1;
        if measured.status.success() || tries == 0 {
            break measured;
        }
    };
    assert_eq!(measured.status.code(), Some(0), "{measured:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(&out)?)?;
    let ways = report["ways"].as_array().unwrap();
    assert_eq!(ways.len(), 9, "{report:#}");
    assert_eq!(report["is_within"], true);
    Ok(())
}

/// More connections than the process has file descriptors: it says so, does not spin, and answers again once the silent ones are closed.
#[test]
fn a_node_without_file_descriptors_says_so_and_answers_again() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let mut node = Command::new("sh")
        .args(["-c", "ulimit -n 128 && exec \"$0\" up"])
        .arg(binary()?)
        .current_dir(directory.path())
        .env("MEMFLEET_STORE__URL", format!("sqlite:{}", store.display()))
        .env("MEMFLEET_SERVER__ADDRESS", "127.0.0.1:0")
        .env("MEMFLEET_TELEMETRY__METRICS_ADDRESS", "off")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut first = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut first)?;
    let address = first.split("listening on ").nth(1).unwrap().trim();
    let mut log = node.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut text = String::new();
        let _cut_off = log.read_to_string(&mut text);
        text
    });
    let idle: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(address))
        .collect::<std::io::Result<_>>()?;
    let begun = Instant::now();
    let url = format!("http://{address}");
    let mut is_answered = false;
    while !is_answered && begun.elapsed() < Duration::from_secs(40) {
        is_answered = run(&url, &["--timeout", "5s", "status"])?.status.success();
    }
    drop(idle);
    node.kill()?;
    node.wait()?;
    let log = log.join().unwrap();
    assert!(is_answered, "{log}");
    assert!(log.contains("connections cannot be accepted"), "{log}");
    assert!(log.lines().count() < 100, "{log}");
    Ok(())
}
