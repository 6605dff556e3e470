//! A benchmark that is stopped writes what it has, leaves nothing behind elsewhere, and ends with
//! the code of the signal.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use memfleet_e2e::{Node, binary};
use serde_json::{Value, json};

/// Questions that take longer than any test waits.
const ENDLESS: usize = 20_000;

fn conversation(name: &str, questions: usize) -> Value {
    let question = json!({
        "question": "What is rising?",
        "category": "single-hop",
        "evidence_message_ids": ["m1"],
    });
    let said = |id: &str, text: &str| {
        json!({
            "id": id,
            "speaker": "Mara",
            "role": "user",
            "session": "s1",
            "time_anchor": "2025-03-02T16:20:00Z",
            "content": text,
        })
    };
    json!({
        "conversation_id": name,
        "messages": [
            said("m1", "The sourdough is rising and needs another hour."),
            said("m2", "Then I paint the fence."),
        ],
        "questions": vec![question; questions],
    })
}

/// Two data sets; the second conversation of the second is never finished.
fn files(directory: &Path) -> Result<[PathBuf; 2]> {
    let sets = [
        ("whole.json", json!([conversation("a", 2)])),
        (
            "long.json",
            json!([conversation("b", 3), conversation("c", ENDLESS)]),
        ),
    ];
    let paths = sets.each_ref().map(|(name, _)| directory.join(name));
    for ((_, set), path) in sets.iter().zip(&paths) {
        fs::write(path, serde_json::to_vec(set)?)?;
    }
    Ok(paths)
}

/// Waits for the line of progress about the conversation that is never finished, sends the signal
/// and waits for the end.
fn stopped(mut process: Child, signal: &str) -> Result<Option<i32>> {
    let errors = process.stderr.take().context("standard error is piped")?;
    let (mut seen, mut asked) = (Vec::new(), false);
    for line in BufReader::new(errors).lines() {
        let line = line?;
        if !asked && line.contains("long.json") && line.contains("conversation 2 of 2") {
            let kill = Command::new("kill")
                .args([signal, &process.id().to_string()])
                .status()?;
            ensure!(kill.success(), "the process could not be signalled");
            asked = true;
        }
        seen.push(line);
    }
    ensure!(asked, "no progress was told: {seen:?}");
    Ok(process.wait()?.code())
}

fn bench(directory: &Path, options: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command
        .args(["bench", "retrieval"])
        .args(files(directory)?)
        .args(options)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    Ok(command)
}

/// The report, which must say that it is partial and hold the first conversation of the second
/// file.
fn assert_partial(report: &Path) -> Result<()> {
    let report: Value = serde_json::from_slice(&fs::read(report)?)?;
    ensure!(report["partial"] == true, "{report}");
    let of = |key: &str| [&report["files"][0][key], &report["files"][1][key]];
    ensure!(of("conversations") == [&json!(1), &json!(2)], "{report}");
    ensure!(
        of("conversations_measured") == [&json!(1), &json!(1)],
        "{report}"
    );
    ensure!(of("questions") == [&json!(2), &json!(3)], "{report}");
    ensure!(report["files"][1]["recall"]["10"] == 100.0, "{report}");
    Ok(())
}

#[test]
fn bench_that_is_interrupted_writes_the_conversations_that_it_finished() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let out = directory.path().join("report.json");
    let to = out.display().to_string();
    let process = bench(directory.path(), &["--json", &to])?.spawn()?;
    ensure!(stopped(process, "-INT")? == Some(130));
    assert_partial(&out)
}

#[test]
fn bench_of_a_system_that_is_terminated_forgets_its_spaces() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = Node::launch(&directory.path().join("memory.db"), &[])?;
    let out = directory.path().join("report.json");
    let to = out.display().to_string();
    let process = bench(directory.path(), &["--remote", "--json", &to])?
        .env("MEMFLEET_SERVER", node.url())
        .spawn()?;
    ensure!(stopped(process, "-TERM")? == Some(143));
    assert_partial(&out)?;
    let spaces = node.run(&["spaces", "--json"])?;
    ensure!(spaces.stdout.is_empty(), "{spaces:?}");
    Ok(())
}
