//! `cargo xtask speed`: table of what the program takes beside the program of the last commit.
//!
//! The speed of a shared machine changes by a factor of two from hour to hour, so no figure of an
//! earlier run is of use. Both programs are built and measured here, in turn, and the ratios of
//! such pairs of runs are compared.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::steps::{cargo_command, run_command};
use crate::style;

/// Pairs of runs. The median of five is not moved by two that were disturbed.
const PAIRS: usize = 5;

/// Smallest ratio to the last commit that fails.
const LIMIT: f64 = 1.2;

/// Benches, each with its arguments.
const BENCHES: [&[&str]; 3] = [
    &["scale", "--turns", "1000,4000"],
    &["assemble", "--turns", "1000"],
    &["ingest", "--turns", "1000"],
];

/// Figures by name: the bench, and the place in its JSON. Less is better in all of them. No p99:
/// of 300 calls it is the noise of three.
const FIGURES: [(&str, usize, &str); 8] = [
    ("search p50, 1,000 turns", 0, "/sizes/0/latency_ms/p50"),
    ("search p50, 4,000 turns", 0, "/sizes/1/latency_ms/p50"),
    ("memory, 4,000 turns", 0, "/sizes/1/resident_memory_mib"),
    ("assembly p50, 1,000 turns", 1, "/sizes/0/latency_ms/p50"),
    ("assembly p95, 1,000 turns", 1, "/sizes/0/latency_ms/p95"),
    ("bulk import", 2, "/seconds"),
    ("searchable p50", 2, "/searchable_ms/p50"),
    ("disk a turn", 2, "/bytes_on_disk_per_turn"),
];

/// One run of all benches: a value a figure.
type Values = Vec<f64>;

/// Compares this checkout with a commit, by default the last one before the changes of the branch.
pub fn check(root: &Path, commit: Option<&str>) -> Result<()> {
    let last = commit.map(str::to_owned).or_else(|| style::base(root));
    let last = last.context("there is no commit to compare with")?;
    let folder = target()?.join("speed");
    fs::create_dir_all(&folder)?;
    let now = program(root)?;
    let before = program_of(root, &folder, &last)?;
    run_command(Command::new(&now).args(["model", "pull"]).current_dir(root))?;
    let pairs = pairs(&before, &now, &folder)?;
    let compared = Comparison::of(&pairs);
    eprintln!("{}", compared.table(&last));
    compared.verdict()
}

/// Folder of build output, in which this program lies.
fn target() -> Result<PathBuf> {
    let own = env::current_exe().context("the folder of built programs is unknown")?;
    let target = own.ancestors().nth(2);
    Ok(target
        .context("programs lie in target/<profile>")?
        .to_owned())
}

/// Program of this checkout, optimised.
pub fn program(root: &Path) -> Result<PathBuf> {
    let target = target()?;
    build(root, &target)?;
    Ok(target.join("release/memfleet"))
}

/// Program of a commit, in a folder of its own: two checkouts cannot share one.
fn program_of(root: &Path, folder: &Path, commit: &str) -> Result<PathBuf> {
    let program = folder.join(format!("memfleet-{commit}"));
    if program.is_file() {
        return Ok(program);
    }
    let source = folder.join("source");
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(root);
        git
    };
    let path = source.display().to_string();
    let _not_there = git(&["worktree", "remove", "--force", &path]).output();
    run_command(&mut git(&[
        "worktree", "add", "--force", "--detach", &path, commit,
    ]))?;
    let target = folder.join("target");
    build(&source, &target)?;
    fs::copy(target.join("release/memfleet"), &program)?;
    run_command(&mut git(&["worktree", "remove", "--force", &path]))?;
    Ok(program)
}

fn build(root: &Path, target: &Path) -> Result<()> {
    let mut build = cargo_command(root, ["build", "--release", "--package", "memfleet"]);
    run_command(build.env("CARGO_TARGET_DIR", target))
}

/// Runs of both programs in turn. Who is first changes, since the machine may get slower.
fn pairs(before: &Path, now: &Path, folder: &Path) -> Result<Vec<[Values; 2]>> {
    let mut pairs = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        eprintln!("pair {} of {PAIRS}", pair + 1);
        pairs.push(if pair % 2 == 0 {
            let first = measured(before, folder)?;
            [first, measured(now, folder)?]
        } else {
            let first = measured(now, folder)?;
            [measured(before, folder)?, first]
        });
    }
    Ok(pairs)
}

fn measured(program: &Path, folder: &Path) -> Result<Values> {
    let file = folder.join("report.json");
    let mut reports = Vec::with_capacity(BENCHES.len());
    for arguments in BENCHES {
        let mut bench = Command::new(program);
        bench.arg("bench").args(arguments).arg("--json").arg(&file);
        run_command(&mut bench)?;
        reports.push(serde_json::from_slice(&fs::read(&file)?)?);
    }
    FIGURES
        .iter()
        .map(|(name, bench, place)| value(&reports[*bench], name, place))
        .collect()
}

