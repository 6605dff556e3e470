//! Turns to read, and what the reader found.

use std::ops::Range;

use chrono::TimeDelta;
use memfleet_domain::statement::{
    ChangeVectors, MentionedName, RelationScores, Statement, StatementLine, StatementRelation,
};
use memfleet_domain::tense::{PromptTense, TenseScores};
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnStatements,
    TurnText,
};

use super::{Checked, Fields};
use crate::limits;
use crate::proto::{self, internal as wire};

impl From<TurnText> for wire::TurnText {
    fn from(turn: TurnText) -> Self {
        Self {
            speaker: turn.speaker,
            is_assistant: turn.is_assistant,
            text: turn.text,
        }
    }
}

impl Checked for wire::TurnText {
    type Value = TurnText;

    fn check(self, fields: &mut Fields) -> Option<TurnText> {
        let speaker = fields.text("speaker", self.speaker, limits::SUBJECT);
        let text = fields.text("text", self.text, limits::TEXT);
        Some(TurnText {
            speaker: speaker?,
            is_assistant: self.is_assistant,
            text: text?,
        })
    }
}

impl From<TurnInContext> for wire::TurnInContext {
    fn from(turn: TurnInContext) -> Self {
        Self {
            turn: Some(turn.turn.into()),
            previous: turn.previous.map(Into::into),
        }
    }
}

impl Checked for wire::TurnInContext {
    type Value = TurnInContext;

    fn check(self, fields: &mut Fields) -> Option<TurnInContext> {
        let turn = fields.message("turn", self.turn);
        let previous = match self.previous {
            Some(previous) => fields.message("previous", Some(previous)).map(Some),
            None => Some(None),
        };
        Some(TurnInContext {
            turn: turn?,
            previous: previous?,
        })
    }
}

impl From<Vec<TurnInContext>> for wire::StatementsRequest {
    fn from(turns: Vec<TurnInContext>) -> Self {
        Self {
            turns: turns.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for wire::StatementsRequest {
    type Value = Vec<TurnInContext>;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        fields.messages("turns", self.turns, limits::READ_TURNS)
    }
}

impl From<ReaderAnswers<Vec<Statement>>> for wire::StatementsResponse {
    fn from(found: ReaderAnswers<Vec<Statement>>) -> Self {
        let turns = found.answers.into_iter();
        let turns = turns.map(|statements| wire::TurnReading {
            statements: statements.into_iter().map(Into::into).collect(),
        });
        Self {
            reader: found.reader,
            turns: turns.collect(),
        }
    }
}

impl Checked for wire::StatementsResponse {
    type Value = ReaderAnswers<Vec<Statement>>;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let turns = fields.each("turns", self.turns, usize::MAX, |fields, turn| {
            fields.messages("statements", turn.statements, usize::MAX)
        });
        Some(ReaderAnswers {
            reader: self.reader,
            answers: turns?,
        })
    }
}

impl From<Statement> for wire::Statement {
    fn from(statement: Statement) -> Self {
        Self {
            bytes: Some(span(&statement.bytes)),
            kind: proto::StatementKind::from(statement.kind).into(),
            kind_probability: statement.kind_probability,
            owner: proto::StatementOwner::from(statement.owner).into(),
            owner_probability: statement.owner_probability,
            negated: statement.negated,
            keep: statement.keep,
            ends: statement.ends,
            names: statement.names.into_iter().map(Into::into).collect(),
            line: statement.line.map(Into::into),
            vectors: statement
                .vectors
                .map(ChangeVectors::to_bytes)
                .unwrap_or_default(),
        }
    }
}

impl Checked for wire::Statement {
    type Value = Statement;

    fn check(self, fields: &mut Fields) -> Option<Statement> {
        let bytes = match self.bytes {
            Some(bytes) => Some(range(bytes)),
            None => fields.refuse("bytes", "is required"),
        };
        let kind = fields.word("kind", self.kind);
        let kind_probability = fields.probability("kind_probability", self.kind_probability);
        let owner = fields.word("owner", self.owner);
        let owner_probability = fields.probability("owner_probability", self.owner_probability);
        let negated = fields.probability("negated", self.negated);
        let keep = fields.probability("keep", self.keep);
        let ends = fields.probability("ends", self.ends);
        let names = fields.messages("names", self.names, usize::MAX);
        let line = fields.optional("line", self.line);
        let vectors = match (&*self.vectors, ChangeVectors::from_bytes(&self.vectors)) {
            ([], _) => Some(None),
            (_, Some(vectors)) => Some(Some(vectors)),
            _ => fields.refuse(
                "vectors",
                "are not two vectors of 64 signed bytes and the length 127",
            ),
        };
        Some(Statement {
            bytes: bytes?,
            kind: kind?,
            kind_probability: kind_probability?,
            owner: owner?,
            owner_probability: owner_probability?,
            negated: negated?,
            keep: keep?,
            ends: ends?,
            names: names?,
            line: line?,
            vectors: vectors?,
        })
    }
}

impl From<StatementLine> for wire::StatementLine {
    fn from(line: StatementLine) -> Self {
        Self {
            bytes: Some(span(&line.bytes)),
            probability: line.probability,
        }
    }
}

impl Checked for wire::StatementLine {
    type Value = StatementLine;

