//! Turns of LoCoMo's length from a seed (26 words, 35 word pieces on average): common words, topics and names, two speakers,
//! sessions of twenty turns.

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
/// Distinct names.
const NAMES: usize = 8_000;
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

/// What people talk about.
const TOPICS: [&str; 290] = [
    "garden",
    "piano",
    "kitchen",
    "river",
    "doctor",
    "ticket",
    "market",
    "coffee",
    "winter",
    "summer",
    "spring",
    "autumn",
    "sister",
    "brother",
    "mother",
    "father",
    "cousin",
    "neighbour",
    "teacher",
    "student",
    "office",
    "meeting",
    "project",
    "budget",
    "report",
    "deadline",
    "client",
    "server",
    "database",
    "keyboard",
    "screen",
    "camera",
    "photo",
    "painting",
    "drawing",
    "museum",
    "gallery",
    "concert",
    "guitar",
    "violin",
    "drum",
    "choir",
    "theatre",
    "movie",
    "novel",
    "library",
    "author",
    "poem",
    "chapter",
    "school",
    "college",
    "exam",
    "lesson",
    "degree",
    "career",
    "interview",
    "salary",
    "manager",
    "team",
    "partner",
    "wedding",
    "birthday",
    "party",
    "dinner",
    "lunch",
    "breakfast",
    "bread",
    "cheese",
    "soup",
    "salad",
    "pasta",
    "chicken",
    "apple",
    "banana",
    "tomato",
    "garlic",
    "recipe",
    "oven",
    "bakery",
    "restaurant",
    "menu",
    "waiter",
    "travel",
    "flight",
    "airport",
    "train",
    "station",
    "bus",
    "bicycle",
    "car",
    "engine",
    "tyre",
    "road",
    "bridge",
    "map",
    "hotel",
    "beach",
    "island",
    "mountain",
    "forest",
    "lake",
    "valley",
    "desert",
    "storm",
    "rain",
    "snow",
    "wind",
    "cloud",
    "sunset",
    "weather",
    "dog",
    "cat",
    "horse",
    "rabbit",
    "bird",
    "fish",
    "puppy",
    "kitten",
    "leash",
    "vet",
    "clinic",
    "hospital",
    "nurse",
    "surgery",
    "knee",
    "shoulder",
    "headache",
    "allergy",
    "medicine",
    "yoga",
    "running",
    "swimming",
    "climbing",
    "hiking",
    "cycling",
    "football",
    "tennis",
    "basketball",
    "chess",
    "puzzle",
    "game",
    "match",
    "coach",
    "training",
    "marathon",
    "medal",
    "trophy",
    "race",
    "fitness",
    "sleep",
    "dream",
    "stress",
    "therapy",
    "support",
    "advice",
    "courage",
    "patience",
    "hope",
    "pride",
    "worry",
    "anger",
    "joy",
    "laugh",
    "smile",
    "tears",
    "friend",
    "group",
    "club",
    "charity",
    "volunteer",
    "shelter",
    "donation",
    "election",
    "law",
    "court",
    "police",
    "letter",
    "package",
    "phone",
    "message",
    "email",
    "website",
    "account",
    "password",
    "bank",
    "loan",
    "rent",
    "house",
    "apartment",
    "furniture",
    "sofa",
    "lamp",
    "carpet",
    "window",
    "door",
    "roof",
    "wall",
    "paint",
    "brush",
    "hammer",
    "wood",
    "metal",
    "glass",
    "plastic",
    "cotton",
    "shirt",
    "dress",
    "shoes",
    "jacket",
    "ring",
    "necklace",
    "clock",
    "calendar",
    "notebook",
    "pencil",
    "paper",
    "scissors",
    "candle",
    "flower",
    "rose",
    "tree",
    "leaf",
    "seed",
    "soil",
    "compost",
    "started",
    "finished",
    "bought",
    "sold",
    "lost",
    "found",
    "built",
    "repaired",
    "cleaned",
    "cooked",
    "painted",
    "visited",
    "joined",
    "left",
    "moved",
    "called",
    "wrote",
    "read",
    "watched",
    "learned",
    "taught",
    "planned",
    "cancelled",
    "promised",
    "forgot",
    "remembered",
    "decided",
    "tried",
    "failed",
    "passed",
    "changed",
    "helped",
    "thanked",
    "small",
    "large",
    "cheap",
    "expensive",
    "quiet",
    "loud",
    "heavy",
    "light",
    "early",
    "late",
    "bright",
    "dark",
    "fresh",
    "broken",
    "strange",
    "simple",
    "famous",
    "local",
    "yellow",
    "green",
    "purple",
    "orange",
    "wooden",
    "cosy",
    "crowded",
    "peaceful",
    "nervous",
    "excited",
    "grateful",
    "tired",
    "hungry",
    "curious",
];

/// An endless conversation.
pub struct Conversation {
    random: StdRng,
    names: Vec<String>,
    said: usize,
    start: Timestamp,
}

impl Conversation {
    /// The conversation of a seed.
    pub fn new(seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let name = |random: &mut StdRng| {
            (0..random.random_range(2..4))
                .filter_map(|_| SYLLABLES.choose(random))
                .copied()
                .collect()
        };
        let names = (0..NAMES).map(|_| name(&mut random)).collect();
        Self {
            random,
            names,
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
        let length = self.random.random_range(8..=44);
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
        let kind: f64 = self.random.random();
        if kind < 0.52 {
            (*COMMON.choose(&mut self.random).expect("the list has words")).to_owned()
        } else {
            self.rare()
        }
    }

    /// A topic or, once in six, a name. Words fall off as in real text: the square of an even draw makes early ones much
    /// more frequent.
    fn rare(&mut self) -> String {
        let is_name = self.random.random_ratio(1, 6);
        let draw: f64 = self.random.random();
        let at = |length: usize| (draw * draw * length as f64) as usize;
        if is_name {
            self.names[at(self.names.len())].clone()
        } else {
            TOPICS[at(TOPICS.len())].to_owned()
        }
    }
}
