//! Constructors that die of one batch in the middle of its round, just before it is stored.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use async_nats::jetstream;
use futures::TryStreamExt;
use memfleet_e2e::{Fleet, Journal, Tenant, call, listed, said, settled};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest, RememberRequest};
use memfleet_ports::queue::{DeadLetter, TRIES};

use crate::shim::PreloadShim;
use crate::traffic::space;

/// Ends a process that sends the words to the server at the shim's port.
const SOURCE: &str = r#"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
ssize_t send(int socket, const void *bytes, size_t length, int flags) {
    const char *words = getenv("DEADLY_WORDS");
    struct sockaddr_in peer;
    socklen_t size = sizeof(peer);
    if (cell && *cell && memmem(bytes, length, words, strlen(words))
        && !getpeername(socket, (struct sockaddr *)&peer, &size)
        && ntohs(peer.sin_port) == *cell)
        kill(getpid(), SIGKILL);
    return syscall(SYS_sendto, socket, bytes, length, flags, 0, 0);
}
"#;

/// Turn that no constructor survives.
const WORDS: &str = "The last words of whoever stores them.";

/// Pause of the queue before it hands the batch of a dead process out again; the default is 30 s.
const ACK_WAIT: Duration = Duration::from_secs(2);

/// Longest time until the batch is a dead letter.
const PATIENCE: Duration = Duration::from_mins(5);

/// Sets the pause at the server, as an operator can. Processes that connect later keep to it.
async fn hand_out_again_soon(nats: &str) -> Result<()> {
    let client = async_nats::connect(nats).await?;
    let stream = jetstream::new(client).get_stream("MEMFLEET_INGEST").await?;
    let consumers: Vec<_> = stream.consumers().try_collect().await?;
    ensure!(!consumers.is_empty(), "the queue has no consumers");
    for mut consumer in consumers {
        consumer.config.ack_wait = ACK_WAIT;
        stream.create_consumer(consumer.config).await?;
    }
    Ok(())
}

/// Starts constructors that died; how many there were.
fn revived(fleet: &mut Fleet) -> Result<usize> {
    let mut died = 0;
    for role in &mut fleet.roles {
        if role.program.is_alive()? {
            continue;
        }
        if !role.name.starts_with("constructor") {
            bail!("{} ended:\n{}", role.name, role.program.log());
        }
        role.program.kill()?;
        role.program.restart()?;
        died += 1;
    }
    Ok(died)
}

async fn letters(tenant: &Tenant) -> Result<Vec<DeadLetter>> {
    let page = PageRequest {
        limit: 10,
        after: None,
    };
    let letters = tenant.client.dead_letters(&call(), None, page).await?;
    Ok(letters.items)
}

/// A fleet that dies of the words, which its roles learn from the shim.
fn mortal(shim: &PreloadShim) -> Result<Fleet> {
    let mut settings = shim.environment().to_vec();
    settings.push(("DEADLY_WORDS", WORDS.to_owned()));
    let mut fleet = Fleet::start_with_settings(&settings)?;
    tokio::runtime::Handle::current().block_on(hand_out_again_soon(&fleet.nats.url()))?;
    for name in ["constructor-1", "constructor-2"] {
        fleet.role(name).stop()?;
        fleet.role(name).restart()?;
    }
    let port = fleet.postgres.url();
    let port = port.rsplit([':', '/']).nth(1).context("a port")?.parse()?;
    shim.set(port)?;
    Ok(fleet)
}

/// Neighbours write until the batch is a dead letter: it, and how many processes died.
async fn buried(
    fleet: &mut Fleet,
    tenants: &[Tenant; 2],
    neighbours: &mut [Journal; 2],
) -> Result<(DeadLetter, usize)> {
    let begun = Instant::now();
    let mut died = 0;
    loop {
        for (tenant, journal) in tenants.iter().zip(&mut *neighbours) {
            journal.send(&tenant.client, &call()).await?;
        }
        died += tokio::task::block_in_place(|| revived(fleet))?;
        if let Some(letter) = letters(&tenants[0]).await?.pop() {
            return Ok((letter, died));
        }
        ensure!(begun.elapsed() < PATIENCE, "{died} deaths and no letter");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_ends_constructors_is_buried_and_its_neighbours_are_stored() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let shim = PreloadShim::compile(folder.path(), SOURCE)?;
    let mut fleet = tokio::task::block_in_place(|| mortal(&shim))?;
    let tenants = [
        Tenant::connect(&fleet.url(), 0).await?,
        Tenant::connect(&fleet.url(), 1).await?,
    ];
    let mut neighbours = ["beside", "elsewhere"].map(|name| Journal::new(&space(), name));
    neighbours[0].send(&tenants[0].client, &call()).await?;
    let request = RememberRequest {
        space: space(),
        turns: vec![said("deadly", None, WORDS)],
        idempotency_key: None,
    };
    let deadly = tenants[0].client.remember(&call(), request).await?.batch;
    let (letter, died) = buried(&mut fleet, &tenants, &mut neighbours).await?;
    ensure!(letter.reason.starts_with("PROCESS_DIED: "), "{letter:?}");
    ensure!((letter.batch.id, letter.attempts) == (deadly, TRIES));
    let mut stored = 0;
    for (tenant, journal) in tenants.iter().zip(&neighbours) {
        stored += journal.verify(&tenant.client).await?.len();
    }
    ensure!(letters(&tenants[0]).await?.len() == 1 && letters(&tenants[1]).await?.is_empty());
    println!("{died} constructors killed by one batch, {stored} turns of its neighbours stored");
    shim.set(0)?;
    tenants[0].client.replay(&call(), &space(), &[]).await?;
    settled(&tenants[0].client, &space(), &[deadly]).await?;
    let texts = listed(&tenants[0].client, &space(), &TurnFilter::default()).await?;
    let texts = texts
        .iter()
        .filter(|turn| turn.accepted.content.text == WORDS);
    ensure!(texts.count() == 1, "the batch is not stored once");
    Ok(())
}
