//! The statement: a clause of a turn, in its own words, with what kind of saying it is and whose.

use std::ops::Range;

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Kind of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    /// Holds until something changes it.
    State,
    /// Happened once.
    Event,
    /// Intended or scheduled.
    Plan,
    /// Wished, hypothetical or conditional.
    Wish,
    /// Asks.
    Question,
    /// Quotation, fiction, role play, pasted text.
    Quote,
    /// Report of what others say, which the speaker does not vouch for.
    Hearsay,
    /// To the assistant: once or always.
    Instruction,
    /// True for a short while.
    Passing,
    /// Greetings, thanks, filler.
    Small,
    /// Knowledge about the world, advice.
    General,
}

impl StatementKind {
    /// Every kind, in the order of the reader's scores.
    pub const ALL: [Self; 11] = [
        Self::State,
        Self::Event,
        Self::Plan,
        Self::Wish,
        Self::Question,
        Self::Quote,
        Self::Hearsay,
        Self::Instruction,
        Self::Passing,
        Self::Small,
        Self::General,
    ];

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Event => "event",
            Self::Plan => "plan",
            Self::Wish => "wish",
            Self::Question => "question",
            Self::Quote => "quote",
            Self::Hearsay => "hearsay",
            Self::Instruction => "instruction",
            Self::Passing => "passing",
            Self::Small => "small",
            Self::General => "general",
        }
    }
}

/// Owner of a statement: the person or the thing that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementOwner {
    /// The speaker.
    Speaker,
    /// The speaker and others: family, team.
    Group,
    /// The one who is spoken to.
    Addressee,
    /// Another person.
    Person,
    /// A thing.
    Thing,
}

impl StatementOwner {
    /// Every owner, in the order of the reader's scores.
    pub const ALL: [Self; 5] = [
        Self::Speaker,
        Self::Group,
        Self::Addressee,
        Self::Person,
        Self::Thing,
    ];

    /// The owner of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|owner| owner.name() == name)
    }

    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Speaker => "me",
            Self::Group => "us",
            Self::Addressee => "you",
            Self::Person => "person",
            Self::Thing => "thing",
        }
    }
}

/// Kind of what a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A person, a pet, a character.
    Person,
    /// A town, a country, a street, a building.
    Place,
    /// A company, a team, a club, an authority.
    Group,
    /// A product, a program, a work, a named event.
    Thing,
}

impl NameKind {
    /// Every kind, in the order of the reader's scores.
    pub const ALL: [Self; 4] = [Self::Person, Self::Place, Self::Group, Self::Thing];

    /// The kind of a name in files.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Place => "place",
            Self::Group => "group",
            Self::Thing => "thing",
        }
    }
}

/// Name that a statement mentions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MentionedName {
    /// Bytes of the turn's text.
    pub bytes: Range<usize>,
    /// Likeliest kind.
    pub kind: NameKind,
}

/// Clause of a turn and what a reader says of it. Probabilities are from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Bytes of the turn's text.
    pub bytes: Range<usize>,
    /// Likeliest kind.
    pub kind: StatementKind,
    /// Probability of the kind.
    pub kind_probability: f32,
    /// Likeliest owner.
    pub owner: StatementOwner,
    /// Probability of the owner.
    pub owner_probability: f32,
    /// Probability that it says that something is not so, or no longer.
    pub negated: f32,
    /// Probability that it is worth remembering for months.
    pub keep: f32,
    /// Probability that it names when it ends.
    pub ends: f32,
    /// Names that it mentions, in the order of the text; none overlap.
    pub names: Vec<MentionedName>,
    /// The line of its speaker's profile that it makes; absent where it is not worth one.
    pub line: Option<StatementLine>,
    /// Vectors by which those that it may change are found.
    pub vectors: Option<ChangeVectors>,
}

/// Vectors of a statement as a later and as an earlier one, of length 127 in signed bytes. Those of
/// one version of the reader can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeVectors {
    later: [i8; Self::DIMENSIONS],
    earlier: [i8; Self::DIMENSIONS],
}

