//! Dialogues in which facts about the user change: seeded, from templates (`data/updates*.json`), between an assistant and a user
//! each. Beside statements, changes and corrections there is what only looks like them: hypotheticals, questions, denials, plans,
//! other people's facts, what was so long ago, and what is so repeated in other words.

mod templates;

use std::collections::HashMap;

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};

use crate::{Conversation, Role, Turn};
use templates::{Attribute, Templates, fill};

/// Attributes that a user tells of.
const ATTRIBUTES: usize = 8;
/// Most changes of one attribute.
const CHANGES: usize = 3;
/// The share of changes that say that what was told before was wrong from the start.
const CORRECTIONS: f64 = 0.15;
/// The share of days on which a user also says what only looks like a change.
const DISTRACTIONS: f64 = 0.7;
/// Small talk around what is told, in messages of the user.
const TALK: std::ops::Range<usize> = 1..4;

/// A user's dialogue, what it states, and what is asked of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The dialogue. Its own questions are none.
    pub conversation: Conversation,
    /// The user's name.
    pub user: String,
    /// What the user states of itself, by place of the turn.
    pub stated: HashMap<usize, Stated>,
    /// One of each attribute that changed.
    pub asked: Vec<Asked>,
    /// How often a fact changes.
    pub changes: usize,
}

/// An attribute's value, as a turn states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// Name of the attribute.
    pub attribute: String,
    /// What the user says that it is.
    pub value: String,
}

/// A question for the value that holds at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// As asked.
    pub question: String,
    /// Name of the attribute.
    pub attribute: String,
    /// What it is now.
    pub value: String,
}

/// Set of wordings that dialogues are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wordings {
    /// Wordings that may be looked at (`data/updates.json`).
    #[default]
    Developed,
    /// More of them (`data/updates-second.json`).
    Second,
    /// Wordings that nobody who works on memory looks at (`data/updates-held-out.json`).
    HeldOut,
}

/// Dialogues with at least `changes` changes in all; equal seeds and wordings give equal dialogues.
pub fn stories(seed: u64, changes: usize, wordings: Wordings) -> Vec<Story> {
    let templates = Templates::load(wordings);
    let mut rng = StdRng::seed_from_u64(seed);
    let mut stories = Vec::new();
    let mut planted = 0;
    while planted < changes {
        let story = Teller::new(&templates, stories.len(), &mut rng).tell();
        planted += story.changes;
        stories.push(story);
    }
    stories
}

/// Something that is said on a day.
struct Event<'t> {
    day: i64,
    text: String,
    states: Option<(&'t Attribute, String)>,
}

struct Teller<'t, 'r> {
    templates: &'t Templates,
    user: String,
    rng: &'r mut StdRng,
    begun: DateTime<Utc>,
    turns: Vec<Turn>,
    stated: HashMap<usize, Stated>,
}

impl<'t, 'r> Teller<'t, 'r> {
    fn new(templates: &'t Templates, number: usize, rng: &'r mut StdRng) -> Self {
        let user = templates.names[number % templates.names.len()].clone();
        let begun = DateTime::UNIX_EPOCH + TimeDelta::days(19_700 + rng.random_range(0..300));
        Self {
            templates,
            user,
            rng,
            begun,
            turns: Vec::new(),
            stated: HashMap::new(),
        }
    }

    fn tell(mut self) -> Story {
        let chosen: Vec<&Attribute> = self
            .templates
            .attributes
            .choose_multiple(self.rng, ATTRIBUTES)
            .collect();
        let (mut events, mut asked, mut changes) = (Vec::new(), Vec::new(), 0);
        for attribute in chosen {
            let (told, value, changed) = self.life(attribute);
            changes += changed;
            events.extend(told);
            let question = pick(self.rng, &attribute.questions).replace("{name}", &self.user);
            asked.push(Asked {
                question,
                attribute: attribute.name.clone(),
                value,
            });
        }
        // Two things of one day in any order.
        events.shuffle(self.rng);
        events.sort_by_key(|event| event.day);
        self.say_all(events);
        Story {
            conversation: Conversation {
                id: self.user.clone(),
                turns: self.turns,
                questions: Vec::new(),
                unanswerable: Vec::new(),
            },
            user: self.user,
            stated: self.stated,
            asked,
            changes,
        }
    }

