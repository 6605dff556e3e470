//! The embedding model of a fleet changes, goes back and changes again while its processes are
//! killed one after the other: every answer is wholly of one model.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use memfleet_e2e::{Fleet, OPERATOR_KEY, Tenant, call};
use memfleet_ports::admin::{Admin, ModelChange, ModelChangeStatus};
use memfleet_ports::audit::{AuditFilter, AuditKind};
use memfleet_ports::memory::PageRequest;
use memfleet_rpc::Client;
use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};

use crate::switching::{OTHER, QUERIES, RecallAnswer, answers, models, turns_of};
use crate::{chance, told};

const TURNS: usize = 200;

/// Roles that take the steps of a change: each is killed in each part of it …
const STEPPING: [&str; 2] = ["constructor-1", "constructor-2"];
/// … and as many of those that answer meanwhile.
const ANSWERING: [&str; 4] = ["embedder", "retriever-1", "retriever-2", "gateway"];

/// Roles that derive more and more from turns, which would change answers.
const DERIVING: [&str; 3] = ["judge", "refresher", "consolidator"];

const PATIENCE: Duration = Duration::from_mins(1);

struct FleetSwitch {
    fleet: Fleet,
    operator: Client,
    random: StdRng,
    kills: usize,
}

impl FleetSwitch {
    /// Orders a change, and kills processes until it is done.
    async fn change(
        &mut self,
        change: ModelChange,
        is_done: impl Fn(&ModelChangeStatus) -> bool,
    ) -> Result<()> {
        let begun = Instant::now();
        let mut wanted = Some(change);
        let mut victims = self.victims();
        loop {
            let status = self.operator.switch_model(&call(), wanted.clone()).await;
            if let Ok(Some(status)) = status {
                wanted = None;
                if victims.is_empty() && is_done(&status) {
                    return Ok(());
                }
            }
            match victims.pop() {
                Some(name) => tokio::task::block_in_place(|| self.kill(name))?,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            ensure!(begun.elapsed() < PATIENCE, "the change comes to no end");
        }
    }

    /// Roles to kill, in some order.
    fn victims(&mut self) -> Vec<&'static str> {
        let answering = ANSWERING.choose_multiple(&mut self.random, STEPPING.len());
        let mut victims: Vec<_> = STEPPING.iter().chain(answering).copied().collect();
        victims.shuffle(&mut self.random);
        victims
    }

    /// Kills a process after a while, and starts it again after another.
    fn kill(&mut self, name: &str) -> Result<()> {
        let mut pause = |longest| {
            let milliseconds = self.random.random_range(0..longest);
            std::thread::sleep(Duration::from_millis(milliseconds));
        };
        pause(400);
        self.fleet.role(name).kill()?;
        pause(300);
        self.fleet.role(name).restart()?;
        self.kills += 1;
        Ok(())
    }
}

