//! `P_ret` of AMA section 3.2: a query that stands alone u′, its intent B and how many memories it takes `K_dyn`.

use memfleet_domain::Timestamp;
use memfleet_domain::intent::Intent;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::handles::{self, Turn};
use crate::press::Template;
use crate::reading::Misread;
use crate::words;

/// Longest query, in characters.
const LONGEST: usize = 2000;
/// Most memories that a model may ask for.
const MOST: u32 = 100;

/// A query in its context.
#[derive(Serialize)]
pub struct Asking<'a> {
    /// As it was asked.
    pub query: &'a str,
    /// When.
    pub now: Timestamp,
    /// What was said last, in order.
    #[serde(serialize_with = "handles::turns")]
    pub turns: &'a [Turn],
}

impl Template for Asking<'_> {
    const ID: PromptId = PromptId {
        name: "query",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/query.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    /// u′: the query without its context.
    pub query: String,
    /// B.
    pub intent: Intent,
    /// `K_dyn`, 1 to 100.
    pub count: u32,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "AMA's intent is a vector of four bits"
)]
pub struct Said {
    query: String,
    fine: bool,
    r#abstract: bool,
    event: bool,
    atomic: bool,
    count: u32,
}

impl Prompt for Asking<'_> {
    const AGENT: Agent = Agent::Retriever;
    type Said = Said;
    type Meant = Understood;

    fn check(&self, said: Said) -> Result<Understood, Misread> {
        let query = words::line(&said.query, LONGEST).map_err(|_| {
            Misread(format!(
                "`query` must be one line of 1 to {LONGEST} characters"
            ))
        })?;
        Ok(Understood {
            query,
            intent: Intent {
                fine: said.fine,
                abstracted: said.r#abstract,
                event: said.event,
                atomic: said.atomic,
            },
            count: said.count.clamp(1, MOST),
        })
    }
}
