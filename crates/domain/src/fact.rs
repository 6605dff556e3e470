//! The fact: one statement of a turn with the interval in which it holds (AMA section 3.1, fact
//! knowledge memory K = {k, R, Ω}). A fact is a derivation: it names the words of the turn that it
//! rests on, and changes by new versions only. The reader of turns gives the words themselves and
//! labels; a language model gives a sentence of its own and its clause.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::ids::TurnId;
use crate::statement::{
    ChangeVectors, NameKind, RelationScores, StatementKind, StatementOwner, stored_vectors,
};
use crate::time::{TimeRange, Timestamp};

/// One of the five sentence patterns of AMA section 3.1: subject, verb, object, complement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// S-V: "Ada moved".
    Verb,
    /// S-V-O: "Ada bought a piano".
    VerbObject,
    /// S-V-C: "Ada is a nurse", "Ada lives in Lisbon".
    VerbComplement,
    /// S-V-O-O: "Ada gave Ben a book".
    VerbObjectObject,
    /// S-V-O-C: "Ada painted the door red".
    VerbObjectComplement,
}

impl Pattern {
    /// Every pattern.
    pub const ALL: [Self; 5] = [
        Self::Verb,
        Self::VerbObject,
        Self::VerbComplement,
        Self::VerbObjectObject,
        Self::VerbObjectComplement,
    ];
}

/// A clause in its parts, in the words that a reader is shown: references resolved, nothing folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clause {
    /// Which parts it has.
    pub pattern: Pattern,
    /// Who or what it is about, by name: "Ada", "Ada's sister".
    pub subject: String,
    /// The verb in its base form, with particle or preposition: "live in".
    pub predicate: String,
    /// What the verb acts on; of two objects the one that receives.
    pub object: Option<String>,
    /// What is said of subject or object; of two objects the thing given.
    pub complement: Option<String>,
    /// Whether it denies what it says.
    pub negated: bool,
}

/// What a fact claims, in keys that compare: case folded, articles and inflection gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Claim {
    /// Key of the subject.
    pub subject: String,
    /// What of it is told: a known attribute (`residence`, `employer`, …) however it was worded, else the predicate.
    pub attribute: String,
    /// The value that it has; empty for a clause without object and complement.
    pub value: String,
}

/// Labels of a fact that is a statement in its own words, by the reader of turns. Probabilities are
/// from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StatementLabels {
    /// Kind of the statement.
    pub kind: StatementKind,
    /// Probability of the kind.
    pub kind_probability: f32,
    /// Person or thing that it is about.
    pub owner: StatementOwner,
    /// Probability of the owner.
    pub owner_probability: f32,
    /// Probability that it says that something is not so, or no longer.
    pub negated: f32,
    /// Probability that it is worth remembering for months.
    pub keep: f32,
    /// Probability that it says when it ends itself, as "until June" does. 0 in facts of earlier
    /// versions.
    #[serde(default)]
    pub ends: f32,
    /// True where a topic to keep stands over that.
    #[serde(default)]
    pub kept: bool,
    /// Vectors by which later statements find it and by which it finds earlier ones. Absent in facts
    /// of earlier versions.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "stored_vectors"
    )]
    pub vectors: Option<ChangeVectors>,
}

impl StatementLabels {
    /// Probability that a later statement changes an earlier one for good. An event that was told
    /// stays true, so nothing ends it; it can be corrected. The labels of either may be missing.
    pub fn change_probability(
        earlier: Option<&Self>,
        later: Option<&Self>,
        scores: &RelationScores,
    ) -> f32 {
        let is_event = earlier.is_some_and(|it| it.kind == StatementKind::Event);
        let passes = later.map_or(0.0, |it| it.ends);
        scores.lasting_change(match is_event {
            true => 1.0,
            false => passes,
        })
    }

    /// True for a statement about its speaker or a group with the speaker.
    pub fn is_own(&self) -> bool {
        matches!(self.owner, StatementOwner::Speaker | StatementOwner::Group)
    }

    /// True for a statement about another person or the one who is spoken to. Without the name of its
    /// owner its line could not be understood alone.
    pub fn is_of_another(&self) -> bool {
        matches!(
            self.owner,
            StatementOwner::Person | StatementOwner::Addressee
        )
    }
}

