//! Which test proves which item of AMP: the table of docs/amp.md is made from `data/amp.toml` and from the names of tests, `amp_042_…`. An item
//! without a test, and without a reason to wait, is a failure; so is a table that is not up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Where the table stands in docs/amp.md.
const BEGIN: &str = "<!-- made by `cargo xtask amp` -->\n";
const END: &str = "<!-- end of what it makes -->\n";

/// What is searched for tests.
const FOLDERS: [&str; 3] = ["crates", "services", "tests"];

#[derive(Deserialize)]
struct Checklist {
    sections: BTreeMap<String, String>,
    items: BTreeMap<String, (String, String)>,
    /// What cannot be proven before something else is there, by item.
    #[serde(default)]
    waits: BTreeMap<String, String>,
    /// What is not built or not proven yet, by item.
    #[serde(default)]
    open: BTreeMap<String, String>,
}

/// Tests by item.
type Proofs = BTreeMap<u32, Vec<Proof>>;

/// A test and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Proof {
    name: String,
    file: PathBuf,
}

/// Writes the table, or with `checks` says whether it is up to date.
pub fn table(root: &Path, checks: bool) -> Result<()> {
    let list = fs::read_to_string(root.join("crates/xtask/data/amp.toml"))?;
    let list: Checklist = toml::from_str(&list).context("crates/xtask/data/amp.toml")?;
    let mut proofs = Proofs::new();
    for folder in FOLDERS {
        search(root, &root.join(folder), &mut proofs)?;
    }
    let path = root.join("docs/amp.md");
    let page = fs::read_to_string(&path).context("docs/amp.md")?;
    let made = put(&page, &rows(&list, &proofs)?)?;
    if checks {
        ensure!(
            made == page,
            "the table of docs/amp.md is old: run `cargo xtask amp`"
        );
    } else {
        fs::write(&path, made)?;
    }
    let missing = missing(&list, &proofs);
    ensure!(
        missing.is_empty(),
        "no test and no reason to wait: {}",
        missing.join(", ")
    );
    Ok(())
}

/// The items that nothing proves.
fn missing(list: &Checklist, proofs: &Proofs) -> Vec<String> {
    let is_open = |item: &&String| {
        let number = item.parse().unwrap_or(0);
        let is_known = list.waits.contains_key(*item) || list.open.contains_key(*item);
        !proofs.contains_key(&number) && !is_known
    };
    let mut missing: Vec<_> = list.items.keys().filter(is_open).cloned().collect();
    missing.sort_by_key(|item| item.parse::<u32>().unwrap_or(0));
    missing
}

/// Finds tests in the sources under a folder.
fn search(root: &Path, folder: &Path, proofs: &mut Proofs) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            search(root, &path, proofs)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path)?;
            for (item, name) in tests(&source) {
                let file = path.strip_prefix(root)?.to_owned();
                proofs.entry(item).or_default().push(Proof { name, file });
            }
        }
    }
    Ok(())
}

/// The numbered tests of a source that run by themselves, once for each number in the name.
fn tests(source: &str) -> Vec<(u32, String)> {
    let (mut is_test, mut is_ignored) = (false, false);
    let name = |line: &str| {
        let line = line.trim_start();
        is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        is_ignored |= line.starts_with("#[ignore");
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ")?.split(['(', '<']).next()?;
        let runs = std::mem::take(&mut is_test) & !std::mem::take(&mut is_ignored);
        (runs && name.starts_with("amp_")).then(|| name.to_owned())
    };
    let numbered = |name: String| {
        let numbers: Vec<u32> = numbers(&name).collect();
        numbers
            .into_iter()
            .map(move |number| (number, name.clone()))
    };
    source.lines().filter_map(name).flat_map(numbered).collect()
}

