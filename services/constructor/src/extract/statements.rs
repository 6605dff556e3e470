//! Statements of turns as facts, in their own words, by the reader of turns.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_agents::facts::key;
use memfleet_domain::fact::{Claim, Draft, FactLine, FactName, Stance, StatementLabels};
use memfleet_domain::space::Locale;
use memfleet_domain::statement::{Statement, StatementKind};
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{Role, Trust, Turn};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::turn_reader::{ReaderAnswers, TurnInContext, TurnReader, TurnText};

use super::{ExtractedFacts, Extractor, Utterances};

/// Names, without versions, of the extractors whose facts a rebuild replaces: earlier versions of
/// the reader, and the rules that extracted facts before it.
const REPLACED: [&str; 2] = ["reader", "rules"];

/// Characters of the longest statement that is a fact; in longer ones no end was found.
const MAX_STATEMENT_CHARS: usize = 400;

/// Names of a statement that are kept at most, the first.
const MAX_NAMES: usize = 16;

/// Statements of a turn that are facts at most, those that are most worth keeping.
const MAX_STATEMENTS: usize = 64;

/// Kinds of statements that are facts; the others say nothing that holds or happened.
const FACT_KINDS: [StatementKind; 7] = [
    StatementKind::State,
    StatementKind::Event,
    StatementKind::Plan,
    StatementKind::Wish,
    StatementKind::Hearsay,
    StatementKind::Instruction,
    StatementKind::Passing,
];

/// The reader of turns as an extractor. It gives statements of any worth and owner: later ones end
/// them, and recall finds them. Profiles list some (`Draft::is_listed`).
pub struct StatementExtractor {
    /// The reader.
    pub reader: Arc<dyn TurnReader>,
}

#[async_trait]
impl Extractor for StatementExtractor {
    fn replaces(&self) -> Vec<&str> {
        REPLACED.to_vec()
    }

    fn gives_statements(&self) -> bool {
        true
    }

