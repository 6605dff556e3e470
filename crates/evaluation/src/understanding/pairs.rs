//! Pairs of statements: an earlier turn and later ones, each of which might follow it, with the
//! relation of the statement that each marks.

use chrono::{NaiveDateTime, TimeDelta};
use memfleet_domain::statement::StatementRelation;

use super::SpokenText;
use super::lines::{LineError, fields, named, read_lines, spoken, time};

/// Marks around the statement of a turn.
const MARKS: [&str; 2] = ["[[", "]]"];

/// Fewest later turns of a group.
const MIN_LATER: usize = 5;

/// Fewest later turns of a group that are unrelated.
const MIN_UNRELATED: usize = 2;

/// An earlier turn and the later ones that it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairGroup {
    /// Number, unique within its writer.
    pub number: String,
    /// Tag of the language.
    pub language: String,
    /// When the earlier turn was said.
    pub time: NaiveDateTime,
    /// The earlier turn.
    pub earlier: MarkedTurn,
    /// Later turns. They do not follow each other.
    pub later: Vec<LaterTurn>,
}

/// A turn in which one statement is marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedTurn {
    /// Speaker and words, without the marks.
    pub said: SpokenText,
    /// Bytes of the statement in the words.
    pub statement: std::ops::Range<usize>,
}

/// A turn after the earlier one of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaterTurn {
    /// Effect of its statement on that of the earlier turn.
    pub relation: StatementRelation,
    /// Time since the earlier turn.
    pub gap: TimeDelta,
    /// The turn.
    pub turn: MarkedTurn,
}

impl PairGroup {
    /// Reads the groups of a file. Fails at the first line that is not of the format.
    pub fn read(text: &str) -> Result<Vec<Self>, LineError> {
        let mut groups: Vec<Self> = Vec::new();
        let mut heading: Option<[String; 2]> = None;
        read_lines(text, |mark, rest, _| {
            match (mark, groups.last_mut()) {
                ("##", _) => heading = Some(group_heading(rest)?),
                ("<", _) => {
                    let heading = heading.take();
                    let [number, language] = heading.ok_or("an earlier turn without a heading")?;
                    groups.push(Self::begin(number, language, rest)?);
                }
                (">", Some(group)) if heading.is_none() => group.later.push(later(rest)?),
                (">", _) => return Err("a later turn without an earlier one".to_owned()),
                (other, _) => return Err(format!("`{other}` begins no line of pairs")),
            }
            Ok(())
        })?;
        Ok(groups)
    }

    fn begin(number: String, language: String, rest: &str) -> Result<Self, String> {
        let parts = rest.split_once(' ');
        let (at, said) = parts.ok_or("an earlier turn is a time, speaker, colon and text")?;
        Ok(Self {
            number,
            language,
            time: time(at)?,
            earlier: marked(said)?,
            later: Vec::new(),
        })
    }

    /// Too few later turns, or none that changes something; empty where there is no fault.
    pub fn problems(&self) -> Vec<String> {
        let of = |is_meant: fn(StatementRelation) -> bool| {
            let later = self.later.iter();
            later.filter(|it| is_meant(it.relation)).count()
        };
        let unrelated = of(|relation| relation == StatementRelation::Unrelated);
        let mut problems = Vec::new();
        if self.later.len() < MIN_LATER {
            problems.push(format!("{} later turns", self.later.len()));
        }
        if unrelated < MIN_UNRELATED {
            problems.push(format!("{unrelated} unrelated turns"));
        }
        if of(StatementRelation::is_change) == 0 {
            problems.push("nothing ends or corrects the statement".to_owned());
        }
        problems
    }

    /// All turns.
    pub fn turns(&self) -> impl Iterator<Item = &MarkedTurn> {
        let later = self.later.iter().map(|it| &it.turn);
        std::iter::once(&self.earlier).chain(later)
    }
}

fn group_heading(rest: &str) -> Result<[String; 2], String> {
    match fields(rest)[..] {
        [number, language] => Ok([number.to_owned(), language.to_owned()]),
        _ => Err("a heading is number | language".to_owned()),
    }
}

