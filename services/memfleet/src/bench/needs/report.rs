//! The report of `memfleet bench needs`. Shares are percentages.

use std::collections::BTreeMap;

use memfleet_domain::assembly::GateOutcome;
use memfleet_evaluation::understanding::LabelledPrompt;
use memfleet_ports::assembly::{Assembled, AssembledItem};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::super::percent;
use crate::corpus::Corpus;

/// Kinds of prompts, those that need memory first.
const KINDS: [&str; 6] = ["explicit", "implicit", "rule", "none", "near", "missing"];

/// Kinds of prompts that need none.
const NEEDLESS: [&str; 3] = ["none", "near", "missing"];

/// Thresholds that are compared.
const THRESHOLDS: [f32; 17] = [
    0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
];

/// Figures of a part of the corpus.
#[derive(Debug, Serialize)]
pub struct NeedsReport {
    /// Part of the corpus.
    part: String,
    /// The spaces alone, then with each data set.
    pub(super) memories: Vec<MemoryFigures>,
}

/// Figures of prompts whose memory is of one size.
#[derive(Debug, Serialize)]
pub(super) struct MemoryFigures {
    /// Memory that is asked, and prompts.
    pub(super) memory: String,
    /// Mean of the turns that are searched.
    pub(super) mean_turns: usize,
    pub(super) arms: Vec<ArmFigures>,
    pub(super) thresholds: ThresholdFigures,
}

/// Figures of a policy.
#[derive(Debug, Serialize)]
pub(super) struct ArmFigures {
    policy: String,
    kinds: BTreeMap<&'static str, KindFigures>,
}

/// Prompts of a kind under a policy.
#[derive(Debug, Default)]
struct KindFigures {
    prompts: usize,
    /// Prompts that got a block.
    injected: usize,
    /// Prompts whose block has a line that they need.
    served: usize,
    tokens: u64,
    /// Prompts that a gate skipped, by its name.
    skipped_by: BTreeMap<&'static str, usize>,
}

impl NeedsReport {
    pub(super) fn new(part: &str) -> Self {
        Self {
            part: part.to_owned(),
            memories: Vec::new(),
        }
    }

    /// All figures as text.
    pub fn table(&self) -> String {
        let memories = self.memories.iter().map(MemoryFigures::table);
        let head = format!("part {}", self.part);
        let tables: Vec<_> = std::iter::once(head).chain(memories).collect();
        tables.join("\n\n")
    }
}

impl ArmFigures {
    pub(super) fn new(policy: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            kinds: BTreeMap::new(),
        }
    }

    /// Adds what a prompt got.
    pub(super) fn add(&mut self, prompt: &LabelledPrompt, corpus: &Corpus, answer: &Assembled) {
        let figures = self.kinds.entry(prompt.kind.name()).or_default();
        let turns = answer.items.iter().filter_map(AssembledItem::turn);
        let places = turns.filter_map(|turn| corpus.places.get(&turn));
        let mut needed = places.filter(|place| prompt.needed.contains(place));
        figures.prompts += 1;
        figures.injected += usize::from(!answer.items.is_empty());
        figures.served += usize::from(needed.next().is_some());
        figures.tokens += u64::from(answer.tokens);
        let mut gates = answer.gates.iter();
        if let Some(gate) = gates.find(|gate| gate.outcome == GateOutcome::Skip) {
            *figures.skipped_by.entry(gate.gate.name()).or_default() += 1;
        }
    }

    fn rows(&self) -> impl Iterator<Item = String> {
        let kinds = KINDS
            .iter()
            .filter_map(|kind| self.kinds.get_key_value(kind));
        kinds.map(|(kind, it)| {
            let missed = match NEEDLESS.contains(kind) {
                true => "–".to_owned(),
                false => format!("{:.1}", it.missed()),
            };
            let skipped = it.skipped_by.iter();
            let skipped: Vec<_> = skipped
                .map(|(gate, count)| format!("{gate} {count}"))
                .collect();
            format!(
                "{kind:>10}{:>9}{:>10.1}{missed:>10}{:>9.0}  {}: {}",
                it.prompts,
                percent(it.injected, it.prompts),
                it.mean_tokens(),
                self.policy,
                skipped.join(", "),
            )
        })
    }
}

impl KindFigures {
    /// Share of the prompts whose block has none of the lines that they need.
    fn missed(&self) -> f64 {
        percent(self.prompts - self.served, self.prompts)
    }

    fn mean_tokens(&self) -> f64 {
        self.tokens as f64 / self.prompts.max(1) as f64
    }
}

impl Serialize for KindFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = json!({
            "prompts": self.prompts,
            "injected": percent(self.injected, self.prompts),
            "missed": self.missed(),
            "tokens": self.mean_tokens(),
            "skipped_by": self.skipped_by,
        });
        figures.serialize(serializer)
    }
}

