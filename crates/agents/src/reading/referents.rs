//! Whom and what a turn speaks of: people, places and things that a later "she", "there" or "it" may stand for. Cautious: a
//! name of which the words beside it do not tell what it is counts as neither.

use memfleet_language::Analyzer;

use super::cues::is;
use super::words::{Gap, Text};

/// Longest thing, in words.
const LONGEST: usize = 3;

/// What is known of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sex {
    She,
    He,
    Unknown,
}

/// What a text speaks of, each in its words.
#[derive(Debug, Default)]
pub(super) struct Referents {
    pub(super) people: Vec<(String, Sex)>,
    /// With their preposition.
    pub(super) places: Vec<String>,
    /// With an article.
    pub(super) things: Vec<String>,
}

impl Referents {
    /// `speakers` are names known to be people's.
    pub(super) fn of(text: &Text<'_>, speakers: &[&str], analyzer: &Analyzer) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while at < text.words.len() {
            let name = name(text, at);
            if name > 0 {
                found.name(text, at..at + name, speakers, analyzer);
                at += name;
            } else {
                found.noun(text, at);
                found.thing(text, at, analyzer);
                at += 1;
            }
        }
        found
    }

    fn person(&mut self, who: String, sex: Sex) {
        match self.people.iter_mut().find(|(name, _)| *name == who) {
            Some((_, known)) if *known == Sex::Unknown => *known = sex,
            Some(_) => {}
            None => self.people.push((who, sex)),
        }
    }

    fn name(
        &mut self,
        text: &Text<'_>,
        words: std::ops::Range<usize>,
        speakers: &[&str],
        analyzer: &Analyzer,
    ) {
        let name = text.slice(words.clone()).to_owned();
        let (before, after) = (text.before(words.start), text.at(words.end));
        let kin = sex(before);
        let is_speaker = speakers
            .iter()
            .any(|speaker| speaker.eq_ignore_ascii_case(&name));
        let is_person = kin.is_some()
            || is_speaker
            || is(before, "beside a person")
            || is(after, "of a person");
        if is_person {
            self.person(name, kin.unwrap_or(Sex::Unknown));
        } else if let Some(preposition) = place(text, words.start) {
            let place = format!("{preposition} {name}");
            if !self.places.contains(&place) {
                self.places.push(place);
            }
        } else if after == Some("s") && !analyzer.is_stop_word(&name) {
            self.person(name, Sex::Unknown);
        }
    }

    /// Somebody without a name: "my sister".
    fn noun(&mut self, text: &Text<'_>, at: usize) {
        let is_owned = is(text.before(at), "owner");
        let is_named = name(text, at + 1) > 0;
        if let Some(sex) = sex(text.at(at)).filter(|_| is_owned && !is_named) {
            self.person(format!("the {}", &text.words[at].folded), sex);
        }
    }

    /// An article and words of content up to a stop word or a sign.
    fn thing(&mut self, text: &Text<'_>, at: usize, analyzer: &Analyzer) {
        if !is(text.at(at), "article") {
            return;
        }
        let is_content = |place: usize| {
            let word = &text.words[place];
            word.gap == Gap::Blank
                && !word.is_time
                && !word.is_capital
                && !analyzer.is_stop_word(&word.folded)
        };
        let from = at + 1;
        let end = (from..text.words.len()).find(|&place| !is_content(place));
        let end = end.unwrap_or(text.words.len());
        let is_vague =
            (from..end).any(|place| is(text.at(place), "vague") || sex(text.at(place)).is_some());
        let thing = format!("the {}", text.slice(from..end));
        if (1..=LONGEST).contains(&(end - from)) && !is_vague && !self.things.contains(&thing) {
            self.things.push(thing);
        }
    }
}

/// How many capitalised words a name at this place has. What begins a sentence is one only where something else tells.
fn name(text: &Text<'_>, at: usize) -> usize {
    let is_part = |place: usize| {
        let word = &text.words[place];
        word.is_capital && !word.is_time && word.folded != "i"
    };
    let Some(first) = text.words.get(at).filter(|_| is_part(at)) else {
        return 0;
    };
    let rest = (at + 1..text.words.len())
        .take_while(|&place| text.words[place].gap == Gap::Blank && is_part(place));
    let length = 1 + rest.count();
    let after = text.at(at + length);
    let tells = is(after, "of a person") || after == Some("s");
    if first.gap == Gap::Sentence && !tells {
        0
    } else {
        length
    }
}

/// What kind of relative or acquaintance a word names.
fn sex(word: Option<&str>) -> Option<Sex> {
    let lists = [
        ("women", Sex::She),
        ("men", Sex::He),
        ("people", Sex::Unknown),
    ];
    lists
        .into_iter()
        .find_map(|(list, sex)| is(word, list).then_some(sex))
}

/// The preposition that makes a place of the name after it.
fn place(text: &Text<'_>, at: usize) -> Option<&'static str> {
    let before = text.before(at);
    let moves = is(before, "direction") && at > 1 && is(text.at(at - 2), "motion");
    match before {
        Some("at") => Some("at"),
        _ if moves || is(before, "before a place") => Some("in"),
        _ => None,
    }
}
