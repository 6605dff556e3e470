//! `memfleet demo`: a sample conversation on a temporary node, from the first turn to a prompt, each step with what it found.

use std::time::{Duration, Instant};

use clap::Args;
use memfleet_evaluation::{Dataset, Question};
use memfleet_ports::access::default_tenant;
use memfleet_ports::assembly::AssembleRequest;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::RecallRequest;
use memfleet_ports::retriever::{Hit, Query};
use memfleet_runtime::{BoxError, telemetry};
use serde_json::json;

use super::Handle;
use super::exit::{Error, Exit};
use super::model::fetch_main;
use crate::config::Config;
use crate::corpus::Corpus;
use crate::node::{Node, temporary};
use crate::output::{Output, Palette, exact, printable, time, turn_json};

/// Two friends and an assistant over a year: our own fiction.
const SAMPLE: &str = include_str!("../../data/sample-conversation.json");
/// Hits shown a question.
const SHOWN: u32 = 3;
/// Tokens of the block that is assembled at the end.
const BUDGET: u32 = 300;

/// Remember a sample conversation, search it and assemble a prompt, all on a temporary node
#[derive(Debug, Args)]
pub struct DemoArgs {}

/// Runs the demo.
pub async fn run(_args: DemoArgs, configured: &Config, output: &mut Output) -> Result<Exit, Error> {
    telemetry::init(
        &telemetry::Options {
            level: "warn".to_owned(),
            ..Default::default()
        },
        "memfleet",
    )
    .map_err(BoxError::from)?;
    let models = fetch_main(configured)?;
    let directory = tempfile::tempdir().map_err(BoxError::from)?;
    let begun = Instant::now();
    let config = temporary(directory.path(), &models);
    let node = Node::open(&config, &models).await?;
    let workers = node.run_in_background();
    step(
        output,
        "1",
        &format!(
            "a node with {} started in {}",
            models.main.manifest().name,
            milliseconds(begun)
        ),
    )?;
    let corpus = remember(&node, output).await?;
    let tenant = default_tenant();
    let handle = Handle::new(node.gateway.clone(), tenant, Some(Duration::from_mins(1)));
    recall(&handle, &corpus, output).await?;
    assemble(&handle, &corpus, output).await?;
    workers.stop().await;
    if !output.is_json() {
        output.text(
            "\nNext: `memfleet up` starts a node that stays; README.md shows how to talk to it.",
        )?;
    }
    Ok(Exit::Done)
}

async fn remember(node: &Node, output: &mut Output) -> Result<Corpus, Error> {
    let sample = Dataset::parse(SAMPLE).map_err(BoxError::from)?;
    let begun = Instant::now();
    let corpus = Corpus::remember(&*node.gateway, "demo", &sample.conversations).await?;
    let turns = sample.turns();
    step(
        output,
        "2",
        &format!(
            "remembered {turns} turns of a year, searchable after {}",
            milliseconds(begun)
        ),
    )?;
    Ok(corpus)
}

/// Asks the sample's questions and marks the turns that hold the answer.
async fn recall(handle: &Handle, corpus: &Corpus, output: &mut Output) -> Result<(), Error> {
    step(
        output,
        "3",
        "recall: the best turns for each question; * marks those that hold the answer",
    )?;
    for question in &corpus.questions {
        let begun = Instant::now();
        let request = RecallRequest::from(query(corpus, question, SHOWN));
        let found = handle.memory.recall(&handle.call(), request).await?;
        let took = milliseconds(begun);
        let answers = |hit: &Hit| {
            let place = corpus.places.get(&hit.turn.accepted.id);
            place.is_some_and(|place| question.evidence.contains(place))
        };
        output.answer(
            || {
                let hits = found.hits.iter();
                let hits = hits.map(|hit| json!({ "turn": turn_json(&hit.turn), "score": exact(&hit.score), "answers": answers(hit) }));
                json!({ "question": question.text, "hits": hits.collect::<Vec<_>>() })
            },
            |palette| {
                let title = format!("\n   {}  ({took})", question.text);
                let lines = found.hits.iter().map(|hit| line(hit, answers(hit), palette));
                let all = std::iter::once(palette.strong(&title)).chain(lines);
                all.collect::<Vec<_>>().join("\n")
            },
        )?;
    }
    Ok(())
}

async fn assemble(handle: &Handle, corpus: &Corpus, output: &mut Output) -> Result<(), Error> {
    let Some(question) = corpus.questions.first() else {
        return Ok(());
    };
    let begun = Instant::now();
    let request = AssembleRequest::ungated(query(corpus, question, 50), BUDGET);
    let assembled = handle.assembly.assemble(&handle.call(), request).await?;
    let what = format!(
        "assemble: what belongs in the prompt for \"{}\": {} of {BUDGET} tokens, in {}\n",
        question.text,
        assembled.tokens,
        milliseconds(begun)
    );
    step(output, "\n4", &what)?;
    Ok(output.answer(
        || json!({ "block": assembled.block, "tokens": assembled.tokens }),
        |_| printable(&assembled.block),
    )?)
}

fn query(corpus: &Corpus, question: &Question, k: u32) -> Query {
    Query {
        text: question.text.clone(),
        spaces: vec![corpus.space.clone()],
        filter: TurnFilter::default(),
        k,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    }
}

fn step(output: &mut Output, number: &str, what: &str) -> Result<(), Error> {
    output.answer(
        || json!({ "step": what.trim() }),
        |palette| format!("{}  {what}", palette.good(number)),
    )?;
    Ok(output.flush()?)
}

fn line(hit: &Hit, answers: bool, palette: Palette) -> String {
    let turn = &hit.turn.accepted;
    let mark = if answers {
        palette.good("*")
    } else {
        " ".to_owned()
    };
    let day = turn.event_time.map(time).unwrap_or_default();
    let text = printable(&turn.content.searchable_text()).replace('\n', " ");
    let text: String = text.chars().take(110).collect();
    format!("   {mark} {}  {}: {text}", palette.dim(&day), turn.speaker)
}

fn milliseconds(begun: Instant) -> String {
    format!("{:.0} ms", begun.elapsed().as_secs_f64() * 1000.0)
}
