//! Turns of LoCoMo's length from a seed: about 30 words, a few hundred topics, two speakers, sessions of twenty turns.

use chrono::TimeDelta;
use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{Content, Metadata, Role, Trust};
use memfleet_ports::memory::NewTurn;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// Turns a session.
const SESSION: usize = 20;
const SYLLABLES: [&str; 20] = [
    "ba", "den", "ko", "lim", "ra", "sto", "ven", "mi", "tor", "fel", "ga", "pis", "nu", "wer",
    "cha", "lo", "bri", "dus", "ken", "ja",
];
const COMMON: [&str; 40] = [
    "the", "a", "and", "to", "of", "in", "we", "it", "was", "my", "for", "with", "that", "you",
    "about", "went", "really", "had", "this", "on", "at", "have", "so", "they", "time", "last",
    "week", "good", "new", "work", "home", "friend", "today", "but", "love", "think", "some",
    "from", "day", "next",
];

/// An endless conversation.
pub struct Conversation {
    random: StdRng,
    words: Vec<String>,
    said: usize,
    start: Timestamp,
}

impl Conversation {
    /// The conversation of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let word = |random: &mut StdRng| {
            (0..random.random_range(2..4))
                .filter_map(|_| SYLLABLES.choose(random))
                .copied()
                .collect()
        };
        let words = (0..8_000).map(|_| word(&mut random)).collect();
        Self {
            random,
            words,
            said: 0,
            start: Timestamp::UNIX_EPOCH + TimeDelta::days(19_000),
        }
    }

    /// The next turns.
    pub fn turns(&mut self, count: usize) -> Vec<NewTurn> {
        (0..count).map(|_| self.turn()).collect()
    }

    /// A question about some of its words.
    pub fn question(&mut self) -> String {
        let topic = (0..3).map(|_| self.rare()).collect::<Vec<_>>().join(" ");
        let name = if self.random.random() { "Ada" } else { "Ben" };
        format!("When did {name} talk about {topic}?")
    }

    fn turn(&mut self) -> NewTurn {
        let length = self.random.random_range(14..38);
        let words = (0..length).map(|_| self.word()).collect::<Vec<_>>();
        let (session, even) = (self.said / SESSION, self.said.is_multiple_of(2));
        let minutes = (session * 3 * 24 * 60 + self.said % SESSION) as i64;
        self.said += 1;
        NewTurn {
            session: SessionId::new(format!("session-{session}")).expect("a short name"),
            external_id: None,
            speaker: Speaker::new(if even { "Ada" } else { "Ben" }).expect("a short name"),
            role: Role::User,
            content: Content {
                text: words.join(" ") + ".",
                media: Vec::new(),
            },
            event_time: Some(self.start + TimeDelta::minutes(minutes)),
            metadata: Metadata::new(),
            trust: Trust::User,
            replaces: None,
        }
    }

    fn word(&mut self) -> String {
        if self.random.random_bool(0.6) {
            (*COMMON.choose(&mut self.random).expect("the list has words")).to_owned()
        } else {
            self.rare()
        }
    }

    /// Words fall off as in real text: the square of an even draw makes early words much more frequent.
    fn rare(&mut self) -> String {
        let draw: f64 = self.random.random();
        self.words[(draw * draw * self.words.len() as f64) as usize].clone()
    }
}
