//! The project's own commands: `cargo xtask test`, `cargo xtask verify` and the steps of the latter one by one. What runs
//! here is what runs in CI.

mod amp;
mod chaos;
mod corpus;
mod fuzz;
mod proto;
mod servers;
mod speed;
mod steps;
mod style;

use std::process::ExitCode;

use chaos::Chaos;
use fuzz::Fuzz;
use memfleet_servers::Durability;
use steps::Step;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [ARGS]        fetch the model and the servers if they are missing, start the servers, run all tests; ARGS go to `cargo test`
  chaos [--minutes N] [--kills N] [--seed N]
                     kill, pause and restart every part of a fleet that is written to and read from, for minutes (default 10)
                     and until so many processes were killed; then show that nothing was lost, doubled or leaked
  fuzz [TARGET]... [--seconds N]
                     libFuzzer on what reads the bytes of others: each target, or those named, for seconds (default 60);
                     needs a nightly compiler and cargo-fuzz
  nightly            tests that take too long for every change: earlier versions of PostgreSQL, the longest stall of a writer
                     while a million turns are migrated, property tests on more cases, 40 minutes and 300 kills of chaos, and these three:
    aarch64          tests of the code with instructions of its own for aarch64, under qemu-aarch64
    neighbours       `memfleet bench neighbours` in full, on an optimised build
    speed            what searches, assemblies and imports take beside the last commit, built and measured in turn with
                     this one; fails at 20 % more
  speed [COMMIT]     the same beside a commit
  servers [--durable]
                     start the servers that tests need, print the variables that name them, and wait for Ctrl-C;
                     durable: as in production, every write waits for the disk
  verify             everything CI checks: the checks below, then the tests
  check              the checks below
    fmt              formatting
    lint             clippy, warnings refused
    doc              documentation, warnings refused
    deny             dependencies: bans, licences, sources (needs cargo-deny)
    proto            no incompatible change against proto/released.binpb
    style            added lines keep to docs/dev/style.md
    amp-table        every item of AMP has a test, and docs/amp.md says which
    corpus           labels of the understanding corpus meet their text, and writers do not share wording
  proto --release    record the protos as released
  amp                make the table of docs/amp.md from the names of the tests";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut words = arguments.iter().map(String::as_str);
    let steps = match (words.next(), words.next()) {
        (Some("test"), _) => vec![Step::Test(arguments[1..].to_vec())],
        (Some("chaos"), _) => match Chaos::read(&arguments[1..]) {
            Ok(chaos) => vec![Step::Chaos(chaos)],
            Err(error) => {
                eprintln!("{error:#}\n\n{USAGE}");
                return ExitCode::from(2);
            }
        },
        (Some("fuzz"), _) => match Fuzz::read(&arguments[1..]) {
            Ok(fuzz) => vec![Step::Fuzz(fuzz)],
            Err(error) => {
                eprintln!("{error:#}\n\n{USAGE}");
                return ExitCode::from(2);
            }
        },
        (Some("servers"), None) => return servers::hold(Durability::Process),
        (Some("servers"), Some("--durable")) => return servers::hold(Durability::Machine),
        (Some("proto"), Some("--release")) => vec![Step::ReleaseProto],
        (Some("amp"), None) => vec![Step::WriteAmp],
        (Some("nightly"), None) => Step::nightly(),
        (Some("aarch64"), None) => vec![Step::Aarch64],
        (Some("neighbours"), None) => vec![Step::Neighbours],
        (Some("speed"), commit) => vec![Step::Speed(commit.map(str::to_owned))],
        (Some("verify"), None) => [Step::checks(), vec![Step::Test(Vec::new())]].concat(),
        (Some("check"), None) => Step::checks(),
        (Some(name), None) if let Some(step) = Step::named(name) => vec![step],
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    steps::run(&steps)
}
