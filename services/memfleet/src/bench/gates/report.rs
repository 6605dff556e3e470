//! The report of `memfleet bench gates`: shares in percent, durations in milliseconds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use memfleet_domain::assembly::GateOutcome;
use memfleet_gates::labelled::{Expected, Labelled};
use memfleet_gates::routing::Routing;
use memfleet_gates::rules::Judgement;
use serde::Serialize;

use super::super::percent;
use crate::bench::latency::Latency;

/// An utterance and what the gates said of it.
pub struct Judged {
    pub line: Labelled,
    pub rules: Judgement,
    /// None where gate 1 decided.
    pub routing: Option<Routing>,
    pub by_rules: Duration,
    pub by_both: Duration,
}

impl Judged {
    fn by_rules_skipped(&self) -> bool {
        self.rules.outcome == GateOutcome::Skip
    }

    fn skipped(&self) -> bool {
        let is_skip = |routing: &Routing| routing.outcome == GateOutcome::Skip;
        self.by_rules_skipped() || self.routing.as_ref().is_some_and(is_skip)
    }

    fn is_wrong(&self) -> bool {
        match self.line.expected {
            Expected::Ask => self.skipped(),
            Expected::Skip => !self.skipped(),
            Expected::Either => false,
        }
    }
}

/// All files.
#[derive(Debug, Serialize)]
pub struct Report {
    pub files: Vec<FileReport>,
}

/// One file.
#[derive(Debug, Serialize)]
pub struct FileReport {
    file: String,
    utterances: usize,
    rules: Figures,
    both: Figures,
    by_kind: BTreeMap<String, KindFigures>,
    by_language: BTreeMap<String, Figures>,
    latency_rules_ms: Latency,
    latency_both_ms: Latency,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<Wrong>,
}

/// What the brief figures are; `general` counts in neither.
#[derive(Debug, Serialize)]
struct Figures {
    need_memory: usize,
    false_skips: usize,
    false_skips_percent: f64,
    small_talk: usize,
    wasted: usize,
    wasted_percent: f64,
}

/// What became of a kind.
#[derive(Debug, Default, Serialize)]
struct KindFigures {
    utterances: usize,
    skipped_by_rules: usize,
    forced: usize,
    skipped_by_routing: usize,
    abstained: usize,
}

/// An utterance that was judged wrongly.
#[derive(Debug, Serialize)]
struct Wrong {
    kind: String,
    text: String,
    rule: Option<String>,
    memory: Option<f32>,
    none: Option<f32>,
}

impl FileReport {
    /// Counts; texts go into the report only when they are to be shown.
    pub fn of(file: String, judged: &[Judged], show: bool) -> Self {
        let durations = |of: fn(&Judged) -> Duration| judged.iter().map(of).collect();
        let wrong = judged.iter().filter(|it| show && it.is_wrong());
        Self {
            file,
            utterances: judged.len(),
            rules: Figures::of(judged.iter(), Judged::by_rules_skipped),
            both: Figures::of(judged.iter(), Judged::skipped),
            by_kind: by_kind(judged),
            by_language: by_language(judged),
            latency_rules_ms: Latency::of(durations(|it| it.by_rules)),
            latency_both_ms: Latency::of(durations(|it| it.by_both)),
            wrong: wrong.map(Wrong::of).collect(),
        }
    }
}

impl Figures {
    fn of<'a>(
        judged: impl Iterator<Item = &'a Judged> + Clone,
        skipped: fn(&Judged) -> bool,
    ) -> Self {
        let asks = judged
            .clone()
            .filter(|it| it.line.expected == Expected::Ask);
        let idle = judged.filter(|it| it.line.kind == "small_talk");
        let (need_memory, small_talk) = (asks.clone().count(), idle.clone().count());
        let false_skips = asks.filter(|it| skipped(it)).count();
        let wasted = idle.filter(|it| !skipped(it)).count();
        Self {
            need_memory,
            false_skips,
            false_skips_percent: percent(false_skips, need_memory),
            small_talk,
            wasted,
            wasted_percent: percent(wasted, small_talk),
        }
    }
}

impl Wrong {
    fn of(judged: &Judged) -> Self {
        let similarity = judged
            .routing
            .as_ref()
            .and_then(|routing| routing.similarity);
        Self {
            kind: judged.line.kind.clone(),
            text: judged.line.text.clone(),
            rule: judged.rules.rule.clone(),
            memory: similarity.map(|it| it.memory),
            none: similarity.map(|it| it.none),
        }
    }
}

fn by_kind(judged: &[Judged]) -> BTreeMap<String, KindFigures> {
    let mut kinds = BTreeMap::<_, KindFigures>::new();
    for it in judged {
        let figures = kinds.entry(it.line.kind.clone()).or_default();
        let routing = it.routing.as_ref().map(|routing| routing.outcome);
        figures.utterances += 1;
        figures.skipped_by_rules += usize::from(it.by_rules_skipped());
        figures.forced += usize::from(it.rules.outcome == GateOutcome::Force);
        figures.skipped_by_routing += usize::from(routing == Some(GateOutcome::Skip));
        figures.abstained += usize::from(routing == Some(GateOutcome::Abstain));
    }
    kinds
}

fn by_language(judged: &[Judged]) -> BTreeMap<String, Figures> {
    let mut languages = BTreeMap::new();
    for it in judged {
        let language = &it.line.language;
        if !languages.contains_key(language) {
            let of_it = judged
                .iter()
                .filter(|other| other.line.language == *language);
            languages.insert(language.clone(), Figures::of(of_it, Judged::skipped));
        }
    }
    languages
}

impl Report {
    /// For people.
    pub fn table(&self) -> String {
        self.files
            .iter()
            .map(FileReport::table)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl FileReport {
    fn table(&self) -> String {
        let mut out = format!("{}: {} utterances\n", self.file, self.utterances);
        let figures = [("rules", &self.rules), ("both gates", &self.both)].into_iter();
        let languages = self
            .by_language
            .iter()
            .map(|(name, it)| (name.as_str(), it));
        out.push_str("             false skips            wasted on small talk\n");
        for (name, it) in figures.chain(languages) {
            let false_skips = format!(
                "{}/{} {:.1} %",
                it.false_skips, it.need_memory, it.false_skips_percent
            );
            let wasted = format!("{}/{} {:.1} %", it.wasted, it.small_talk, it.wasted_percent);
            line(
                &mut out,
                format_args!("{name:<12} {false_skips:<22} {wasted}"),
            );
        }
        out.push_str("kind         all  skipped by rules  forced  skipped by routing  abstained\n");
        for (name, it) in &self.by_kind {
            let KindFigures {
                utterances,
                skipped_by_rules,
                forced,
                skipped_by_routing,
                abstained,
            } = it;
            line(
                &mut out,
                format_args!(
                    "{name:<11} {utterances:>4} {skipped_by_rules:>17} {forced:>7} {skipped_by_routing:>19} {abstained:>10}"
                ),
            );
        }
        for (name, it) in [
            ("gate 1", self.latency_rules_ms),
            ("gates 1 and 2", self.latency_both_ms),
        ] {
            line(
                &mut out,
                format_args!("{name}: p50 {:.3} ms, p99 {:.3} ms", it.p50, it.p99),
            );
        }
        for it in &self.wrong {
            line(
                &mut out,
                format_args!(
                    "{:<11} {:?} {:?} {:?} {:?}",
                    it.kind, it.text, it.rule, it.memory, it.none
                ),
            );
        }
        out
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}
