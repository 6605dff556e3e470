//! `memfleet bench understanding`: how well the reader tells statements, relations and needs on the
//! part of the corpus that it was not trained on.

mod report;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_evaluation::understanding::{
    LabelledScenario, LabelledStatement, NeedSpace, QuestionTense, SpokenText, UnderstandingCorpus,
};
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;
use memfleet_understanding::{PlacedStatements, ReadTurn, ReaderModel, TurnPair, TurnToRead};

use crate::cli::Error;
use crate::models::ConfiguredModels;

pub use report::UnderstandingReport;
use report::{NeedFigures, RelationFigures, StatementFigures, TenseFigures};

/// Share of turn pairs without a labelled relation that are read, one in so many.
const UNLISTED: usize = 10;

/// Arguments.
#[derive(Debug, Args)]
pub struct UnderstandingArgs {
    /// Folder of the corpus
    #[arg(default_value = "crates/evaluation/data/understanding")]
    corpus: PathBuf,
    /// Part of the corpus
    #[arg(long, default_value = "test")]
    part: String,
    /// Read one scenario and one memory in so many
    #[arg(long, default_value = "1")]
    every: NonZeroUsize,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Reads every scenario and every memory of the part.
pub fn measure(
    args: &UnderstandingArgs,
    models: &ConfiguredModels,
) -> Result<UnderstandingReport, Error> {
    let corpus = UnderstandingCorpus::load(&args.corpus).map_err(BoxError::from)?;
    let reader = open(models)?;
    let scenarios = [&corpus.scenarios, &corpus.contrast].map(|writers| {
        let writers = writers.iter().filter(|writer| writer.part == args.part);
        let items = writers.flat_map(|writer| &writer.items);
        items.step_by(args.every.get()).collect::<Vec<_>>()
    });
    let spaces = corpus.needs.iter().filter(|it| it.part == args.part);
    let spaces = spaces.flat_map(|writer| &writer.items);
    let [plain, contrast] = scenarios;
    let measurement = Measurement { reader };
    Ok(UnderstandingReport {
        part: args.part.clone(),
        statements: measurement.statements(&plain)?,
        relations: measurement.relations(&plain)?,
        contrast: measurement.relations(&contrast)?,
        needs: measurement.needs(spaces.step_by(args.every.get()))?,
        tenses: measurement.tenses(&plain)?,
    })
}

/// The reader over its base, which must be among the configured models.
fn open(models: &ConfiguredModels) -> Result<ReaderModel, Error> {
    let configured = [Some(&models.main), models.multilingual.as_ref()];
    let base = configured.into_iter().flatten();
    let is_base = |model: &&ModelDirectory| model.manifest().name == ReaderModel::BASE;
    let base = base.into_iter().find(is_base).ok_or_else(|| {
        let base = ReaderModel::BASE;
        let message =
            format!("the reader builds on {base}: `memfleet model pull {base}` brings it");
        BoxError::from(message)
    })?;
    let encoder = base.load(NonZeroUsize::MIN).map_err(BoxError::from)?;
    Ok(ReaderModel::open(&encoder).map_err(BoxError::from)?)
}

struct Measurement {
    reader: ReaderModel,
}

impl Measurement {
    /// Statements of all turns beside the labelled ones.
    fn statements(&self, scenarios: &[&LabelledScenario]) -> Result<StatementFigures, BoxError> {
        let mut figures = StatementFigures::default();
        for scenario in scenarios.iter().map(|it| PlacedScenario::of(it)) {
            let said: Vec<ReadTurn<'_>> = scenario.turns.iter().map(PlacedTurn::read).collect();
            let turns = said.iter().enumerate().map(|(place, turn)| TurnToRead {
                turn: *turn,
                previous: place.checked_sub(1).map(|before| said[before]),
            });
            let turns: Vec<_> = turns.collect();
            let begun = Instant::now();
            let read = self.reader.statements(&turns, &idle)?;
            figures.took(turns.len(), begun.elapsed());
            for (turn, statements) in scenario.turns.iter().zip(&read) {
                for (labelled, bytes) in turn.labelled.iter().zip(&turn.spans) {
                    if let Some(read) = nearest(statements, bytes) {
                        figures.compare(labelled, read);
                    }
                }
                figures.compare_starts(&turn.spans, statements);
            }
        }
        Ok(figures)
    }

