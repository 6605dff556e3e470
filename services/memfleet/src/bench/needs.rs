//! `memfleet bench needs`: which prompts get memory, and whether they get what they need, by the
//! gates of `Assemble` over the need spaces of the understanding corpus.

mod report;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use chrono::NaiveTime;
use clap::Args;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::Role;
use memfleet_evaluation::understanding::{
    LabelledPrompt, NeedSpace, PromptKind, SpokenText, UnderstandingCorpus,
};
use memfleet_evaluation::{Conversation, Dataset, Role as TurnRole, Turn};
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly, Content, Message, Prompt};
use memfleet_ports::knowledge::Stage;
use memfleet_runtime::BoxError;
use uuid::Uuid;

use super::retrieval::progress;
use super::{Bench, query};
use crate::cli::read_policy;
use crate::corpus::{Corpus, call};
use crate::models::ConfiguredModels;

pub use report::NeedsReport;
use report::{ArmFigures, MemoryFigures, ThresholdFigures};

/// Candidates, as an `Assemble` has that does not say.
const CANDIDATES: u32 = 100;

/// Least relevance under which every hit is scored and none is left out.
const ANY: f32 = 1e-9;

/// Arguments.
#[derive(Debug, Args)]
pub struct NeedsArgs {
    /// Folder of the corpus
    #[arg(default_value = "crates/evaluation/data/understanding")]
    corpus: PathBuf,
    /// Part of the corpus
    #[arg(long, default_value = "test")]
    part: String,
    /// Ask the prompts of one space in so many
    #[arg(long, default_value = "1")]
    every: NonZeroUsize,
    /// Data set whose conversations each space is searched together with, for larger memories; may
    /// be given several times
    #[arg(long, value_name = "FILE")]
    among: Vec<PathBuf>,
    /// Another policy to measure, as `memfleet policy set` takes it; may be given several times
    #[arg(long = "policy", value_name = "POLICY")]
    policies: Vec<PathBuf>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Asks every prompt of the part under every policy, with its space alone and among others.
pub async fn measure(args: &NeedsArgs, models: &ConfiguredModels) -> Result<NeedsReport, BoxError> {
    let corpus = UnderstandingCorpus::load(&args.corpus)?;
    let writers = corpus.needs.iter().filter(|it| it.part == args.part);
    let spaces = writers.flat_map(|writer| {
        let spaces = writer.items.iter();
        spaces.map(|space| (format!("{}-{}", writer.writer, space.number), space))
    });
    let mut needs = Policy::default();
    needs.gating.needs = Some(true);
    let mut policies = vec![
        ("shipped".to_owned(), Policy::default()),
        ("needs".to_owned(), needs),
    ];
    for path in &args.policies {
        policies.push((path.display().to_string(), read_policy(path)?));
    }
    let bench = Bench::start(models).await?;
    let gateway = &*bench.node.gateway;
    let mut memories = Vec::new();
    for (name, space) in spaces.step_by(args.every.get()) {
        memories.push(Memory::of_space(gateway, &name, space).await?);
    }
    let mut report = NeedsReport::new(&args.part);
    bench.derived(&Stage::ALL).await?;
    let alone = asked("alone", gateway, &memories, &[], &policies);
    report.memories.push(alone.await?);
    for path in &args.among {
        let file = path.file_name().unwrap_or(path.as_os_str());
        let file = file.to_string_lossy();
        let mut others = Vec::new();
        for (number, conversation) in Dataset::load(path)?.conversations.iter().enumerate() {
            let name = format!("{file}-{number}");
            others.push(Memory::of_conversation(gateway, &name, conversation).await?);
        }
        bench.derived(&Stage::ALL).await?;
        let among = format!("among {file}");
        let among = asked(&among, gateway, &memories, &others, &policies);
        report.memories.push(among.await?);
        let questions = format!("questions of {file}");
        let questions = asked(&questions, gateway, &others, &[], &policies);
        report.memories.push(questions.await?);
    }
    bench.stop().await;
    Ok(report)
}

/// Remembered space and prompts that meet it.
struct Memory {
    corpus: Corpus,
    turns: usize,
    prompts: Vec<LabelledPrompt>,
}

impl Memory {
    async fn of_space(gateway: &Gateway, name: &str, space: &NeedSpace) -> Result<Self, BoxError> {
        let conversation = conversation(space);
        let corpus = Corpus::remember(gateway, name, &[conversation]).await?;
        Ok(Self {
            corpus,
            turns: space.lines.len(),
            prompts: space.prompts.clone(),
        })
    }

