//! A conversation over three days to remember, and short ways to ask for it.

use anyhow::Result;
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{BatchId, ExternalId, SessionId, SpaceId, Speaker};
use memfleet_domain::turn::{Content, Role, Trust};
use memfleet_e2e::call;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, RecallRequest, RememberRequest};
use memfleet_ports::retriever::Query;
use memfleet_rpc::Client;

/// The space of this name.
pub fn space(name: &str) -> SpaceId {
    SpaceId::new(name).unwrap()
}

/// Noon of a day in May 2023.
pub fn noon(day: u32) -> Timestamp {
    format!("2023-05-{day:02}T12:00:00Z").parse().unwrap()
}

/// A turn of the user named, said at noon of a day; its external id is the text.
pub fn said(session: &str, speaker: &str, day: u32, text: &str) -> NewTurn {
    NewTurn {
        session: SessionId::new(session).unwrap(),
        external_id: Some(ExternalId::new(text).unwrap()),
        speaker: Speaker::new(speaker).unwrap(),
        role: Role::User,
        content: Content {
            text: text.to_owned(),
            media: Vec::new(),
        },
        event_time: Some(noon(day)),
        metadata: [("day".to_owned(), day.to_string())].into(),
        trust: Trust::User,
        replaces: None,
    }
}

/// Noor and Sam and an assistant, on the 8th, 9th and 20th of May.
pub fn turns() -> Vec<NewTurn> {
    let mut turns = vec![
        said("monday", "Noor", 8, "I adopted a greyhound called Biscuit."),
        said("monday", "Sam", 8, "How old is the dog?"),
        said("monday", "Noor", 8, "She is four and afraid of thunder."),
        said(
            "tuesday",
            "Sam",
            9,
            "My sister moved to Trondheim for her doctorate.",
        ),
        said("tuesday", "Noor", 9, "Does she study marine biology there?"),
        said("later", "Noor", 20, "Biscuit chewed through my passport."),
    ];
    let mut answer = said(
        "later",
        "assistant",
        20,
        "You can order a new passport online.",
    );
    answer.role = Role::Assistant;
    answer.trust = Trust::Assistant;
    turns.push(answer);
    turns
}

/// Remembers turns; the token of the write.
pub async fn remember(client: &Client, name: &str, turns: Vec<NewTurn>) -> Result<BatchId> {
    let request = RememberRequest {
        space: space(name),
        turns,
        idempotency_key: None,
    };
    Ok(client.remember(&call(), request).await?.batch)
}

/// A search that waits for writes.
pub fn recall(name: &str, text: &str, filter: TurnFilter, wait_for: &[BatchId]) -> RecallRequest {
    let query = Query {
        text: text.to_owned(),
        spaces: vec![space(name)],
        filter,
        k: 10,
        neighbours: 0,
        now: None,
        session: None,
        intent: None,
        explain: false,
        quality: None,
        vectors: None,
    };
    RecallRequest {
        wait_for: wait_for.to_vec(),
        ..RecallRequest::from(query)
    }
}

/// What a search finds, as texts, the best first.
pub async fn found(client: &Client, request: RecallRequest) -> Result<Vec<String>> {
    let found = client.recall(&call(), request).await?;
    let texts = found
        .hits
        .into_iter()
        .map(|hit| hit.turn.accepted.content.text);
    Ok(texts.collect())
}
