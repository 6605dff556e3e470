//! Conversations with names, pronouns, possessives, answers and quotations. Names and things are random, so that nothing else in a
//! database looks like them.

use memfleet_domain::ids::SessionId;
use memfleet_domain::turn::{AcceptedTurn, Role, Trust};
use memfleet_ports::conformance::samples::{home, instant, speaker, turn_in};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Ending of every random word.
const END: &str = "zqx";

/// True of a random word.
pub fn is_mark(word: &str) -> bool {
    word.ends_with(END) && word.len() == 9
}

/// Somebody who talks; words come again now and then.
pub struct Talk {
    random: StdRng,
    said: Vec<String>,
    speakers: Vec<String>,
    count: i64,
}

impl Talk {
    pub fn new(seed: u64) -> Self {
        let mut talk = Self {
            random: StdRng::seed_from_u64(1_000 + seed),
            said: Vec::new(),
            speakers: Vec::new(),
            count: 0,
        };
        talk.speakers = (0..3).map(|_| talk.name()).collect();
        talk
    }

    /// Turns in turn in these sessions.
    pub fn turns(&mut self, sessions: &[SessionId], count: usize) -> Vec<AcceptedTurn> {
        let numbers = 0..count;
        numbers
            .map(|number| self.turn(&sessions[number % sessions.len()]))
            .collect()
    }

    fn turn(&mut self, session: &SessionId) -> AcceptedTurn {
        self.count += 1;
        let sentences: Vec<String> = (0..self.random.random_range(1..4))
            .map(|_| self.sentence())
            .collect();
        let by = self.random.random_range(0..self.speakers.len());
        let role = match by {
            0 => Role::Assistant,
            _ => Role::User,
        };
        AcceptedTurn {
            speaker: speaker(&self.speakers[by]),
            role,
            trust: Trust::of_role(role),
            event_time: Some(instant(self.count)),
            recorded_at: instant(self.count),
            ..turn_in(
                &home(),
                session.as_str(),
                &self.count.to_string(),
                &sentences.join(" "),
            )
        }
    }

    fn sentence(&mut self) -> String {
        let (name, other) = (self.name(), self.name());
        let (thing, another) = (self.thing(), self.thing());
        match self.random.random_range(0..16) {
            0 => format!("My sister {name} moved to {other} last week."),
            1 => format!("Her {thing} is in {name}."),
            2 => format!("Her husband works at {name}."),
            3 => format!("I live in {name}."),
            4 => format!("I no longer live in {name}."),
            5 => format!("I like {thing} and {another}."),
            6 => format!("He said \"{name} is a {thing}\" and left."),
            7 => format!("She is a {thing}."),
            8 => format!("Your {thing} is called {name}."),
            9 => format!("Yes, in {name}."),
            10 => format!("I said I live in {name} but I meant {other}."),
            11 => format!("Do you know {name}?"),
            12 => format!("It is in {name} now."),
            13 => format!("My {thing} is a {another}."),
            14 => format!("You work at {name}, and your boss is {other}."),
            _ => format!("My friend {name} has a {thing} named {other}."),
        }
    }

    fn name(&mut self) -> String {
        let word = self.thing();
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    }

    fn thing(&mut self) -> String {
        if !self.said.is_empty() && self.random.random_ratio(1, 4) {
            let at = self.random.random_range(0..self.said.len());
            return self.said[at].clone();
        }
        let letters = (0..6).map(|_| char::from(self.random.random_range(b'a'..=b'z')));
        let word = format!("{}{END}", letters.collect::<String>());
        self.said.push(word.clone());
        word
    }
}
