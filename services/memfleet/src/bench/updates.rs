//! `memfleet bench updates`: whether memory stays current where facts change, without a language model. Dialogues with planted facts
//! (`memfleet_evaluation::updates`) are remembered by a node of its own; then each attribute is
//! asked for.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use clap::Args;
use memfleet_consolidator::Mode;
use memfleet_domain::derivation::{ChangeKind, Derivation};
use memfleet_domain::time::{Clock, SystemClock, Timestamp};
use memfleet_evaluation::updates::{Asked, Stated, Story, Wordings, stories};
use memfleet_ports::knowledge::{ChangeFilter, Stage};
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Hit;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::retrieval::progress;
use super::{Bench, percent, query};
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

/// How deep an answer is looked at.
const DEPTH: u32 = 10;

/// Arguments.
#[derive(Debug, Args)]
pub struct UpdatesArgs {
    /// Which dialogues
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many facts change, at least
    #[arg(long, value_name = "N", default_value_t = 500)]
    changes: usize,
    /// Which wordings: two sets that may be looked at (developed, second), or one that nobody who
    /// works on memory looks at
    #[arg(long, value_enum, default_value_t)]
    wordings: Told,
    /// Name the questions that were answered wrongly, and the facts that were ended wrongly
    #[arg(long)]
    list: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// [`Wordings`], as an argument.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Told {
    #[default]
    Developed,
    Second,
    HeldOut,
}

impl From<Told> for Wordings {
    fn from(told: Told) -> Self {
        match told {
            Told::Developed => Self::Developed,
            Told::Second => Self::Second,
            Told::HeldOut => Self::HeldOut,
        }
    }
}

/// What was measured. Shares are percentages.
#[derive(Debug, Serialize)]
pub struct Report {
    seed: u64,
    wordings: Wordings,
    users: usize,
    turns: usize,
    changes: usize,
    questions: usize,
    /// Questions where the value that holds ranks before all that held once, and none of these is
    /// presented as if it held.
    current: f64,
    /// The same of what is found alone: nothing is settled, and no answer is judged.
    without_refresher: f64,
    /// The same where nothing is settled when it is written, but answers are judged when they are
    /// read.
    judged_on_read: f64,
    /// Questions where the value that holds ranks before all that held once.
    first: f64,
    /// The same of what is found alone.
    first_without_refresher: f64,
    /// How many facts the refresher ended, …
    ended: usize,
    /// … and the share of them that still held.
    false_updates: f64,
    /// Share of questions answered with the value that holds, by attribute.
    by_attribute: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<String>,
}

/// Measures with all agents, without the refresher, and what is found alone.
pub async fn measure(args: &UpdatesArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let told = stories(args.seed, args.changes, args.wordings.into());
    let with = Arm::run(&told, models, &Stage::ALL).await?.0;
    let others: Vec<Stage> = Stage::ALL
        .into_iter()
        .filter(|stage| *stage != Stage::Settle)
        .collect();
    let (judged, without) = Arm::run(&told, models, &others).await?;
    Ok(Report {
        seed: args.seed,
        wordings: args.wordings.into(),
        users: told.len(),
        turns: told
            .iter()
            .map(|story| story.conversation.turns.len())
            .sum(),
        changes: told.iter().map(|story| story.changes).sum(),
        questions: with.answers.len(),
        current: with.share(|answer| answer.is_first && answer.is_marked),
        without_refresher: without.share(|answer| answer.is_first && answer.is_marked),
        judged_on_read: judged.share(|answer| answer.is_first && answer.is_marked),
        first: with.share(|answer| answer.is_first),
        first_without_refresher: without.share(|answer| answer.is_first),
        ended: with.ended,
        false_updates: percent(with.falsely.len(), with.ended),
        by_attribute: with.by_attribute(),
        wrong: if args.list { with.wrong() } else { Vec::new() },
    })
}

/// One question, answered.
struct Answer {
    user: String,
    asked: Asked,
    /// The value that holds ranks before all that held once.
    is_first: bool,
    /// What held once is nowhere presented as if it held.
    is_marked: bool,
    /// The turn that says otherwise.
    otherwise: Option<String>,
}