    async fn extract(
        &self,
        _: &Scope,
        turns: Vec<Utterances>,
        _: &Locale,
    ) -> Result<ExtractedFacts, Fault> {
        let own = (0..turns.len()).filter(|place| is_own_words(&turns[*place].turn));
        let own: Vec<usize> = own.collect();
        let mut drafts = vec![Vec::new(); turns.len()];
        if own.is_empty() {
            let by = String::new();
            return Ok(ExtractedFacts { by, drafts });
        }
        let asked = own.iter().map(|place| in_context(&turns[*place]));
        let read = self.reader.statements(asked.collect()).await?;
        let ReaderAnswers { reader, answers } = read;
        for (place, statements) in own.into_iter().zip(answers) {
            drafts[place] = facts(&turns[place].turn, statements);
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
        turn: TurnText::of(&turn.turn.accepted),
        previous: turn.before.last().map(|turn| TurnText::of(&turn.accepted)),
    }
}

/// Facts of the statements of a turn, in the order of its text.
fn facts(turn: &Turn, mut statements: Vec<Statement>) -> Vec<Draft> {
    // Statements in captions, which follow the text, are left out.
    let text = &turn.accepted.content.text;
    statements.retain(is_fact);
    statements.sort_by(|one, other| other.keep.total_cmp(&one.keep));
    statements.truncate(MAX_STATEMENTS);
    statements.sort_by_key(|statement| statement.bytes.start);
    let facts = statements.iter();
    facts.filter_map(|it| draft(turn, text, it)).collect()
}

/// True for marks that only join a statement to its neighbours.
fn joins(letter: char) -> bool {
    letter.is_whitespace() || ",;:–—-،、，；：".contains(letter)
}

/// True for words that can say something: two and more, or some in a script without spaces between
/// words. A lone word is a conjunction that the reader cut off, or an answer that needs its
/// question.
fn says_something(words: &str) -> bool {
    let is_unspaced = |letter: char| {
        // Thai to Myanmar, Khmer, and from CJK radicals to the end of Hangul syllables.
        matches!(letter, '\u{0e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{d7ff}')
    };
    let parts = words.split_whitespace();
    let spoken = parts.filter(|part| part.chars().any(char::is_alphanumeric));
    spoken.take(2).count() == 2 || words.chars().filter(|it| is_unspaced(*it)).count() >= 3
}

fn is_fact(statement: &Statement) -> bool {
    let probabilities = [
        statement.kind_probability,
        statement.owner_probability,
        statement.negated,
        statement.keep,
        statement.ends,
    ];
    let is_sound = probabilities.iter().all(|it| (0.0..=1.0).contains(it));
    is_sound && FACT_KINDS.contains(&statement.kind)
}

/// Fact of a statement: its words, from when they were said on.
fn draft(turn: &Turn, text: &str, statement: &Statement) -> Option<Draft> {
    let bytes = spoken(text, &statement.bytes)?;
    let words = &text[bytes.clone()];
    if !says_something(words) || words.chars().count() > MAX_STATEMENT_CHARS {
        return None;
    }
    let said_at = turn.accepted.effective_time();
    let labels = StatementLabels {
        kind: statement.kind,
        kind_probability: statement.kind_probability,
        owner: statement.owner,
        owner_probability: statement.owner_probability,
        negated: statement.negated,
        keep: statement.keep,
        ends: statement.ends,
        kept: false,
        vectors: statement.vectors,
    };
    Some(Draft {
        text: words.to_owned(),
        clause: None,
        statement: Some(labels),
        claim: Claim {
            subject: key(turn.accepted.speaker.as_str()),
            attribute: String::new(),
            value: key(words),
        },
        stance: Stance::States,
        said_at: Some(said_at),
        line: line(text, statement, &bytes),
        evidence: bytes.start as u32..bytes.end as u32,
        valid: TimeRange {
            start: Some(said_at),
            end: None,
        },
        related: Vec::new(),
        confidence: statement.keep,
        names: names(text, statement),
        topics: Vec::new(),
    })
}

/// Line of a profile that a statement makes: its words with those around them that the reader adds,
/// or without them where they are no part of the text or too long.
fn line(text: &str, statement: &Statement, own: &Range<usize>) -> Option<FactLine> {
    let line = statement.line.as_ref()?;
    let bytes = spoken(text, &line.bytes).filter(|bytes| {
        let is_around = bytes.start <= own.start && own.end <= bytes.end;
        is_around && text[bytes.clone()].chars().count() <= MAX_STATEMENT_CHARS
    });
    let bytes = bytes.unwrap_or_else(|| own.clone());
    let is_sound = (0.0..=1.0).contains(&line.probability);
    is_sound.then(|| FactLine {
        text: text[bytes.clone()].to_owned(),
        bytes: bytes.start as u32..bytes.end as u32,
        probability: line.probability,
    })
}

/// Bytes of words without the marks that join them to their neighbours; nothing where they are no
/// part of the text, or only marks.
fn spoken(text: &str, bytes: &Range<usize>) -> Option<Range<usize>> {
    let said = text.get(bytes.clone())?;
    let words = said.trim_start_matches(joins);
    let start = bytes.end - words.len();
    let end = start + words.trim_end_matches(joins).len();
    (start < end).then_some(start..end)
}

/// Names that a statement mentions, each once.
fn names(text: &str, statement: &Statement) -> Vec<FactName> {
    let said = &statement.bytes;
    let mut names: Vec<FactName> = Vec::new();
    for name in &statement.names {
        let is_inside = said.start <= name.bytes.start && name.bytes.end <= said.end;
        let written = text.get(name.bytes.clone()).map(str::trim);
        let Some(written) = written.filter(|it| is_inside && !key(it).is_empty()) else {
            continue;
        };
        let is_known = names.iter().any(|it| key(&it.text) == key(written));
        if !is_known && names.len() < MAX_NAMES {
            names.push(FactName {
                text: written.to_owned(),
                kind: name.kind,
            });
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use memfleet_domain::statement::{MentionedName, NameKind, StatementLine, StatementOwner};

    use super::*;

    const TEXT: &str = "Well, I live in Zürich, and I sing.";

    fn read(bytes: Range<usize>) -> Statement {
        Statement {
            bytes,
            kind: StatementKind::State,
            kind_probability: 1.0,
            owner: StatementOwner::Speaker,
            owner_probability: 1.0,
            negated: 0.0,
            keep: 1.0,
            ends: 0.0,
            names: Vec::new(),
            line: None,
            vectors: None,
        }
    }

    #[test]
    fn a_line_that_is_not_around_its_statement_is_the_statement_alone() {
        let own = 6..23;
        let line_of = |bytes, probability| {
            let mut statement = read(own.clone());
            statement.line = Some(StatementLine { bytes, probability });
            line(TEXT, &statement, &own).map(|line| line.text)
        };
        let alone = Some("I live in Zürich".to_owned());
        assert_eq!(&TEXT[own.clone()], "I live in Zürich");
        assert_eq!(
            line_of(0..24, 0.9),
            Some("Well, I live in Zürich".to_owned())
        );
        for bytes in [6..18, 25..36, 0..1_000, 0..19, Range { start: 24, end: 6 }] {
            assert_eq!(line_of(bytes.clone(), 0.9), alone, "{bytes:?}");
        }
        for probability in [f32::NAN, -0.1, 1.1] {
            assert_eq!(line_of(0..24, probability), None);
        }
    }

    #[test]
    fn names_that_are_not_in_their_statement_are_left_out() {
        let name = |bytes| MentionedName {
            bytes,
            kind: NameKind::Place,
        };
        let mut statement = read(6..23);
        let inside = [16..23, 16..23];
        let reversed = Range { start: 23, end: 16 };
        let outside = [30..34, 16..18, 16..1_000, reversed, 15..16];
        statement.names = inside.into_iter().chain(outside).map(name).collect();
        let names = names(TEXT, &statement);
        let texts: Vec<_> = names.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["Zürich"]);
    }

    #[test]
    fn a_lone_word_says_nothing_unless_its_script_has_no_spaces() {
        for words in ["and", "sowie", "— ok", "и", "你好", ""] {
            assert!(!says_something(words), "{words}");
        }
        for words in [
            "I run",
            "бегаю утром",
            "我住在里斯本",
            "ฉันอยู่ที่นี่",
            "나는 달린다",
        ] {
            assert!(says_something(words), "{words}");
        }
    }
}