fn value(report: &Value, name: &str, place: &str) -> Result<f64> {
    let value = report.pointer(place).and_then(Value::as_f64);
    let value = value.with_context(|| format!("{name}: the report has no {place}"))?;
    ensure!(value > 0.0, "{name} is {value}");
    Ok(value)
}

/// Medians of one figure.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    name: &'static str,
    before: f64,
    now: f64,
    /// Median over pairs, which is not the ratio of the medians.
    ratio: f64,
}

/// Medians of all figures.
#[derive(Debug, PartialEq)]
struct Comparison(Vec<Line>);

impl Comparison {
    fn of(pairs: &[[Values; 2]]) -> Self {
        let lines = FIGURES.iter().enumerate().map(|(place, (name, ..))| {
            let all = |of: &dyn Fn(&[Values; 2]) -> f64| median(pairs.iter().map(of).collect());
            Line {
                name,
                before: all(&|[before, _]| before[place]),
                now: all(&|[_, now]| now[place]),
                ratio: all(&|[before, now]| now[place] / before[place]),
            }
        });
        Self(lines.collect())
    }

    fn table(&self, last: &str) -> String {
        let last = last.get(..12).unwrap_or(last);
        let mut lines = vec![format!(
            "{:<28}{last:>14}{:>12}{:>8}",
            "figure", "now", "ratio"
        )];
        lines.extend(self.0.iter().map(|line| {
            let Line {
                name,
                before,
                now,
                ratio,
            } = line;
            format!("{name:<28}{before:>14.2}{now:>12.2}{ratio:>8.2}")
        }));
        lines.join("\n")
    }

    fn verdict(&self) -> Result<()> {
        let slower = self.0.iter().filter(|line| line.ratio >= LIMIT);
        let slower: Vec<_> = slower
            .map(|line| format!("{} × {:.2}", line.name, line.ratio))
            .collect();
        let most = 100.0 * (LIMIT - 1.0);
        ensure!(
            slower.is_empty(),
            "{most:.0} % or more above the last commit: {}",
            slower.join(", ")
        );
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A pair of runs in which every figure takes so many times as long.
    fn pair(before: f64, factor: f64) -> [Values; 2] {
        let all = |value| vec![value; FIGURES.len()];
        [all(before), all(before * factor)]
    }

    /// A program that answers every bench with a report whose figures are all of one value.
    fn script(folder: &Path, name: &str, value: f64) -> PathBuf {
        let path = folder.join(name);
        let latency = format!(r#"{{"p50": {value}, "p95": {value}, "p99": 0}}"#);
        let size = format!(r#"{{"latency_ms": {latency}, "resident_memory_mib": {value}}}"#);
        let report = format!(
            r#"{{"sizes": [{size}, {size}], "seconds": {value}, "searchable_ms": {latency},
            "bytes_on_disk_per_turn": {value}}}"#
        );
        let calls = folder.join("calls").display().to_string();
        let text = format!(
            "#!/bin/sh\necho {name} $2 >> {calls}\nfor out; do :; done\ncat > \"$out\" <<'END'\n{report}\nEND\n"
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn speed_a_fifth_below_the_last_commit_fails_and_is_named() {
        let compared = Comparison::of(&vec![pair(10.0, 1.25); PAIRS]);
        let error = compared.verdict().unwrap_err().to_string();
        assert!(error.contains("bulk import × 1.25"), "{error}");
        assert!(Comparison::of(&[pair(10.0, 1.19)]).verdict().is_ok());
    }

    #[test]
    fn machine_that_slows_down_between_pairs_passes() {
        let speeds = [10.0, 14.0, 22.0, 11.0, 30.0];
        let pairs = speeds.map(|speed| pair(speed, 1.02));
        assert!(Comparison::of(&pairs).verdict().is_ok());
    }

    #[test]
    fn two_disturbed_runs_of_five_pass() {
        let factors = [1.0, 1.9, 0.98, 1.6, 1.03];
        assert!(
            Comparison::of(&factors.map(|it| pair(10.0, it)))
                .verdict()
                .is_ok()
        );
    }

    #[test]
    fn programs_take_turns_and_a_slower_one_fails() {
        let folder = tempfile::tempdir().unwrap();
        let before = script(folder.path(), "before", 8.0);
        let now = script(folder.path(), "now", 10.0);
        let pairs = pairs(&before, &now, folder.path()).unwrap();
        let compared = Comparison::of(&pairs);
        assert!(
            compared
                .0
                .iter()
                .all(|line| (line.ratio - 1.25).abs() < 0.001)
        );
        assert!(compared.verdict().is_err());
        let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
        let first: Vec<_> = calls.lines().step_by(BENCHES.len()).collect();
        let turns = ["before scale", "now scale", "now scale", "before scale"];
        assert_eq!(first[..4], turns);
    }

    #[test]
    fn report_without_a_figure_is_refused_by_its_name() {
        let report = serde_json::json!({"seconds": 0.0});
        for place in ["/seconds", "/turns"] {
            let refused = value(&report, "bulk import", place).unwrap_err();
            assert!(refused.to_string().starts_with("bulk import"), "{refused}");
        }
    }
}
