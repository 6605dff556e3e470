//! `cargo xtask fuzz`: each target for a while on made-up bytes, beginning with the inputs that are kept.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

const SECONDS: u32 = 60;
/// One input may take this long, in seconds: what takes longer is a fault of its own.
const TIMEOUT: u32 = 10;

/// Which targets, and how long each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fuzz {
    seconds: u32,
    /// All where none is named.
    targets: Vec<String>,
}

impl Fuzz {
    /// From the words of the command line.
    pub fn read(words: &[String]) -> Result<Self> {
        let mut fuzz = Self {
            seconds: SECONDS,
            targets: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--seconds" => fuzz.seconds = seconds(words.next())?,
                flag if flag.starts_with('-') => bail!("unknown argument {flag}"),
                target => fuzz.targets.push(target.to_owned()),
            }
        }
        Ok(fuzz)
    }

    /// Runs the targets one after the other; all of them, whether or not one fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        is_installed()?;
        let known = targets(root)?;
        for target in &self.targets {
            ensure!(
                known.contains(target),
                "no target {target}: there are {}",
                known.join(", ")
            );
        }
        let targets = if self.targets.is_empty() {
            &known
        } else {
            &self.targets
        };
        let mut failed = Vec::new();
        for target in targets {
            if !self.passes(root, target)? {
                failed.push(target.as_str());
            }
        }
        ensure!(
            failed.is_empty(),
            "{}: mend it, and keep the input of fuzz/artifacts in fuzz/seeds",
            failed.join(", ")
        );
        Ok(())
    }

    fn passes(&self, root: &Path, target: &str) -> Result<bool> {
        // What is found goes to the first folder, which is nobody's but this machine's.
        let found = format!("fuzz/corpus/{target}");
        fs::create_dir_all(root.join(&found))?;
        let status = nightly(["fuzz", "run", target])
            .args([&found, &format!("fuzz/seeds/{target}")])
            .arg("--")
            .arg(format!("-max_total_time={}", self.seconds))
            .arg(format!("-timeout={TIMEOUT}"))
            .arg("-print_final_stats=1")
            .current_dir(root)
            .status()
            .context("cannot run cargo fuzz")?;
        Ok(status.success())
    }
}

/// The targets, by their files.
fn targets(root: &Path) -> Result<Vec<String>> {
    let folder = root.join("fuzz/fuzz_targets");
    let mut targets = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().context("a file without a name")?;
        targets.push(name.to_string_lossy().into_owned());
    }
    targets.sort_unstable();
    Ok(targets)
}

/// Says what is missing, and how to get it.
fn is_installed() -> Result<()> {
    let works = |command: &mut Command| {
        let output = command.output();
        output.is_ok_and(|output| output.status.success())
    };
    ensure!(
        works(&mut nightly(["--version"])),
        "libFuzzer needs a nightly compiler: rustup toolchain install nightly --profile minimal"
    );
    ensure!(
        works(&mut nightly(["fuzz", "--version"])),
        "cargo-fuzz is not installed: cargo install --locked cargo-fuzz"
    );
    Ok(())
}

/// Cargo of the nightly toolchain, whichever runs this.
fn nightly<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments);
    for name in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    command
}

fn seconds(word: Option<&String>) -> Result<u32> {
    let seconds = word.and_then(|word| word.parse().ok());
    seconds
        .filter(|seconds| *seconds > 0)
        .context("--seconds takes a number of seconds, at least 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Fuzz> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        Fuzz::read(&words)
    }

    #[test]
    fn all_targets_a_minute_each_unless_something_else_is_said() {
        let fuzz = read(&[]).unwrap();
        assert_eq!((fuzz.seconds, fuzz.targets.len()), (60, 0));
        let fuzz = read(&["stream", "--seconds", "5", "patch"]).unwrap();
        assert_eq!((fuzz.seconds, fuzz.targets.len()), (5, 2));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (words, part) in [
            (vec!["--seconds"], "--seconds"),
            (vec!["--seconds", "0"], "at least 1"),
            (vec!["--minutes", "3"], "--minutes"),
        ] {
            let told = read(&words).unwrap_err().to_string();
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn every_target_has_inputs_that_are_kept() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let targets = targets(&root).unwrap();
        assert!(targets.len() >= 5);
        for target in targets {
            assert!(root.join("fuzz/seeds").join(&target).is_dir(), "{target}");
        }
    }
}