/// The numbers that a name begins with: `amp_042_050_…`, `amp_042_amp_050_…`.
fn numbers(name: &str) -> impl Iterator<Item = u32> {
    let words = name.split('_').filter(|word| *word != "amp");
    words.map_while(|word| (word.len() == 3).then(|| word.parse().ok()).flatten())
}

fn rows(list: &Checklist, proofs: &Proofs) -> Result<String> {
    let mut table = String::from("| item | | proven by |\n|---|---|---|\n");
    let mut items: Vec<(u32, &(String, String))> = Vec::new();
    for (number, item) in &list.items {
        items.push((number.parse()?, item));
    }
    items.sort_unstable_by_key(|(number, _)| *number);
    let mut section = "";
    for (number, (of, title)) in items {
        if of != section {
            let name = list.sections.get(of).context("an item of no section")?;
            writeln!(table, "| **{of}** | **{name}** | |")?;
            section = of;
        }
        writeln!(
            table,
            "| {number} | {title} | {} |",
            proven(number, list, proofs)
        )?;
    }
    Ok(table)
}

fn proven(number: u32, list: &Checklist, proofs: &Proofs) -> String {
    let waits = list.waits.get(&number.to_string());
    let waits = waits.map(|reason| format!("waits in part: {reason}"));
    let mut proofs = proofs.get(&number).cloned().unwrap_or_default();
    proofs.sort();
    let proofs = proofs.iter().map(|proof| {
        let folder = proof.file.components().take(2).collect::<PathBuf>();
        format!("`{}` ({})", proof.name, folder.display())
    });
    let open = list.open.get(&number.to_string());
    let open = open.map(|missing| format!("**open**: {missing}"));
    let all: Vec<_> = proofs.chain(waits).chain(open).collect();
    if all.is_empty() {
        return "**nothing yet**".to_owned();
    }
    all.join("<br>")
}

/// The page with the table in its place.
fn put(page: &str, table: &str) -> Result<String> {
    let (Some(begin), Some(end)) = (page.find(BEGIN), page.find(END)) else {
        bail!("docs/amp.md has no place for the table");
    };
    Ok([&page[..begin + BEGIN.len()], table, &page[end..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_the_number_in_their_name() {
        let source = "#[test]\n    fn amp_064_added_tokens(a in 0..9) {\n#[tokio::test]\n    async fn amp_100_amp_101_102_x_103() {\n#[test]\nfn amp_1_no() {}\nfn amp_104_no_test() {}\n#[test]\n#[ignore = \"slow\"]\nfn amp_105_ignored() {}";
        let found = tests(source);
        assert_eq!(
            found.iter().map(|(item, _)| *item).collect::<Vec<_>>(),
            [64, 100, 101, 102]
        );
        assert_eq!(found[0], (64, "amp_064_added_tokens".to_owned()));
    }

    #[test]
    fn the_table_takes_its_place_and_open_items_are_named() {
        let list: Checklist = toml::from_str(
            "[sections]\nA = \"first\"\n[items]\n2 = [\"A\", \"two\"]\n10 = [\"A\", \"ten\"]\n3 = [\"A\", \"three\"]\n[waits]\n3 = \"the proxy\"",
        )
        .unwrap();
        let proof = Proof {
            name: "amp_002_it".to_owned(),
            file: "crates/x/src/y.rs".into(),
        };
        let proofs = Proofs::from([(2, vec![proof])]);
        assert_eq!(missing(&list, &proofs), ["10"]);
        let page = put(
            &format!("a\n{BEGIN}old\n{END}b\n"),
            &rows(&list, &proofs).unwrap(),
        )
        .unwrap();
        assert!(page.starts_with("a\n") && page.ends_with("b\n") && !page.contains("old"));
        assert!(
            page.contains("| 2 | two | `amp_002_it` (crates/x) |"),
            "{page}"
        );
        assert!(
            page.contains("| 3 | three | waits in part: the proxy |"),
            "{page}"
        );
        assert!(page.contains("| 10 | ten | **nothing yet** |"), "{page}");
    }
}
