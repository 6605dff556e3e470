//! docs/observability.md names every metric of the code, and no other.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const PREFIX: &str = "memfleet_";

/// Roles of the database are named alike.
const NO_METRIC: &str = "memfleet_app";

#[test]
fn the_document_names_every_metric_and_no_other() {
    let root = Path::new("../..");
    let mut kept = BTreeSet::new();
    for sources in ["crates", "services"] {
        collect(&root.join(sources), &mut kept);
    }
    let document = fs::read_to_string(root.join("docs/observability.md")).unwrap();
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let documented = rows.flat_map(|row| quoted(row.split(" | ").next().unwrap(), '`'));
    assert_eq!(kept, documented.collect());
}

/// The names in the sources under a folder, without those of tests.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "benches", "target"].contains(&name.as_str()) {
            collect(&path, names);
        } else if path.extension().is_some_and(|kind| kind == "rs") && name != "tests.rs" {
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            names.extend(quoted(code, '"'));
        }
    }
}

/// Whatever stands in quotation marks and is made like the name of a metric.
fn quoted(text: &str, mark: char) -> BTreeSet<String> {
    let is_name = |part: &&str| {
        part.len() > PREFIX.len()
            && part.starts_with(PREFIX)
            && *part != NO_METRIC
            && part.chars().all(|c| c == '_' || c.is_ascii_lowercase())
    };
    let parts = text.split(mark).filter(is_name);
    parts.map(str::to_owned).collect()
}