    /// What is said of one attribute, its value at the end, and how often it changes.
    fn life(&mut self, attribute: &'t Attribute) -> (Vec<Event<'t>>, String, usize) {
        let mut values: Vec<&String> = attribute.values.iter().collect();
        values.shuffle(self.rng);
        let mut values = values.into_iter().cloned();
        let mut next = || values.next().expect("there are values enough");
        let mut value = next();
        let mut day = self.rng.random_range(0..10);
        let mut events = vec![Event {
            day,
            text: fill(pick(self.rng, &attribute.states), &value, ""),
            states: Some((attribute, value.clone())),
        }];
        let changes = self.rng.random_range(1..=CHANGES);
        for _ in 0..changes {
            events.extend(self.distraction(attribute, day, &value, &next()));
            day += self.rng.random_range(3..25);
            let (old, new) = (value, next());
            let wrong = self.rng.random_bool(CORRECTIONS);
            let wordings = if wrong {
                &attribute.corrects
            } else {
                &attribute.changes
            };
            events.push(Event {
                day,
                text: fill(pick(self.rng, wordings), &new, &old),
                states: Some((attribute, new.clone())),
            });
            value = new;
        }
        events.extend(self.distraction(attribute, day, &value, &next()));
        (events, value, changes)
    }

    /// What only looks like a change, on a later day; `other` is a value that the user never had.
    fn distraction(
        &mut self,
        attribute: &'t Attribute,
        day: i64,
        value: &str,
        other: &str,
    ) -> Option<Event<'t>> {
        if !self.rng.random_bool(DISTRACTIONS) {
            return None;
        }
        let kinds = attribute.distractors.kinds();
        let (says_own, wordings) = *kinds.choose(self.rng).expect("there are kinds");
        let said = if says_own { value } else { other };
        Some(Event {
            day: day + self.rng.random_range(1..3),
            text: fill(pick(self.rng, wordings), said, value),
            states: says_own.then(|| (attribute, value.to_owned())),
        })
    }

    fn say_all(&mut self, events: Vec<Event<'t>>) {
        for event in events {
            let day = event.day;
            for _ in 0..self.rng.random_range(TALK) {
                let talk = pick(self.rng, &self.templates.fillers).clone();
                self.say(day, talk);
            }
            if let Some((attribute, value)) = event.states {
                let stated = Stated {
                    attribute: attribute.name.clone(),
                    value,
                };
                self.stated.insert(self.turns.len(), stated);
            }
            self.say(day, event.text);
        }
    }

    /// A message of the user and the reply.
    fn say(&mut self, day: i64, text: String) {
        let reply = pick(self.rng, &self.templates.replies).clone();
        self.turn(day, Role::User, text);
        self.turn(day, Role::Assistant, reply);
    }

    fn turn(&mut self, day: i64, role: Role, text: String) {
        let place = self.turns.len();
        let speaker = match role {
            Role::User => self.user.clone(),
            _ => "assistant".to_owned(),
        };
        let minutes = 9 * 60 + i64::try_from(place).unwrap_or_default() % 600;
        self.turns.push(Turn {
            id: place.to_string(),
            session: format!("day-{day}"),
            speaker,
            role,
            time: Some(self.begun + TimeDelta::days(day) + TimeDelta::minutes(minutes)),
            text,
            captions: Vec::new(),
        });
    }
}

fn pick<'t>(rng: &mut StdRng, texts: &'t [String]) -> &'t String {
    texts.choose(rng).expect("every list has entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_tell_equal_stories() {
        let told = stories(7, 500, Wordings::Developed);
        assert_eq!(told, stories(7, 500, Wordings::Developed));
        assert_ne!(told, stories(8, 500, Wordings::Developed));
        assert!(told.iter().map(|story| story.changes).sum::<usize>() >= 500);
    }

    #[test]
    fn the_value_asked_for_is_the_last_one_stated() {
        for story in stories(1, 100, Wordings::Developed) {
            for asked in &story.asked {
                let of = |stated: &&Stated| stated.attribute == asked.attribute;
                let last = story
                    .stated
                    .iter()
                    .filter(|(_, it)| of(it))
                    .max_by_key(|(at, _)| **at);
                assert_eq!(last.unwrap().1.value, asked.value);
            }
        }
    }

    #[test]
    fn what_is_held_out_is_worded_otherwise() {
        let said = |wordings| Templates::load(wordings).attributes;
        let pairs = said(Wordings::Developed)
            .into_iter()
            .zip(said(Wordings::HeldOut));
        for (known, held_out) in pairs {
            assert_eq!(known.name, held_out.name);
            assert!(
                known
                    .states
                    .iter()
                    .all(|text| !held_out.states.contains(text))
            );
        }
    }

    #[test]
    fn time_never_goes_back() {
        for story in stories(2, 50, Wordings::Developed) {
            assert!(story.conversation.turns.is_sorted_by_key(|turn| turn.time));
        }
    }
}
