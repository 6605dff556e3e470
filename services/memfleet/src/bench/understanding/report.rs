//! The report of `memfleet bench understanding`: shares in percent, agreement as Cohen's kappa.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::time::Duration;

use memfleet_domain::statement::{MentionedName, RelationScores, Statement, StatementRelation};
use memfleet_evaluation::understanding::{
    LabelledPrompt, LabelledStatement, LineJudgement, MarkedName,
};
use serde::{Serialize, Serializer};
use serde_json::json;

/// Thresholds of the probability of a change.
const THRESHOLDS: [f32; 6] = [0.5, 0.8, 0.9, 0.95, 0.98, 0.99];

/// Thresholds of the probability of a good line.
const LINE_THRESHOLDS: [f32; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];

/// Shares of needed prompts that a threshold misses.
const MISSED: [f64; 4] = [0.02, 0.04, 0.08, 0.15];

/// Kinds of prompts that need no memory.
const NEEDLESS: [&str; 3] = ["none", "near", "missing"];

/// Numbers of first lines among which a needed one may be.
const TOPS: [usize; 3] = [1, 3, 10];

/// Figures of a part of the corpus.
#[derive(Debug, Serialize)]
pub struct UnderstandingReport {
    /// Part of the corpus.
    pub part: String,
    /// Statements of scenarios.
    pub statements: StatementFigures,
    /// Relations in scenarios.
    pub relations: RelationFigures,
    /// Relations in contrast sets.
    pub contrast: RelationFigures,
    /// Relations in groups of pairs.
    pub groups: RelationFigures,
    /// Names of turns.
    pub names: NameFigures,
    /// Judged lines.
    pub lines: LineFigures,
    /// Lines of long talks.
    pub talks: LineFigures,
    /// Needs of prompts.
    pub needs: NeedFigures,
    /// Tenses of questions.
    pub tenses: TenseFigures,
}

/// Pairs of a label and what was read.
#[derive(Debug, Default)]
struct Agreement(BTreeMap<(&'static str, &'static str), usize>);

impl Agreement {
    fn add(&mut self, labelled: &'static str, read: &'static str) {
        *self.0.entry((labelled, read)).or_default() += 1;
    }

    fn count(&self) -> usize {
        self.0.values().sum()
    }

    fn same(&self) -> f64 {
        let same = self.0.iter().filter(|((one, other), _)| one == other);
        share(same.map(|(_, count)| count).sum(), self.count())
    }

    fn kappa(&self) -> f64 {
        let total = self.count().max(1) as f64;
        let (mut labelled, mut read) = (BTreeMap::new(), BTreeMap::new());
        for ((one, other), count) in &self.0 {
            *labelled.entry(one).or_insert(0.0) += *count as f64;
            *read.entry(other).or_insert(0.0) += *count as f64;
        }
        let products = labelled
            .iter()
            .map(|(name, count)| count * read.get(name).unwrap_or(&0.0));
        let chance = products.sum::<f64>() / total / total;
        (self.same() - chance) / (1.0 - chance).max(f64::EPSILON)
    }
}

impl Serialize for Agreement {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = BTreeMap::from([("same", self.same()), ("kappa", self.kappa())]);
        figures.serialize(serializer)
    }
}

/// Time that items took.
#[derive(Debug, Default, Serialize)]
struct Pace {
    items: usize,
    seconds: f64,
}

impl Pace {
    fn add(&mut self, items: usize, took: Duration) {
        self.items += items;
        self.seconds += took.as_secs_f64();
    }

    fn a_second(&self) -> f64 {
        self.items as f64 / self.seconds.max(f64::EPSILON)
    }
}

/// Read statements beside labelled ones.
#[derive(Debug, Default, Serialize)]
pub struct StatementFigures {
    kind: Agreement,
    owner: Agreement,
    negated: Agreement,
    keep: Agreement,
    starts: usize,
    starts_read: usize,
    starts_right: usize,
    pace: Pace,
}

impl StatementFigures {
    pub fn took(&mut self, turns: usize, took: Duration) {
        self.pace.add(turns, took);
    }

    /// Adds a labelled statement and the read one that shares most with it.
    pub fn compare(&mut self, labelled: &LabelledStatement, read: &Statement) {
        let flag = |is_set: bool| if is_set { "yes" } else { "no" };
        self.kind.add(labelled.kind.name(), read.kind.name());
        self.owner
            .add(labelled.owner_class().name(), read.owner.name());
        let negated = flag(labelled.details.is_negated);
        self.negated.add(negated, flag(read.negated > 0.5));
        let keep = flag(labelled.details.is_kept);
        self.keep.add(keep, flag(read.keep > 0.5));
    }

