//! The steps of a verification. Each runs whether or not those before it passed, so that one run shows all there is to mend.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memfleet_servers::{Durability, Environment, Postgres};

use crate::amp;
use crate::chaos::{self, Chaos};
use crate::corpus;
use crate::fuzz::Fuzz;
use crate::proto::{self, Compared};
use crate::speed;
use crate::style;

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Formatting.
    Fmt,
    /// Clippy.
    Lint,
    /// Documentation.
    Doc,
    /// Dependencies.
    Deny,
    /// Proto compatibility.
    Proto,
    /// Records the protos as released.
    ReleaseProto,
    /// House style of the lines that were added.
    Style,
    /// Whether every item of AMP has a test, and the table says which.
    Amp,
    /// Makes that table.
    WriteAmp,
    /// The understanding corpus.
    Corpus,
    /// All tests; holds further arguments of `cargo test`.
    Test(Vec<String>),
    /// A fleet that is hurt.
    Chaos(Chaos),
    /// Made-up bytes.
    Fuzz(Fuzz),
    /// Tests of PostgreSQL on the earlier versions of the server that are here.
    EarlierPostgres,
    /// How long writers stand still while a million turns are migrated.
    Stalls,
    /// Property tests on more cases than for every change.
    Properties,
    /// One tenant beside another that behaves badly, with narrow bounds.
    Neighbours,
    /// Tests of the code with instructions of its own on an emulated aarch64.
    Aarch64,
    /// Speed beside that of the last commit, or of a commit.
    Speed(Option<String>),
}

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
enum Ending {
    Passed,
    Skipped(&'static str),
}

impl Step {
    /// Everything that is checked without running the code.
    pub fn checks() -> Vec<Self> {
        vec![
            Self::Fmt,
            Self::Lint,
            Self::Doc,
            Self::Deny,
            Self::Proto,
            Self::Style,
            Self::Amp,
            Self::Corpus,
        ]
    }

    /// Tests that take too long for every change.
    pub fn nightly() -> Vec<Self> {
        vec![
            Self::EarlierPostgres,
            Self::Stalls,
            Self::Properties,
            Self::Aarch64,
            Self::Chaos(Chaos::nightly()),
            Self::Neighbours,
            Self::Speed(None),
        ]
    }

    /// The check of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::checks().into_iter().find(|step| step.name() == name)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Lint => "lint",
            Self::Doc => "doc",
            Self::Deny => "deny",
            Self::Proto | Self::ReleaseProto => "proto",
            Self::Style => "style",
            Self::Amp | Self::WriteAmp => "amp-table",
            Self::Corpus => "corpus",
            Self::Test(_) => "test",
            Self::Chaos(_) => "chaos",
            Self::Fuzz(_) => "fuzz",
            Self::EarlierPostgres => "earlier-postgres",
            Self::Stalls => "stalls",
            Self::Properties => "properties",
            Self::Neighbours => "neighbours",
            Self::Aarch64 => "aarch64",
            Self::Speed(_) => "speed",
        }
    }

    fn run(&self, root: &Path) -> Result<Ending> {
        match self {
            Self::Fmt => {
                cargo(root, ["fmt", "--all", "--check"])?;
                cargo(&root.join("fuzz"), ["fmt", "--check"])?;
            }
            Self::Lint => cargo(
                root,
                [
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--",
                    "--deny=warnings",
                ],
            )?,
            Self::Doc => {
                let mut command = cargo_command(
                    root,
                    [
                        "doc",
                        "--workspace",
                        "--no-deps",
                        "--document-private-items",
                    ],
                );
                run_command(command.env("RUSTDOCFLAGS", "--deny=warnings"))?;
            }
            Self::Deny => return deny(root),
            Self::Proto => {
                if proto::check(root)? == Compared::WithNothing {
                    return Ok(Ending::Skipped("no release yet"));
                }
            }
            Self::Style => {
                if style::check(root)? == style::StyleOutcome::WithNothing {
                    return Ok(Ending::Skipped("no commit to compare with"));
                }
            }
            Self::ReleaseProto => proto::release(root)?,
            Self::Amp => amp::table(root, true)?,
            Self::Corpus => corpus::check(root)?,
            Self::WriteAmp => amp::table(root, false)?,
            Self::Test(arguments) => test(root, arguments, &[])?,
            Self::Chaos(chaos) => test(root, &chaos::TEST.map(str::to_owned), &chaos.variables())?,
            Self::Fuzz(fuzz) => fuzz.run(root)?,
            Self::EarlierPostgres => earlier_postgres(root)?,
            Self::Stalls => test(root, &STALLS.map(str::to_owned), &[])?,
            Self::Properties => {
                let cases = [("PROPTEST_CASES", CASES.to_owned())];
                test(root, &["--lib".to_owned()], &cases)?;
                let seeds = [("FORGET_SEEDS", FORGETS.to_owned())];
                test(root, &NO_WORD.map(str::to_owned), &seeds)?;
            }
            Self::Neighbours => neighbours(root)?,
            Self::Aarch64 => aarch64(root)?,
            Self::Speed(commit) => speed::check(root, commit.as_deref())?,
        }
        Ok(Ending::Passed)
    }
}