impl ChangeVectors {
    /// Numbers of each vector.
    pub const DIMENSIONS: usize = 64;

    /// Length of each, which rounding moves a little.
    const LENGTHS: std::ops::RangeInclusive<f32> = 120.0..=134.0;

    /// Vectors of a statement as a later one, which may change another, and as an earlier one,
    /// which another may change. Absent where one has another length than 127.
    pub fn new(later: [i8; Self::DIMENSIONS], earlier: [i8; Self::DIMENSIONS]) -> Option<Self> {
        let is_sound = |vector: &[i8]| {
            let squares = vector.iter().map(|it| i32::from(*it) * i32::from(*it));
            Self::LENGTHS.contains(&(squares.sum::<i32>() as f32).sqrt())
        };
        (is_sound(&later) && is_sound(&earlier)).then_some(Self { later, earlier })
    }

    /// Cosine, about -1 to 1: the higher it is, the likelier the later statement changes the
    /// earlier.
    pub fn cosine(later: &Self, earlier: &Self) -> f32 {
        let products = later.later.iter().zip(&earlier.earlier);
        let sum: i32 = products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        sum as f32 / (127.0 * 127.0)
    }

    /// Bytes of both, the later first.
    pub fn to_bytes(self) -> Vec<u8> {
        let numbers = self.later.into_iter().chain(self.earlier);
        numbers.map(i8::cast_unsigned).collect()
    }

    /// Vectors of such bytes; absent where they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (later, earlier) = bytes.split_at_checked(Self::DIMENSIONS)?;
        let numbers = |bytes: &[u8]| -> Option<[i8; Self::DIMENSIONS]> {
            let bytes: [u8; Self::DIMENSIONS] = bytes.try_into().ok()?;
            Some(bytes.map(u8::cast_signed))
        };
        Self::new(numbers(later)?, numbers(earlier)?)
    }
}

/// Base64 of the bytes.
impl Serialize for ChangeVectors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        BASE64.encode(self.to_bytes()).serialize(serializer)
    }
}

/// Vectors as a fact stores them. Those of another size, as another version may write them, are
/// read as none, so that the fact can be read.
pub(crate) fn stored_vectors<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ChangeVectors>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let bytes = text.and_then(|it| BASE64.decode(it).ok());
    Ok(bytes.and_then(|it| ChangeVectors::from_bytes(&it)))
}

/// Statement with the words beside it in its sentence that are not worth keeping by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementLine {
    /// Bytes of the turn's text.
    pub bytes: Range<usize>,
    /// Probability that it is said in earnest of the speaker, understood alone, and worth knowing
    /// for months.
    pub probability: f32,
}

/// Effect of a later statement on an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementRelation {
    /// No effect.
    Unrelated,
    /// The earlier one held and holds no longer.
    Ends,
    /// The earlier one was never true.
    Corrects,
    /// More detail or a further value: both hold.
    Adds,
    /// Repetition in the same or other words.
    Restates,
}

impl StatementRelation {
    /// Every relation, in the order of the reader's scores.
    pub const ALL: [Self; 5] = [
        Self::Unrelated,
        Self::Ends,
        Self::Corrects,
        Self::Adds,
        Self::Restates,
    ];

    /// The relation of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|relation| relation.name() == name)
    }

    /// Name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unrelated => "none",
            Self::Ends => "ends",
            Self::Corrects => "corrects",
            Self::Adds => "adds",
            Self::Restates => "restates",
        }
    }

    /// True where the earlier statement does not hold any more, or never did.
    pub fn is_change(self) -> bool {
        matches!(self, Self::Ends | Self::Corrects)
    }
}

/// Probabilities of the relations of two statements; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelationScores {
    /// Place of the later statement among those of its turn.
    pub later: usize,
    /// Place of the earlier one among those of its turn.
    pub earlier: usize,
    /// Probabilities in the order of [`StatementRelation::ALL`].
    pub probabilities: [f32; StatementRelation::ALL.len()],
}

