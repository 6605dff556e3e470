//! The reader of turns in this process.

use std::time::Duration;

use async_trait::async_trait;
use memfleet_background::give_way;
use memfleet_domain::Fault;
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
    TurnStatements, TurnText,
};
use memfleet_understanding::{
    BetweenLayers, PlacedStatements, ReadTurn, ReaderError, ReaderModel, TurnPair, TurnToRead,
};

use crate::line_vectors::{LineVectors, PromptVectors};
use crate::names::{self, QueueNames};
use crate::queue::{Lane, QueuedModel, Request};
use crate::worker::{Workers, timed};

/// Turns or pairs that are read between two looks whether anybody waits, at most.
const TURNS_AT_A_TIME: usize = 16;

/// Bytes of their texts, beyond which they are read in more parts.
const BYTES_AT_A_TIME: usize = 16 << 10;

/// The reader in this process, behind a queue of its own. Dropping it ends its workers.
pub struct LocalTurnReader {
    workers: Workers<QueuedReader>,
}

/// Question to the reader.
enum ReaderQuestion {
    Statements(Vec<TurnInContext>),
    Relations(Vec<TurnComparison>),
    Needs(NeedQuestion),
}

/// Answer to a question of the same name.
enum ReaderAnswer {
    Statements(Vec<Vec<Statement>>),
    Relations(Vec<Vec<RelationScores>>),
    Needs(PromptReading),
}

impl ReaderQuestion {
    /// Texts that are read: turns, pairs of turns, or a prompt and lines.
    fn texts(&self) -> usize {
        match self {
            Self::Statements(turns) => turns.len(),
            Self::Relations(pairs) => pairs.len(),
            Self::Needs(question) => 1 + question.lines.len(),
        }
    }

    /// A prompt waits for needs and for what its question changes; all else is found after the
    /// turns were stored.
    fn lane(&self) -> Lane {
        match self {
            Self::Needs(_) => Lane::Call,
            Self::Relations(pairs) if pairs.iter().any(|pair| pair.question.is_some()) => {
                Lane::Call
            }
            Self::Statements(_) | Self::Relations(_) => Lane::Background,
        }
    }
}

impl LocalTurnReader {
    /// Starts the workers. At most `capacity` texts wait, except that an empty queue always takes a
    /// request.
    pub fn start(reader: ReaderModel, capacity: usize) -> std::io::Result<Self> {
        let model = QueuedReader {
            reader,
            lines: LineVectors::new(),
            prompts: PromptVectors::new(),
        };
        let workers = Workers::start(model, capacity)?;
        Ok(Self { workers })
    }

    async fn ask(&self, question: ReaderQuestion) -> Result<ReaderAnswer, Fault> {
        let (texts, lane) = (question.texts(), question.lane());
        self.workers.ask(question, texts, lane).await
    }
}

#[async_trait]
impl TurnReader for LocalTurnReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        if turns.is_empty() {
            return Ok(found(Vec::new()));
        }
        match self.ask(ReaderQuestion::Statements(turns)).await? {
            ReaderAnswer::Statements(statements) => Ok(found(statements)),
            _ => Err(mismatch()),
        }
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        if pairs.is_empty() {
            return Ok(found(Vec::new()));
        }
        match self.ask(ReaderQuestion::Relations(pairs)).await? {
            ReaderAnswer::Relations(relations) => Ok(found(relations)),
            _ => Err(mismatch()),
        }
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        match self.ask(ReaderQuestion::Needs(question)).await? {
            ReaderAnswer::Needs(reading) => Ok(reading),
            _ => Err(mismatch()),
        }
    }
}

/// Answers of the reader of this program.
fn found<T>(answers: Vec<T>) -> ReaderAnswers<T> {
    ReaderAnswers {
        reader: ReaderModel::NAME.to_owned(),
        answers,
    }
}

fn mismatch() -> Fault {
    Fault::internal("the reader answered another question")
}

/// The reader behind a queue.
struct QueuedReader {
    reader: ReaderModel,
    lines: LineVectors,
    prompts: PromptVectors,
}

impl QueuedModel for QueuedReader {
    type Question = ReaderQuestion;
    type Answer = ReaderAnswer;
    const NAMES: QueueNames = names::READING;
    /// One request at a time: each is answered as soon as it is read.
    const TEXTS_A_ROUND: usize = 1;

    fn compute(&self, requests: &[Request<Self>], _: Lane) -> Result<Vec<ReaderAnswer>, String> {
        let answers = requests.iter().map(|request| self.answer(request));
        let answers: Result<_, ReaderError> = answers.collect();
        answers.map_err(|error| error.to_string())
    }
}

