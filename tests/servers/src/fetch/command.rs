//! The package tools of this machine.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command from words.
pub(super) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// Is the tool there, and does it answer?
pub(super) fn answers(words: &[&str]) -> bool {
    let output = command(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs a tool; what it said last is the reason of a failure.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| name.clone())?;
    if !output.status.success() {
        bail!("{name}: {}", last_line(&output.stderr));
    }
    Ok(())
}

fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("failed without a reason").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_the_last_line() {
        let failing = [
            "sh",
            "-c",
            "echo first >&2; echo 'no network' >&2; echo >&2; exit 1",
        ];
        let error = run(&mut command(&failing)).unwrap_err();
        assert_eq!(error.to_string(), "sh: no network");
        let silent = run(&mut command(&["false"])).unwrap_err();
        assert_eq!(silent.to_string(), "false: failed without a reason");
    }

    #[test]
    fn a_tool_that_is_missing_does_not_answer() {
        assert!(!answers(&["no-such-tool-of-memfleet", "--version"]));
        assert!(answers(&["sh", "-c", "exit 0"]));
    }
}
