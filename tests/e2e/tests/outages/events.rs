//! What happens in a fleet reaches whoever reads its stream of events, though those who tell it are killed in the middle.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use futures::StreamExt;
use memfleet_e2e::{Fleet, Tenant, call};
use memfleet_ports::memory::{Memory, PageRequest};
use serde_json::Value;

use crate::conversation::{remember, said, space};

/// A change of a space: what the sequence was before, and what with it.
type Steps = BTreeMap<u64, u64>;

async fn reader(fleet: &Fleet) -> Result<PullConsumer> {
    let client = async_nats::connect(fleet.nats.url()).await?;
    let stream = async_nats::jetstream::new(client);
    let stream = stream.get_stream("MEMFLEET_EVENTS").await?;
    let config = pull::Config {
        durable_name: Some("reader".to_owned()),
        ack_policy: AckPolicy::Explicit,
        ..pull::Config::default()
    };
    Ok(stream.create_consumer(config).await?)
}

/// How far the steps lead without a gap.
fn reached(steps: &Steps) -> Option<u64> {
    let next = |at: &u64| steps.get(at).copied();
    std::iter::successors(next(&0), next).last()
}

/// Reads until no change is left out and `turns` of them were told that stored a turn; what is told twice is the same, and between
/// them is told what was derived.
async fn stored(reader: &PullConsumer, turns: u64) -> Result<()> {
    let (mut steps, mut stored) = (Steps::new(), BTreeSet::new());
    let mut messages = reader.messages().await?;
    while (stored.len() as u64) < turns || reached(&steps) != steps.values().next_back().copied() {
        let message = messages.next().await.context("the stream ended")??;
        let told: Value = serde_json::from_slice(&message.payload)?;
        let number = |field: &str| told[field].as_u64().context("a number");
        let (after, change) = (number("after")?, number("change")?);
        match told["kind"].as_str() {
            Some("stored") => stored.extend(after + 1..=change),
            Some("facts") => {}
            _ => panic!("{told}"),
        }
        let again = steps.insert(after, change);
        assert!(again.is_none_or(|before| before == change), "{told}");
        message
            .ack()
            .await
            .map_err(|error| anyhow::anyhow!(error))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_happened_goes_untold_when_relays_are_killed() -> Result<()> {
    let mut fleet = tokio::task::spawn_blocking(Fleet::start).await??;
    let reader = reader(&fleet).await?;
    let tenant = Tenant::connect(&fleet.url(), 0).await?;
    let mut tokens = Vec::new();
    for round in 0..6 {
        for line in 0..5 {
            let turn = said("s", "Noor", 8, &format!("Line {line} of round {round}."));
            tokens.push(remember(&tenant.client, "noor", vec![turn]).await?);
        }
        let name = ["constructor-1", "constructor-2"][round % 2];
        fleet.role(name).kill()?;
        fleet.role(name).restart()?;
    }
    let all = PageRequest {
        limit: 100,
        after: None,
    };
    let filter = memfleet_ports::filter::TurnFilter::default();
    let page = tenant
        .client
        .list(&call(), &space("noor"), &filter, all, &tokens)
        .await?;
    assert_eq!(page.items.len(), 30);

    // A gap that nobody closes ends in the time-out.
    tokio::time::timeout(Duration::from_mins(1), stored(&reader, 30)).await??;
    Ok(())
}
