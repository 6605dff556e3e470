//! Statements of turns as facts, in their own words, by the reader of turns.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::facts::key;
use memfleet_domain::fact::{Claim, Draft, Stance, StatementLabels};
use memfleet_domain::space::Locale;
use memfleet_domain::statement::{Statement, StatementKind, StatementOwner};
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{Role, Trust, Turn};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::turn_reader::{ReaderAnswers, TurnInContext, TurnReader, TurnText};

use super::{ExtractedFacts, Extractor, REFINED, Utterances};

/// Least probability that a statement is worth remembering for months.
const LEAST_KEEP: f32 = 0.5;

/// Longest statement that is a fact, in bytes: beyond, where one statement ends was not found.
const LONGEST: usize = 600;

/// Kinds of statements that are facts; the others say nothing that holds or happened.
const KINDS: [StatementKind; 6] = [
    StatementKind::State,
    StatementKind::Event,
    StatementKind::Plan,
    StatementKind::Wish,
    StatementKind::Hearsay,
    StatementKind::Instruction,
];

/// The reader of turns as an extractor.
pub struct StatementExtractor {
    /// The reader.
    pub reader: Arc<dyn TurnReader>,
}

#[async_trait]
impl Extractor for StatementExtractor {
    fn replaces(&self) -> Vec<&str> {
        REFINED.to_vec()
    }

    async fn extract(
        &self,
        _: &Scope,
        turns: Vec<Utterances>,
        _: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        let own: Vec<usize> = (0..turns.len())
            .filter(|place| is_own_words(&turns[*place].turn))
            .collect();
        let asked = own.iter().map(|place| in_context(&turns[*place]));
        let read = self.reader.statements(asked.collect()).await?;
        let ReaderAnswers { reader, answers } = read;
        let mut drafts = vec![Vec::new(); turns.len()];
        for (place, statements) in own.into_iter().zip(answers) {
            let turn = &turns[place].turn;
            let text = turn.accepted.content.searchable_text();
            let facts = statements.iter().filter(|it| is_fact(it));
            drafts[place] = facts
                .filter_map(|statement| draft(turn, &text, statement))
                .collect();
        }
        Ok(ExtractedFacts { by: reader, drafts })
    }
}

/// True for a user's own words. An assistant's and a tool's are no facts.
fn is_own_words(turn: &Turn) -> bool {
    turn.accepted.role == Role::User && turn.accepted.trust == Trust::User
}

fn in_context(turn: &Utterances) -> TurnInContext {
    TurnInContext {
        turn: text_of(&turn.turn),
        previous: turn.before.last().map(text_of),
    }
}

fn text_of(turn: &Turn) -> TurnText {
    let said = &turn.accepted;
    TurnText {
        speaker: said.speaker.to_string(),
        is_assistant: said.role == Role::Assistant,
        text: said.content.searchable_text(),
    }
}

/// True for marks that only join a statement to its neighbours.
fn joins(letter: char) -> bool {
    letter.is_whitespace() || ",;:–—-،、，；：".contains(letter)
}

fn is_fact(statement: &Statement) -> bool {
    statement.keep >= LEAST_KEEP && KINDS.contains(&statement.kind)
}

/// Fact of a statement: its words, from when they were said on.
fn draft(turn: &Turn, text: &str, statement: &Statement) -> Option<Draft> {
    let said = text.get(statement.bytes.clone())?;
    let words = said.trim_start_matches(joins).trim_end_matches(joins);
    if words.is_empty() || words.len() > LONGEST {
        return None;
    }
    let start = statement.bytes.start + said.len() - said.trim_start_matches(joins).len();
    let is_speakers = matches!(
        statement.owner,
        StatementOwner::Speaker | StatementOwner::Group
    );
    let subject = match is_speakers {
        true => key(turn.accepted.speaker.as_str()),
        false => String::new(),
    };
    let said_at = turn.accepted.effective_time();
    Some(Draft {
        text: words.to_owned(),
        clause: None,
        statement: Some(StatementLabels {
            kind: statement.kind,
            kind_probability: statement.kind_probability,
            owner: statement.owner,
            owner_probability: statement.owner_probability,
            negated: statement.negated,
            keep: statement.keep,
        }),
        claim: Claim {
            subject,
            attribute: String::new(),
            value: key(words),
        },
        stance: Stance::States,
        takes_back: false,
        said_at: Some(said_at),
        evidence: start as u32..(start + words.len()) as u32,
        valid: TimeRange {
            start: Some(said_at),
            end: None,
        },
        related: Vec::new(),
        confidence: statement.keep,
    })
}