    /// Takes the questions of a data set for prompts that name what they need: the evidence.
    async fn of_conversation(
        gateway: &Gateway,
        name: &str,
        conversation: &Conversation,
    ) -> Result<Self, BoxError> {
        let corpus = Corpus::remember(gateway, name, std::slice::from_ref(conversation)).await?;
        let prompts = conversation
            .questions
            .iter()
            .map(|question| LabelledPrompt {
                line: 0,
                kind: PromptKind::Explicit,
                text: question.text.clone(),
                before: Vec::new(),
                needed: question.evidence.clone(),
                helpful: Vec::new(),
            });
        Ok(Self {
            corpus,
            turns: conversation.turns.len(),
            prompts: prompts.collect(),
        })
    }
}

/// Asks all prompts of memories under each policy, each memory together with one of the others.
async fn asked(
    name: &str,
    gateway: &Gateway,
    memories: &[Memory],
    others: &[Memory],
    policies: &[(String, Policy)],
) -> Result<MemoryFigures, BoxError> {
    let mut open = Policy::default();
    (open.gating.relevance, open.gating.best_relevance) = (Some(ANY), Some(0.0));
    open.gating.needs = Some(true);
    let mut arms: Vec<_> = policies
        .iter()
        .map(|(name, _)| ArmFigures::new(name))
        .collect();
    let mut thresholds = ThresholdFigures::default();
    let mut turns = 0;
    let bar = progress(name, memories.len());
    for (number, memory) in memories.iter().enumerate() {
        let place = number.checked_rem(others.len());
        let other = place.map(|place| &others[place]);
        turns += memory.turns + other.map_or(0, |other| other.turns);
        let corpora: Vec<_> = [Some(memory), other].into_iter().flatten().collect();
        let spaces: Vec<_> = corpora.iter().map(|it| it.corpus.space.clone()).collect();
        for prompt in &memory.prompts {
            let ask = |policy: &Policy| {
                let request = request(&spaces, prompt, policy);
                async move { Ok::<_, BoxError>(gateway.assemble(&call(), request?).await?) }
            };
            for ((_, policy), arm) in policies.iter().zip(&mut arms) {
                arm.add(prompt, &memory.corpus, &ask(policy).await?);
            }
            thresholds.add(prompt, &needs(&memory.corpus, &ask(&open).await?));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(MemoryFigures {
        memory: name.to_owned(),
        mean_turns: turns / memories.len().max(1),
        arms,
        thresholds,
    })
}

/// Relevance of all that was found: the place in the labelled space, absent in another.
fn needs(corpus: &Corpus, answer: &Assembled) -> Vec<(Option<usize>, f32)> {
    let items = answer
        .items
        .iter()
        .map(|item| (item.turn(), item.relevance));
    let dropped = answer.dropped.iter().map(|it| (it.turn(), it.relevance));
    let scored = items.chain(dropped).filter_map(|(turn, relevance)| {
        let place = turn.and_then(|turn| corpus.places.get(&turn).copied());
        Some((place, relevance?))
    });
    scored.collect()
}

fn request(
    spaces: &[SpaceId],
    prompt: &LabelledPrompt,
    policy: &Policy,
) -> Result<AssembleRequest, BoxError> {
    let [space, others @ ..] = spaces else {
        return Err("no space is asked".into());
    };
    let mut query = query(space, String::new(), CANDIDATES);
    query.spaces.extend_from_slice(others);
    query.session = Some(SessionId::new(format!("asking {}", Uuid::now_v7()))?);
    let message = |role, text: &str| Message {
        role,
        content: Content::Text(text.replace(" ⏎ ", "\n")),
    };
    let before = prompt.before.iter();
    let mut messages: Vec<_> = before
        .map(|it| message(spoken_role(it), &it.text))
        .collect();
    messages.push(message(Role::User, &prompt.text));
    let mut request = AssembleRequest {
        prompt: Prompt::Messages(messages),
        policy: policy.clone(),
        ..AssembleRequest::new(query)
    };
    request.policy.failure.deadline_ms = Some(60_000);
    Ok(request)
}

fn spoken_role(said: &SpokenText) -> Role {
    if said.is_assistant {
        Role::Assistant
    } else {
        Role::User
    }
}

/// The lines of a space as a conversation, a session a day.
fn conversation(space: &NeedSpace) -> Conversation {
    let turns = space.lines.iter().enumerate().map(|(place, line)| Turn {
        id: place.to_string(),
        session: line.day.to_string(),
        speaker: line.said.speaker.clone(),
        role: match line.said.is_assistant {
            true => TurnRole::Assistant,
            false => TurnRole::User,
        },
        time: Some(line.day.and_time(NaiveTime::MIN).and_utc()),
        text: line.said.text.replace(" ⏎ ", "\n"),
        captions: Vec::new(),
    });
    Conversation {
        turns: turns.collect(),
        ..Conversation::default()
    }
}