/// Runs the steps, prints a table of how they went, and fails if any did.
pub fn run(steps: &[Step]) -> ExitCode {
    // The manifest's folder is crates/xtask. Asked at run time: a clone may be moved after it was compiled.
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs this"));
    let root = manifest
        .ancestors()
        .nth(2)
        .expect("crates/xtask is two folders deep");
    let results: Vec<_> = steps.iter().map(|step| timed(step, root)).collect();
    eprintln!();
    for (step, ending, time) in &results {
        let seconds = time.as_secs_f64();
        eprintln!("{:<6} {seconds:>7.1} s  {}", step.name(), told(ending));
    }
    let failed = results
        .iter()
        .filter(|(_, ending, _)| ending.is_err())
        .count();
    if failed > 0 {
        eprintln!("{failed} of {} steps failed", results.len());
    }
    ExitCode::from(u8::from(failed > 0))
}

/// How a step went, in the table.
fn told(ending: &Result<Ending>) -> String {
    match ending {
        Ok(Ending::Passed) => "ok".to_owned(),
        Ok(Ending::Skipped(reason)) => format!("skipped: {reason}"),
        Err(error) => format!("FAILED: {error:#}"),
    }
}

fn timed<'a>(step: &'a Step, root: &Path) -> (&'a Step, Result<Ending>, Duration) {
    eprintln!("==> {}", step.name());
    let begun = Instant::now();
    let ending = step.run(root);
    (step, ending, begun.elapsed())
}

/// The test of stalls, as arguments of `cargo test`.
const STALLS: [&str; 7] = [
    "-p",
    "memfleet-postgres",
    "--test",
    "postgres",
    "--",
    "--ignored",
    "--nocapture",
];

/// Generated cases of each property test, 16 times proptest's default.
const CASES: &str = "4096";

/// Generated conversations of each property test of forgetting.
const FORGETS: &str = "300";

/// Property tests of forgetting, as arguments of `cargo test`.
const NO_WORD: [&str; 7] = [
    "-p",
    "memfleet-consolidator",
    "-p",
    "memfleet-postgres",
    "--test",
    "*",
    "no_word",
];

/// The test of neighbours, as arguments of `cargo test`.
const NEIGHBOURS: [&str; 7] = [
    "-p",
    "memfleet-e2e",
    "--test",
    "node",
    "--",
    "whatever_one_tenant_does",
    "--nocapture",
];

/// Folders with programs of further versions, as in `PATH`.
const MORE_POSTGRES: &str = "MEMFLEET_EARLIER_POSTGRES";

/// Runs the benchmark of neighbours in full, on an optimised program.
fn neighbours(root: &Path) -> Result<()> {
    let program = speed::program(root)?.display().to_string();
    let variables = [
        ("MEMFLEET_TEST_PROGRAM", program),
        ("NEIGHBOURS", "full".to_owned()),
    ];
    test(root, &NEIGHBOURS.map(str::to_owned), &variables)
}

/// Runs the adapter's tests on a server of each earlier version.
fn earlier_postgres(root: &Path) -> Result<()> {
    let mut all = vec![memfleet_servers::fetch::earlier_postgres()?];
    let more = env::var_os(MORE_POSTGRES).unwrap_or_default();
    all.extend(env::split_paths(&more).filter(|path| !path.as_os_str().is_empty()));
    let failures = all.iter().filter_map(|binaries| {
        eprintln!("PostgreSQL of {}", binaries.display());
        let failure = on_postgres(root, binaries).err()?;
        Some(format!("{}: {failure:#}", binaries.display()))
    });
    let failures: Vec<_> = failures.collect();
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    Ok(())
}

fn on_postgres(root: &Path, binaries: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let server = Postgres::start_from(binaries, folder.path(), Durability::Process)?;
    let mut command = cargo_command(root, ["test", "-p", "memfleet-postgres"]);
    command.env(memfleet_servers::POSTGRES_BIN, binaries);
    run_command(command.env(memfleet_servers::POSTGRES_URL, server.url()))
}