/// Relevance of what was found, by which thresholds are chosen.
#[derive(Debug, Default)]
pub(super) struct ThresholdFigures {
    /// Kind of each prompt and the relevance of its best hit.
    best: Vec<(&'static str, f32)>,
    /// Relevance of the lines that each prompt needs, 0 where one was not found.
    needed: Vec<Vec<f32>>,
    /// Relevance of all other hits of prompts with need.
    others: Vec<f32>,
}

impl ThresholdFigures {
    /// Adds the relevance of what a prompt found, with places in the labelled space.
    pub(super) fn add(&mut self, prompt: &LabelledPrompt, found: &[(Option<usize>, f32)]) {
        let best = found.iter().map(|it| it.1).fold(0.0, f32::max);
        self.best.push((prompt.kind.name(), best));
        if !prompt.kind.needs_memory() {
            return;
        }
        let is_needed = |place: Option<usize>| place.is_some_and(|it| prompt.needed.contains(&it));
        let of = |place: &usize| {
            let same = found.iter().filter(|it| it.0 == Some(*place));
            same.map(|it| it.1).fold(0.0, f32::max)
        };
        self.needed.push(prompt.needed.iter().map(of).collect());
        let others = found.iter().filter(|it| !is_needed(it.0));
        self.others.extend(others.map(|it| it.1));
    }

    fn row(&self, threshold: f32) -> ThresholdRow {
        let above = |kinds: &[&str]| {
            let prompts = self.best.iter().filter(|it| kinds.contains(&it.0));
            let above = prompts.clone().filter(|it| it.1 >= threshold).count();
            percent(above, prompts.count())
        };
        let is_kept = |relevance: &f32| *relevance >= threshold;
        let some = self.needed.iter().filter(|it| it.iter().any(is_kept));
        let all = self.needed.iter().filter(|it| it.iter().all(is_kept));
        let others = self.others.iter().filter(|it| is_kept(it)).count();
        let needing = self.needed.len();
        let [explicit, implicit, rule] = [0, 1, 2].map(|at| 100.0 - above(&KINDS[at..=at]));
        let [none, near, missing] = [0, 1, 2].map(|at| above(&NEEDLESS[at..=at]));
        ThresholdRow {
            threshold,
            skipped: BTreeMap::from([
                ("explicit", explicit),
                ("implicit", implicit),
                ("rule", rule),
            ]),
            needless: BTreeMap::from([("none", none), ("near", near), ("missing", missing)]),
            some_needed: percent(some.count(), needing),
            all_needed: percent(all.count(), needing),
            others: others as f64 / needing.max(1) as f64,
        }
    }
}

impl Serialize for ThresholdFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        THRESHOLDS
            .map(|threshold| self.row(threshold))
            .serialize(serializer)
    }
}

/// Outcome of one threshold.
#[derive(Debug, Serialize)]
struct ThresholdRow {
    threshold: f32,
    /// On the best hit: share of the prompts with need that get no block, by kind.
    skipped: BTreeMap<&'static str, f64>,
    /// On the best hit: share of the prompts without need that get a block, by kind.
    needless: BTreeMap<&'static str, f64>,
    /// On each hit: share of the prompts with need of whose needed lines one stays.
    some_needed: f64,
    /// On each hit: share of the prompts with need whose needed lines all stay.
    all_needed: f64,
    /// On each hit: mean of other lines that stay with a prompt with need.
    others: f64,
}

impl MemoryFigures {
    fn table(&self) -> String {
        let (memory, turns) = (&self.memory, self.mean_turns);
        let head = format!(
            "{memory}: {turns} turns\n{:>10}{:>9}{:>10}{:>10}{:>9}  policy: skipped by",
            "kind", "prompts", "block %", "missed %", "tokens"
        );
        let middle = format!(
            "{:>10}{:>27}{:>27}{:>24}\n{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}",
            "",
            "best: no block %",
            "best: needless block %",
            "each: needed %, others",
            "threshold",
            "explicit",
            "implicit",
            "rule",
            "none",
            "near",
            "missing",
            "some",
            "all",
            ""
        );
        let rows = THRESHOLDS.map(|threshold| {
            let row = self.thresholds.row(threshold);
            let of = |shares: &BTreeMap<&str, f64>, kinds: &[&str]| {
                let shares = kinds.iter().map(|kind| format!("{:>9.1}", shares[kind]));
                shares.collect::<Vec<_>>().concat()
            };
            format!(
                "{threshold:>10}{}{}{:>8.1}{:>8.1}{:>8.1}",
                of(&row.skipped, &KINDS[..3]),
                of(&row.needless, &NEEDLESS),
                row.some_needed,
                row.all_needed,
                row.others
            )
        });
        let arms = self.arms.iter().flat_map(ArmFigures::rows);
        let lines = std::iter::once(head)
            .chain(arms)
            .chain([middle])
            .chain(rows);
        lines.collect::<Vec<_>>().join("\n")
    }
}