/// Every answer that comes, whatever is killed meanwhile, until `is_over`.
async fn search(client: Client, is_over: Arc<AtomicBool>) -> Vec<Vec<RecallAnswer>> {
    let mut seen = Vec::new();
    while !is_over.load(Ordering::SeqCst) {
        match tokio::time::timeout(Duration::from_secs(5), answers(&client)).await {
            Ok(Ok(found)) => seen.push(found),
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    seen
}

/// The answers that stay the same for a while, once they are as wanted.
async fn settled(
    client: &Client,
    is_wanted: impl Fn(&[RecallAnswer]) -> bool,
) -> Result<Vec<RecallAnswer>> {
    let begun = Instant::now();
    let mut last = Vec::new();
    while begun.elapsed() < PATIENCE {
        if let Ok(found) = answers(client).await {
            if found == last && is_wanted(&found) {
                return Ok(found);
            }
            last = found;
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    anyhow::bail!("answers change and change, or are not as wanted")
}

/// The orders of the audit log, the oldest first: how far, and whether to drop. One whose answer
/// was lost was given again.
async fn ordered(operator: &Client) -> Result<Vec<(String, String)>> {
    let filter = AuditFilter {
        kinds: vec![AuditKind::ModelSwitchBegun],
        ..AuditFilter::default()
    };
    let page = PageRequest {
        limit: 100,
        after: None,
    };
    let records = operator.audit(&call(), None, filter, page).await?.items;
    let mut orders = Vec::new();
    for record in records.into_iter().rev() {
        ensure!(record.detail["model"] == OTHER && !record.caller.is_empty());
        let order = ["goal", "drops"].map(|name| record.detail[name].clone());
        orders.push(order.into());
    }
    orders.dedup();
    Ok(orders)
}

/// A fleet whose space has turns and all that is derived from them, and a client of its tenant.
async fn filled(models: &Path) -> Result<(FleetSwitch, Client)> {
    let settings = [("MEMFLEET_MODEL__DIRECTORY", models.display().to_string())];
    let start = move || Fleet::start_with_settings(&settings);
    let fleet = tokio::task::spawn_blocking(start).await??;
    let url = fleet.url();
    let client = Tenant::connect(&url, 0).await?.client;
    let mut system = FleetSwitch {
        fleet,
        operator: Tenant::with(&url, OPERATOR_KEY).await?.client,
        random: chance(),
        kills: 0,
    };
    told(&client, turns_of(TURNS)).await?;
    settled(&client, |_| true).await?;
    for role in DERIVING {
        tokio::task::block_in_place(|| system.fleet.role(role).kill())?;
    }
    Ok((system, client))
}

/// Fails where an answer is of neither model, or too few are of one of them.
fn check(seen: &[Vec<RecallAnswer>], models: [&Vec<RecallAnswer>; 2]) -> Result<()> {
    for answers in seen {
        for (place, answer) in answers.iter().enumerate() {
            ensure!(
                models.iter().any(|model| model[place] == *answer),
                "an answer to {:?} is of neither model",
                QUERIES[place]
            );
        }
    }
    for model in models {
        let count = seen.iter().filter(|answers| *answers == model).count();
        ensure!(count > 10, "{count} answers of a model: too few were seen");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_changes_its_model_under_kills_and_no_answer_mixes_two() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let folder = directory.path().join("models");
    models(&folder)?;
    let (mut system, client) = filled(&folder).await?;
    let old = settled(&client, |_| true).await?;
    let is_over = Arc::new(AtomicBool::new(false));
    let searching = tokio::spawn(search(client.clone(), is_over.clone()));

    let compared = |status: &ModelChangeStatus| status.progress.compared == 1;
    let serves = |status: &ModelChangeStatus| status.progress.serving == 1;
    let back = |status: &ModelChangeStatus| status.progress.serving == 0;
    let dropped = |status: &ModelChangeStatus| status.progress.beside == 0;
    let compare = ModelChange::Compare(Some(OTHER.to_owned()));
    system.change(compare, compared).await?;
    system.change(ModelChange::Serve(None), serves).await?;
    let is_new = |found: &[RecallAnswer]| found.iter().zip(&old).all(|(new, old)| new != old);
    let new = settled(&client, is_new).await?;
    system.change(ModelChange::RollBack, back).await?;
    system.change(ModelChange::Serve(None), serves).await?;
    system.change(ModelChange::Drop, dropped).await?;
    settled(&client, |found| *found == *new).await?;

    let orders = [
        ("compare", "false"),
        ("serve", "false"),
        ("roll_back", "false"),
        ("serve", "false"),
        ("serve", "true"),
    ];
    let orders = orders.map(|(goal, drops)| (goal.to_owned(), drops.to_owned()));
    assert_eq!(ordered(&system.operator).await?, orders);

    is_over.store(true, Ordering::SeqCst);
    let seen = searching.await?;
    check(&seen, [&old, &new])?;
    let answers = seen.len() * QUERIES.len();
    println!("{} kills, {answers} answers", system.kills);
    Ok(())
}
