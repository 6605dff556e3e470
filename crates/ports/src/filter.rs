//! Which turns of a space a request means; shared by search, listing, export and forgetting.

use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::Role;

/// Every condition must hold; an empty list sets no condition. The default means every turn that is not replaced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnFilter {
    /// Only these turns.
    pub turns: Vec<TurnId>,
    /// Only these sessions.
    pub sessions: Vec<SessionId>,
    /// None of these sessions.
    pub excluded_sessions: Vec<SessionId>,
    /// Only these speakers (exact).
    pub speakers: Vec<Speaker>,
    /// Only these roles.
    pub roles: Vec<Role>,
    /// Only turns whose event time (else recorded time) lies inside.
    pub time: TimeRange,
    /// Only turns that carry all these labels.
    pub metadata: Vec<(String, String)>,
    /// The state of memory at a past instant.
    pub as_of: AsOf,
    /// Replaced turns too.
    pub include_replaced: bool,
}

impl TurnFilter {
    /// Whether it sets no condition at all, so that it means the whole space.
    pub fn is_everything(&self) -> bool {
        *self
            == Self {
                include_replaced: self.include_replaced,
                ..Self::default()
            }
    }
}
