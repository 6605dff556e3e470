//! The corpus as a whole: writers apart by part, and measures of how alike they write.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::checking::folded;
use super::{LabelledScenario, ScenarioError, read};

/// Characters of a run of text that two writers should not share.
const RUN: usize = 30;

/// Words of a scenario's opening.
const OPENING: usize = 3;

/// Largest share of runs of 30 characters that a writer may share with others.
pub const MAX_SHARED_RUNS: f64 = 0.01;

/// Largest share of scenarios that may begin as another one does.
pub const MAX_REPEATED_OPENINGS: f64 = 0.05;

/// The scenarios of one writer, all in one part of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterFolder {
    /// Part of the corpus: the folder that holds that of the writer.
    pub part: String,
    /// Name of the writer: the folder.
    pub writer: String,
    /// The scenarios, by number.
    pub scenarios: Vec<LabelledScenario>,
}

/// All scenarios.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioCorpus {
    /// By part and writer.
    pub writers: Vec<WriterFolder>,
}

/// A corpus that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A file has a line that is not of the format.
    #[error("{}: {error}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line.
        error: ScenarioError,
    },
}

impl ScenarioCorpus {
    /// Loads `FOLDER/PART/WRITER/*.txt`.
    pub fn load(folder: &Path) -> Result<Self, CorpusError> {
        let mut writers = Vec::new();
        for part in folders(folder)? {
            for writer in folders(&part)? {
                let mut scenarios = Vec::new();
                for file in entries(&writer)?.into_iter().filter(|it| is_text(it)) {
                    let text = fs::read_to_string(&file);
                    let text = text.map_err(|error| CorpusError::Io {
                        path: file.clone(),
                        error,
                    })?;
                    let read = read(&text);
                    scenarios
                        .extend(read.map_err(|error| CorpusError::Format { path: file, error })?);
                }
                writers.push(WriterFolder {
                    part: name(&part),
                    writer: name(&writer),
                    scenarios,
                });
            }
        }
        Ok(Self { writers })
    }

    /// Every scenario, with its writer.
    pub fn scenarios(&self) -> impl Iterator<Item = (&WriterFolder, &LabelledScenario)> {
        let writers = self.writers.iter();
        writers.flat_map(|writer| writer.scenarios.iter().map(move |it| (writer, it)))
    }

    /// Labels that contradict their text, and writers in two parts; empty where there are none.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut parts: HashMap<&str, &str> = HashMap::new();
        for WriterFolder { part, writer, .. } in &self.writers {
            if let Some(other) = parts.insert(writer, part) {
                problems.push(format!("{writer} wrote for {other} and {part}"));
            }
        }
        let mut numbers = HashSet::new();
        for (WriterFolder { writer, .. }, scenario) in self.scenarios() {
            let number = &scenario.number;
            if !numbers.insert((writer, number)) {
                problems.push(format!("{writer} {number}: the number is taken"));
            }
            let own = scenario.problems().into_iter();
            problems.extend(own.map(|problem| format!("{writer} {number}: {problem}")));
        }
        problems
    }

    /// By writer, the share of all runs of 30 characters that another writer has, too.
    pub fn shared_runs(&self) -> BTreeMap<&str, f64> {
        let mut writers_of: HashMap<u64, usize> = HashMap::new();
        let runs: Vec<HashSet<u64>> = self.writers.iter().map(runs).collect();
        for run in runs.iter().flatten() {
            *writers_of.entry(*run).or_default() += 1;
        }
        let share = |runs: &HashSet<u64>| {
            let shared = runs.iter().filter(|run| writers_of[run] > 1);
            shared.count() as f64 / runs.len().max(1) as f64
        };
        let writers = self.writers.iter().zip(&runs);
        writers
            .map(|(writer, runs)| (writer.writer.as_str(), share(runs)))
            .collect()
    }

    /// The share of scenarios whose first three words begin another one, too.
    pub fn repeated_openings(&self) -> f64 {
        let opening = |scenario: &LabelledScenario| -> Option<Vec<String>> {
            let first = folded(&scenario.turns.first()?.text);
            Some(first.split(' ').take(OPENING).map(str::to_owned).collect())
        };
        let openings: Vec<_> = self.scenarios().filter_map(|(_, it)| opening(it)).collect();
        let mut times: HashMap<&[String], usize> = HashMap::new();
        for opening in &openings {
            *times.entry(opening).or_default() += 1;
        }
        let repeated = openings.iter().filter(|it| times[it.as_slice()] > 1);
        repeated.count() as f64 / openings.len().max(1) as f64
    }
}

/// Hashes of all runs of text of a writer.
fn runs(writer: &WriterFolder) -> HashSet<u64> {
    let turns = writer.scenarios.iter().flat_map(|it| &it.turns);
    let mut runs = HashSet::new();
    for turn in turns {
        let characters: Vec<char> = folded(&turn.text).chars().collect();
        for run in characters.windows(RUN) {
            let mut hasher = DefaultHasher::new();
            run.hash(&mut hasher);
            runs.insert(hasher.finish());
        }
    }
    runs
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<Result<Vec<_>, _>>()
    });
    let mut listed = listed.map_err(|error| CorpusError::Io {
        path: folder.to_owned(),
        error,
    })?;
    listed.sort();
    Ok(listed)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let mut entries = entries(folder)?;
    entries.retain(|entry| entry.is_dir());
    Ok(entries)
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "txt")
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
