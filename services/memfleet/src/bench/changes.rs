//! `memfleet bench changes`: whether the value that holds is found before the one that it ended, on
//! scenarios of the understanding corpus, each in a space of its own; and what was right before the
//! agents reordered and marked it, and wrong after. It asks the questions of the corpus's long
//! conversations, too, and of data sets that are named.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use chrono::NaiveDateTime;
use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_evaluation::understanding::{
    History, HistoryQuestion, LabelledScenario, QuestionTense, ScenarioQuestion, ScenarioTurn,
    UnderstandingCorpus, WriterFolder,
};
use memfleet_evaluation::{Conversation, Dataset, Role, Turn};
use memfleet_gateway::Gateway;
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Hit;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::retrieval::progress;
use super::{Bench, percent, query};
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
    /// Data set with conversations; each scenario stands in a space with the first turns of one
    #[arg(long, value_name = "FILE")]
    among: Option<PathBuf>,
    /// Turns of a conversation beside a scenario
    #[arg(long, default_value = "150", requires = "among")]
    among_turns: usize,
}

impl ScenarioArgs {
    /// Conversations that stand beside the scenarios.
    pub(super) fn among(&self) -> Result<Vec<Conversation>, BoxError> {
        let Some(path) = &self.among else {
            return Ok(Vec::new());
        };
        let mut conversations = Dataset::load(path)?.conversations;
        for conversation in &mut conversations {
            conversation.turns.truncate(self.among_turns);
            conversation.questions.clear();
        }
        Ok(conversations)
    }

    /// The scenarios.
    pub(super) fn scenarios(&self) -> Result<Vec<LabelledScenario>, BoxError> {
        Ok(self.scenarios_and_histories()?.0)
    }

    /// The scenarios, and all long conversations of the part.
    fn scenarios_and_histories(&self) -> Result<(Vec<LabelledScenario>, Vec<History>), BoxError> {
        let corpus = UnderstandingCorpus::load(&self.corpus)?;
        let scenarios = self.of_part(corpus.scenarios);
        let histories = self.of_part(corpus.histories);
        Ok((
            scenarios.step_by(self.every.get()).collect(),
            histories.collect(),
        ))
    }

    fn of_part<T>(&self, writers: Vec<WriterFolder<T>>) -> impl Iterator<Item = T> {
        let writers = writers.into_iter().filter(|it| it.part == self.part);
        writers.flat_map(|writer| writer.items)
    }
}

