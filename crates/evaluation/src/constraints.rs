//! One long chat in which a user gives an assistant requirements for many tasks, a few at a time: the agentic scenario of Amory
//! (section 4.4), seeded, from wordings in `data/constraints.json`. After each requirement the user goes to another task with
//! probability one half. Half of the requirements could be of any task: only the conversation tells which one is meant.

use chrono::{DateTime, TimeDelta, Utc};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::{Conversation, Question, Role, Turn};

/// How likely the user goes to another task after each turn (section 4.4: p = 0.5).
const SWITCHING: f64 = 0.5;
/// How likely a requirement that is of its task's subject is introduced by the task's name when the user comes back to it. One that could be of
/// any task always is.
const NAMING: f64 = 0.5;
/// Requirements of a task.
const REQUIREMENTS: std::ops::RangeInclusive<usize> = 4..=8;
/// What the user says in a session.
const SESSION: usize = 40;

/// By what a requirement can be known as its task's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    /// It names the task.
    Named,
    /// Its words are of the task's subject.
    Subject,
    /// The conversation alone: it follows another turn of the task.
    Place,
}

impl Sign {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Named => "found where the turn names the task",
            Self::Subject => "… where its words are of the subject",
            Self::Place => "… where only its place tells",
        }
    }
}

/// The chat, a question for all requirements of each task, and what they are known by.
#[derive(Debug, Clone, PartialEq)]
pub struct Chat {
    /// Its questions have the requirements' turns as evidence.
    pub conversation: Conversation,
    /// For each turn, if it is a requirement.
    pub signs: Vec<Option<Sign>>,
    /// For each turn the task that it is about, replies too: the stories that were planted.
    pub stories: Vec<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wordings {
    returns: Vec<String>,
    acknowledgements: Vec<String>,
    questions: Vec<String>,
    tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    name: String,
    opening: String,
    /// The first half is of the task's subject, the second half could be of any task.
    constraints: Vec<String>,
}

impl Wordings {
    fn load() -> Self {
        let text = include_str!("../data/constraints.json");
        serde_json::from_str(text).expect("the wordings are checked by the tests")
    }
}

/// How many tasks there are wordings for.
pub fn most_tasks() -> usize {
    Wordings::load().tasks.len()
}

/// A chat about this many tasks, at most [`most_tasks`]; equal seeds give equal chats.
pub fn chat(seed: u64, tasks: usize) -> Chat {
    let wordings = Wordings::load();
    let mut rng = StdRng::seed_from_u64(seed);
    let chosen: Vec<&Task> = wordings.tasks.choose_multiple(&mut rng, tasks).collect();
    let mut waiting: Vec<Plan> = Vec::with_capacity(chosen.len());
    for task in chosen {
        waiting.push(Plan::of(task, &mut rng));
    }
    let mut teller = Teller::new(&wordings, rng);
    teller.tell(&mut waiting);
    teller.ask(&waiting);
    Chat {
        conversation: teller.conversation,
        signs: teller.signs,
        stories: teller.stories,
    }
}

/// A task with what is not said of it yet.
struct Plan<'w> {
    task: &'w Task,
    is_open: bool,
    /// Last first.
    unsaid: Vec<usize>,
    said: Vec<usize>,
}

impl<'w> Plan<'w> {
    fn of(task: &'w Task, rng: &mut StdRng) -> Self {
        let mut unsaid: Vec<usize> = (0..task.constraints.len()).collect();
        unsaid.shuffle(rng);
        unsaid.truncate(rng.random_range(REQUIREMENTS));
        Self {
            task,
            is_open: false,
            unsaid,
            said: Vec::new(),
        }
    }
}

struct Teller<'w> {
    wordings: &'w Wordings,
    rng: StdRng,
    begun: DateTime<Utc>,
    conversation: Conversation,
    signs: Vec<Option<Sign>>,
    stories: Vec<usize>,
    /// The task that is spoken of.
    story: usize,
}

impl<'w> Teller<'w> {
    fn new(wordings: &'w Wordings, mut rng: StdRng) -> Self {
        let begun = DateTime::UNIX_EPOCH + TimeDelta::days(19_700 + rng.random_range(0..300));
        let conversation = Conversation {
            id: "tasks".to_owned(),
            ..Conversation::default()
        };
        Self {
            wordings,
            rng,
            begun,
            conversation,
            signs: Vec::new(),
            stories: Vec::new(),
            story: 0,
        }
    }

