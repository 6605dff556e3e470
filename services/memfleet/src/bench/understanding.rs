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
    JudgedLine, JudgedTalk, LabelledScenario, LabelledStatement, MarkedTurn, NamedTurn, NeedSpace,
    PairGroup, QuestionTense, SpokenText, UnderstandingCorpus, WriterFolder,
};
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;
use memfleet_understanding::{PlacedStatements, ReadTurn, ReaderModel, TurnPair, TurnToRead};

use crate::cli::Error;
use crate::models::ConfiguredModels;

pub use report::UnderstandingReport;
use report::{
    LineFigures, NameFigures, NeedFigures, RelationFigures, StatementFigures, TenseFigures,
};

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

impl UnderstandingArgs {
    /// Items of a set that are read: of the part, one in so many.
    fn chosen<'s, T>(&self, set: &'s [WriterFolder<T>]) -> impl Iterator<Item = &'s T> {
        let writers = set.iter().filter(|writer| writer.part == self.part);
        let items = writers.flat_map(|writer| &writer.items);
        items.step_by(self.every.get())
    }
}

/// Reads every scenario and every memory of the part.
pub fn measure(
    args: &UnderstandingArgs,
    models: &ConfiguredModels,
) -> Result<UnderstandingReport, Error> {
    let corpus = UnderstandingCorpus::load(&args.corpus).map_err(BoxError::from)?;
    let reader = open(models)?;
    let scenarios = [&corpus.scenarios, &corpus.contrast];
    let scenarios = scenarios.map(|set| args.chosen(set).collect::<Vec<_>>());
    let [plain, contrast] = scenarios;
    let measurement = Measurement { reader };
    Ok(UnderstandingReport {
        part: args.part.clone(),
        statements: measurement.statements(&plain)?,
        relations: measurement.relations(&plain)?,
        contrast: measurement.relations(&contrast)?,
        groups: measurement.groups(args.chosen(&corpus.pairs))?,
        names: measurement.names(args.chosen(&corpus.names))?,
        lines: measurement.lines(args.chosen(&corpus.lines), &corpus.scenarios)?,
        talks: measurement.talks(args.chosen(&corpus.talks))?,
        needs: measurement.needs(args.chosen(&corpus.needs))?,
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
            let turns = in_context(&said);
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
            question: None,
        };
        let scores = self.reader.relations(&[pair], &idle)?;
        Ok(scores.into_iter().flatten().collect())
    }

    /// Relations of the statements of groups.
    fn groups<'s>(
        &self,
        groups: impl Iterator<Item = &'s PairGroup>,
    ) -> Result<RelationFigures, BoxError> {
        let mut figures = RelationFigures::default();
        for group in groups {
            for later in &group.later {
                let pair = TurnPair {
                    earlier: marked(&group.earlier),
                    later: marked(&later.turn),
                    gap: later.gap,
                    question: None,
                };
                let begun = Instant::now();
                let read = self.reader.relations(&[pair], &idle)?;
                figures.took(1, begun.elapsed());
                for scores in read.iter().flatten() {
                    figures.add(Some(later.relation), scores);
                }
            }
        }
        Ok(figures)
    }

    /// Names of turns.
    fn names<'s>(
        &self,
        turns: impl Iterator<Item = &'s NamedTurn>,
    ) -> Result<NameFigures, BoxError> {
        let mut figures = NameFigures::default();
        for turn in turns {
            let read = TurnToRead {
                turn: spoken(&turn.said),
                previous: None,
            };
            let statements = self.reader.statements(&[read], &idle)?;
            let names = statements.iter().flatten().flat_map(|it| &it.names);
            figures.compare(&turn.names, &names.cloned().collect::<Vec<_>>());
        }
        Ok(figures)
    }

    /// Lines of the sentences that were judged.
    fn lines<'s>(
        &self,
        judged: impl Iterator<Item = &'s JudgedLine>,
        writers: &[WriterFolder<LabelledScenario>],
    ) -> Result<LineFigures, BoxError> {
        let mut figures = LineFigures::default();
        for line in judged {
            let mut of_writer = writers.iter().filter(|it| it.writer == line.writer);
            let scenario = of_writer.find_map(|writer| {
                let mut scenarios = writer.items.iter();
                scenarios.find(|it| it.number == line.scenario)
            });
            let scenario = scenario.ok_or("a judged line is of no scenario")?;
            let placed = PlacedScenario::of(scenario);
            let turn = TurnToRead {
                turn: placed.turns[line.turn].read(),
                previous: line.turn.checked_sub(1).map(|it| placed.turns[it].read()),
            };
            let text = turn.turn.text;
            let byte = |character: usize| {
                let place = text.char_indices().nth(character);
                place.map_or(text.len(), |(byte, _)| byte)
            };
            let sentence = byte(line.characters[0])..byte(line.characters[1]);
            let read = self.reader.statements(&[turn], &idle)?;
            figures.add(line.judgement, &sentence, &read[0]);
        }
        Ok(figures)
    }

    /// Lines of the sentences of long talks.
    fn talks<'s>(
        &self,
        talks: impl Iterator<Item = &'s JudgedTalk>,
    ) -> Result<LineFigures, BoxError> {
        let mut figures = LineFigures::default();
        for talk in talks {
            let said: Vec<ReadTurn<'_>> =
                talk.turns.iter().map(|turn| spoken(&turn.said)).collect();
            let turns = in_context(&said);
            let read = self.reader.statements(&turns, &idle)?;
            for (turn, statements) in talk.turns.iter().zip(&read) {
                for sentence in &turn.sentences {
                    figures.add(sentence.judgement, &sentence.bytes, statements);
                }
            }
        }
        Ok(figures)
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

/// Turns of a conversation, each behind the one before it.
fn in_context<'t>(said: &[ReadTurn<'t>]) -> Vec<TurnToRead<'t>> {
    let turns = said.iter().enumerate().map(|(place, turn)| TurnToRead {
        turn: *turn,
        previous: place.checked_sub(1).map(|before| said[before]),
    });
    turns.collect()
}

fn spoken(said: &SpokenText) -> ReadTurn<'_> {
    ReadTurn {
        speaker: &said.speaker,
        is_assistant: said.is_assistant,
        text: &said.text,
    }
}

fn marked(turn: &MarkedTurn) -> PlacedStatements<'_> {
    PlacedStatements {
        turn: spoken(&turn.said),
        statements: std::slice::from_ref(&turn.statement),
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