    /// Counts where labelled and read statements of a turn start.
    pub fn compare_starts(&mut self, labelled: &[Range<usize>], read: &[Statement]) {
        self.starts += labelled.len();
        self.starts_read += read.len();
        let is_right = |span: &&Range<usize>| read.iter().any(|it| it.bytes.start == span.start);
        self.starts_right += labelled.iter().filter(is_right).count();
    }
}

/// Read relations beside labelled ones.
#[derive(Debug, Default)]
pub struct RelationFigures {
    relation: Agreement,
    /// Labelled pairs: is it a change, and the probability that was read.
    changes: Vec<(bool, f32)>,
    /// Probability of a change for each pair without a label.
    unlisted: Vec<f32>,
    pace: Pace,
}

impl RelationFigures {
    pub fn took(&mut self, pairs: usize, took: Duration) {
        self.pace.add(pairs, took);
    }

    pub fn add(&mut self, labelled: Option<StatementRelation>, read: &RelationScores) {
        let Some(labelled) = labelled else {
            return self.unlisted.push(read.change());
        };
        self.relation.add(labelled.name(), read.likeliest().name());
        self.changes.push((labelled.is_change(), read.change()));
    }

    /// Shares above a threshold of changes, of other labelled pairs and of unlisted pairs.
    fn above(&self, threshold: f32) -> [f64; 3] {
        let of = |is_change: bool| {
            let those = self.changes.iter().filter(|it| it.0 == is_change);
            let above = those.clone().filter(|it| it.1 > threshold).count();
            share(above, those.count())
        };
        let unlisted = self.unlisted.iter().filter(|it| **it > threshold).count();
        [of(true), of(false), share(unlisted, self.unlisted.len())]
    }
}

impl Serialize for RelationFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let thresholds = THRESHOLDS.map(|threshold| {
            let [found, other_labelled, others] = self.above(threshold);
            json!({ "above": threshold, "found": found, "other_labelled": other_labelled, "others": others })
        });
        let figures = json!({
            "labelled": self.changes.len(),
            "others": self.unlisted.len(),
            "relation": &self.relation,
            "changes": thresholds,
            "pace": &self.pace,
        });
        figures.serialize(serializer)
    }
}

/// Needs of prompts: the best line's log odds beside the label.
#[derive(Debug, Default)]
pub struct NeedFigures {
    /// Kind of the prompt, whether it needs memory, and its best line's log odds.
    prompts: Vec<(&'static str, bool, f32)>,
    /// By kind, places of the first needed line in the order of odds.
    places: BTreeMap<&'static str, Vec<usize>>,
    pace: Pace,
}

impl NeedFigures {
    pub fn took(&mut self, prompts: usize, took: Duration) {
        self.pace.add(prompts, took);
    }

    /// Adds a prompt and the log odds of every line.
    pub fn add(&mut self, prompt: &LabelledPrompt, odds: &[f32]) {
        let kind = prompt.kind.name();
        let best = odds.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.prompts.push((kind, prompt.kind.needs_memory(), best));
        let place = |line: &usize| odds.iter().filter(|it| **it > odds[*line]).count();
        if let Some(first) = prompt.needed.iter().map(place).min() {
            self.places.entry(kind).or_default().push(first);
        }
    }

    /// The log odds that this share of the prompts with need lie below.
    fn threshold(&self, missed: f64) -> f32 {
        let needed = self.prompts.iter().filter(|it| it.1).map(|it| it.2);
        let mut needed: Vec<f32> = needed.collect();
        needed.sort_by(f32::total_cmp);
        let place = (missed * needed.len() as f64) as usize;
        needed.get(place).copied().unwrap_or_default()
    }

