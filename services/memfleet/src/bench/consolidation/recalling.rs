//! How long a search takes in a space where every source has something to say: one for each route that turns to another source.

use std::time::{Duration, Instant};

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::intent::Intent;
use memfleet_gateway::Gateway;
use memfleet_ports::memory::{Memory, RecallRequest};
use memfleet_ports::retriever::Query;
use memfleet_runtime::BoxError;
use serde::Serialize;

use crate::bench::latency::Latency;
use crate::bench::query;
use crate::corpus::call;

/// Searches of each route that count, and before them those that do not.
const SEARCHES: usize = 300;
const WARM_UP: usize = 30;

/// Milliseconds of a search, by route.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Recalls {
    /// Turns as they are.
    pub plain: Latency,
    /// The same questions, which ask for all that was asked of a task: coherence counts most.
    pub gather: Latency,
    /// Questions that ask how the two ends of a fact are connected: the graph counts.
    pub connect: Latency,
}

impl Recalls {
    /// Searches a space by the questions of its chats, and by what its facts connect.
    pub async fn of(
        gateway: &Gateway,
        space: &SpaceId,
        questions: &[&str],
        facts: &[Derivation],
    ) -> Result<Self, BoxError> {
        let claims = facts.iter().filter_map(|it| Some(&it.fact()?.claim));
        let connected = claims.filter(|claim| !claim.value.is_empty());
        let connected =
            connected.map(|it| format!("How is {} connected with {}?", it.subject, it.value));
        let connected: Vec<String> = connected.collect();
        let connected: Vec<&str> = connected.iter().map(String::as_str).collect();
        let fine = Intent {
            fine: true,
            ..Intent::default()
        };
        Ok(Self {
            plain: search(gateway, space, questions, Some(fine)).await?,
            gather: search(gateway, space, questions, None).await?,
            connect: search(gateway, space, &connected, None).await?,
        })
    }
}

/// As often as it takes, in turn, from all over the space.
async fn search(
    gateway: &Gateway,
    space: &SpaceId,
    texts: &[&str],
    intent: Option<Intent>,
) -> Result<Latency, BoxError> {
    let mut durations: Vec<Duration> = Vec::with_capacity(SEARCHES);
    let step = (texts.len() / SEARCHES).max(1);
    let texts = texts.iter().step_by(step).cycle().take(WARM_UP + SEARCHES);
    for (at, text) in texts.enumerate() {
        let query = Query {
            intent,
            ..query(space, (*text).to_owned(), 10)
        };
        let request = RecallRequest::from(query);
        let begun = Instant::now();
        gateway.recall(&call(), request).await?;
        durations.extend((at >= WARM_UP).then(|| begun.elapsed()));
    }
    Ok(Latency::of(durations))
}