impl RelationScores {
    /// Probability of a relation.
    pub fn probability(&self, relation: StatementRelation) -> f32 {
        let place = StatementRelation::ALL.iter().position(|it| *it == relation);
        place.map_or(0.0, |place| self.probabilities[place])
    }

    /// The relation with the highest probability.
    pub fn likeliest(&self) -> StatementRelation {
        let mut best = (StatementRelation::Unrelated, 0.0);
        for (relation, &probability) in StatementRelation::ALL.iter().zip(&self.probabilities) {
            if probability > best.1 {
                best = (*relation, probability);
            }
        }
        best.0
    }

    /// Probability that the later statement ends or corrects the earlier one.
    pub fn change(&self) -> f32 {
        self.lasting_change(0.0)
    }

    /// Probability that the later statement corrects the earlier one, or ends it for good: with the
    /// probability `passes` it says when it ends itself, and is an exception to what was said
    /// before.
    pub fn lasting_change(&self, passes: f32) -> f32 {
        let ends = self.probability(StatementRelation::Ends) * (1.0 - passes);
        ends + self.probability(StatementRelation::Corrects)
    }
}

/// Probabilities of a change from which each action is taken. They are chosen for one version of
/// the reader's weights, `reader-7` (docs/benchmarks.md, Understanding), and go with it; `QUOTED`
/// and `DOUBTED` are those of `reader-3`.
#[derive(Debug, Clone, Copy)]
pub struct ChangeThresholds;

impl ChangeThresholds {
    /// The earlier statement is ended, and marked where it is recalled.
    pub const ENDED: f32 = 0.985;
    /// An earlier statement that is ended never held. By a correction alone.
    pub const CORRECTED: f32 = 0.8;
    /// Both statements hold, and recall puts the later turn first: where this is the probability of
    /// a change of what the query asks about, and the query needs both turns alike.
    pub const ORDERED: f32 = 0.5;
    /// The change is noted when the later turn is written; recall reads it again behind the query.
    pub const POSSIBLE: f32 = 0.3;
    /// An answer quotes the later statement in the place of the earlier one.
    pub const QUOTED: f32 = 0.3;
    /// An answer quotes both statements.
    pub const DOUBTED: f32 = 0.1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_ends_nothing_and_corrects_all_the_same() {
        let scores = |ends, corrects| RelationScores {
            later: 0,
            earlier: 0,
            probabilities: [1.0 - ends - corrects, ends, corrects, 0.0, 0.0],
        };
        let is_near = |one: f32, other: f32| (one - other).abs() < 1e-6;
        assert!(is_near(scores(0.5, 0.25).change(), 0.75));
        assert!(is_near(scores(0.8, 0.0).lasting_change(0.75), 0.2));
        assert!(is_near(scores(0.0, 0.8).lasting_change(1.0), 0.8));
    }

    /// Vectors that have one number.
    fn along(later: i8, earlier: i8) -> Option<ChangeVectors> {
        let vector = |number| {
            let mut vector = [0; ChangeVectors::DIMENSIONS];
            vector[7] = number;
            vector
        };
        ChangeVectors::new(vector(later), vector(earlier))
    }

    #[test]
    fn vectors_come_back_from_their_bytes() {
        let vectors = along(-127, 125).unwrap();
        assert_eq!(
            ChangeVectors::from_bytes(&vectors.to_bytes()),
            Some(vectors)
        );
        assert_eq!(ChangeVectors::from_bytes(&[1; 127]), None);
    }

    #[test]
    fn vectors_of_another_length_are_none() {
        assert_eq!(along(0, 127), None);
        assert_eq!(along(127, 60), None);
        assert_eq!(ChangeVectors::from_bytes(&[127; 128]), None);
        assert_eq!(ChangeVectors::from_bytes(&[128; 128]), None);
    }

    #[test]
    fn the_cosine_of_a_vector_with_itself_is_one() {
        let [same, opposite] = [along(127, 127), along(-127, 127)].map(Option::unwrap);
        assert!((ChangeVectors::cosine(&same, &same) - 1.0).abs() < 1e-6);
        assert!((ChangeVectors::cosine(&opposite, &same) + 1.0).abs() < 1e-6);
    }
}
