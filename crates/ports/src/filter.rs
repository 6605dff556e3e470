//! Which turns of a space a request means; shared by search, listing, export and forgetting.

use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::{AcceptedTurn, Role};

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

    /// Whether a turn that is not stored yet passes; it is not replaced yet either.
    pub fn passes(&self, turn: &AcceptedTurn) -> bool {
        fn among<T: PartialEq>(list: &[T], value: &T) -> bool {
            list.is_empty() || list.contains(value)
        }
        let effective = turn.effective_time();
        among(&self.turns, &turn.id)
            && among(&self.sessions, &turn.session)
            && !self.excluded_sessions.contains(&turn.session)
            && among(&self.speakers, &turn.speaker)
            && among(&self.roles, &turn.role)
            && self.time.contains(effective)
            && self
                .as_of
                .happened_by
                .is_none_or(|instant| effective <= instant)
            && self
                .as_of
                .known_at
                .is_none_or(|instant| turn.recorded_at <= instant)
            && self
                .metadata
                .iter()
                .all(|(key, value)| turn.metadata.get(key) == Some(value))
    }
}
