//! The report of `memfleet bench retrieval`: stable JSON keys, shares in percent, and a table for people.

use std::collections::BTreeMap;

use memfleet_evaluation::{Means, Shares, Tally};
use serde::Serialize;

use super::latency::Latency;

/// All files.
#[derive(Debug, Serialize)]
pub struct Report {
    /// True where it was stopped before its end.
    pub partial: bool,
    /// In the order of the command line.
    pub files: Vec<FileReport>,
}

/// One file.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// Its path.
    pub file: String,
    /// Conversations in it.
    pub conversations: usize,
    /// Conversations whose questions were all asked, the first ones: those that the figures are of.
    pub conversations_measured: usize,
    /// Turns in it.
    pub turns: usize,
    /// Each conversation as its own space.
    #[serde(flatten)]
    pub figures: Figures,
    /// All conversations in one space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pooled: Option<Figures>,
}

/// What was measured on one set of questions.
#[derive(Debug, Serialize)]
pub struct Figures {
    /// Questions with evidence.
    pub questions: usize,
    /// The measures over all questions.
    #[serde(flatten)]
    pub all: Measures,
    /// The same by category.
    pub by_category: BTreeMap<String, CategoryFigures>,
    /// Of one search for 100 turns, the query's embedding included.
    pub latency_ms: Latency,
    /// Turns a second from the first request to the last fact and episode; absent for a system elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derived_turns_per_second: Option<f64>,
    /// The usual methods.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub arms: BTreeMap<&'static str, Measures>,
}

/// One category.
#[derive(Debug, Serialize)]
pub struct CategoryFigures {
    /// Its questions.
    pub questions: usize,
    /// Its measures.
    #[serde(flatten)]
    pub measures: Measures,
}

/// Shares in percent by depth: turns, or tokens of the block.
#[derive(Debug, Serialize)]
pub struct Measures {
    /// Mean share of a question's evidence among the first k turns.
    pub recall: Means,
    /// Mean of the reciprocal rank of the first turn that is evidence.
    pub mrr: f64,
    /// Share of questions with all of their evidence among the first k turns: the memory coverage of Amory section 4.3.
    pub coverage: Means,
    /// Mean share of the space's text that is not among the first k turns: the context compression of Amory section 4.3.
    pub compression: Means,
    /// Share of questions with all of their evidence in the block as whole turns.
    pub coverage_tokens: Means,
    /// The same, a turn that is present as an excerpt counted.
    pub coverage_tokens_excerpt: Means,
}

/// Sums that become [`Measures`].
#[derive(Debug, Default, Clone)]
pub struct Sums {
    /// Ranked turns.
    pub ranked: Tally,
    /// Text that is not among the first turns.
    pub unused: Shares,
    /// Whole turns in blocks.
    pub whole: Shares,
    /// Turns and excerpts in blocks.
    pub excerpts: Shares,
}

impl Sums {
    /// The means.
    pub fn measures(&self) -> Measures {
        Measures {
            recall: self.ranked.recall.means(),
            mrr: self.ranked.mean_reciprocal_rank(),
            coverage: self.ranked.coverage.means(),
            compression: self.unused.means(),
            coverage_tokens: self.whole.means(),
            coverage_tokens_excerpt: self.excerpts.means(),
        }
    }
}

impl Report {
    /// A table a file, a line a method or category.
    pub fn table(&self) -> String {
        let files = self.files.iter().map(FileReport::table);
        let partial = self.partial.then(|| "stopped before its end".to_owned());
        files.chain(partial).collect::<Vec<_>>().join("\n")
    }
}

impl FileReport {
    /// How many of the conversations were measured, where some were not.
    fn measured(&self) -> String {
        match self.conversations_measured < self.conversations {
            true => format!("{} of ", self.conversations_measured),
            false => String::new(),
        }
    }

    fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "{}: {}{} conversations, {} turns, {} questions",
                self.file,
                self.measured(),
                self.conversations,
                self.turns,
                self.figures.questions
            ),
            format!(
                "{:<28}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}",
                "",
                "n",
                "r@1",
                "r@3",
                "r@10",
                "r@100",
                "cov@10",
                "comp@10",
                "cov@300t",
                "cov@1kt",
                "+excerpt"
            ),
        ];
        lines.extend(self.figures.lines(""));
        if let Some(pooled) = &self.pooled {
            lines.extend(pooled.lines("pooled "));
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl Figures {
    fn lines(&self, prefix: &str) -> Vec<String> {
        let mut lines = vec![self.all.line(&format!("{prefix}memfleet"), self.questions)];
        lines.extend(
            self.arms
                .iter()
                .map(|(name, arm)| arm.line(&format!("{prefix}{name}"), self.questions)),
        );
        lines.extend(self.by_category.iter().map(|(name, category)| {
            category
                .measures
                .line(&format!("{prefix}  {name}"), category.questions)
        }));
        let latency = self.latency_ms;
        lines.push(format!(
            "{prefix}latency ms: p50 {:.1}, p95 {:.1}, p99 {:.1}",
            latency.p50, latency.p95, latency.p99
        ));
        if let Some(rate) = self.derived_turns_per_second {
            lines.push(format!("{prefix}remembered and derived: {rate:.0} turns/s"));
        }
        lines
    }
}

impl Measures {
    fn line(&self, name: &str, questions: usize) -> String {
        let at = |means: &Means, depth: usize| means.get(&depth).copied().unwrap_or(0.0);
        format!(
            "{name:<28}{questions:>6}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>9.1}{:>9.1}{:>9.1}",
            at(&self.recall, 1),
            at(&self.recall, 3),
            at(&self.recall, 10),
            at(&self.recall, 100),
            at(&self.coverage, 10),
            at(&self.compression, 10),
            at(&self.coverage_tokens, 300),
            at(&self.coverage_tokens, 1000),
            at(&self.coverage_tokens_excerpt, 1000),
        )
    }
}
