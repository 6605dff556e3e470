//! The closed vocabularies of derived memory and of answers: enums of the domain and of the wire, value by value.

use memfleet_domain::derivation::{ChangeKind, Contradiction, Status};
use memfleet_domain::episode::Trigger;
use memfleet_domain::fact::{Pattern, Stance};
use memfleet_domain::narrative::Momentum;
use memfleet_ports::memory::{AnswerMode, Outcome};

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
    ($($domain:ident = $message:ident { $($value:ident),* })*) => {
        $(
            impl From<$domain> for proto::$message {
                fn from(value: $domain) -> Self {
                    match value {
                        $($domain::$value => Self::$value,)*
                    }
                }
            }

            impl Word for $domain {
                const NAME: &'static str = stringify!($message);

                fn of_number(number: i32) -> Option<Self> {
                    match proto::$message::try_from(number).ok()? {
                        proto::$message::Unspecified => None,
                        $(proto::$message::$value => Some(Self::$value),)*
                    }
                }
            }
        )*
    };
}

words! {
    Pattern = Pattern { Verb, VerbObject, VerbComplement, VerbObjectObject, VerbObjectComplement }
    Stance = Stance { States, Corrects }
    Trigger = EpisodeTrigger { TopicShift, Request, Saturation, Pause }
    Momentum = Momentum { Active, Inactive }
    Contradiction = Contradiction { Functional, Negation, Number, Correction }
    Status = ConflictStatus { Found, Settled, Open, Dismissed }
    AnswerMode = AnswerMode { Auto, Rules, Model }
    Outcome = AnswerOutcome { Answered, Abstained }
    ChangeKind = ChangeKind { Derived, Updated, Corrected, Reverted, Rebuilt }
}

impl Fields {
    /// A value that must be said.
    pub(super) fn word<T: Word>(&mut self, field: &str, number: i32) -> Option<T> {
        T::of_number(number).or_else(|| {
            let problem = format!("{number} is not allowed here; see the enum {}", T::NAME);
            self.refuse(field, problem)
        })
    }
}