fn later(rest: &str) -> Result<LaterTurn, String> {
    let mut parts = rest.splitn(3, ' ');
    let (Some(relation), Some(gap), Some(said)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("a later turn is a relation, a gap, speaker, colon and text".to_owned());
    };
    Ok(LaterTurn {
        relation: named(relation, StatementRelation::named, "a relation")?,
        gap: duration(gap)?,
        turn: marked(said)?,
    })
}

/// A turn whose text has one statement between marks.
fn marked(said: &str) -> Result<MarkedTurn, String> {
    let mut said = spoken(said)?;
    let statement = || {
        let (before, rest) = said.text.split_once(MARKS[0])?;
        let (statement, after) = rest.split_once(MARKS[1])?;
        let is_once = !MARKS.iter().any(|mark| after.contains(mark));
        let is_said = !statement.trim().is_empty();
        let text = [before, statement, after].concat();
        (is_once && is_said).then_some((text, before.len()..before.len() + statement.len()))
    };
    let (text, statement) = statement().ok_or("a turn has one statement in [[ ]]")?;
    said.text = text;
    Ok(MarkedTurn { said, statement })
}

/// A gap such as `+5mo`.
fn duration(gap: &str) -> Result<TimeDelta, String> {
    let units = [
        ("min", 1),
        ("mo", 43_200),
        ("h", 60),
        ("d", 1_440),
        ("w", 10_080),
        ("y", 525_600),
    ];
    let text = gap.strip_prefix('+').unwrap_or_default();
    let minutes = units.iter().find_map(|(unit, minutes)| {
        let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(*minutes)
    });
    let minutes = minutes.filter(|it| *it >= 0);
    let gap = minutes.and_then(TimeDelta::try_minutes);
    gap.ok_or_else(|| format!("`{text}` is no gap such as +5mo (min, h, d, w, mo, y)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "\
## 001 | en
< 2025-01-14T18:40 Ilse: Well, [[we're in the flat in Emden]] for now.
> ends +5mo Ilse: [[First night in Leer!]]
> adds +3min Ilse: [[third floor, no lift]]
> restates +2w Ilse: [[still above the harbour]]
> none +1y *Assistant: Shall I look? [[Leer has lovely flats]].
> none +6h Grete: [[I moved to Leer]]
";

    #[test]
    fn a_group_is_read_with_spans_and_gaps() {
        let group = &PairGroup::read(GROUP).unwrap()[0];
        let earlier = &group.earlier;
        assert_eq!(
            earlier.said.text,
            "Well, we're in the flat in Emden for now."
        );
        assert_eq!(
            &earlier.said.text[earlier.statement.clone()],
            "we're in the flat in Emden"
        );
        let gaps: Vec<_> = group.later.iter().map(|it| it.gap.num_minutes()).collect();
        assert_eq!(gaps, [216_000, 3, 20_160, 525_600, 360]);
        assert!(group.later[3].turn.said.is_assistant);
        assert!(group.problems().is_empty(), "{:?}", group.problems());
    }

    #[test]
    fn a_line_that_is_not_of_the_format_is_told() {
        for (from, to, line, problem) in [
            ("ends +5mo", "stops +5mo", 3, "`stops` is not a relation"),
            (
                "+5mo",
                "+5ms",
                3,
                "`5ms` is no gap such as +5mo (min, h, d, w, mo, y)",
            ),
            ("[[First", "First", 3, "a turn has one statement in [[ ]]"),
            (
                "[[First night",
                "[[]]First night",
                3,
                "a turn has one statement in [[ ]]",
            ),
            ("001 | en", "001", 1, "a heading is number | language"),
            ("< 2025", "> 2025", 2, "a later turn without an earlier one"),
            ("## 001 | en\n", "", 1, "an earlier turn without a heading"),
        ] {
            let error = PairGroup::read(&GROUP.replace(from, to)).unwrap_err();
            assert_eq!((error.line, error.problem.as_str()), (line, problem));
        }
    }

    #[test]
    fn a_group_that_is_too_small_is_told() {
        let few = GROUP.lines().take(4).collect::<Vec<_>>().join("\n");
        let few = few.replace("ends", "adds");
        assert_eq!(
            PairGroup::read(&few).unwrap()[0].problems(),
            [
                "2 later turns",
                "0 unrelated turns",
                "nothing ends or corrects the statement"
            ]
        );
    }
}