    fn above(&self, kind: &str, threshold: f32) -> f64 {
        let of_kind = self.prompts.iter().filter(|it| it.0 == kind);
        let above = of_kind.clone().filter(|it| it.2 >= threshold).count();
        share(above, of_kind.count())
    }
}

impl Serialize for NeedFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let missed = MISSED.map(|missed| {
            let threshold = self.threshold(missed);
            let [none, near, missing] = NEEDLESS.map(|kind| self.above(kind, threshold));
            json!({ "missed": missed, "log_odds": threshold, "none": none, "near": near, "missing": missing })
        });
        let first = self.places.iter().map(|(kind, places)| {
            let shares = TOPS.map(|top| within(places, top));
            (*kind, shares)
        });
        let figures = json!({
            "prompts": self.prompts.len(),
            "first_needed_among_1_3_10": first.collect::<BTreeMap<_, _>>(),
            "needless": missed,
            "pace": &self.pace,
        });
        figures.serialize(serializer)
    }
}

/// Names of turns as labelled and as read.
#[derive(Debug, Default)]
pub struct NameFigures {
    labelled: usize,
    read: usize,
    /// Names that are read with the same bytes.
    right: usize,
    /// Names that are read with the same bytes and the same kind.
    right_kind: usize,
}

impl NameFigures {
    /// Adds the names of a turn.
    pub fn compare(&mut self, labelled: &[MarkedName], read: &[MentionedName]) {
        self.labelled += labelled.len();
        self.read += read.len();
        for name in labelled {
            let same = read.iter().find(|it| it.bytes == name.bytes);
            self.right += usize::from(same.is_some());
            self.right_kind += usize::from(same.is_some_and(|it| it.kind == name.kind));
        }
    }

    /// Precision and recall.
    fn found(&self, right: usize) -> [f64; 2] {
        [share(right, self.read), share(right, self.labelled)]
    }
}

impl Serialize for NameFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = |right| {
            let [precision, recall] = self.found(right);
            json!({ "precision": precision, "recall": recall })
        };
        let figures = json!({
            "names": self.labelled,
            "with_kind": found(self.right_kind),
            "without_kind": found(self.right),
        });
        figures.serialize(serializer)
    }
}

/// Judged sentences: is one a good line, and the probability of the line that was read there.
#[derive(Debug, Default)]
pub struct LineFigures(Vec<(bool, f32)>);

impl LineFigures {
    /// Adds a judged sentence of a turn with these statements.
    pub fn add(&mut self, judged: LineJudgement, sentence: &Range<usize>, read: &[Statement]) {
        let lines = read.iter().filter_map(|it| it.line.as_ref());
        let inside = lines.filter(|line| sentence.contains(&line.bytes.start));
        let best = inside.map(|line| line.probability).fold(0.0, f32::max);
        self.0.push((judged.is_line(), best));
    }

    /// Share of the good ones among those above a threshold, and of those above it among the good.
    fn above(&self, threshold: f32) -> [f64; 2] {
        let taken = self.0.iter().filter(|it| it.1 > threshold);
        let good = taken.clone().filter(|it| it.0).count();
        let all_good = self.0.iter().filter(|it| it.0).count();
        [share(good, taken.count()), share(good, all_good)]
    }
}

impl Serialize for LineFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let thresholds = LINE_THRESHOLDS.map(|threshold| {
            let [good, found] = self.above(threshold);
            json!({ "above": threshold, "good": good, "found": found })
        });
        let figures = json!({ "sentences": self.0.len(), "thresholds": thresholds });
        figures.serialize(serializer)
    }
}

/// Tenses of questions as labelled and as read.
#[derive(Debug, Default)]
pub struct TenseFigures(Agreement);

impl TenseFigures {
    pub fn add(&mut self, labelled: &'static str, read: &'static str) {
        self.0.add(labelled, read);
    }

    /// Share of the questions of each tense that are read as such.
    fn right(&self) -> BTreeMap<&'static str, f64> {
        let pairs = &self.0.0;
        let labelled = pairs.keys().map(|(labelled, _)| *labelled);
        let found = labelled.map(|tense| {
            let of_tense = pairs.iter().filter(|((one, _), _)| *one == tense);
            let count = of_tense.map(|(_, count)| count).sum();
            let right = pairs.get(&(tense, tense)).copied().unwrap_or_default();
            (tense, share(right, count))
        });
        found.collect()
    }
}

impl Serialize for TenseFigures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = json!({
            "questions": self.0.count(),
            "agreement": &self.0,
            "right": self.right(),
        });
        figures.serialize(serializer)
    }
}

