//! House style of docs/dev/style.md, held by the lines that a change adds: what is older may stay
//! until it is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Widest comment, in columns.
const WIDTH: usize = 100;

/// Words that no comment begins with: what follows them is a riddle about something that has a
/// name.
const OPENINGS: [&str; 6] = ["What", "That", "Those", "Of", "Whether", "Whose"];

/// File that lists the public types whose name is one word.
const GLOSSARY: &str = "docs/dev/glossary.md";

/// Outcome of the check.
#[derive(Debug, PartialEq, Eq)]
pub enum StyleOutcome {
    /// Every added line was looked at and keeps to the style.
    WithBase,
    /// There is no commit to compare with.
    WithNothing,
}

/// Checks the lines of Rust that were added since the branch left its upstream, or else since the
/// commit before this one. Fails and lists every line that breaks a rule.
pub fn check(root: &Path) -> Result<StyleOutcome> {
    let Some(base) = base(root) else {
        return Ok(StyleOutcome::WithNothing);
    };
    let glossary = fs::read_to_string(root.join(GLOSSARY)).context(GLOSSARY)?;
    let diff = git(
        root,
        &["diff", "--unified=0", "--no-color", &base, "--", "*.rs"],
    );
    let mut findings = Vec::new();
    for (file, added) in added(&diff.context("git diff fails")?) {
        let text = fs::read_to_string(root.join(&file)).with_context(|| file.clone())?;
        let lines: Vec<&str> = text.lines().collect();
        for number in added {
            let found = of_comment(&lines, number).into_iter();
            let found = found.chain(of_type(root, &file, lines[number], &glossary)?);
            findings.extend(found.map(|it| format!("{file}:{}: {it}", number + 1)));
        }
    }
    if !findings.is_empty() {
        bail!("docs/dev/style.md:\n{}", findings.join("\n"));
    }
    Ok(StyleOutcome::WithBase)
}

/// Commit that a branch began at, or else the one before this.
pub fn base(root: &Path) -> Option<String> {
    let upstream = ["@{upstream}", "origin/main", "main"];
    let merged = |name: &&str| git(root, &["merge-base", "HEAD", name]);
    let head = git(root, &["rev-parse", "HEAD"])?;
    let base = upstream.iter().find_map(merged).filter(|it| *it != head);
    base.or_else(|| git(root, &["rev-parse", "--verify", "--quiet", "HEAD~"]))
}

/// Output of git, where it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}

/// Files of a diff without context, and their added lines, from 0 on.
fn added(diff: &str) -> BTreeMap<String, BTreeSet<usize>> {
    let mut all: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let mut file = None;
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ ") {
            file = name.strip_prefix("b/").map(str::to_owned);
        }
        let (Some(name), Some((_, place))) = (&file, line.split_once(" +")) else {
            continue;
        };
        if let Some(range) = place.split(' ').next().filter(|_| line.starts_with("@@ ")) {
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let (start, count): (usize, usize) = (
                start.parse().unwrap_or_default(),
                count.parse().unwrap_or_default(),
            );
            let lines = (0..count).map(|line| start + line - 1);
            all.entry(name.clone()).or_default().extend(lines);
        }
    }
    all
}

fn of_comment(lines: &[&str], number: usize) -> Vec<String> {
    let Some(words) = comment(lines[number]) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let width = lines[number].chars().count();
    if width > WIDTH {
        findings.push(format!("a comment of {width} columns; {WIDTH} at most"));
    }
    let before = number
        .checked_sub(1)
        .and_then(|before| comment(lines[before]));
    let begins = before.is_none_or(str::is_empty);
    let first = words.split(' ').next().unwrap_or_default();
    if begins && OPENINGS.contains(&first) {
        findings.push(format!(
            "a comment that begins with `{first}`: name the thing"
        ));
    }
    findings
}

/// The words of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let words = ["///", "//!", "//"]
        .iter()
        .find_map(|it| line.strip_prefix(it));
    words.map(str::trim)
}

fn of_type(root: &Path, file: &str, line: &str, glossary: &str) -> Result<Vec<String>> {
    let Some(name) = public_type(line) else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    let words = name.chars().filter(char::is_ascii_uppercase).count();
    if words == 1 && !glossary.contains(&format!("`{name}`")) {
        findings.push(format!(
            "`{name}` is one word: say which, or explain it in {GLOSSARY}"
        ));
    }
    if let Some((of_crate, _)) = file.split_once("/src/") {
        let same = definitions(&root.join(of_crate).join("src"), name)?;
        if same > 1 {
            findings.push(format!(
                "{same} public types of {of_crate} are called `{name}`"
            ));
        }
    }
    Ok(findings)
}

/// The name of the public type that a line defines; not of one in a module of tests, which is
/// indented.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    Some(&rest[..end.unwrap_or(rest.len())])
}

fn definitions(folder: &Path, name: &str) -> Result<usize> {
    let mut count = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = fs::read_to_string(&path)?;
                count += text
                    .lines()
                    .filter(|line| public_type(line) == Some(name))
                    .count();
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_are_read_from_a_diff() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1,0 +2,2 @@ fn f()\n+one\n+two\n@@ -9 +11 @@\n-a +b\n+c\n+++ /dev/null\n@@ -1,3 +0,0 @@\n";
        let lines = BTreeSet::from([1, 2, 10]);
        assert_eq!(added(diff), BTreeMap::from([("x.rs".to_owned(), lines)]));
    }

    #[test]
    fn a_comment_names_its_thing_and_is_narrow() {
        let wide = format!("// {}", "x".repeat(98));
        let lines = [
            "/// What is kept.",
            "/// That goes on.",
            "let x = 1;",
            &wide,
        ];
        let of = |number| of_comment(&lines, number).len();
        assert_eq!([of(0), of(1), of(2), of(3)], [1, 0, 0, 1]);
    }

    #[test]
    fn a_public_type_has_a_name_of_its_own() {
        assert_eq!(public_type("pub struct Said<'a> {"), Some("Said"));
        assert_eq!(public_type("pub(crate) struct Said;"), None);
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("crates/a/src");
        fs::create_dir_all(&source).unwrap();
        fs::write(
            source.join("lib.rs"),
            "pub enum Turn {}\npub struct Said;\n",
        )
        .unwrap();
        fs::write(source.join("b.rs"), "pub struct Said;\n").unwrap();
        let of = |line| of_type(root.path(), "crates/a/src/b.rs", line, "`Turn`: …").unwrap();
        assert_eq!(of("pub struct Said;").len(), 2);
        assert_eq!(of("pub enum Turn {}"), Vec::<String>::new());
        assert_eq!(of("pub struct TurnReceipt;"), Vec::<String>::new());
    }

    #[test]
    fn a_clone_without_history_is_compared_with_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(check(root.path()).unwrap(), StyleOutcome::WithNothing);
    }
}
