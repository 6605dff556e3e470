//! The closed vocabularies of derived memory, of answers and of context assembly: enums of the domain and of the wire, value by value.

use memfleet_domain::assembly::{
    AuditMode, Decision, DropReason, FailurePolicy, Gate, GateMode, GateOutcome, Granularity,
    OrderPolicy, ProviderFormat, Reason, SessionOrigin, Strategy, Termination, TrustMode,
    UntrustedPolicy,
};
use memfleet_domain::derivation::{ChangeKind, Contradiction, Status};
use memfleet_domain::episode::Trigger;
use memfleet_domain::fact::{Pattern, Stance};
use memfleet_domain::narrative::Momentum;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::statement::{NameKind, StatementKind, StatementOwner};
use memfleet_domain::topic::TopicAction;
use memfleet_ports::assembly::EditOperation;
use memfleet_ports::memory::{AnswerMode, HitGranularity, Outcome};
use memfleet_ports::settings::SettingKind;

use super::Fields;
use crate::proto;

/// An enum that both sides have.
pub(super) trait Word: Sized {
    /// Its name in the proto.
    const NAME: &'static str;

    /// The value with this number; none for the unspecified one.
    fn of_number(number: i32) -> Option<Self>;
}

macro_rules! words {
    ($package:ident: $($domain:ident = $message:ident { $($value:ident),* })*) => {
        $(
            impl From<$domain> for $package::$message {
                fn from(value: $domain) -> Self {
                    match value {
                        $($domain::$value => Self::$value,)*
                    }
                }
            }

            impl Word for $domain {
                const NAME: &'static str = stringify!($message);

                fn of_number(number: i32) -> Option<Self> {
                    match $package::$message::try_from(number).ok()? {
                        $package::$message::Unspecified => None,
                        $($package::$message::$value => Some(Self::$value),)*
                    }
                }
            }
        )*
    };
}

words! { proto:
    StatementKind = StatementKind { State, Event, Plan, Wish, Question, Quote, Hearsay, Instruction, Passing, Small, General }
    StatementOwner = StatementOwner { Speaker, Group, Addressee, Person, Thing }
    NameKind = NameKind { Person, Place, Group, Thing }
    Pattern = Pattern { Verb, VerbObject, VerbComplement, VerbObjectObject, VerbObjectComplement }
    Stance = Stance { States, Corrects }
    Trigger = EpisodeTrigger { TopicShift, Request, Saturation, Pause }
    Momentum = Momentum { Active, Inactive }
    Contradiction = Contradiction { Functional, Negation, Number, Correction }
    Status = ConflictStatus { Found, Settled, Open, Dismissed, Possible }
    AnswerMode = AnswerMode { Auto, Rules, Model }
    Outcome = AnswerOutcome { Answered, Abstained }
    ChangeKind = ChangeKind { Derived, Updated, Corrected, Reverted, Rebuilt }
    Strategy = Strategy { Append, System, Tool, None }
    ProviderFormat = ProviderFormat { OpenaiChat, OpenaiResponses, AnthropicMessages, Gemini, OllamaChat }
    GateMode = GateMode { Auto, Always, Never }
    Gate = GateKind { Policy, Rules, Routing, Relevance }
    GateOutcome = GateOutcome { Pass, Skip, Force, Abstain }
    Decision = Decision { Injected, Fallback, Skipped }
    SessionOrigin = SessionOrigin { Given, Request, Continued, New, Forked }
    Reason = AssemblyReason { GateNever, GateAlways, Empty, Pleasantry, Command, CodeOnly, MemoryReference, Undecided, NeedsMemory, NeedsNoMemory, Unsure, ColdSpace, NoMemory, NoVectors, OtherEmbeddingSpace, SwitchedOff, Relevant, BelowThreshold, NotScored, NoTarget, NoQueryText, BudgetZero, NoHeadroom, BudgetTooSmall, BudgetUsedUp, NothingFound, RetrievalUnavailable, StrategyNone, SystemUnsupported, ToolsUnsupported, ToolChoiceConflict, Sticky, ToolsOffered, UnknownSpace }
    DropReason = DropReason { BelowThreshold, Duplicate, CurrentSession, DerivedFromCurrent, DerivedFromIncluded, InPrompt, RecencyFilter, Superseded, PerSessionCap, PerSourceCap, MaxItems, Budget, TooLong, Untrusted, Policy, Blank, InvalidScore }
    TrustMode = TrustMode { Plain, Delimited, Datamarked }
    OrderPolicy = OrderPolicy { Chronological, Rank, BestLast, Sandwich }
    UntrustedPolicy = UntrustedPolicy { Include, DownRank, Segregate, Exclude }
    FailurePolicy = FailurePolicy { Open, Closed }
    Granularity = Granularity { Verbatim, Episode, Summary, Fact, Triplet, Profile }
    AuditMode = AuditMode { Full, Redacted, Off }
    TopicAction = TopicAction { Keep, LeaveOut, Tag }
    SearchQuality = SearchQuality { Fast, Balanced, Thorough }
    HitGranularity = RecallGranularity { Turn, Statement }
    SettingKind = DocumentKind { Policy, Template, ModelProfile, Exemplars }
    Termination = Termination { ModelAnswered, RoundLimit, TokenBudget, RepeatedQuery, NoNewResults, Deadline, ClientToolPending, UpstreamError, ToolsRejected }
    EditOperation = EditOperation { AppendText, AppendPart, AppendSystem, AppendSystemPart, InsertSystem, AddTool }
}

impl Fields {
    /// A value that must be said.
    pub(super) fn word<T: Word>(&mut self, field: &str, number: i32) -> Option<T> {
        T::of_number(number).or_else(|| {
            let problem = format!("{number} is not allowed here; see the enum {}", T::NAME);
            self.refuse(field, problem)
        })
    }

    /// A value that may be left out.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn optional_word<T: Word>(&mut self, field: &str, number: i32) -> Option<Option<T>> {
        match number {
            0 => Some(None),
            number => self.word(field, number).map(Some),
        }
    }
}

/// The number of a value, 0 for none.
pub(super) fn number<M: Into<i32>, T: Into<M>>(value: Option<T>) -> i32 {
    value.map_or(0, |value| value.into().into())
}