    fn check(self, fields: &mut Fields) -> Option<StatementLine> {
        let bytes = match self.bytes {
            Some(bytes) => Some(range(bytes)),
            None => fields.refuse("bytes", "is required"),
        };
        let probability = fields.probability("probability", self.probability);
        Some(StatementLine {
            bytes: bytes?,
            probability: probability?,
        })
    }
}

impl From<MentionedName> for wire::MentionedName {
    fn from(name: MentionedName) -> Self {
        Self {
            bytes: Some(span(&name.bytes)),
            kind: proto::NameKind::from(name.kind).into(),
        }
    }
}

impl Checked for wire::MentionedName {
    type Value = MentionedName;

    fn check(self, fields: &mut Fields) -> Option<MentionedName> {
        let bytes = match self.bytes {
            Some(bytes) => Some(range(bytes)),
            None => fields.refuse("bytes", "is required"),
        };
        let kind = fields.word("kind", self.kind);
        Some(MentionedName {
            bytes: bytes?,
            kind: kind?,
        })
    }
}

impl From<TurnStatements> for wire::TurnStatements {
    fn from(turn: TurnStatements) -> Self {
        Self {
            turn: Some(turn.turn.into()),
            statements: turn.statements.iter().map(span).collect(),
        }
    }
}

impl Checked for wire::TurnStatements {
    type Value = TurnStatements;

    fn check(self, fields: &mut Fields) -> Option<TurnStatements> {
        let turn: TurnText = fields.message("turn", self.turn)?;
        let mut free = 0;
        let spans = self.statements;
        let statements = fields.each("statements", spans, limits::STATEMENTS, |fields, bytes| {
            let bytes = range(bytes);
            if turn.text.get(bytes.clone()).is_none_or(str::is_empty) {
                return fields.refuse(
                    "",
                    "must be bytes of the text, from one character to another",
                );
            }
            if bytes.start < free {
                return fields.refuse("", "must begin behind the statement before it");
            }
            free = bytes.end;
            Some(bytes)
        });
        Some(TurnStatements {
            statements: statements?,
            turn,
        })
    }
}

impl From<TurnComparison> for wire::TurnComparison {
    fn from(pair: TurnComparison) -> Self {
        Self {
            earlier: Some(pair.earlier.into()),
            later: Some(pair.later.into()),
            gap: Some(prost_types::Duration {
                seconds: pair.gap.num_seconds(),
                nanos: pair.gap.subsec_nanos(),
            }),
            question: pair.question,
        }
    }
}

impl Checked for wire::TurnComparison {
    type Value = TurnComparison;

    fn check(self, fields: &mut Fields) -> Option<TurnComparison> {
        let earlier = fields.message("earlier", self.earlier);
        let later = fields.message("later", self.later);
        let gap = self.gap.unwrap_or_default();
        let gap = u32::try_from(gap.nanos)
            .ok()
            .and_then(|nanos| TimeDelta::new(gap.seconds, nanos))
            .filter(|gap| *gap >= TimeDelta::zero());
        let gap = gap.or_else(|| fields.refuse("gap", "must be a duration, and not negative"));
        let question = match self.question {
            Some(question) => fields.text("question", question, limits::TEXT).map(Some),
            None => Some(None),
        };
        Some(TurnComparison {
            earlier: earlier?,
            later: later?,
            gap: gap?,
            question: question?,
        })
    }
}

impl From<Vec<TurnComparison>> for wire::RelationsRequest {
    fn from(pairs: Vec<TurnComparison>) -> Self {
        Self {
            pairs: pairs.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for wire::RelationsRequest {
    type Value = Vec<TurnComparison>;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        fields.messages("pairs", self.pairs, limits::READ_TURNS)
    }
}

impl From<ReaderAnswers<Vec<RelationScores>>> for wire::RelationsResponse {
    fn from(found: ReaderAnswers<Vec<RelationScores>>) -> Self {
        let pairs = found.answers.into_iter();
        let pairs = pairs.map(|relations| wire::PairReading {
            relations: relations.into_iter().map(Into::into).collect(),
        });
        Self {
            reader: found.reader,
            pairs: pairs.collect(),
        }
    }
}

impl Checked for wire::RelationsResponse {
    type Value = ReaderAnswers<Vec<RelationScores>>;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let pairs = fields.each("pairs", self.pairs, usize::MAX, |fields, pair| {
            fields.messages("relations", pair.relations, usize::MAX)
        });
        Some(ReaderAnswers {
            reader: self.reader,
            answers: pairs?,
        })
    }
}

impl From<RelationScores> for wire::RelationScores {
    fn from(scores: RelationScores) -> Self {
        Self {
            later: scores.later as u32,
            earlier: scores.earlier as u32,
            unrelated: scores.probability(StatementRelation::Unrelated),
            ends: scores.probability(StatementRelation::Ends),
            corrects: scores.probability(StatementRelation::Corrects),
            adds: scores.probability(StatementRelation::Adds),
            restates: scores.probability(StatementRelation::Restates),
        }
    }
}

impl Checked for wire::RelationScores {
    type Value = RelationScores;

