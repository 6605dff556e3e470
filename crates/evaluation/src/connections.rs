//! One long chat among a few people in which what connects two people or things is said in several places (Amory section 3.3): seeded, from
//! wordings in `data/connections.json`. Each link of a chain is one statement, in a session of its own; the question names the ends alone. Of
//! ends and middles much else is said, so that a turn's words do not tell that it is a link.
//!
//! `wordings` are the data and the names, `plot` is what is so; here it is told.

mod plot;
mod wordings;

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom, index};
use rand::{Rng, SeedableRng};

use self::plot::{Bond, Path, Plot};
use self::wordings::{Entity, Kind, Wordings, pick};
use crate::{Conversation, Question, Role, Turn};

const SESSIONS: usize = 20;
/// What is said in a session.
const SESSION: usize = 40;
/// What else is said of an end, and of a middle.
const OF_ENDS: std::ops::RangeInclusive<usize> = 4..=6;
const OF_MIDDLES: std::ops::RangeInclusive<usize> = 1..=3;
/// How likely a statement has something before it, or behind.
const OPENING: f64 = 0.4;
const CLOSING: f64 = 0.3;

/// The chat, and a question for each chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Chat {
    /// Its questions have the links' turns as evidence.
    pub conversation: Conversation,
    /// In the order of the questions.
    pub chains: Vec<Chain>,
}

/// What connects two people or things.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// From one end to the other.
    pub entities: Vec<String>,
    /// What relates each to the next.
    pub links: Vec<Link>,
}

/// A statement that relates two.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The place of its turn.
    pub turn: usize,
    /// Of whom or what it is said.
    pub subject: String,
    /// To whom or what that is related.
    pub object: String,
}

/// The chat of this seed.
pub fn chat(seed: u64) -> Chat {
    let wordings = Wordings::load();
    let mut rng = StdRng::seed_from_u64(seed);
    let plot = Plot::new(&wordings, &mut rng);
    let mut teller = Teller {
        wordings: &wordings,
        speakers: &plot.speakers,
        rng,
        sessions: vec![Vec::new(); SESSIONS],
    };
    teller.prepare(&plot);
    let mut chains: Vec<Chain> = plot.paths.iter().map(chain).collect();
    let mut conversation = teller.tell(&mut chains);
    for (path, chain) in plot.paths.iter().zip(&chains) {
        conversation.questions.push(teller.ask(path, chain));
    }
    Chat {
        conversation,
        chains,
    }
}

/// A chain whose turns are not told yet.
fn chain(path: &Path) -> Chain {
    let links = path.bonds.iter().map(|bond| Link {
        turn: 0,
        subject: bond.subject.name.clone(),
        object: bond.object.name.clone(),
    });
    let entities = path.entities.iter();
    Chain {
        entities: entities.map(|entity| entity.name.clone()).collect(),
        links: links.collect(),
    }
}

/// What is going to be said.
#[derive(Debug, Clone)]
struct Saying {
    speaker: String,
    text: String,
    /// Chain and link, if it is one.
    link: Option<(usize, usize)>,
}

struct Teller<'p> {
    wordings: &'p Wordings,
    speakers: &'p [Entity],
    rng: StdRng,
    sessions: Vec<Vec<Saying>>,
}

