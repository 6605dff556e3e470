//! The understanding corpus (`data/understanding`, whose README has the formats): scenarios, which
//! are short conversations whose clauses, pairs of statements and questions are labelled; contrast
//! sets of them; pairs of statements alone; turns whose names are marked; judged lines of scenarios
//! and of long talks; long conversations with all their changes; prompts with the memory that they meet; labels of the clauses of real
//! meetings.

mod checking;
mod contrast;
mod corpus;
mod folders;
mod histories;
mod judged;
mod lines;
mod meetings;
mod names;
mod needs;
mod pairs;
mod reading;
mod talks;

use chrono::NaiveDateTime;
use memfleet_domain::statement::{StatementKind, StatementOwner, StatementRelation};

pub use checking::ScenarioBounds;
pub use corpus::{MAX_REPEATED_OPENINGS, MAX_SHARED_RUNS, UnderstandingCorpus};
pub use folders::{CorpusError, WriterFolder};
pub use histories::{History, HistoryChange, HistoryQuestion};
pub use judged::{JudgedLine, LineJudgement};
pub use lines::LineError;
pub use meetings::{LabelledClause, MeetingLabels, MeetingTurn};
pub use names::{MarkedName, NamedTurn};
pub use needs::{LabelledPrompt, MemoryLine, NeedSpace, PromptKind};
pub use pairs::{LaterTurn, MarkedTurn, PairGroup};
pub use reading::read;
pub use talks::{JudgedSentence, JudgedTalk, JudgedTurn};

/// Defines an enum whose variants have names in files.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every one, in the order of the README.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.name() == name)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}
use named;

named! {
    /// Kind of a scenario: the change in it, or what only looks like one.
    ScenarioKind {
        /// Stated change of a value.
        PlainChange = "plain_change",
        /// Change that follows from what is told, without a cue word.
        ImplicitChange = "implicit_change",
        /// Value that was wrong from the start.
        Correction = "correction",
        /// Something stops.
        Negation = "negation",
        /// A figure changes.
        NumberChange = "number_change",
        /// There and back, or a correction of a correction.
        BackAndForth = "back_and_forth",
        /// A passing state or a plan ends by itself.
        Expiry = "expiry",
        /// Somebody else's value.
        OtherPerson = "other_person",
        /// Similar statement about another thing.
        OtherObject = "other_object",
        /// Considered, rejected or suggested.
        WishOrPlan = "wish_or_plan",
        /// Fiction, quotations, logs, hostile text.
        QuoteOrFiction = "quote_or_fiction",
        /// Several values that hold together.
        SideBySide = "side_by_side",
        /// Known value in other words, finer, or in other units.
        MoreDetail = "more_detail",
        /// Many similar mentions.
        LongTalk = "long_talk",
    }
}

impl ScenarioKind {
    /// True where something changes.
    pub fn changes(self) -> bool {
        self <= Self::Expiry
    }
}

named! {
    /// Time that a question asks about.
    QuestionTense {
        /// The value that holds when it is asked.
        Now = "now",
        /// An earlier value.
        Before = "before",
        /// The value as of a date that it names.
        AsOf = "asof",
        /// All values.
        All = "all",
        /// Question whose answer the conversation does not hold.
        Unknown = "unknown",
    }
}

/// A conversation with its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledScenario {
    /// Number, unique within its writer.
    pub number: String,
    /// Tag of the main language.
    pub language: String,
    /// Kind of the scenario.
    pub kind: ScenarioKind,
    /// The turns, in order of time.
    pub turns: Vec<ScenarioTurn>,
    /// Statements about the same matter.
    pub pairs: Vec<StatementPair>,
    /// Questions about it.
    pub questions: Vec<ScenarioQuestion>,
}

/// A turn with its clauses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioTurn {
    /// When it was said.
    pub time: NaiveDateTime,
    /// Speaker and words.
    pub said: SpokenText,
    /// The clauses, in order.
    pub statements: Vec<LabelledStatement>,
}

/// A text and its speaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpokenText {
    /// Who said it.
    pub speaker: String,
    /// True for an assistant.
    pub is_assistant: bool,
    /// The words; ` ⏎ ` is a line break.
    pub text: String,
}

/// A clause of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledStatement {
    /// The clause, verbatim.
    pub span: String,
    /// Kind of the statement.
    pub kind: StatementKind,
    /// Owner: `me`, `us`, a person in the words of the text, or `it:` and a thing.
    pub owner: String,
    /// Its times and marks.
    pub details: StatementDetails,
}

impl LabelledStatement {
    /// Class of the owner.
    pub fn owner_class(&self) -> StatementOwner {
        let named = StatementOwner::named(&self.owner);
        named.unwrap_or(match self.owner.starts_with("it:") {
            true => StatementOwner::Thing,
            false => StatementOwner::Person,
        })
    }
}

/// Times and marks of a statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementDetails {
    /// Since when it holds, as far as text and times tell: a year, a month or a day.
    pub from: Option<String>,
    /// Until when it holds, likewise.
    pub until: Option<String>,
    /// True for a denial, or the statement that something is over.
    pub is_negated: bool,
    /// True where it is worth remembering for months.
    pub is_kept: bool,
    /// The statement that it is understood with.
    pub context: Option<StatementPlace>,
}

/// Place of a statement: its turn, and its place in the turn, each from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementPlace {
    /// The turn.
    pub turn: usize,
    /// The statement in the turn.
    pub place: usize,
}

/// Two statements about the same matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementPair {
    /// The later one.
    pub later: StatementPlace,
    /// Its effect on the other.
    pub relation: StatementRelation,
    /// The earlier one.
    pub earlier: StatementPlace,
    /// Since when: a year, a month or a day. Present where the later one ends the earlier one.
    pub since: Option<String>,
}

/// A question about a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioQuestion {
    /// Time that it asks about.
    pub tense: QuestionTense,
    /// When it is asked: after the last turn.
    pub asked_at: NaiveDateTime,
    /// The question.
    pub text: String,
    /// Strings of turns that mark a right answer; none for [`QuestionTense::Unknown`].
    pub right: Vec<String>,
    /// Strings of turns that mark a wrong answer.
    pub wrong: Vec<String>,
    /// Turns that state a right answer.
    pub evidence: Vec<usize>,
    /// Turns that state a wrong answer as if it were true.
    pub wrong_evidence: Vec<usize>,
}
