//! The command line as scripts use it: imports, JSON on standard output alone, exit codes, readers that leave.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Result, ensure};
use memfleet_e2e::{Node, binary};
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    Path::new("fixtures").join(name)
}

/// The lines of standard output, which must be JSON each.
fn lines(output: &Output) -> Result<Vec<Value>> {
    let text = str::from_utf8(&output.stdout)?;
    let lines = text.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

fn node(directory: &Path) -> Result<Node> {
    Node::launch(&directory.join("memory.db"), &[])
}

#[test]
fn data_sets_with_pictures_are_imported_once_and_found_by_their_captions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = node(directory.path())?;
    let (locomo, plain) = (fixture("locomo.json"), fixture("plain.json"));
    let files = [locomo.display().to_string(), plain.display().to_string()];
    for (stored, skipped) in [([4, 2], [0, 0]), ([0, 0], [4, 2])] {
        let output = node.run(&["import", "--json", &files[0], &files[1]])?;
        ensure!(output.status.success(), "{output:?}");
        let reports = lines(&output)?;
        for (file, report) in reports.iter().enumerate() {
            ensure!(report["stored"] == stored[file], "{report}");
            ensure!(report["skipped"] == skipped[file], "{report}");
        }
    }
    let question = ["recall", "--json", "--space", "harbour", "-k", "1"];
    let output = node.run(&[&question[..], &["Where are the brushes?"]].concat())?;
    let content = lines(&output)?[0]["hits"][0]["turn"]["content"].clone();
    ensure!(
        content["media"][0]["caption"] == "a tin of paint beside two brushes",
        "{content}"
    );
    let uri = content["media"][0]["uri"].as_str().unwrap_or_default();
    ensure!(uri.starts_with("urn:blake3:"), "{content}");
    Ok(())
}

#[test]
fn standard_output_holds_json_alone_and_the_exit_code_says_how_it_went() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = node(directory.path())?;
    let text = "Pixel likes tuna.";
    let told = ["remember", "--space", "ada", "--session", "s1", text];
    let cases: [(&[&str], i32); 17] = [
        (&told, 0),
        (&["recall", "--space", "ada", "tuna"], 0),
        (&["assemble", "--space", "ada", "tuna"], 0),
        (&["spaces"], 0),
        (&["sessions", "--space", "ada"], 0),
        (&["turns", "--space", "ada"], 0),
        (&["status"], 0),
        (&["export", "ada"], 0),
        (&["export", "--space", "ada"], 0),
        (&["dead-letters", "list", "ada"], 0),
        (&["config", "check"], 0),
        (&["recall", "--space", "ada", " "], 2),
        (&["recall", "tuna"], 2),
        (&["sessions", "nobody"], 3),
        (&["dead-letters", "replay", "--space", "ada", "7"], 3),
        (&["forget", "--space", "ada", "--session", "s1"], 4),
        (&["status", "--server", "http://127.0.0.1:1"], 5),
    ];
    for (arguments, code) in cases {
        // `--server` may stand once: the variable names the node, the option another.
        let output = node.run(&[arguments, &["--json"]].concat())?;
        ensure!(
            output.status.code() == Some(code),
            "{arguments:?}: {output:?}"
        );
        lines(&output)?;
        if code != 0 {
            let last = str::from_utf8(&output.stderr)?.lines().last();
            let error: Value = serde_json::from_str(last.unwrap_or_default())?;
            ensure!(error["error"]["code"] == code, "{arguments:?}: {error}");
        }
    }
    Ok(())
}

#[test]
fn nobody_panics_when_the_reader_leaves() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = node(directory.path())?;
    let measured = ["bench", "ingest", "--turns", "8", "--singles", "1"];
    for arguments in [&["status"][..], &["completions", "bash"], &measured] {
        let mut child = Command::new(binary()?)
            .args(arguments)
            .env("MEMFLEET_SERVER", node.url())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        drop(child.stdout.take());
        let output = child.wait_with_output()?;
        ensure!(output.status.success(), "{arguments:?}: {output:?}");
    }
    Ok(())
}

#[test]
fn a_key_that_an_open_node_does_not_look_at_is_warned_of_once() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = node(directory.path())?;
    let warnings = |args: &[&str]| -> Result<usize> {
        let output = node.run(args)?;
        ensure!(output.status.success(), "{output:?}");
        let said = str::from_utf8(&output.stderr)?;
        Ok(said.matches("was not looked at").count())
    };
    let told = [
        "remember",
        "--space",
        "ada",
        "--session",
        "s",
        "Tuna it is.",
    ];
    ensure!(warnings(&told)? == 0);
    let asked = ["recall", "--space", "ada", "--api-key", "nonsense", "tuna"];
    ensure!(warnings(&asked)? == 1);
    Ok(())
}

#[test]
fn an_explanation_shows_every_bound_and_the_texts_of_what_was_chosen() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let node = node(directory.path())?;
    let text = "My cat Pixel likes tuna.";
    node.run(&["remember", "--space", "ada", "--session", "s", text])?;
    let asked = ["assemble", "--space", "ada", "--explain"];
    let question = ["--gate", "always", "What does Pixel like?"];
    let output = node.run(&[&asked[..], &question].concat())?;
    ensure!(output.status.success(), "{output:?}");
    let said = str::from_utf8(&output.stderr)?;
    for expected in [text, "gating.best_relevance", "gating.relevance"] {
        ensure!(said.contains(expected), "{expected}: {said}");
    }
    let output = node.run(&[&asked[..], &["--json"], &question].concat())?;
    let told = &lines(&output)?[0];
    ensure!(told["items"][0]["text"] == text, "{told}");
    Ok(())
}