impl Teller<'_> {
    /// Spreads everything over the sessions.
    fn prepare(&mut self, plot: &Plot) {
        for (number, path) in plot.paths.iter().enumerate() {
            let sessions = index::sample(&mut self.rng, SESSIONS, path.bonds.len());
            for (link, (bond, session)) in path.bonds.iter().zip(sessions).enumerate() {
                let saying = self.state(bond, Some((number, link)));
                self.sessions[session].push(saying);
            }
        }
        for bond in &plot.asides {
            let saying = self.state(bond, None);
            self.anywhere(saying);
        }
        self.remark_on(&plot.paths);
        for session in 0..SESSIONS {
            while self.sessions[session].len() < SESSION {
                let saying = self.talk();
                self.sessions[session].push(saying);
            }
            self.sessions[session].shuffle(&mut self.rng);
        }
    }

    fn anywhere(&mut self, saying: Saying) {
        let session = self.rng.random_range(0..SESSIONS);
        self.sessions[session].push(saying);
    }

    /// One sentence that relates two, in the words of the subject or of somebody who is neither.
    fn state(&mut self, bond: &Bond, link: Option<(usize, usize)>) -> Saying {
        let relation = &self.wordings.relations[bond.relation];
        let (subject, object) = (&bond.subject.name, &bond.object.name);
        let is_own = self.speakers.contains(&bond.subject) && !relation.first.is_empty();
        let (speaker, wordings) = if is_own && self.rng.random_bool(0.5) {
            (subject.clone(), &relation.first)
        } else {
            (self.somebody(&[subject, object]), &relation.third)
        };
        let sentence = pick(&mut self.rng, wordings);
        let sentence = sentence.replace("{a}", subject).replace("{b}", object);
        Saying {
            speaker,
            text: self.dressed(&sentence),
            link,
        }
    }

    /// A sentence with what may stand around it.
    fn dressed(&mut self, sentence: &str) -> String {
        let mut text = String::new();
        if self.rng.random_bool(OPENING) {
            text += pick(&mut self.rng, &self.wordings.openings);
        }
        match text.trim_end().ends_with([',', ':']) {
            true => text += sentence,
            false => text += &capitalised(sentence),
        }
        if self.rng.random_bool(CLOSING) {
            text += pick(&mut self.rng, &self.wordings.closings);
        }
        text
    }

    /// A speaker who is none of these.
    fn somebody(&mut self, except: &[&String]) -> String {
        let others = self.speakers.iter().map(|speaker| &speaker.name);
        let others: Vec<&String> = others.filter(|name| !except.contains(name)).collect();
        let speaker = others.choose(&mut self.rng);
        (*speaker.expect("a relation is of two")).clone()
    }

    /// What else is said of the entities of the chains.
    fn remark_on(&mut self, paths: &[Path]) {
        let mut ends: Vec<&Entity> = Vec::new();
        for path in paths {
            let [first, middles @ .., last] = &path.entities[..] else {
                continue;
            };
            for end in [first, last] {
                if !ends.contains(&end) {
                    ends.push(end);
                }
            }
            for middle in middles {
                self.remarks(middle, OF_MIDDLES);
            }
        }
        for end in ends {
            self.remarks(end, OF_ENDS);
        }
    }

    fn remarks(&mut self, entity: &Entity, times: std::ops::RangeInclusive<usize>) {
        let times = self.rng.random_range(times);
        let all = &self.wordings.kinds[&entity.kind].remarks;
        let chosen: Vec<&String> = all.choose_multiple(&mut self.rng, times).collect();
        for remark in chosen {
            let saying = Saying {
                speaker: self.somebody(&[&entity.name]),
                text: capitalised(&remark.replace("{a}", &entity.name)),
                link: None,
            };
            self.anywhere(saying);
        }
    }

    /// Small talk, or what the speaker did.
    fn talk(&mut self) -> Saying {
        let wordings = self.wordings;
        let text = if self.rng.random_bool(0.5) {
            pick(&mut self.rng, &wordings.talk).clone()
        } else {
            let doing = pick(&mut self.rng, &wordings.doings).clone();
            doing + pick(&mut self.rng, &wordings.whens)
        };
        Saying {
            speaker: self.somebody(&[]),
            text,
            link: None,
        }
    }

    /// The conversation, without questions; the chains are told where their links are.
    fn tell(&mut self, chains: &mut [Chain]) -> Conversation {
        let begun = DateTime::UNIX_EPOCH + TimeDelta::days(19_700 + self.rng.random_range(0..300));
        let mut turns = Vec::with_capacity(SESSIONS * SESSION);
        for (session, sayings) in std::mem::take(&mut self.sessions).into_iter().enumerate() {
            let mut time = begun + TimeDelta::days(3 * session as i64) + TimeDelta::hours(18);
            for saying in sayings {
                if let Some((chain, link)) = saying.link {
                    chains[chain].links[link].turn = turns.len();
                }
                turns.push(turn(turns.len(), session, time, saying));
                time += TimeDelta::minutes(1);
            }
        }
        Conversation {
            id: "connections".to_owned(),
            turns,
            questions: Vec::new(),
            unanswerable: Vec::new(),
        }
    }

    /// Names the ends, in either order; somebody is first where one is.
    fn ask(&mut self, path: &Path, chain: &Chain) -> Question {
        let mut ends = [&path.entities[0], &path.entities[path.bonds.len()]];
        ends.shuffle(&mut self.rng);
        let mut wordings = &self.wordings.questions;
        let is_person = |end: &&Entity| end.kind == Kind::Person;
        if ends.iter().any(is_person) && self.rng.random_bool(0.5) {
            wordings = &self.wordings.acquaintances;
            ends.sort_by_key(|end| !is_person(end));
        }
        let text = pick(&mut self.rng, wordings);
        let text = text.replace("{a}", &ends[0].name);
        let mut evidence: Vec<usize> = chain.links.iter().map(|link| link.turn).collect();
        evidence.sort_unstable();
        Question {
            text: text.replace("{b}", &ends[1].name),
            category: format!("{} links", evidence.len()),
            evidence,
        }
    }
}

fn turn(place: usize, session: usize, time: DateTime<Utc>, saying: Saying) -> Turn {
    Turn {
        id: place.to_string(),
        session: format!("session-{session}"),
        speaker: saying.speaker,
        role: Role::User,
        time: Some(time),
        text: saying.text,
        captions: Vec::new(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

#[cfg(test)]
mod tests;
