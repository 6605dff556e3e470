//! Everything that a fleet is made of is killed, paused and started again while tenants write and read. Afterwards: nothing that
//! was acknowledged is lost, nothing is doubled, the order holds, what is stored is found, the semantic graph says what the facts say, and no
//! read saw another tenant. Beside that: servers that come back as they were some time ago
//! (`put_back`), a disk that is full (`full`), a clock that steps (`clock`), a batch that ends each
//! process that works on it (`deadly`).
//!
//! `cargo xtask chaos` runs this for minutes, and until so many processes were killed; among the
//! tests it harms every part once. `CHAOS_SEED` repeats a run's harm.
#![allow(clippy::unwrap_used, reason = "tests")]

mod clock;
mod deadly;
mod full;
mod harm;
mod put_back;
mod shim;
mod traffic;
mod verdict;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_e2e::{Fleet, Role};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::watch;

use harm::{Done, Harm};
use traffic::Traffic;

const TENANTS: usize = 3;

/// A number that the environment gives.
fn given<T: std::str::FromStr>(name: &str) -> Result<Option<T>> {
    let Ok(value) = std::env::var(name) else {
        return Ok(None);
    };
    let number = value.parse().ok();
    Ok(Some(number.with_context(|| {
        format!("{name} must be a number, not `{value}`")
    })?))
}

/// Length of the harm: it ends when both are reached, or at the first defect.
struct Bounds {
    length: Duration,
    kills: usize,
    failed: watch::Receiver<bool>,
}

/// Harms each part at least once, and goes on within the bounds.
fn hurt(fleet: &mut Fleet, random: &mut StdRng, bounds: &Bounds) -> Result<Done> {
    let begun = Instant::now();
    let mut done = Done::default();
    let mut first = Harm::to_everything(fleet, random).into_iter();
    while !*bounds.failed.borrow() {
        let is_over = begun.elapsed() >= bounds.length && done.kills >= bounds.kills;
        let harm = match first.next() {
            Some(harm) => harm,
            None if is_over => break,
            None => Harm::any(fleet, random),
        };
        done.to(fleet, &harm, random)?;
    }
    done.seconds = begun.elapsed().as_secs();
    Ok(done)
}

/// Errors that the roles logged since each was started last, a line each.
fn errors(fleet: &Fleet) -> String {
    let is_error = |line: &&str| line.contains("ERROR") || line.contains("INTERNAL");
    let logged = |role: &Role| {
        let log = role.program.log();
        let lines = log.lines().filter(is_error);
        let lines = lines.map(|line| format!("{}: {line}", role.name));
        lines.collect::<Vec<_>>()
    };
    let logged: Vec<String> = fleet.roles.iter().flat_map(logged).collect();
    logged.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_that_is_hurt_loses_doubles_and_leaks_nothing() -> Result<()> {
    let now = SystemClock.now().timestamp_micros() as u64;
    let seed = given("CHAOS_SEED")?.unwrap_or(now);
    let minutes = given("CHAOS_MINUTES")?.unwrap_or(0.0);
    let kills = given("CHAOS_KILLS")?.unwrap_or(0);
    println!("to do the same harm again: CHAOS_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let mut fleet = tokio::task::spawn_blocking(Fleet::start_with_graph).await??;
    let (stop, stopped) = watch::channel(false);
    let traffic = Traffic::begin(&fleet.url(), TENANTS, &stopped).await?;
    let bounds = Bounds {
        length: Duration::from_secs_f64(60.0 * minutes),
        kills,
        failed: traffic.failed(),
    };
    let harmed = tokio::task::spawn_blocking(move || {
        let done = hurt(&mut fleet, &mut random, &bounds);
        done.map(|done| (fleet, done))
    });
    let harmed = harmed.await?;
    stop.send_replace(true);
    let seen = traffic.end().await;
    let (mut fleet, done) = harmed?;
    let seen = seen.with_context(|| format!("{done}\n{}", errors(&fleet)))?;
    println!("{done}\n{seen}");
    println!("{}", verdict::of(&mut fleet, &seen).await?);
    Ok(())
}
