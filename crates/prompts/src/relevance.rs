//! `P_jud` of AMA section 3.3, first half: which candidates serve a query, and what is still missing.

use memfleet_domain::Timestamp;
use memfleet_ports::language_model::{Agent, PromptId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Prompt;
use crate::dropped::{Dropped, Why};
use crate::handles::{self, place};
use crate::press::Template;
use crate::reading::Misread;
use crate::words;

/// Most things that may be missing, and the longest of them, in characters.
const MOST: usize = 8;
const LONGEST: usize = 200;

/// A memory that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Candidate {
    /// What it is of: when it was said, or when it held.
    pub time: Option<Timestamp>,
    /// Its words.
    pub text: String,
}

/// What was found for a query.
#[derive(Serialize)]
pub struct Judging<'a> {
    /// The query, so that it stands alone.
    pub query: &'a str,
    /// When it was asked.
    pub now: Timestamp,
    /// What was found, best first.
    #[serde(serialize_with = "handles::candidates")]
    pub candidates: &'a [Candidate],
}

impl Template for Judging<'_> {
    const ID: PromptId = PromptId {
        name: "relevance",
        version: 1,
    };
    const SOURCE: &'static str = include_str!("../data/relevance.v1.j2");
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Places of the candidates that serve the query, in their order.
    pub relevant: Vec<usize>,
    /// Whether they are enough.
    pub is_sufficient: bool,
    /// What no candidate tells, in few words each: more to search for.
    pub missing: Vec<String>,
    /// What was left out.
    pub dropped: Dropped,
}

/// The reply.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Said {
    relevant: Vec<String>,
    sufficient: bool,
    missing: Vec<String>,
}

impl Prompt for Judging<'_> {
    const AGENT: Agent = Agent::Judge;
    type Said = Said;
    type Meant = Verdict;

    fn check(&self, said: Said) -> Result<Verdict, Misread> {
        let mut verdict = Verdict {
            is_sufficient: said.sufficient,
            ..Verdict::default()
        };
        for handle in &said.relevant {
            match place(self.candidates, 'C', handle) {
                Some(place) => verdict.relevant.push(place),
                None => verdict.dropped.count(Why::Unknown),
            }
        }
        verdict.relevant.sort_unstable();
        verdict.relevant.dedup();
        for missing in &said.missing {
            match words::line(missing, LONGEST) {
                Ok(line) if verdict.missing.len() < MOST => verdict.missing.push(line),
                _ => verdict.dropped.count(Why::Malformed),
            }
        }
        Ok(verdict)
    }
}
