//! The wordings that dialogues are made of.

use serde::Deserialize;

use super::Wordings;

/// All of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Templates {
    pub(super) attributes: Vec<Attribute>,
    pub(super) fillers: Vec<String>,
    pub(super) replies: Vec<String>,
    pub(super) names: Vec<String>,
}

/// Something of a user that has one value at a time.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) values: Vec<String>,
    pub(super) states: Vec<String>,
    pub(super) changes: Vec<String>,
    pub(super) corrects: Vec<String>,
    pub(super) questions: Vec<String>,
    pub(super) past_questions: Vec<String>,
    pub(super) distractors: Distractors,
}

/// What changes nothing.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Distractors {
    hypothetical: Vec<String>,
    question: Vec<String>,
    negation: Vec<String>,
    others: Vec<String>,
    past: Vec<String>,
    plan: Vec<String>,
    same: Vec<String>,
}

impl Distractors {
    /// Each kind, and whether it names the value that holds.
    pub(super) fn kinds(&self) -> [(bool, &Vec<String>); 7] {
        [
            (false, &self.hypothetical),
            (false, &self.question),
            (false, &self.negation),
            (false, &self.others),
            (false, &self.past),
            (false, &self.plan),
            (true, &self.same),
        ]
    }
}

impl Templates {
    pub(super) fn load(wordings: Wordings) -> Self {
        let text = match wordings {
            Wordings::Developed => include_str!("../../data/updates.json"),
            Wordings::Second => include_str!("../../data/updates-second.json"),
            Wordings::HeldOut => include_str!("../../data/updates-held-out.json"),
        };
        serde_json::from_str(text).expect("the templates are checked by the tests")
    }
}

/// A wording with its values.
pub(super) fn fill(wording: &str, value: &str, old: &str) -> String {
    wording.replace("{value}", value).replace("{old}", old)
}
