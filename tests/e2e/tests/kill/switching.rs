//! The embedding model of a node changes, goes back and changes again while its process is killed:
//! every answer is wholly of one model.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::turn::{Content, Metadata, Role, Trust};
use memfleet_e2e::{Node, call};
use memfleet_models::{DEFAULT_MODEL, default_root};
use memfleet_ports::admin::{Admin, ModelChange, ModelChangeStatus};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_rpc::Client;
use rand::Rng;
use rand::rngs::StdRng;

use crate::{chance, space, stopped, told};

/// A model whose projection ships with the program; here it has the weights of the default one.
pub const OTHER: &str = "multilingual-e5-small";

const TURNS: usize = 150;
pub const QUERIES: [&str; 3] = [
    "Where is the key of the garden door?",
    "Who repaired the blue bicycle?",
    "letters from the harbour",
];

/// A folder with the default model, and with the same weights under another name.
pub fn models(folder: &Path) -> Result<()> {
    let default = default_root()?.join(DEFAULT_MODEL);
    for name in [DEFAULT_MODEL, OTHER] {
        let target = folder.join(name);
        fs::create_dir_all(&target)?;
        for entry in fs::read_dir(&default)? {
            let path = entry?.path();
            fs::copy(&path, target.join(path.file_name().unwrap()))?;
        }
        let manifest = fs::read_to_string(default.join("manifest.toml"))?;
        let manifest = manifest.replace(
            &format!("name = \"{DEFAULT_MODEL}\""),
            &format!("name = \"{name}\""),
        );
        let manifest = match name {
            OTHER => manifest.replace("_prefix = \"\"", "_prefix = \"query: \""),
            _ => manifest,
        };
        fs::write(target.join("manifest.toml"), manifest)?;
    }
    Ok(())
}

struct System<'f> {
    folder: &'f Path,
    random: StdRng,
    kills: usize,
}

impl System<'_> {
    async fn start(&self) -> Result<(Node, Client)> {
        let models = self.folder.join("models");
        let environment = [("MEMFLEET_MODEL__DIRECTORY", models.to_str().unwrap())];
        let node = Node::launch(&self.folder.join("memory.db"), &environment)?;
        let client = node.client().await?;
        Ok((node, client))
    }

    /// Asks for a change and has processes work on it, each until it is killed, as long as it is
    /// not done; all that they answered.
    async fn change(
        &mut self,
        change: ModelChange,
        is_done: impl Fn(&ModelChangeStatus) -> bool,
    ) -> Result<Vec<Vec<RecallAnswer>>> {
        let mut seen = Vec::new();
        let mut wanted = Some(change);
        loop {
            let (node, client) = self.start().await?;
            let until = Duration::from_millis(self.random.random_range(50..1_500));
            let work = async {
                if let Some(change) = wanted.clone() {
                    client.switch_model(&call(), Some(change)).await?;
                    wanted = None;
                }
                loop {
                    seen.push(answers(&client).await?);
                    let status = client.switch_model(&call(), None).await?;
                    if status.is_some_and(|status| is_done(&status)) {
                        return Ok::<_, anyhow::Error>(());
                    }
                }
            };
            let done = tokio::time::timeout(until, work).await;
            node.kill()?;
            self.kills += 1;
            ensure!(self.kills < 300, "the change does not come to an end");
            if let Ok(done) = done {
                done?;
                return Ok(seen);
            }
        }
    }
}

/// The hits of a search, to the last bit of each score.
pub type RecallAnswer = Vec<(TurnId, u32)>;

pub async fn answers(client: &Client) -> Result<Vec<RecallAnswer>> {
    answers_to(client, &QUERIES).await
}

async fn answers_to(client: &Client, texts: &[&str]) -> Result<Vec<RecallAnswer>> {
    let mut answers = Vec::new();
    for &text in texts {
        let query = Query {
            text: text.to_owned(),
            spaces: vec![space()],
            filter: TurnFilter::default(),
            k: 20,
            neighbours: 0,
            now: None,
            session: None,
            intent: None,
            explain: false,
            quality: None,
            vectors: None,
        };
        let request = RecallRequest::from(query);
        let found = client.recall(&call(), request).await?;
        ensure!(found.degraded.is_empty(), "{:?}", found.degraded);
        let hits = found.hits.iter();
        let hits = hits.map(|hit| (hit.turn.accepted.id, hit.score.to_bits()));
        answers.push(hits.collect());
    }
    Ok(answers)
}