/// Line of a profile: a statement with the words beside it in its sentence that are not worth
/// keeping by themselves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactLine {
    /// Words of the turn, as they stand there.
    pub text: String,
    /// Bytes of the turn's searchable text that they are.
    pub bytes: Range<u32>,
    /// Probability that it is said in earnest of the speaker, understood alone, and worth knowing for
    /// months.
    pub probability: f32,
}

impl FactLine {
    /// Least probability by which profiles list a line, chosen by a reading of lines (docs/benchmarks.md,
    /// "Understanding").
    pub const LEAST_PROBABILITY: f32 = 0.8;
}

/// How a fact relates to what was told before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// It states how things are from some time on.
    #[default]
    States,
    /// It says that what was told before was wrong from the start ("no, I meant …").
    Corrects,
}

/// A fact as an extractor found it in one turn, before anything is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Draft {
    /// Words of the turn, as they stand there, or the sentence of a language model.
    pub text: String,
    /// Parts of the sentence, where a language model found them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clause: Option<Clause>,
    /// Labels of the statement, where the text is one in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementLabels>,
    /// What compares.
    pub claim: Claim,
    /// How it relates to what was told before.
    pub stance: Stance,
    /// When the turn said so: τ of AMA section 3.1. Absent in facts that were stored before it was kept.
    #[serde(default)]
    pub said_at: Option<Timestamp>,
    /// The bytes of the turn's searchable text that say so.
    pub evidence: Range<u32>,
    /// When it holds, absolute; an absent start is the time of the turn, an absent end is open. An end in the past is a fact of
    /// the past ("I used to live in Rome").
    pub valid: TimeRange,
    /// Other turns that words were taken from: R of AMA section 3.1.
    pub related: Vec<TurnId>,
    /// How sure the extractor is, 0 to 1.
    pub confidence: f32,
    /// Line of a profile that a statement makes. Absent where it is not worth one, and in facts of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<FactLine>,
    /// Names that a statement mentions, each once, in its order. Absent in facts of earlier versions:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<FactName>,
    /// Names of the topics that tag it. Absent in facts of earlier versions: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
}

/// Name that a fact mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactName {
    /// The name, as the turn writes it.
    pub text: String,
    /// Likeliest kind of what it names.
    pub kind: NameKind,
}

impl Draft {
    /// True for a statement in the words of its turn, whether a language model gave it a clause or
    /// not, and for the sentence by which a caller corrected one.
    pub fn is_statement(&self) -> bool {
        self.statement.is_some() || self.clause.is_none()
    }

    /// True for a fact that profiles list; statements may be there to be found and ended alone.
    pub fn is_listed(&self) -> bool {
        let is_good = |line: &FactLine| line.probability >= FactLine::LEAST_PROBABILITY;
        let is_line = || self.line.as_ref().is_some_and(is_good);
        let is_listed = |labels: &StatementLabels| match labels.kept {
            true => labels.is_own(),
            false => !labels.is_of_another() && is_line(),
        };
        self.statement.as_ref().is_none_or(is_listed)
    }

    /// Words of its line in a profile.
    pub fn listed(&self) -> &str {
        self.line.as_ref().map_or(&self.text, |line| &line.text)
    }

    /// Leaves the words of the statement alone of its line.
    pub fn shrink_line(&mut self) {
        if let Some(line) = &mut self.line {
            line.text.clone_from(&self.text);
            line.bytes = self.evidence.clone();
        }
    }

    /// True where it denies something.
    pub fn is_negated(&self) -> bool {
        match (&self.statement, &self.clause) {
            (Some(labels), _) => labels.negated >= 0.5,
            (None, Some(clause)) => clause.negated,
            (None, None) => false,
        }
    }