impl QueuedReader {
    fn answer(&self, request: &Request<Self>) -> Result<ReaderAnswer, ReaderError> {
        Ok(match &request.question {
            ReaderQuestion::Statements(turns) => {
                ReaderAnswer::Statements(in_parts(request, turns, turn_bytes, |turns| {
                    let turns: Vec<_> = turns.iter().map(turn_to_read).collect();
                    self.reader.statements(&turns, &give_way)
                })?)
            }
            ReaderQuestion::Relations(pairs) => {
                let between: BetweenLayers<'_> = match request.question.lane() {
                    Lane::Call => &|_| {},
                    Lane::Background => &give_way,
                };
                ReaderAnswer::Relations(in_parts(request, pairs, pair_bytes, |pairs| {
                    let pairs: Vec<_> = pairs.iter().map(turn_pair).collect();
                    self.reader.relations(&pairs, between)
                })?)
            }
            ReaderQuestion::Needs(question) => ReaderAnswer::Needs(self.needs(request, question)?),
        })
    }

    /// Reading of a prompt, and which lines it needs; no line where the caller left.
    fn needs(
        &self,
        request: &Request<Self>,
        question: &NeedQuestion,
    ) -> Result<PromptReading, ReaderError> {
        let at_once = |_: Duration| {};
        let NeedQuestion {
            prompt,
            before,
            lines,
        } = question;
        let prompt = self.prompts.of(prompt, before, || {
            read(Lane::Call, 1, || {
                self.reader.prompt_vector(prompt, before, &at_once)
            })
        })?;
        let found = self.lines.of(lines, |unread| {
            if request.is_abandoned() {
                return Ok(None);
            }
            let vectors = read(Lane::Call, unread.len(), || {
                self.reader.line_vectors(unread, &at_once)
            });
            vectors.map(Some)
        })?;
        let needs = found.map(|found| {
            metrics::counter!(names::KNOWN_LINES).increment(found.known as u64);
            let odds = found.iter().map(|line| self.reader.need(&prompt, &line));
            odds.map(|odds| 1.0 / (1.0 + (-odds).exp())).collect()
        });
        Ok(PromptReading {
            reader: ReaderModel::NAME.to_owned(),
            tense: prompt.tense,
            needs: needs.unwrap_or_default(),
        })
    }
}

/// Answers of the parts of a question; those read so far where the caller left.
fn in_parts<Q, A>(
    request: &Request<QueuedReader>,
    items: &[Q],
    bytes: impl Fn(&Q) -> usize,
    mut answers_of: impl FnMut(&[Q]) -> Result<Vec<A>, ReaderError>,
) -> Result<Vec<A>, ReaderError> {
    let lane = request.question.lane();
    let mut answers = Vec::with_capacity(items.len());
    let mut rest = items;
    while !rest.is_empty() && !request.is_abandoned() {
        let mut room = BYTES_AT_A_TIME;
        let fits = |item: &&Q| {
            let fits = room > 0;
            room = room.saturating_sub(bytes(item));
            fits
        };
        let count = rest.iter().take(TURNS_AT_A_TIME).take_while(fits).count();
        let (part, others) = rest.split_at(count);
        rest = others;
        answers.extend(read(lane, part.len(), || answers_of(part))?);
    }
    Ok(answers)
}

fn turn_bytes(turn: &TurnInContext) -> usize {
    turn.turn.text.len()
}

fn pair_bytes(pair: &TurnComparison) -> usize {
    pair.earlier.turn.text.len() + pair.later.turn.text.len()
}

/// Counts and times a computation on texts.
fn read<T>(lane: Lane, texts: usize, compute: impl FnOnce() -> T) -> T {
    let label = lane.label::<QueuedReader>();
    metrics::counter!(names::READ_TEXTS, "lane" => label).increment(texts as u64);
    timed::<QueuedReader, T>(lane, compute)
}

fn turn_to_read(turn: &TurnInContext) -> TurnToRead<'_> {
    TurnToRead {
        turn: read_turn(&turn.turn),
        previous: turn.previous.as_ref().map(read_turn),
    }
}

fn turn_pair(pair: &TurnComparison) -> TurnPair<'_> {
    TurnPair {
        earlier: placed(&pair.earlier),
        later: placed(&pair.later),
        gap: pair.gap,
        question: pair.question.as_deref(),
    }
}

fn placed(turn: &TurnStatements) -> PlacedStatements<'_> {
    PlacedStatements {
        turn: read_turn(&turn.turn),
        statements: &turn.statements,
    }
}

fn read_turn(turn: &TurnText) -> ReadTurn<'_> {
    ReadTurn {
        speaker: &turn.speaker,
        is_assistant: turn.is_assistant,
        text: &turn.text,
    }
}

#[cfg(test)]
mod tests;
