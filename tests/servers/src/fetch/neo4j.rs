//! Neo4j Community 5.26: its libraries are Maven packages, and Java runs them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};

use super::command::{answers, command, run};
use super::{Cache, given};

const VARIABLE: &str = "MEMFLEET_NEO4J_LIB";
const NAME: &str = "neo4j-community-5.26.16";
const POM: &str = include_str!("neo4j.xml");

/// The folder with the libraries: `MEMFLEET_NEO4J_LIB`, else the cached one.
pub fn neo4j() -> Result<PathBuf> {
    let libraries = match given(VARIABLE) {
        Some(folder) => folder,
        None => from(&Cache::find()?).map_err(|error| {
            anyhow!("{error:#}; or {VARIABLE} names the folder `lib` of a Neo4j 5")
        })?,
    };
    let is_library = |entry: std::io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("neo4j-"))
    };
    let mut files = fs::read_dir(&libraries).with_context(|| libraries.display().to_string())?;
    let folder = libraries.display();
    ensure!(files.any(is_library), "there is no Neo4j in {folder}");
    Ok(libraries)
}

/// The program that runs them: Java 17 or 21.
pub fn java() -> Result<PathBuf> {
    let of_home = given("JAVA_HOME").map(|home| home.join("bin/java"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("java"));
    let mut programs = of_home.into_iter().chain(on_path);
    let program = programs.find(|program| program.is_file());
    program.context("Neo4j runs on Java: install Java 17 or 21")
}

fn from(cache: &Cache) -> Result<PathBuf> {
    if let Some(folder) = cache.get(NAME) {
        return Ok(folder.join("lib"));
    }
    ensure!(
        answers(&["mvn", "--version"]),
        "Neo4j is fetched by Maven: install Maven"
    );
    Ok(cache.get_or_make(NAME, make)?.join("lib"))
}

fn make(folder: &Path) -> Result<()> {
    fs::write(folder.join("pom.xml"), POM)?;
    let words = [
        "mvn",
        "--quiet",
        "--batch-mode",
        "dependency:copy-dependencies",
        "-DoutputDirectory=lib",
    ];
    run(command(&words).current_dir(folder))
}
