//! `P_tri` of AMA section 3.1: whether an episode ends before the newest turn. That a window is full is counted, not asked.

use memfleet_domain::episode::Trigger;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::handles::{self, Turn};
use crate::press::Template;
use crate::reading::Misread;

/// A window whose last turn may open another matter.
#[derive(Serialize)]
pub struct Boundary<'a> {
    /// The turns of the episode so far, and the newest.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
}

impl Template for Boundary<'_> {
    const ID: PromptId = PromptId {
        name: "trigger",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/trigger.v1.j2");
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    decision: Decision,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    GoesOn,
    TopicShift,
    Request,
}

impl Prompt for Boundary<'_> {
    const AGENT: Agent = Agent::Constructor;
    type Said = Said;
    type Meant = Option<Trigger>;

    fn check(&self, said: Said) -> Result<Option<Trigger>, Misread> {
        Ok(match said.decision {
            Decision::GoesOn => None,
            Decision::TopicShift => Some(Trigger::TopicShift),
            Decision::Request => Some(Trigger::Request),
        })
    }
}