/// Remembers scenarios, each in a space of its own with one of these conversations, and waits until
/// they are derived.
pub(super) async fn remembered(
    bench: &Bench,
    scenarios: &[LabelledScenario],
    among: &[Conversation],
) -> Result<Vec<Corpus>, BoxError> {
    let mut corpora = Vec::with_capacity(scenarios.len());
    let bar = progress("remembering", scenarios.len());
    for (number, scenario) in scenarios.iter().enumerate() {
        let name = format!("scenario-{number}");
        let mut told = vec![conversation(&scenario.number, &scenario.turns)];
        told.extend(among.iter().cycle().nth(number).cloned());
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
    /// Leave out the long conversations of the corpus
    #[arg(long)]
    without_histories: bool,
    /// Data sets of conversations whose questions are asked, too, each in a space of its own
    #[arg(long, value_name = "FILE")]
    conversations: Vec<PathBuf>,
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
    /// Questions of the long conversations of the corpus about what changed, present or past.
    changed_in_histories: OrderFigures,
    /// Questions of these about what did not change.
    unchanged_in_histories: RankFigures,
    /// Questions of data sets of conversations.
    conversations: RankFigures,
    /// Stale turns among the hits of questions about the present.
    stale_hits: usize,
    /// Share of these that carry a mark.
    stale_marked: f64,
    /// Right turns among the same hits.
    right_hits: usize,
    /// Share of these that carry a mark.
    right_marked: f64,
    /// Median time by which a recall is longer than the search alone, in milliseconds.
    added_ms: f64,
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

/// Ranks of the first turn of the evidence, as found and as recalled.
#[derive(Debug, Default, Clone, Serialize)]
pub struct RankFigures {
    questions: usize,
    /// Questions with such a turn first.
    first: [usize; 2],
    /// Questions with such a turn among the first three.
    among_three: [usize; 2],
    /// Sums of reciprocal ranks.
    reciprocal: [f64; 2],
    /// Turns of the evidence among the hits, and those of them that carry a mark.
    evidence: usize,
    marked: usize,
}

impl RankFigures {
    fn add(&mut self, evidence: &[usize], corpus: &Corpus, hits: [&[Hit]; 2]) {
        let is_evidence = |hit: &Hit| {
            let place = corpus.places.get(&hit.turn.accepted.id);
            place.is_some_and(|place| evidence.contains(place))
        };
        self.questions += 1;
        for (at, hits) in hits.into_iter().enumerate() {
            let Some(rank) = hits.iter().position(is_evidence) else {
                continue;
            };
            self.first[at] += usize::from(rank == 0);
            self.among_three[at] += usize::from(rank < 3);
            self.reciprocal[at] += 1.0 / (rank + 1) as f64;
        }
        let evidence = hits[1].iter().filter(|hit| is_evidence(hit));
        let marks: Vec<bool> = evidence.map(|hit| hit.outdated.is_some()).collect();
        self.evidence += marks.len();
        self.marked += marks.iter().filter(|is_marked| **is_marked).count();
    }

    fn row(&self, name: &str) -> String {
        let share = |count| percent(count, self.questions);
        let mean = |sum: f64| 100.0 * sum / self.questions.max(1) as f64;
        format!(
            "{name:16} {:5}  first {:.1} to {:.1} %, first three {:.1} to {:.1} %, MRR {:.1} to {:.1}; marked {:.1} % of {} turns of the evidence",
            self.questions,
            share(self.first[0]),
            share(self.first[1]),
            share(self.among_three[0]),
            share(self.among_three[1]),
            mean(self.reciprocal[0]),
            mean(self.reciprocal[1]),
            percent(self.marked, self.evidence),
            self.evidence
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
        if self.changed_in_histories.questions > 0 {
            lines.push("long conversations: the right value before the wrong one, and turns of the evidence".to_owned());
            lines.push(self.changed_in_histories.row("changed"));
            lines.push(self.unchanged_in_histories.row("unchanged"));
        }
        if self.conversations.questions > 0 {
            lines.push(self.conversations.row("conversations"));
        }
        lines.push(format!(
            "marked: {:.1} % of {} stale hits, {:.1} % of {} right ones",
            self.stale_marked, self.stale_hits, self.right_marked, self.right_hits
        ));
        lines.push(format!(
            "added to a search: {:.1} ms (median)",
            self.added_ms
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
    let (scenarios, mut histories) = args.scenarios.scenarios_and_histories()?;
    if args.without_histories {
        histories.clear();
    }
    let bench = Bench::start_with(models, &STAGES, Mode::default()).await?;
    let gateway = &bench.node.gateway;
    let corpora = remembered(&bench, &scenarios, &args.scenarios.among()?).await?;
    let mut count = Count::default();
    let bar = progress("asking", scenarios.len());
    for (scenario, corpus) in scenarios.iter().zip(&corpora) {
        count.facts(&bench, scenario, corpus).await?;
        for question in &scenario.questions {
            let [found, recalled] =
                asked(gateway, corpus, &question.text, &mut count.added).await?;
            count.add(scenario, question, corpus, [&found, &recalled]);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let (changed_in_histories, unchanged_in_histories) =
        in_histories(&bench, &histories, &mut count).await?;
    let files = &args.conversations;
    let conversations = in_conversations(&bench, files, &mut count.added).await?;
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
        changed_in_histories,
        unchanged_in_histories,
        conversations,
        stale_hits: count.stale[0],
        stale_marked: percent(count.stale[1], count.stale[0]),
        right_hits: count.right[0],
        right_marked: percent(count.right[1], count.right[0]),
        added_ms: median(count.added),
        list: listed(count.ended),
        broken: listed(count.broken),
    })
}

/// Hits of a question as the search finds them, and as recall orders them. How much longer the
/// recall took is added to `added`.
async fn asked(
    gateway: &Gateway,
    corpus: &Corpus,
    question: &str,
    added: &mut Vec<Duration>,
) -> Result<[Vec<Hit>; 2], BoxError> {
    let query = query(&corpus.space, question.to_owned(), DEPTH);
    let begun = Instant::now();
    let found = gateway.retriever.search(&call(), &query).await?;
    let searched = begun.elapsed();
    let begun = Instant::now();
    let recalled = gateway.recall(&call(), RecallRequest::from(query)).await?;
    added.push(begun.elapsed().saturating_sub(searched));
    Ok([found.hits, recalled.hits])
}

/// Median of durations in milliseconds.
fn median(mut durations: Vec<Duration>) -> f64 {
    durations.sort_unstable();
    let middle = durations.get(durations.len() / 2);
    middle.map_or(0.0, |it| 1_000.0 * it.as_secs_f64())
}

/// Asks the questions of data sets of conversations, in whose spaces hardly anything changes.
async fn in_conversations(
    bench: &Bench,
    files: &[PathBuf],
    added: &mut Vec<Duration>,
) -> Result<RankFigures, BoxError> {
    let gateway = &bench.node.gateway;
    let mut corpora = Vec::new();
    for (number, file) in files.iter().enumerate() {
        for (place, conversation) in Dataset::load(file)?.conversations.iter().enumerate() {
            let name = format!("conversation-{number}-{place}");
            let told = std::slice::from_ref(conversation);
            corpora.push(Corpus::remember(&**gateway, &name, told).await?);
        }
    }
    bench.derived(&STAGES).await?;
    let mut figures = RankFigures::default();
    let bar = progress("asking of conversations", corpora.len());
    for corpus in &corpora {
        for question in &corpus.questions {
            let [found, recalled] = asked(gateway, corpus, &question.text, added).await?;
            figures.add(&question.evidence, corpus, [&found, &recalled]);
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(figures)
}

/// Asks the questions of long conversations: about what changed, and about what did not.
async fn in_histories(
    bench: &Bench,
    histories: &[History],
    count: &mut Count,
) -> Result<(OrderFigures, RankFigures), BoxError> {
    let gateway = &bench.node.gateway;
    let mut corpora = Vec::with_capacity(histories.len());
    for (number, history) in histories.iter().enumerate() {
        let told = conversation(&history.number, &history.turns);
        let name = format!("history-{number}");
        corpora.push(Corpus::remember(&**gateway, &name, &[told]).await?);
    }
    bench.derived(&STAGES).await?;
    let (mut changed, mut unchanged) = (OrderFigures::default(), RankFigures::default());
    let bar = progress("asking of long conversations", histories.len());
    for (history, corpus) in histories.iter().zip(&corpora) {
        for question in &history.questions {
            let HistoryQuestion {
                evidence,
                wrong_evidence,
                ..
            } = question;
            let [found, recalled] =
                asked(gateway, corpus, &question.text, &mut count.added).await?;
            if wrong_evidence.is_empty() {
                unchanged.add(evidence, corpus, [&found, &recalled]);
                continue;
            }
            let [before, after] = [&found, &recalled]
                .map(|hits| is_right_first(hits, corpus, evidence, wrong_evidence));
            changed.add(before, after);
            if before && !after {
                let name = format!("{} {}", history.genre, history.number);
                let broken = Broken {
                    name,
                    question: &question.text,
                    right: evidence,
                    wrong: wrong_evidence,
                };
                count.broken.push(broken.line(corpus, &recalled));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok((changed, unchanged))
}

/// True where the first hit that states a right value or a wrong one states a right one.
fn is_right_first(hits: &[Hit], corpus: &Corpus, right: &[usize], wrong: &[usize]) -> bool {
    let places = hits.iter();
    let mut places = places.filter_map(|hit| corpus.places.get(&hit.turn.accepted.id));
    let told = places.find(|place| right.contains(place) || wrong.contains(place));
    told.is_some_and(|place| right.contains(place))
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
    /// Time by which each recall was longer than the search alone.
    added: Vec<Duration>,
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
        let (right, wrong) = (&question.evidence, &question.wrong_evidence);
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
            false => is_right_first(hits, corpus, right, wrong),
        };
        let (before, after) = (is_right(found), is_right(recalled));
        if before && !after {
            let broken = Broken {
                name: format!("{} {}", scenario.kind, scenario.number),
                question: &question.text,
                right,
                wrong,
            };
            self.broken.push(broken.line(corpus, recalled));
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

/// A question that was right before and wrong after.
struct Broken<'q> {
    name: String,
    question: &'q str,
    right: &'q [usize],
    wrong: &'q [usize],
}

impl Broken<'_> {
    /// Line of the report: the question, its turns, and the first three turns recalled.
    fn line(&self, corpus: &Corpus, recalled: &[Hit]) -> String {
        let first = recalled.iter().take(3).map(|hit| {
            let accepted = &hit.turn.accepted;
            let place = corpus.places.get(&accepted.id);
            let place = place.map_or_else(String::new, ToString::to_string);
            format!("{place}: {}", accepted.content.text)
        });
        format!(
            "{}: {} (right {:?}, wrong {:?}) => {}",
            self.name,
            self.question,
            self.right,
            self.wrong,
            first.collect::<Vec<_>>().join(" / ")
        )
    }
}

/// A conversation as it is remembered, one session a day.
fn conversation(id: &str, turns: &[ScenarioTurn]) -> Conversation {
    let turns = turns.iter().enumerate();
    Conversation {
        id: id.to_owned(),
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