    /// Verb of its clause, with particle or preposition; empty without a clause.
    pub fn predicate(&self) -> &str {
        self.clause.as_ref().map_or("", |clause| &clause.predicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a store of version 0.1 holds it.
    const EARLIER: &str = r#"{"text":"Ada lives in Rome.","clause":{"pattern":"verb_complement","subject":"Ada","predicate":"live in","object":null,"complement":"Rome","negated":true},"claim":{"subject":"ada","attribute":"residence","value":"rome"},"stance":"states","evidence":{"start":0,"end":15},"valid":{"start":null,"end":null},"related":[],"confidence":0.75}"#;

    #[test]
    fn labels_are_read_whatever_their_vectors_are() {
        let mut vector = [0; ChangeVectors::DIMENSIONS];
        vector[3] = -127;
        let labels = StatementLabels {
            vectors: ChangeVectors::new(vector, vector),
            ..labels(StatementKind::State)
        };
        assert!(labels.vectors.is_some());
        let json = serde_json::to_value(labels).unwrap();
        assert_eq!(
            serde_json::from_value::<StatementLabels>(json.clone()).unwrap(),
            labels
        );
        for vectors in [
            serde_json::json!("AAAA"),
            serde_json::json!("?"),
            serde_json::Value::Null,
        ] {
            let mut json = json.clone();
            json["vectors"] = vectors;
            let read: StatementLabels = serde_json::from_value(json).unwrap();
            assert_eq!(read.vectors, None);
        }
    }

    #[test]
    fn a_fact_of_an_earlier_version_reads_back_with_its_clause() {
        let fact: Draft = serde_json::from_str(EARLIER).unwrap();
        assert!(fact.is_negated() && !fact.is_statement());
        assert_eq!((fact.predicate(), fact.statement), ("live in", None));
        assert_eq!(fact.topics, [""; 0]);
        assert!(!serde_json::to_string(&fact).unwrap().contains("topics"));
    }

    /// Labels of a statement of its speaker that denies nothing.
    fn labels(kind: StatementKind) -> StatementLabels {
        StatementLabels {
            kind,
            kind_probability: 1.0,
            owner: StatementOwner::Speaker,
            owner_probability: 1.0,
            negated: 0.0,
            keep: 1.0,
            ends: 0.0,
            kept: false,
            vectors: None,
        }
    }

    #[test]
    fn an_event_is_corrected_and_not_ended() {
        let scores = RelationScores {
            later: 0,
            earlier: 0,
            probabilities: [0.0, 0.75, 0.25, 0.0, 0.0],
        };
        let later = labels(StatementKind::Event);
        for (earlier, change) in [(StatementKind::State, 1.0), (StatementKind::Event, 0.25)] {
            let earlier = labels(earlier);
            let found = StatementLabels::change_probability(Some(&earlier), Some(&later), &scores);
            assert!((found - change).abs() < 1e-6);
        }
        assert!((StatementLabels::change_probability(None, None, &scores) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_statement_with_a_clause_is_a_statement_that_denies_what_its_labels_deny() {
        let mut fact: Draft = serde_json::from_str(EARLIER).unwrap();
        fact.statement = Some(StatementLabels {
            negated: 0.25,
            ..labels(StatementKind::State)
        });
        assert!(fact.clause.as_ref().is_some_and(|clause| clause.negated));
        assert!(fact.is_statement() && !fact.is_negated());
        (fact.statement, fact.clause) = (None, None);
        assert!(fact.is_statement() && !fact.is_negated());
    }

    #[test]
    fn labels_of_an_earlier_version_say_nothing_of_an_end() {
        let labels = r#"{"kind":"state","kind_probability":1.0,"owner":"speaker","owner_probability":1.0,"negated":0.0,"keep":1.0}"#;
        let labels: StatementLabels = serde_json::from_str(labels).unwrap();
        assert_eq!((labels.ends, labels.kept), (0.0, false));
    }

    #[test]
    fn a_statement_reads_back_with_its_labels_and_without_a_clause() {
        let mut fact: Draft = serde_json::from_str(EARLIER).unwrap();
        fact.clause = None;
        fact.statement = Some(StatementLabels {
            kind: StatementKind::Hearsay,
            kind_probability: 0.5,
            owner: StatementOwner::Person,
            owner_probability: 0.25,
            negated: 0.5,
            keep: 1.0,
            ends: 0.25,
            kept: false,
            vectors: None,
        });
        let stored = serde_json::to_string(&fact).unwrap();
        assert!(!stored.contains("clause"), "{stored}");
        assert_eq!(serde_json::from_str::<Draft>(&stored).unwrap(), fact);
        assert!(fact.is_negated() && fact.is_statement());
    }
}