/// Runs the tests of the crates that have instructions of their own for aarch64, under emulation.
/// Needs the target of the toolchain, a linker and `qemu-aarch64`, or what the variables of cargo
/// for the target name.
fn aarch64(root: &Path) -> Result<()> {
    let target = ["--target", "aarch64-unknown-linux-gnu"];
    let crates = ["-p", "memfleet-encoder", "-p", "memfleet-retrieval"];
    let mut command = cargo_command(root, ["test", "--release", "--lib"]);
    command.args(target).args(crates);
    for (name, value) in [
        ("LINKER", "aarch64-linux-gnu-gcc"),
        ("RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ] {
        let name = format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_{name}");
        if env::var_os(&name).is_none() {
            command.env(name, value);
        }
    }
    run_command(&mut command)
}

/// Runs the tests with the model and the servers in place. The servers start while everything is built.
fn test(root: &Path, arguments: &[String], variables: &[(&str, String)]) -> Result<()> {
    let (servers, built) = thread::scope(|scope| {
        let servers =
            scope.spawn(|| Environment::start(|name| env::var_os(name), Durability::Process));
        let built = build(root);
        (
            servers.join().expect("starting servers does not panic"),
            built,
        )
    });
    built?;
    let servers = servers.context("the servers of the tests")?;
    let narrowed = arguments
        .iter()
        .any(|argument| argument == "-p" || argument.starts_with("--package"));
    let scope = if narrowed { None } else { Some("--workspace") };
    let mut command = cargo_command(root, ["test"]);
    command.args(scope).args(arguments);
    command.envs(servers.variables());
    run_command(command.envs(variables.iter().map(|(name, value)| (name, value))))
}

/// Builds everything once and lets the freshly built binary fetch the model; the tests run from the same build.
fn build(root: &Path) -> Result<()> {
    cargo(root, ["build", "--workspace", "--bins", "--tests"])?;
    let own = env::current_exe().context("the folder of built binaries is unknown")?;
    let binary = own.with_file_name(format!("memfleet{}", env::consts::EXE_SUFFIX));
    run_command(
        Command::new(binary)
            .args(["model", "pull"])
            .current_dir(root),
    )
}

/// Advisories are left out: their database lives elsewhere and changes without us.
fn deny(root: &Path) -> Result<Ending> {
    let installed = cargo_command(root, ["deny", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !installed && env::var_os("CI").is_none() {
        return Ok(Ending::Skipped(
            "cargo-deny is not installed: cargo install --locked cargo-deny",
        ));
    }
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        cargo(
            root,
            [
                "deny",
                "--manifest-path",
                manifest,
                "--workspace",
                "--config",
                "deny.toml",
                "--log-level",
                "error",
                "check",
                "bans",
                "licenses",
                "sources",
            ],
        )?;
    }
    Ok(Ending::Passed)
}

fn cargo<const N: usize>(root: &Path, arguments: [&str; N]) -> Result<()> {
    run_command(&mut cargo_command(root, arguments))
}

/// Cargo in a folder, without the variables that it sets for this program.
pub fn cargo_command<const N: usize>(root: &Path, arguments: [&str; N]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root);
    for (name, _) in env::vars_os().filter(|(name, _)| is_of_this_package(name)) {
        command.env_remove(name);
    }
    command
}

/// What cargo tells a program of its package. Build scripts of some crates run again when it changes, and with them is compiled all
/// that needs them: `cargo build` in a shell and here would undo each other's work.
fn is_of_this_package(variable: &OsStr) -> bool {
    let variable = variable.to_string_lossy();
    let begins = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_",
        "CARGO_CRATE_",
    ];
    begins.iter().any(|begin| variable.starts_with(begin))
}

/// Runs a command, and names it in the error.
pub fn run_command(command: &mut Command) -> Result<()> {
    let words: Vec<_> = [command.get_program()]
        .into_iter()
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect();
    let shown = words.join(" ");
    let status = command
        .status()
        .with_context(|| format!("cannot run `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}`: {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_callable_by_its_name() {
        for step in Step::checks() {
            assert_eq!(Step::named(step.name()), Some(step));
        }
        assert_eq!(Step::named("test"), None);
    }

    #[test]
    fn protos_that_were_compared_with_nothing_are_no_success() {
        let root = env::temp_dir().join(format!("xtask-steps-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proto")).unwrap();
        std::fs::write(root.join("proto/a.proto"), "syntax = \"proto3\";\n").unwrap();
        let ending = Step::Proto.run(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(told(&ending), "skipped: no release yet");
    }

    #[test]
    fn cargo_is_not_told_of_this_package() {
        let told = |name: &str| is_of_this_package(OsStr::new(name));
        assert!(told("CARGO_PKG_NAME") && told("CARGO_MANIFEST_DIR"));
        assert!(!told("CARGO_TARGET_DIR") && !told("CARGO_INCREMENTAL"));
    }

    #[test]
    fn a_command_that_fails_is_named_in_the_error() {
        let error = run_command(Command::new(env::current_exe().unwrap()).arg("--no-such-flag"))
            .unwrap_err();
        assert!(error.to_string().contains("--no-such-flag"), "{error}");
    }
}
