//! Who and what a clause is about: pronouns and possessives are resolved to names, or the clause is left out.

use memfleet_domain::ids::TurnId;

use super::Utterance;
use super::words::{Part, Word, words};

/// Somebody or something that was named.
#[derive(Debug, Clone, PartialEq)]
pub struct Referent {
    /// As a reader is shown it.
    pub name: String,
    /// The turn that named it, where that is not the one that is read.
    pub turn: Option<TurnId>,
}

impl Referent {
    /// One that the turn names that is read.
    fn own(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            turn: None,
        }
    }
}

/// Who takes part, and who was spoken of last.
pub struct People<'t> {
    speaker: &'t str,
    other: Option<Referent>,
    /// The last somebody else, and whether there were several in one breath.
    last: Option<Referent>,
    /// The last thing that a clause was about.
    thing: Option<Referent>,
}

impl<'t> People<'t> {
    pub fn new(turn: &Utterance<'t>, context: &[Utterance<'_>]) -> Self {
        let others: Vec<_> = context
            .iter()
            .filter(|said| said.speaker != turn.speaker)
            .collect();
        let is_one = others
            .windows(2)
            .all(|pair| pair[0].speaker == pair[1].speaker);
        let other = others.last().filter(|_| is_one);
        let mut people = Self {
            speaker: turn.speaker,
            other: other.map(|other| Referent {
                name: other.speaker.to_owned(),
                turn: Some(other.id),
            }),
            last: None,
            thing: None,
        };
        for said in context {
            people.hear(said);
        }
        people
    }

    /// Notes who an earlier turn speaks of.
    fn hear(&mut self, said: &Utterance<'_>) {
        let all = words(said.text, 0);
        let mut named: Vec<String> = Vec::new();
        for at in 0..all.len() {
            if let Some((_, name)) = relative(&all[at..], said.speaker)
                && !named.contains(&name)
            {
                named.push(name);
            }
        }
        match &named[..] {
            [] => {}
            [one] => {
                self.last = Some(Referent {
                    name: one.clone(),
                    turn: Some(said.id),
                });
            }
            _ => self.last = None,
        }
    }

    /// Who or what a subject means.
    pub fn resolve(&mut self, subject: &[Word]) -> Option<Referent> {
        let [first, ..] = subject else { return None };
        match first.low.as_str() {
            "i" | "we" if subject.len() == 1 => return Some(Referent::own(self.speaker)),
            "he" | "she" | "they" if subject.len() == 1 => return self.last.clone(),
            "it" | "this" | "that" if subject.len() == 1 => return self.thing.clone(),
            "you" if subject.len() == 1 => return self.other.clone(),
            _ => {}
        }
        let referent = self.named(subject)?;
        let is_person =
            relative(subject, self.speaker).is_some() || subject.iter().all(Word::is_name);
        if is_person {
            self.last = Some(referent.clone());
        } else {
            self.thing = Some(referent.clone());
        }
        Some(referent)
    }

    /// Referent of a noun phrase. A possession rests on the turn that named its owner.
    fn named(&self, subject: &[Word]) -> Option<Referent> {
        if let Some((_, name)) = relative(subject, self.speaker) {
            return Some(Referent::own(name));
        }
        let text = |words: &[Word]| {
            words
                .iter()
                .map(|word| word.text.as_str())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (first, rest) = subject.split_first()?;
        let owner = match first.low.as_str() {
            "my" | "our" => Referent::own(self.speaker),
            "his" | "her" | "their" => self.last.clone()?,
            "your" => self.other.clone()?,
            _ if first.is_any(&[Part::Pronoun]) => return None,
            _ => return Some(Referent::own(text(subject))),
        };
        (!rest.is_empty()).then(|| Referent {
            name: format!("{}'s {}", owner.name, text(rest)),
            turn: owner.turn,
        })
    }
}

/// "my sister Mia", "my boss": how many words, and who that is.
fn relative(words: &[Word], speaker: &str) -> Option<(usize, String)> {
    let [first, noun, rest @ ..] = words else {
        return None;
    };
    if !matches!(first.low.as_str(), "my" | "our") || !PEOPLE.contains(&noun.low.as_str()) {
        return None;
    }
    match rest.first() {
        Some(name) if name.is_name() => Some((3, name.text.clone())),
        _ => Some((2, format!("{speaker}'s {}", noun.low))),
    }
}

/// Nouns that mean somebody.
const PEOPLE: [&str; 40] = [
    "sister",
    "brother",
    "mother",
    "father",
    "mom",
    "mum",
    "dad",
    "wife",
    "husband",
    "son",
    "daughter",
    "friend",
    "cousin",
    "uncle",
    "aunt",
    "boss",
    "colleague",
    "coworker",
    "neighbor",
    "neighbour",
    "roommate",
    "flatmate",
    "partner",
    "boyfriend",
    "girlfriend",
    "grandmother",
    "grandfather",
    "grandma",
    "grandpa",
    "nephew",
    "niece",
    "teacher",
    "manager",
    "buddy",
    "ex",
    "landlord",
    "client",
    "doctor",
    "mentor",
    "fiance",
];