/// The answers of a node with some of its agents.
#[derive(Default)]
struct Arm {
    answers: Vec<Answer>,
    /// Facts that the refresher ended, …
    ended: usize,
    /// … and those of them that hold.
    falsely: Vec<String>,
}

impl Arm {
    /// What the node answers, and what its retriever finds alone.
    async fn run(
        told: &[Story],
        models: &ConfiguredModels,
        stages: &[Stage],
    ) -> Result<(Self, Self), BoxError> {
        let bench = Bench::start_with(models, stages, Mode::default()).await?;
        let gateway = &bench.node.gateway;
        let mut corpora = Vec::with_capacity(told.len());
        let bar = progress("remembering", told.len());
        for (number, story) in told.iter().enumerate() {
            let name = format!("user-{number}");
            let conversation = std::slice::from_ref(&story.conversation);
            corpora.push(Corpus::remember(&**gateway, &name, conversation).await?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        bench.derived(stages).await?;
        let (mut arm, mut alone) = (Self::default(), Self::default());
        let bar = progress("asking", told.len());
        for (story, corpus) in told.iter().zip(&corpora) {
            for asked in &story.asked {
                let query = query(&corpus.space, asked.question.clone(), DEPTH);
                let found = bench.node.gateway.retriever.search(&call(), &query).await?;
                alone.note(story, asked, corpus, &found.hits);
                let wait_for = Vec::new();
                let request = RecallRequest {
                    wait_for,
                    ..RecallRequest::from(query)
                };
                let found = bench.node.gateway.recall(&call(), request).await?;
                arm.note(story, asked, corpus, &found.hits);
            }
            arm.look_through(&bench, story, corpus).await?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        bench.stop().await;
        Ok((arm, alone))
    }

    fn note(&mut self, story: &Story, asked: &Asked, corpus: &Corpus, hits: &[Hit]) {
        let answer = Answer::of(story, asked, corpus, hits);
        self.answers.push(answer);
    }

    /// Looks for facts that were ended although they hold.
    async fn look_through(
        &mut self,
        bench: &Bench,
        story: &Story,
        corpus: &Corpus,
    ) -> Result<(), BoxError> {
        let holds: HashSet<usize> = holding(story);
        let scope = call().scope(&corpus.space);
        let (mut after, knowledge) = (None, &bench.node.gateway.knowledge);
        loop {
            let all = ChangeFilter::default();
            let page = knowledge
                .changes(&scope, &all, 1_000, after.as_ref())
                .await?;
            let updates = page
                .items
                .iter()
                .filter(|recorded| recorded.change.kind == ChangeKind::Updated);
            for fact in updates.flat_map(|update| &update.wrote) {
                self.ended += 1;
                let place = corpus.places.get(&fact.turns[0]);
                let text = fact.fact().map_or("", |draft| draft.text.as_str());
                let is_false = !came_true(story, fact)
                    && place.is_none_or(|place| {
                        holds.contains(place) || !story.stated.contains_key(place)
                    });
                if is_false {
                    self.falsely.push(format!("{}: ended: {text}", story.user));
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn share(&self, is_right: impl Fn(&Answer) -> bool) -> f64 {
        let right = self
            .answers
            .iter()
            .filter(|answer| is_right(answer))
            .count();
        percent(right, self.answers.len())
    }

    fn by_attribute(&self) -> BTreeMap<String, f64> {
        let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for answer in &self.answers {
            let (right, all) = counts.entry(&answer.asked.attribute).or_default();
            *right += usize::from(answer.is_first && answer.is_marked);
            *all += 1;
        }
        let shares = counts.into_iter();
        shares
            .map(|(attribute, (right, all))| (attribute.to_owned(), percent(right, all)))
            .collect()
    }

    fn wrong(self) -> Vec<String> {
        let wrong = self.answers.into_iter().filter_map(|answer| {
            let why = match (answer.is_first, answer.is_marked) {
                (true, true) => return None,
                (false, _) => "not first",
                (true, false) => "an old value unmarked",
            };
            let asked = answer.asked;
            let otherwise = answer.otherwise.unwrap_or_default();
            Some(format!(
                "{}: {} [{}]: {why}: {otherwise}",
                answer.user, asked.question, asked.value
            ))
        });
        wrong.chain(self.falsely).collect()
    }
}

impl Answer {
    fn of(story: &Story, asked: &Asked, corpus: &Corpus, hits: &[Hit]) -> Self {
        let now = SystemClock.now();
        let mut first = None;
        let (mut is_marked, mut otherwise) = (true, None);
        for hit in hits {
            let place = corpus.places.get(&hit.turn.accepted.id);
            let stated = place.and_then(|place| story.stated.get(place));
            let Some(stated) = stated.filter(|stated| stated.attribute == asked.attribute) else {
                continue;
            };
            let is_current = stated.value == asked.value;
            let is_right = if is_current {
                !is_marked_past(hit)
            } else {
                is_told_as_past(hit, now)
            };
            if otherwise.is_none() && !(is_right && (is_current || first.is_some())) {
                otherwise = Some(hit.turn.accepted.content.text.clone());
            }
            first.get_or_insert(is_current);
            is_marked &= is_right;
        }
        Self {
            user: story.user.clone(),
            asked: asked.clone(),
            is_first: first == Some(true),
            is_marked,
            otherwise,
        }
    }
}

fn is_marked_past(hit: &Hit) -> bool {
    hit.outdated.is_some()
}

/// Whether the answer says of what the turn states that it holds no longer.
fn is_told_as_past(hit: &Hit, now: Timestamp) -> bool {
    is_marked_past(hit)
        || (!hit.facts.is_empty()
            && hit
                .facts
                .iter()
                .all(|fact| fact.valid.end.is_some_and(|end| end <= now)))
}

/// Whether a fact denies what the user states some time: it ends where that comes true.
fn came_true(story: &Story, fact: &Derivation) -> bool {
    fact.fact().is_some_and(|draft| {
        let text = draft.text.to_lowercase();
        let is_in = |stated: &Stated| text.contains(&stated.value.to_lowercase());
        draft.is_negated() && story.stated.values().any(is_in)
    })
}

/// The places of the turns that state what holds at the end.
fn holding(story: &Story) -> HashSet<usize> {
    let holds: HashMap<&str, &str> = story
        .asked
        .iter()
        .map(|asked| (asked.attribute.as_str(), asked.value.as_str()))
        .collect();
    let is_so = |attribute: &str, value: &str| holds.get(attribute) == Some(&value);
    let stated = story.stated.iter();
    stated
        .filter(|(_, stated)| is_so(&stated.attribute, &stated.value))
        .map(|(place, _)| *place)
        .collect()
}

impl Report {
    /// As a person reads it.
    pub fn table(&self) -> String {
        let row =
            |name: &str, with: f64, without: f64| format!("{name:<40}{with:>14.1}{without:>22.1}");
        let (questions, changes, turns) = (self.questions, self.changes, self.turns);
        let (users, seed) = (self.users, self.seed);
        let mut lines = vec![
            format!(
                "{questions} questions, {changes} changes, {turns} turns of {users} users (seed {seed}); shares in percent"
            ),
            format!("{:<40}{:>14}{:>22}", "", "all agents", "found alone"),
            row(
                "current value first, old ones marked",
                self.current,
                self.without_refresher,
            ),
            row(
                "current value first",
                self.first,
                self.first_without_refresher,
            ),
            format!(
                "{:.1} where nothing is settled on write and answers are judged on read",
                self.judged_on_read
            ),
            format!(
                "{} facts ended, {:.2} of them falsely",
                self.ended, self.false_updates
            ),
        ];
        let attributes = self.by_attribute.iter();
        lines.extend(attributes.map(|(name, share)| format!("{name:<40}{share:>14.1}")));
        lines.extend(self.wrong.iter().cloned());
        lines.push(String::new());
        lines.join("\n")
    }
}
