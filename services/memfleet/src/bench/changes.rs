//! `memfleet bench changes`: whether the value that holds is found before the one that it ended, on
//! scenarios of the understanding corpus, each in a space of its own; and what was right before the
//! agents reordered and marked it, and wrong after.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use chrono::NaiveDateTime;
use clap::Args;
use memfleet_evaluation::understanding::{
    LabelledScenario, QuestionTense, ScenarioQuestion, ScenarioTurn, UnderstandingCorpus,
};
use memfleet_evaluation::{Conversation, Role, Turn};
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Hit;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::retrieval::progress;
use super::{Bench, percent, query};
use crate::config::{Config, FactSource};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// Hits that are looked at.
const DEPTH: u32 = 10;

/// Agents that facts pass.
pub(super) const STAGES: [Stage; 3] = [Stage::Derive, Stage::Judge, Stage::Settle];

/// Scenarios of the understanding corpus.
#[derive(Debug, Args)]
pub(super) struct ScenarioArgs {
    /// Folder of the corpus
    #[arg(default_value = "crates/evaluation/data/understanding")]
    corpus: PathBuf,
    /// Part of the corpus
    #[arg(long, default_value = "test")]
    pub(super) part: String,
    /// Take one scenario in so many
    #[arg(long, default_value = "1")]
    every: NonZeroUsize,
}

impl ScenarioArgs {
    /// The scenarios.
    pub(super) fn scenarios(&self) -> Result<Vec<LabelledScenario>, BoxError> {
        let corpus = UnderstandingCorpus::load(&self.corpus)?;
        let writers = corpus
            .scenarios
            .into_iter()
            .filter(|it| it.part == self.part);
        let scenarios = writers.flat_map(|writer| writer.items);
        Ok(scenarios.step_by(self.every.get()).collect())
    }
}

