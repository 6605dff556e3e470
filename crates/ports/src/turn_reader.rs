//! The reader of what turns say, as a service. The embedder role has it, beside the model whose
//! word vectors it shares.

use std::ops::Range;

use async_trait::async_trait;
use chrono::TimeDelta;
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_domain::tense::TenseScores;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_domain::{Fault, FaultKind};

/// Text of a turn, and who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnText {
    /// Name of the speaker.
    pub speaker: String,
    /// True for an assistant.
    pub is_assistant: bool,
    /// The text.
    pub text: String,
}

/// Bytes of a turn that are read at most: of a longer one its beginning.
pub const MAX_READ_BYTES: usize = 8 << 10;

impl TurnText {
    /// Beginning of a turn's searchable text, as much as is read of it.
    pub fn of(turn: &AcceptedTurn) -> Self {
        let mut text = turn.content.searchable_text();
        text.truncate(text.floor_char_boundary(MAX_READ_BYTES));
        Self {
            speaker: turn.speaker.to_string(),
            is_assistant: turn.role == Role::Assistant,
            text,
        }
    }
}

/// Turn and the one before it in its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInContext {
    /// The turn.
    pub turn: TurnText,
    /// The one before it.
    pub previous: Option<TurnText>,
}

/// Turn and the statements of it that are compared, as bytes of its text, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStatements {
    /// The turn.
    pub turn: TurnText,
    /// Its statements.
    pub statements: Vec<Range<usize>>,
}

/// Statements of a text in its order, by their bytes, each with its own. Those that overlap the one
/// before them or are no part of the text are left out.
pub fn placed_statements<T>(
    text: &str,
    mut statements: Vec<(T, Range<usize>)>,
) -> Vec<(T, Range<usize>)> {
    statements.sort_by_key(|(_, bytes)| bytes.start);
    let mut free = 0;
    statements.retain(|(_, bytes)| {
        let is_said = text.get(bytes.clone()).is_some_and(|it| !it.is_empty());
        let is_placed = is_said && bytes.start >= free;
        if is_placed {
            free = bytes.end;
        }
        is_placed
    });
    statements
}

/// Two turns whose statements are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnComparison {
    /// The one that was said first.
    pub earlier: TurnStatements,
    /// The other.
    pub later: TurnStatements,
    /// Time between them; not negative.
    pub gap: TimeDelta,
    /// Question that they are read for: then only changes of what it asks about count. Pairs with
    /// one are served like prompts, before those without.
    pub question: Option<String>,
}

/// Prompt and remembered lines that a reply may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedQuestion {
    /// The prompt.
    pub prompt: String,
    /// The turns before it, as one text; may be empty.
    pub before: String,
    /// The lines.
    pub lines: Vec<TurnText>,
}

/// Answers of a reader, in the order of the questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderAnswers<T> {
    /// Name and version of the reader, which are stored with what it finds.
    pub reader: String,
    /// One a question.
    pub answers: Vec<T>,
}

/// Reading of a prompt beside remembered lines.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptReading {
    /// Name and version of the reader.
    pub reader: String,
    /// Tense of the prompt.
    pub tense: TenseScores,
    /// Probability that a good reply to the prompt needs each line, in their order.
    pub needs: Vec<f32>,
}

/// Reads turns, pairs of turns, and prompts beside what is remembered. Each answer is in the order
/// of what was asked. `RESOURCE_EXHAUSTED` when too many wait; `FAILED_PRECONDITION`
/// (`READER_MISSING`) where the reader or the model that it builds on is not here.
#[async_trait]
pub trait TurnReader: Send + Sync {
    /// Statements of each turn; none overlap. Without turns it only says its name.
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault>;

    /// Relations of every later statement to every earlier one, for each pair of turns. Statements
    /// that lie beyond what is read of a long turn have none.
    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault>;

    /// Tense of a prompt, and which of the lines a good reply to it needs. Served before the others.
    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault>;
}

/// Refusal where the model that the reader builds on is not here.
pub fn missing_reader(base: &str) -> Fault {
    no_reader(format!(
        "the reader of turns builds on the model `{base}`: `memfleet model pull {base}` brings it, and `model.multilingual` names it"
    ))
}

/// Refusal where no reader is.
pub fn no_reader(message: impl Into<String>) -> Fault {
    Fault::new(
        FaultKind::FailedPrecondition,
        "READER_MISSING",
        message.into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_placed_in_order_and_apart() {
        let text = "Köln is home. So is Bonn.";
        let spans = [15..26, 0..14, 0..5, 16..18, 2..9, 26..26, 20..99];
        let placed = placed_statements(text, spans.into_iter().enumerate().collect());
        assert_eq!(placed, [(1, 0..14), (0, 15..26)]);
        let inside_letter = vec![((), 2..9)];
        assert!(placed_statements(text, inside_letter).is_empty());
    }
}
