//! What the chat is put together from: `data/connections.json`.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use serde::Deserialize;

/// What an entity is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Person,
    Company,
    Town,
    Club,
    Band,
    School,
    Event,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wordings {
    /// Names of people.
    pub(super) people: Vec<String>,
    /// First halves of what everything else is called by.
    pub(super) heads: Vec<String>,
    /// Second halves.
    pub(super) tails: Vec<String>,
    pub(super) kinds: BTreeMap<Kind, Manner>,
    pub(super) relations: Vec<Relation>,
    /// What a statement of a relation may begin with.
    pub(super) openings: Vec<String>,
    /// And end with.
    pub(super) closings: Vec<String>,
    /// How two ends are asked for, whatever they are.
    pub(super) questions: Vec<String>,
    /// How they are asked for where the first is somebody.
    pub(super) acquaintances: Vec<String>,
    /// What a speaker did, and when: together a sentence.
    pub(super) doings: Vec<String>,
    pub(super) whens: Vec<String>,
    pub(super) talk: Vec<String>,
}

/// How entities of a kind are called, and what else is said of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manner {
    pub(super) names: Vec<String>,
    /// They relate the entity to no other.
    pub(super) remarks: Vec<String>,
}

/// How entities of two kinds may be related.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Relation {
    pub(super) subject: Kind,
    pub(super) object: Kind,
    /// In the words of somebody else.
    pub(super) third: Vec<String>,
    /// In the words of the subject.
    pub(super) first: Vec<String>,
}

impl Wordings {
    pub(super) fn load() -> Self {
        let text = include_str!("../../data/connections.json");
        serde_json::from_str(text).expect("the wordings are checked by the tests")
    }
}

pub(super) fn pick<'t>(rng: &mut StdRng, texts: &'t [String]) -> &'t String {
    texts.choose(rng).expect("every list has entries")
}

/// Somebody or something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entity {
    pub(super) kind: Kind,
    pub(super) name: String,
}

/// Who and what has not been named yet.
pub(super) struct Cast<'w> {
    kinds: &'w BTreeMap<Kind, Manner>,
    people: Vec<String>,
    roots: Vec<String>,
}

impl<'w> Cast<'w> {
    pub(super) fn new(wordings: &'w Wordings, rng: &mut StdRng) -> Self {
        let mut people = wordings.people.clone();
        people.shuffle(rng);
        let roots = wordings.heads.iter();
        let roots = roots.flat_map(|head| {
            wordings
                .tails
                .iter()
                .map(move |tail| format!("{head}{tail}"))
        });
        let mut roots: Vec<String> = roots.collect();
        roots.shuffle(rng);
        Self {
            kinds: &wordings.kinds,
            people,
            roots,
        }
    }

    /// Somebody or something that no other shares a name with.
    pub(super) fn introduce(&mut self, kind: Kind, rng: &mut StdRng) -> Entity {
        let name = match kind {
            Kind::Person => self.people.pop(),
            _ => self.roots.pop(),
        };
        let name = name.expect("there are more names than a chat needs");
        let patterns = &self.kinds[&kind].names;
        let name = match patterns.choose(rng) {
            Some(pattern) => pattern.replace("{root}", &name),
            None => name,
        };
        Entity { kind, name }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn wordings_are_complete() {
        let wordings = Wordings::load();
        let people: HashSet<&String> = wordings.people.iter().collect();
        assert_eq!(people.len(), wordings.people.len(), "each once");
        let of_two = wordings.relations.iter().flat_map(|it| &it.third);
        let of_two = of_two.chain(&wordings.questions);
        for text in of_two.chain(&wordings.acquaintances) {
            for end in ["{a}", "{b}"] {
                assert_eq!(text.matches(end).count(), 1, "{text}");
            }
        }
        let own = wordings.relations.iter().flat_map(|it| &it.first);
        for text in own {
            assert!(text.contains("{b}") && !text.contains("{a}"), "{text}");
        }
        for manner in wordings.kinds.values() {
            assert!(manner.names.iter().all(|name| name.contains("{root}")));
            assert!(manner.remarks.iter().all(|text| text.contains("{a}")));
        }
    }
}