/// Share of places among the first.
fn within(places: &[usize], top: usize) -> f64 {
    let found = places.iter().filter(|place| **place < top).count();
    share(found, places.len())
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

fn share(part: usize, all: usize) -> f64 {
    part as f64 / all.max(1) as f64
}

impl UnderstandingReport {
    /// All figures as text.
    pub fn table(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("writing to a string succeeds");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let statements = &self.statements;
        writeln!(
            out,
            "{} statements of part {}",
            statements.kind.count(),
            self.part
        )?;
        let rows = [
            ("kind", &statements.kind),
            ("owner", &statements.owner),
            ("negated", &statements.negated),
            ("keep", &statements.keep),
        ];
        for (name, agreement) in rows {
            let (same, kappa) = (percent(agreement.same()), agreement.kappa());
            writeln!(out, "  {name:<8} same {same} %, kappa {kappa:.2}")?;
        }
        let right = statements.starts_right;
        let (precision, recall) = (
            share(right, statements.starts_read),
            share(right, statements.starts),
        );
        writeln!(
            out,
            "  starts   precision {} %, recall {} %",
            percent(precision),
            percent(recall)
        )?;
        writeln!(out, "  {:.0} turns a second", statements.pace.a_second())?;
        for (name, figures) in [
            ("scenarios", &self.relations),
            ("contrast sets", &self.contrast),
            ("groups", &self.groups),
        ] {
            write_relations(out, name, figures)?;
        }
        self.write_names(out)?;
        self.write_lines(out)?;
        self.write_needs(out)?;
        let right = self.tenses.right().into_iter();
        let right = right.map(|(tense, share)| format!("{tense} {} %", percent(share)));
        writeln!(
            out,
            "{} questions by tense: read as labelled {}",
            self.tenses.0.count(),
            right.collect::<Vec<_>>().join(", ")
        )
    }

    fn write_names(&self, out: &mut String) -> std::fmt::Result {
        let names = &self.names;
        writeln!(out, "{} names", names.labelled)?;
        for (what, right) in [
            ("with their kind", names.right_kind),
            ("without", names.right),
        ] {
            let [precision, recall] = names.found(right).map(percent);
            writeln!(out, "  {what}: precision {precision} %, recall {recall} %")?;
        }
        Ok(())
    }

    fn write_lines(&self, out: &mut String) -> std::fmt::Result {
        for (set, lines) in [("scenarios", &self.lines), ("talks", &self.talks)] {
            writeln!(out, "{} judged sentences of {set}", lines.0.len())?;
            for threshold in LINE_THRESHOLDS {
                let [precision, recall] = lines.above(threshold).map(percent);
                writeln!(
                    out,
                    "  line above {threshold}: good {precision} %, of the good ones {recall} %"
                )?;
            }
        }
        Ok(())
    }

    fn write_needs(&self, out: &mut String) -> std::fmt::Result {
        let needs = &self.needs;
        writeln!(
            out,
            "{} prompts, {:.0} a second",
            needs.prompts.len(),
            needs.pace.a_second()
        )?;
        for (kind, places) in &needs.places {
            let [first, third, tenth] = TOPS.map(|top| percent(within(places, top)));
            writeln!(
                out,
                "  {kind:<8} first needed line among 1/3/10: {first}/{third}/{tenth} %"
            )?;
        }
        for missed in MISSED {
            let threshold = needs.threshold(missed);
            let [none, near, missing] = NEEDLESS.map(|kind| percent(needs.above(kind, threshold)));
            writeln!(
                out,
                "  {} % missed (log odds {threshold:.1}): needless none {none} %, near {near} %, missing {missing} %",
                percent(missed)
            )?;
        }
        Ok(())
    }
}

fn write_relations(out: &mut String, name: &str, figures: &RelationFigures) -> std::fmt::Result {
    let relation = &figures.relation;
    let (labelled, unlisted) = (relation.count(), figures.unlisted.len());
    writeln!(
        out,
        "{labelled} labelled and {unlisted} other pairs of {name}, {:.0} pairs of turns a second",
        figures.pace.a_second()
    )?;
    writeln!(
        out,
        "  relation same {} %, kappa {:.2}",
        percent(relation.same()),
        relation.kappa()
    )?;
    for threshold in THRESHOLDS {
        let [found, false_listed, false_unlisted] = figures.above(threshold);
        writeln!(
            out,
            "  change above {threshold}: found {} %, of other labelled pairs {} %, of others {:.3} %",
            percent(found),
            percent(false_listed),
            100.0 * false_unlisted
        )?;
    }
    Ok(())
}