pub fn turns_of(count: usize) -> Vec<NewTurn> {
    let who = ["Ben", "Ada", "the neighbour", "a friend of Mia's"];
    let what = [
        "the key of the garden door",
        "the blue bicycle",
        "letters from the harbour",
        "a recipe for plum cake",
        "the broken lamp",
    ];
    let turn = |number: usize| NewTurn {
        external_id: None,
        session: SessionId::new(format!("s{}", number / 30)).unwrap(),
        speaker: Speaker::new(who[number % 4]).unwrap(),
        role: Role::User,
        trust: Trust::of_role(Role::User),
        content: Content {
            text: format!(
                "On day {number} {} looked after {}.",
                who[number / 3 % 4],
                what[number % 5]
            ),
            media: Vec::new(),
        },
        metadata: Metadata::new(),
        event_time: None,
        replaces: None,
    };
    (0..count).map(turn).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_the_model_survives_kills_and_no_answer_mixes_two_models() -> Result<()> {
    let directory = tempfile::tempdir()?;
    models(&directory.path().join("models"))?;
    let mut system = System {
        folder: directory.path(),
        random: chance(),
        kills: 0,
    };
    let (node, client) = system.start().await?;
    told(&client, turns_of(TURNS)).await?;
    // The graph and facts of the turns change scores: they are there when nothing comes any more.
    let mut old = answers(&client).await?;
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let again = answers(&client).await?;
        if again == old {
            break;
        }
        old = again;
    }
    node.kill()?;
    let serves = |status: &ModelChangeStatus| status.progress.serving == 1;
    let mut seen = system
        .change(ModelChange::Serve(Some(OTHER.to_owned())), serves)
        .await?;
    let (node, client) = system.start().await?;
    let new = answers(&client).await?;
    node.kill()?;
    ensure!(
        new != old,
        "the two models answer alike: the test tests nothing"
    );
    let back = |status: &ModelChangeStatus| status.progress.serving == 0;
    seen.extend(system.change(ModelChange::RollBack, back).await?);
    seen.extend(system.change(ModelChange::Serve(None), serves).await?);
    let dropped = |status: &ModelChangeStatus| status.progress.beside == 0;
    seen.extend(system.change(ModelChange::Drop, dropped).await?);
    for answers in &seen {
        for (place, answer) in answers.iter().enumerate() {
            ensure!(
                *answer == old[place] || *answer == new[place],
                "an answer to {:?} is of neither model",
                QUERIES[place]
            );
        }
    }
    let (node, client) = system.start().await?;
    ensure!(
        answers(&client).await? == new,
        "the new model does not answer"
    );
    println!(
        "{} kills, {} answers",
        system.kills,
        seen.len() * QUERIES.len()
    );
    stopped(node)
}

/// Turns of the space that changes its model under load.
const LOADED_TURNS: &str = "SWITCH_TURNS";

/// Latencies of searches, one after the other, until `until`; the mean wait between two is that of
/// a caller who reads.
async fn latencies(client: &Client, until: impl AsyncFn() -> Result<bool>) -> Result<Vec<f64>> {
    let mut latencies = Vec::new();
    loop {
        for text in 0..QUERIES.len() {
            let begun = std::time::Instant::now();
            answers_to(client, &QUERIES[text..=text]).await?;
            latencies.push(begun.elapsed().as_secs_f64() * 1_000.0);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if latencies.len() % 30 == 0 && until().await? {
            return Ok(latencies);
        }
    }
}

fn percentile(latencies: &mut [f64], share: f64) -> f64 {
    latencies.sort_by(f64::total_cmp);
    latencies[((latencies.len() - 1) as f64 * share) as usize]
}

/// Prints what searches take before and during a change, and that each was answered by one model;
/// `SWITCH_TURNS` turns (default 1,000).
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement: minutes on a build with optimisation"]
async fn searches_while_the_model_changes() -> Result<()> {
    let count = std::env::var(LOADED_TURNS).map_or(Ok(1_000), |count| count.parse())?;
    let directory = tempfile::tempdir()?;
    models(&directory.path().join("models"))?;
    let system = System {
        folder: directory.path(),
        random: chance(),
        kills: 0,
    };
    let (node, client) = system.start().await?;
    let mut left = turns_of(count);
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(500));
        told(&client, left).await?;
        left = rest;
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let begun = std::time::Instant::now();
    let quiet = async || Ok(begun.elapsed() > Duration::from_secs(20));
    let mut before = latencies(&client, quiet).await?;
    let begun = std::time::Instant::now();
    let ordered = async |change, is_done: fn(&ModelChangeStatus) -> bool| {
        client.switch_model(&call(), Some(change)).await?;
        let done = async || {
            let status = client.switch_model(&call(), None).await?;
            Ok(status.is_some_and(|status| is_done(&status)))
        };
        latencies(&client, done).await
    };
    let compare = ModelChange::Compare(Some(OTHER.to_owned()));
    let mut building = ordered(compare, |status| status.progress.compared == 1).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let serve = ModelChange::Serve(None);
    let mut serving = ordered(serve, |status| status.progress.serving == 1).await?;
    serving.extend(latencies(&client, async || Ok(true)).await?);
    println!("{count} turns in {seconds:.0} s; searches, ms p50 / p99 / longest");
    for (name, latencies) in [
        ("before", &mut before),
        ("while it is built", &mut building),
        ("while it is served", &mut serving),
    ] {
        println!(
            "{name}: {:.1} / {:.1} / {:.1} of {}",
            percentile(latencies, 0.5),
            percentile(latencies, 0.99),
            percentile(latencies, 1.0),
            latencies.len(),
        );
    }
    stopped(node)
}