    fn check(self, fields: &mut Fields) -> Option<RelationScores> {
        let mut probabilities = [0.0; StatementRelation::ALL.len()];
        for (place, relation) in probabilities.iter_mut().zip(StatementRelation::ALL) {
            let (name, value) = match relation {
                StatementRelation::Unrelated => ("unrelated", self.unrelated),
                StatementRelation::Ends => ("ends", self.ends),
                StatementRelation::Corrects => ("corrects", self.corrects),
                StatementRelation::Adds => ("adds", self.adds),
                StatementRelation::Restates => ("restates", self.restates),
            };
            *place = fields.probability(name, value)?;
        }
        Some(RelationScores {
            later: self.later as usize,
            earlier: self.earlier as usize,
            probabilities,
        })
    }
}

impl From<NeedQuestion> for wire::NeedsRequest {
    fn from(question: NeedQuestion) -> Self {
        Self {
            prompt: question.prompt,
            before: question.before,
            lines: question.lines.into_iter().map(Into::into).collect(),
        }
    }
}

impl Checked for wire::NeedsRequest {
    type Value = NeedQuestion;

    fn check(self, fields: &mut Fields) -> Option<NeedQuestion> {
        let prompt = fields.text("prompt", self.prompt, limits::TEXT);
        let before = fields.text("before", self.before, limits::TEXT);
        let lines = fields.messages("lines", self.lines, limits::NEED_LINES);
        Some(NeedQuestion {
            prompt: prompt?,
            before: before?,
            lines: lines?,
        })
    }
}

impl From<PromptReading> for wire::NeedsResponse {
    fn from(reading: PromptReading) -> Self {
        Self {
            reader: reading.reader,
            needs: reading.needs,
            tense: Some(reading.tense.into()),
        }
    }
}

impl Checked for wire::NeedsResponse {
    type Value = PromptReading;

    fn check(self, fields: &mut Fields) -> Option<Self::Value> {
        let needs = fields.each("needs", self.needs, usize::MAX, |fields, need| {
            fields.probability("", need)
        });
        let tense = match self.tense {
            Some(tense) => fields.message("tense", Some(tense)),
            None => Some(TenseScores::certain(PromptTense::Now)),
        };
        Some(PromptReading {
            reader: self.reader,
            tense: tense?,
            needs: needs?,
        })
    }
}

impl From<TenseScores> for wire::TenseScores {
    fn from(scores: TenseScores) -> Self {
        let [now, before, as_of, all] = PromptTense::ALL.map(|it| scores.probability(it));
        Self {
            now,
            before,
            as_of,
            all,
        }
    }
}

impl Checked for wire::TenseScores {
    type Value = TenseScores;

    fn check(self, fields: &mut Fields) -> Option<TenseScores> {
        let mut probabilities = [0.0; PromptTense::ALL.len()];
        for (place, tense) in probabilities.iter_mut().zip(PromptTense::ALL) {
            let (name, value) = match tense {
                PromptTense::Now => ("now", self.now),
                PromptTense::Before => ("before", self.before),
                PromptTense::AsOf => ("as_of", self.as_of),
                PromptTense::All => ("all", self.all),
            };
            *place = fields.probability(name, value)?;
        }
        Some(TenseScores { probabilities })
    }
}

fn span(bytes: &Range<usize>) -> wire::ByteSpan {
    wire::ByteSpan {
        start: bytes.start as u32,
        end: bytes.end as u32,
    }
}

fn range(bytes: wire::ByteSpan) -> Range<usize> {
    bytes.start as usize..bytes.end as usize
}