    /// Relations in pairs of turns with a label, and in one of ten without.
    fn relations(&self, scenarios: &[&LabelledScenario]) -> Result<RelationFigures, BoxError> {
        let mut figures = RelationFigures::default();
        for (number, scenario) in scenarios.iter().enumerate() {
            let placed = PlacedScenario::of(scenario);
            let mut labels = HashMap::new();
            for pair in &scenario.pairs {
                let key = (pair.later.turn, pair.earlier.turn);
                let pairs: &mut HashMap<_, _> = labels.entry(key).or_default();
                pairs.insert((pair.later.place, pair.earlier.place), pair.relation);
            }
            let count = scenario.turns.len();
            let turns =
                (0..count).flat_map(|later| (0..later).map(move |earlier| (later, earlier)));
            for (place, key) in turns.enumerate() {
                let listed = labels.get(&key);
                if listed.is_none() && (number + place) % UNLISTED != 0 {
                    continue;
                }
                let begun = Instant::now();
                let scores = self.compare(scenario, &placed, key)?;
                figures.took(1, begun.elapsed());
                for scores in scores {
                    let label = listed.and_then(|it| it.get(&(scores.later, scores.earlier)));
                    figures.add(label.copied(), &scores);
                }
            }
        }
        Ok(figures)
    }

    fn compare(
        &self,
        scenario: &LabelledScenario,
        placed: &PlacedScenario<'_>,
        (later, earlier): (usize, usize),
    ) -> Result<Vec<RelationScores>, BoxError> {
        let statements = |turn: usize| PlacedStatements {
            turn: placed.turns[turn].read(),
            statements: &placed.turns[turn].spans,
        };
        let pair = TurnPair {
            earlier: statements(earlier),
            later: statements(later),
            gap: scenario.turns[later].time - scenario.turns[earlier].time,
        };
        let scores = self.reader.relations(&[pair], &idle)?;
        Ok(scores.into_iter().flatten().collect())
    }

    /// Tenses of the questions of scenarios that their conversation answers.
    fn tenses(&self, scenarios: &[&LabelledScenario]) -> Result<TenseFigures, BoxError> {
        let mut figures = TenseFigures::default();
        for question in scenarios.iter().flat_map(|it| &it.questions) {
            if question.tense != QuestionTense::Unknown {
                let read = self.reader.prompt_vector(&question.text, "", &idle)?.tense;
                figures.add(question.tense.name(), read.likeliest().name());
            }
        }
        Ok(figures)
    }

    /// Needs of prompts for the lines of their memory.
    fn needs<'s>(
        &self,
        spaces: impl Iterator<Item = &'s NeedSpace>,
    ) -> Result<NeedFigures, BoxError> {
        let mut figures = NeedFigures::default();
        for space in spaces {
            let lines = space.lines.iter().map(|line| &line.said);
            let lines: Vec<(&str, bool)> = lines.map(|it| (&*it.text, it.is_assistant)).collect();
            let lines = self.reader.line_vectors(&lines, &idle)?;
            for prompt in &space.prompts {
                let before: Vec<String> = prompt.before.iter().map(said).collect();
                let begun = Instant::now();
                let vector = self
                    .reader
                    .prompt_vector(&prompt.text, &before.join(" "), &idle)?;
                figures.took(1, begun.elapsed());
                let odds = lines.iter().map(|line| self.reader.need(&vector, line));
                figures.add(prompt, &odds.collect::<Vec<_>>());
            }
        }
        Ok(figures)
    }
}

/// Step between layers that waits for nothing, since nothing runs beside a measurement.
fn idle(_: Duration) {}

/// Scenario whose line breaks are such.
struct PlacedScenario<'s> {
    turns: Vec<PlacedTurn<'s>>,
}

/// Turn with the places of its labelled statements.
struct PlacedTurn<'s> {
    speaker: &'s str,
    is_assistant: bool,
    text: String,
    labelled: &'s [LabelledStatement],
    spans: Vec<Range<usize>>,
}

impl<'s> PlacedScenario<'s> {
    fn of(scenario: &'s LabelledScenario) -> Self {
        let turns = scenario.turns.iter().map(|turn| {
            let text = with_breaks(&turn.said.text);
            let mut end = 0;
            let spans = turn.statements.iter().map(|statement| {
                let span = with_breaks(&statement.span);
                let found = text[end..].find(&span).map(|at| end + at);
                let start = found.or_else(|| text.find(&span)).unwrap_or(0);
                end = start + span.len();
                start..end
            });
            PlacedTurn {
                spans: spans.collect(),
                speaker: &turn.said.speaker,
                is_assistant: turn.said.is_assistant,
                labelled: &turn.statements,
                text,
            }
        });
        Self {
            turns: turns.collect(),
        }
    }
}

impl PlacedTurn<'_> {
    fn read(&self) -> ReadTurn<'_> {
        ReadTurn {
            speaker: self.speaker,
            is_assistant: self.is_assistant,
            text: &self.text,
        }
    }
}

fn with_breaks(text: &str) -> String {
    text.replace(" ⏎ ", "\n")
}

fn said(turn: &SpokenText) -> String {
    format!("{}: {}", turn.speaker, turn.text)
}

/// The statement that shares most bytes with a span.
fn nearest<'s>(statements: &'s [Statement], span: &Range<usize>) -> Option<&'s Statement> {
    let shared = |statement: &&Statement| {
        let bytes = &statement.bytes;
        bytes
            .end
            .min(span.end)
            .saturating_sub(bytes.start.max(span.start))
    };
    statements.iter().max_by_key(shared)
}