    /// Says everything, task after task and back.
    fn tell(&mut self, plans: &mut [Plan<'w>]) {
        let mut last = None;
        while let Some(at) = self.next(plans, last) {
            let is_new_session = (self.signs.len() / 2).is_multiple_of(SESSION);
            let follows = last == Some(at) && !is_new_session;
            self.story = at;
            self.go_on(&mut plans[at], follows);
            last = Some(at);
        }
    }

    /// The task that is spoken of next: the last one, or any other that is not all said.
    fn next(&mut self, plans: &[Plan<'_>], last: Option<usize>) -> Option<usize> {
        let is_unfinished = |at: &usize| !plans[*at].unsaid.is_empty();
        let stays = last.filter(is_unfinished);
        if stays.is_some() && !self.rng.random_bool(SWITCHING) {
            return stays;
        }
        let others: Vec<usize> = (0..plans.len())
            .filter(|at| is_unfinished(at) && Some(*at) != last)
            .collect();
        others.choose(&mut self.rng).copied().or(stays)
    }

    /// The next thing that is said of a task: what it is, then one requirement after the other.
    fn go_on(&mut self, plan: &mut Plan<'w>, follows: bool) {
        if !plan.is_open {
            plan.is_open = true;
            self.say(plan.task.opening.clone(), None);
            return;
        }
        let Some(which) = plan.unsaid.pop() else {
            return;
        };
        plan.said.push(self.signs.len());
        let requirement = &plan.task.constraints[which];
        let is_of_subject = which < plan.task.constraints.len() / 2;
        if !follows && (!is_of_subject || self.rng.random_bool(NAMING)) {
            let back = pick(&mut self.rng, &self.wordings.returns);
            let text = back.replace("{name}", &plan.task.name) + requirement;
            return self.say(text, Some(Sign::Named));
        }
        let sign = if is_of_subject {
            Sign::Subject
        } else {
            Sign::Place
        };
        self.say(requirement.clone(), Some(sign));
    }

    /// A message of the user and the reply.
    fn say(&mut self, text: String, sign: Option<Sign>) {
        let reply = pick(&mut self.rng, &self.wordings.acknowledgements).clone();
        self.turn(Role::User, text, sign);
        self.turn(Role::Assistant, reply, None);
    }

    fn turn(&mut self, role: Role, text: String, sign: Option<Sign>) {
        let place = self.signs.len();
        let session = place / 2 / SESSION;
        let days = i64::try_from(session).unwrap_or_default();
        let minutes = i64::try_from(place % (2 * SESSION)).unwrap_or_default();
        let speaker = match role {
            Role::User => "user",
            _ => "assistant",
        };
        self.conversation.turns.push(Turn {
            id: place.to_string(),
            session: format!("session-{session}"),
            speaker: speaker.to_owned(),
            role,
            time: Some(self.begun + TimeDelta::days(days) + TimeDelta::minutes(540 + minutes)),
            text,
            captions: Vec::new(),
        });
        self.signs.push(sign);
        self.stories.push(self.story);
    }

    fn ask(&mut self, plans: &[Plan<'_>]) {
        for plan in plans {
            let asked = pick(&mut self.rng, &self.wordings.questions);
            self.conversation.questions.push(Question {
                text: asked.replace("{name}", &plan.task.name),
                category: "constraints".to_owned(),
                evidence: plan.said.clone(),
            });
        }
    }
}

fn pick<'t>(rng: &mut StdRng, texts: &'t [String]) -> &'t String {
    texts.choose(rng).expect("every list has entries")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn equal_seeds_tell_equal_chats() {
        assert_eq!(chat(3, 20), chat(3, 20));
        assert_ne!(chat(3, 20), chat(4, 20));
    }

    #[test]
    fn every_requirement_is_asked_for_once() {
        let chat = chat(1, most_tasks());
        let questions = &chat.conversation.questions;
        assert_eq!(questions.len(), most_tasks());
        let asked: Vec<usize> = questions
            .iter()
            .flat_map(|it| it.evidence.clone())
            .collect();
        let said = chat.signs.iter().flatten().count();
        assert_eq!(asked.len(), said);
        assert!(asked.iter().all(|place| chat.signs[*place].is_some()));
        assert_eq!(asked.iter().collect::<HashSet<_>>().len(), said);
        for (task, question) in questions.iter().enumerate() {
            assert!(
                question
                    .evidence
                    .iter()
                    .all(|place| chat.stories[*place] == task)
            );
        }
    }

    #[test]
    fn what_could_be_of_any_task_follows_its_task() {
        let chat = chat(1, most_tasks());
        for (place, _) in chat
            .signs
            .iter()
            .enumerate()
            .filter(|(_, sign)| **sign == Some(Sign::Place))
        {
            // The user's turn before is of the same task: another requirement, or what the task is.
            let before = place - 2;
            let turns = &chat.conversation.turns;
            assert_eq!(turns[before].session, turns[place].session);
            assert_eq!(chat.stories[before], chat.stories[place]);
        }
    }

    #[test]
    fn tasks_take_turns_and_time_never_goes_back() {
        let chat = chat(2, 40);
        assert!(chat.conversation.turns.is_sorted_by_key(|turn| turn.time));
        let spread = chat.conversation.questions.iter().filter(|question| {
            let evidence = &question.evidence;
            evidence[evidence.len() - 1] - evidence[0] > 2 * evidence.len()
        });
        assert!(
            spread.count() > 30,
            "requirements of a task are far from each other"
        );
    }

    #[test]
    fn wordings_are_complete() {
        let wordings = Wordings::load();
        let all: Vec<&String> = wordings
            .tasks
            .iter()
            .flat_map(|task| &task.constraints)
            .collect();
        assert_eq!(
            all.iter().collect::<HashSet<_>>().len(),
            all.len(),
            "each once"
        );
        for task in &wordings.tasks {
            assert_eq!(task.constraints.len(), *REQUIREMENTS.end(), "{}", task.name);
            assert!(
                task.constraints
                    .iter()
                    .all(|text| !text.contains(&task.name))
            );
        }
        for text in wordings.returns.iter().chain(&wordings.questions) {
            assert_eq!(text.matches("{name}").count(), 1, "{text}");
        }
    }
}
