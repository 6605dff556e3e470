//! `P_ref` of AMA section 3.4: how conflicts are settled. To update is all that can be said: deleting takes a person's request or a
//! retention policy, and no reply is one.

use memfleet_domain::Timestamp;
use memfleet_domain::ids::ConflictId;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::conflicts::Sentence;
use crate::date;
use crate::dropped::{Dropped, Why};
use crate::handles::{self, Turn, place};
use crate::press::Template;
use crate::reading::Misread;

/// A conflict to settle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Which it is.
    #[serde(skip)]
    pub id: ConflictId,
    /// The fact that is kept.
    pub known: Sentence,
    /// The fact that speaks against it.
    pub new: Sentence,
    /// The turn that states the new one.
    pub evidence: Turn,
}

/// Conflicts to settle.
#[derive(Serialize)]
pub struct Settling<'a> {
    /// In no order.
    #[serde(serialize_with = "handles::conflicts")]
    pub conflicts: &'a [Conflict],
    /// Whether a turn of one of the two facts tells of a date.
    #[serde(skip)]
    pub is_told: &'a (dyn Fn(&Conflict, Timestamp) -> bool + Sync),
    /// Whether a turn takes back what was said.
    #[serde(skip)]
    pub takes_back: &'a (dyn Fn(&Turn) -> bool + Sync),
}

impl Template for Settling<'_> {
    const ID: PromptId = PromptId {
        name: "refresh",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/refresh.v1.j2");
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The known fact ends where the new one begins.
    Update,
    /// The known fact was never true: its interval closes where it began.
    Correct,
    /// Both stay as they are.
    KeepBoth,
}

/// How one conflict is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settlement {
    /// Which.
    pub conflict: ConflictId,
    /// How.
    pub action: Action,
    /// When the new fact began to hold, where the turn tells.
    pub since: Option<Timestamp>,
}

/// Settlements, at most one a conflict; one that is not named stays open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settlements {
    /// In the order of the reply.
    pub made: Vec<Settlement>,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    decisions: Vec<Decision>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Decision {
    conflict: String,
    action: Action,
    #[serde(default)]
    since: Option<String>,
}

impl Prompt for Settling<'_> {
    const AGENT: Agent = Agent::Refresher;
    type Said = Said;
    type Meant = Settlements;

    fn check(&self, said: Said) -> Result<Settlements, Misread> {
        let mut settlements = Settlements::default();
        for decision in &said.decisions {
            match self.settlement(decision, &settlements.made) {
                Ok(made) => {
                    let since = made.since.filter(|since| self.is_told(&made, *since));
                    if since != made.since {
                        settlements.dropped.count(Why::Unsupported);
                    }
                    settlements.made.push(Settlement { since, ..made });
                }
                Err(why) => settlements.dropped.count(why),
            }
        }
        Ok(settlements)
    }
}

impl Settling<'_> {
    /// Whether somebody told of that date, or it is the day of the turn or of the new fact itself. One that nobody told of would move what was
    /// true by as much as the model likes.
    fn is_told(&self, made: &Settlement, since: Timestamp) -> bool {
        let mut conflicts = self.conflicts.iter();
        let conflict = conflicts.find(|conflict| conflict.id == made.conflict);
        conflict.is_some_and(|conflict| {
            let mut own = [Some(conflict.evidence.said_at), conflict.new.from]
                .into_iter()
                .flatten();
            own.any(|own| own.date_naive() == since.date_naive()) || (self.is_told)(conflict, since)
        })
    }

    fn settlement(&self, said: &Decision, before: &[Settlement]) -> Result<Settlement, Why> {
        let place = place(self.conflicts, 'X', &said.conflict).ok_or(Why::Unknown)?;
        let conflict = &self.conflicts[place];
        if before.iter().any(|made| made.conflict == conflict.id) {
            return Err(Why::Malformed);
        }
        // That something was never true takes somebody who says so.
        if said.action == Action::Correct && !(self.takes_back)(&conflict.evidence) {
            return Err(Why::Unsupported);
        }
        let since = date::start(said.since.as_deref())?;
        // What is yet to come has not ended anything.
        if since.is_some_and(|since| since > conflict.evidence.said_at) {
            return Err(Why::Malformed);
        }
        Ok(Settlement {
            conflict: conflict.id,
            action: said.action,
            since,
        })
    }
}