/// Remembers scenarios, each in a space of its own, and waits until they are derived.
pub(super) async fn remembered(
    bench: &Bench,
    scenarios: &[LabelledScenario],
) -> Result<Vec<Corpus>, BoxError> {
    let mut corpora = Vec::with_capacity(scenarios.len());
    let bar = progress("remembering", scenarios.len());
    for (number, scenario) in scenarios.iter().enumerate() {
        let (name, told) = (format!("scenario-{number}"), [conversation(scenario)]);
        corpora.push(Corpus::remember(&*bench.node.gateway, &name, &told).await?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    bench.derived(&STAGES).await?;
    Ok(corpora)
}

/// Arguments.
#[derive(Debug, Args)]
pub struct ChangesArgs {
    #[command(flatten)]
    scenarios: ScenarioArgs,
    /// Name the statements that were ended, and the questions that were right before and wrong
    /// after
    #[arg(long)]
    list: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Figures of one part. Shares are percentages.
#[derive(Debug, Serialize)]
pub struct ChangesReport {
    part: String,
    scenarios: usize,
    turns: usize,
    /// Statements that became facts.
    facts: usize,
    /// Statements that were ended.
    ended: usize,
    /// Questions about the present, of scenarios with a change and without one.
    now: BTreeMap<&'static str, OrderFigures>,
    /// Questions about the present by kind of scenario.
    by_kind: BTreeMap<&'static str, OrderFigures>,
    /// Questions about the present whose answer nothing changed, of scenarios with a change and
    /// without one: those whose first hit states it.
    unchanged: BTreeMap<&'static str, OrderFigures>,
    /// Questions about an earlier value, about all values, and as of a date.
    past: BTreeMap<&'static str, OrderFigures>,
    /// Stale turns among the hits of questions about the present.
    stale_hits: usize,
    /// Share of these that carry a mark.
    stale_marked: f64,
    /// Right turns among the same hits.
    right_hits: usize,
    /// Share of these that carry a mark.
    right_marked: f64,
    /// Statements that were ended, and by which; with `--list`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    list: Vec<String>,
    /// Questions that were right as found and wrong as recalled; with `--list`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<String>,
}

/// Questions whose first hit with an answer is right, as found and as recalled.
#[derive(Debug, Default, Clone, Serialize)]
pub struct OrderFigures {
    questions: usize,
    found: usize,
    recalled: usize,
    /// Wrong as found, right as recalled.
    mended: usize,
    /// Right as found, wrong as recalled.
    broken: usize,
}

impl OrderFigures {
    fn add(&mut self, found: bool, recalled: bool) {
        self.questions += 1;
        self.found += usize::from(found);
        self.recalled += usize::from(recalled);
        self.mended += usize::from(!found && recalled);
        self.broken += usize::from(found && !recalled);
    }

    fn row(&self, name: &str) -> String {
        let share = |count| percent(count, self.questions);
        format!(
            "{name:16} {:5}  {:5.1} to {:5.1} %  mended {:4.1} %  broken {:4.1} %",
            self.questions,
            share(self.found),
            share(self.recalled),
            share(self.mended),
            share(self.broken)
        )
    }
}

impl ChangesReport {
    /// Lines for people.
    pub fn table(&self) -> String {
        let mut lines = vec![
            format!(
                "{} scenarios, {} turns, {} statements kept, {} ended",
                self.scenarios, self.turns, self.facts, self.ended
            ),
            "questions        number  right first, as found and as recalled".to_owned(),
        ];
        let groups = [&self.now, &self.past, &self.by_kind].into_iter().flatten();
        lines.extend(groups.map(|(name, figures)| figures.row(name)));
        lines.push("what did not change: first hit right, as found and as recalled".to_owned());
        lines.extend(self.unchanged.iter().map(|(name, it)| it.row(name)));
        lines.push(format!(
            "marked: {:.1} % of {} stale hits, {:.1} % of {} right ones",
            self.stale_marked, self.stale_hits, self.right_marked, self.right_hits
        ));
        lines.extend(self.list.iter().cloned());
        lines.extend(self.broken.iter().map(|it| format!("broken: {it}")));
        lines.join("\n")
    }
}

/// Measures one part of the corpus.
pub async fn measure(
    args: &ChangesArgs,
    models: &ConfiguredModels,
) -> Result<ChangesReport, BoxError> {
    let scenarios = args.scenarios.scenarios()?;
    let configure = |config: &mut Config| config.constructor.facts = FactSource::Statements;
    let bench = Bench::start_configured(models, &STAGES, configure).await?;
    let gateway = &bench.node.gateway;
    let corpora = remembered(&bench, &scenarios).await?;
    let mut count = Count::default();
    let bar = progress("asking", scenarios.len());
    for (scenario, corpus) in scenarios.iter().zip(&corpora) {
        count.facts(&bench, scenario, corpus).await?;
        for question in &scenario.questions {
            let query = query(&corpus.space, question.text.clone(), DEPTH);
            let found = gateway.retriever.search(&call(), &query).await?;
            let request = RecallRequest::from(query);
            let recalled = gateway.recall(&call(), request).await?;
            count.add(scenario, question, corpus, [&found.hits, &recalled.hits]);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    bench.stop().await;
    let ended = count.ended.len();
    let listed = |list| match args.list {
        true => list,
        false => Vec::new(),
    };
    Ok(ChangesReport {
        part: args.scenarios.part.clone(),
        scenarios: scenarios.len(),
        turns: scenarios.iter().map(|it| it.turns.len()).sum(),
        facts: count.facts,
        ended,
        now: count.now,
        by_kind: count.by_kind,
        unchanged: count.unchanged,
        past: count.past,
        stale_hits: count.stale[0],
        stale_marked: percent(count.stale[1], count.stale[0]),
        right_hits: count.right[0],
        right_marked: percent(count.right[1], count.right[0]),
        list: listed(count.ended),
        broken: listed(count.broken),
    })
}

/// Counts of a measurement under way.
#[derive(Default)]
struct Count {
    facts: usize,
    ended: Vec<String>,
    now: BTreeMap<&'static str, OrderFigures>,
    by_kind: BTreeMap<&'static str, OrderFigures>,
    unchanged: BTreeMap<&'static str, OrderFigures>,
    past: BTreeMap<&'static str, OrderFigures>,
    /// Questions that were right before and wrong after.
    broken: Vec<String>,
    /// Hits, and those with a mark.
    stale: [usize; 2],
    right: [usize; 2],
}

impl Count {
    /// Facts of a scenario, and those that were ended.
    async fn facts(
        &mut self,
        bench: &Bench,
        scenario: &LabelledScenario,
        corpus: &Corpus,
    ) -> Result<(), BoxError> {
        let scope = call().scope(&corpus.space);
        let question = Question {
            withdrawn: true,
            ..Question::default()
        };
        let knowledge = &bench.node.gateway.knowledge;
        let facts = knowledge.all_derivations(&scope, &question).await?;
        self.facts += facts.len();
        for fact in &facts {
            let by = fact.succeeded_by;
            let by = by.and_then(|by| facts.iter().find(|fact| fact.id == by));
            if let Some(by) = by {
                self.ended.push(format!(
                    "{} {}: {} => {}",
                    scenario.kind,
                    scenario.number,
                    fact.body.found_by(),
                    by.body.found_by()
                ));
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        scenario: &LabelledScenario,
        question: &ScenarioQuestion,
        corpus: &Corpus,
        [found, recalled]: [&[Hit]; 2],
    ) {
        let place = |hit: &Hit| corpus.places.get(&hit.turn.accepted.id).copied();
        let is_right = |hits: &[Hit]| {
            let places = hits.iter().filter_map(place);
            let mut told = places.filter_map(|place| {
                let is_wrong = question.wrong_evidence.contains(&place);
                let is_right = question.evidence.contains(&place);
                (is_wrong || is_right).then_some(is_right)
            });
            told.next() == Some(true)
        };
        if question.evidence.is_empty() {
            return;
        }
        let group = match scenario.kind.changes() {
            true => "with a change",
            false => "without one",
        };
        let is_now = question.tense == QuestionTense::Now;
        let is_unchanged = is_now && question.wrong_evidence.is_empty();
        let is_right = |hits: &[Hit]| match is_unchanged {
            true => {
                let first = hits.first().and_then(place);
                first.is_some_and(|place| question.evidence.contains(&place))
            }
            false => is_right(hits),
        };
        let (before, after) = (is_right(found), is_right(recalled));
        if before && !after {
            self.broken
                .push(broken(scenario, question, corpus, recalled));
        }
        let figures = match is_now {
            true if is_unchanged => self.unchanged.entry(group),
            true => self.now.entry(group),
            false => self.past.entry(question.tense.name()),
        };
        figures.or_default().add(before, after);
        if !is_now || is_unchanged {
            return;
        }
        let kind = self.by_kind.entry(scenario.kind.name()).or_default();
        kind.add(before, after);
        for hit in recalled {
            let is_marked = usize::from(hit.outdated.is_some());
            let place = place(hit);
            let is_in = |places: &[usize]| place.is_some_and(|place| places.contains(&place));
            if is_in(&question.evidence) {
                self.right[0] += 1;
                self.right[1] += is_marked;
            } else if is_in(&question.wrong_evidence) {
                self.stale[0] += 1;
                self.stale[1] += is_marked;
            }
        }
    }
}

/// A question that was right before and wrong after, with the first turns recalled.
fn broken(
    scenario: &LabelledScenario,
    question: &ScenarioQuestion,
    corpus: &Corpus,
    recalled: &[Hit],
) -> String {
    let first = recalled.iter().take(3).map(|hit| {
        let accepted = &hit.turn.accepted;
        let place = corpus.places.get(&accepted.id);
        let place = place.map_or_else(String::new, ToString::to_string);
        format!("{place}: {}", accepted.content.text)
    });
    format!(
        "{} {}: {} (right {:?}, wrong {:?}) => {}",
        scenario.kind,
        scenario.number,
        question.text,
        question.evidence,
        question.wrong_evidence,
        first.collect::<Vec<_>>().join(" / ")
    )
}

/// A scenario as it is remembered, one session a day.
fn conversation(scenario: &LabelledScenario) -> Conversation {
    let turns = scenario.turns.iter().enumerate();
    Conversation {
        id: scenario.number.clone(),
        turns: turns.map(|(place, turn)| said(place, turn)).collect(),
        ..Conversation::default()
    }
}

fn said(place: usize, turn: &ScenarioTurn) -> Turn {
    let time: NaiveDateTime = turn.time;
    Turn {
        id: place.to_string(),
        session: time.date().to_string(),
        speaker: turn.said.speaker.clone(),
        role: match turn.said.is_assistant {
            true => Role::Assistant,
            false => Role::User,
        },
        time: Some(time.and_utc()),
        text: turn.said.text.replace(" ⏎ ", "\n"),
        captions: Vec::new(),
    }
}
