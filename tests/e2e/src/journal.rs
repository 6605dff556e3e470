//! What a writer sent to a system that is being hurt, and what was acknowledged: afterwards held against what the system has.

use std::collections::HashSet;

use anyhow::{Result, ensure};
use memfleet_domain::Fault;
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TurnId,
};
use memfleet_domain::turn::{Content, Metadata, Role, Trust, Turn};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest, RememberRequest};
use memfleet_rpc::Client;

use crate::call;

/// How many writes one call waits for.
const AWAITED: usize = 100;

/// Where a writer says to live in turn, so that facts change while it writes.
const HOMES: [&str; 3] = ["Rome", "Oslo", "Lisbon"];

/// After how many requests.
const MOVES: u32 = 8;

/// After how many requests one is an edit of the one before.
const EDITS: u32 = 5;

/// A writer with a session of its own. Its requests are numbered, and one without an answer is sent again, unchanged.
#[derive(Debug, Clone)]
pub struct Journal {
    space: SpaceId,
    writer: String,
    next: u32,
    acknowledged: Vec<Acknowledged>,
}

/// A request that was answered.
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// Its token.
    pub batch: BatchId,
    /// Its turns.
    pub turns: Vec<TurnId>,
    texts: Vec<String>,
    is_edit: bool,
}

impl Journal {
    /// A writer that has sent nothing. Its name is in every text.
    pub fn new(space: &SpaceId, writer: impl Into<String>) -> Self {
        Self {
            space: space.clone(),
            writer: writer.into(),
            next: 0,
            acknowledged: Vec::new(),
        }
    }

    /// Sends the next request, or the one that was not answered.
    pub async fn send(&mut self, client: &Client, context: &Context) -> Result<(), Fault> {
        let (request, texts) = self.request();
        let receipt = client.remember(context, request).await?;
        self.acknowledged.push(Acknowledged {
            batch: receipt.batch,
            turns: receipt.turns.iter().map(|turn| turn.id).collect(),
            texts,
            is_edit: self.edited().is_some(),
        });
        self.next += 1;
        Ok(())
    }

    /// Waits until all that was acknowledged has left the queue.
    pub async fn settled(&self, client: &Client) -> Result<(), Fault> {
        let batches = self.acknowledged.iter().map(|sent| sent.batch);
        settled(client, &self.space, &batches.collect::<Vec<_>>()).await
    }

    /// What was answered, the oldest first.
    pub fn acknowledged(&self) -> &[Acknowledged] {
        &self.acknowledged
    }

    /// Waits until all that was acknowledged has left the queue, and holds it against what the system has: its turns that were not
    /// replaced.
    pub async fn verify(&self, client: &Client) -> Result<Vec<Turn>> {
        self.settled(client).await?;
        let own = TurnFilter {
            sessions: vec![self.session()],
            include_replaced: true,
            ..TurnFilter::default()
        };
        let turns = listed(client, &self.space, &own).await?;
        let stored = turns.iter().map(|turn| &turn.accepted.content.text);
        let stored = stored.collect::<Vec<_>>();
        let mut seen = HashSet::new();
        let doubled = stored.iter().filter(|text| !seen.insert(**text));
        let doubled = doubled.collect::<Vec<_>>();
        ensure!(doubled.is_empty(), "stored twice: {doubled:?}");
        ensure!(stored.is_sorted(), "the order of acceptance was not kept");
        let sent = self.acknowledged.iter().flat_map(|sent| &sent.texts);
        let lost = sent.filter(|text| !seen.contains(text)).collect::<Vec<_>>();
        ensure!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let (current, replaced): (Vec<_>, Vec<_>) =
            turns.into_iter().partition(|turn| turn.replaced.is_none());
        let edits = self.acknowledged.iter().filter(|sent| sent.is_edit).count();
        // One whose answer was cut off may be stored.
        let unanswered = usize::from(self.edited().is_some());
        ensure!(
            (edits..=edits + unanswered).contains(&replaced.len()),
            "{edits} edits replaced {} turns",
            replaced.len()
        );
        Ok(current)
    }

    /// What the next request replaces: every so often the last turn of the one before, which may still be on its way.
    fn edited(&self) -> Option<TurnId> {
        let before = self.acknowledged.last()?;
        let is_edit = self.next % EDITS == EDITS - 1;
        before.turns.last().filter(|_| is_edit).copied()
    }

    /// Even requests are named by an idempotency key, odd ones by their turns' external ids.
    fn request(&self) -> (RememberRequest, Vec<String>) {
        let (writer, number) = (&self.writer, self.next);
        let named = number % 2 == 1;
        let home = |turn| match turn {
            0 if number.is_multiple_of(MOVES) => format!(
                " I live in {}.",
                HOMES[(number / MOVES) as usize % HOMES.len()]
            ),
            _ => String::new(),
        };
        let replaces = self.edited();
        let turns = if replaces.is_some() {
            1
        } else {
            number % 4 + 1
        };
        let texts: Vec<_> = (0..turns)
            .map(|turn| {
                format!(
                    "writer {writer} request {number:06} turn {turn}.{}",
                    home(turn)
                )
            })
            .collect();
        let session = self.session();
        let turn = |text: &String| NewTurn {
            replaces,
            ..said(session.as_str(), named.then_some(text.as_str()), text)
        };
        let request = RememberRequest {
            space: self.space.clone(),
            turns: texts.iter().map(turn).collect(),
            idempotency_key: (!named)
                .then(|| IdempotencyKey::new(format!("{writer}-{number}")).expect("a short word")),
        };
        (request, texts)
    }

    fn session(&self) -> SessionId {
        SessionId::new(format!("session-{}", self.writer)).expect("a short word")
    }
}

/// What Ada says, perhaps under an id of hers.
///
/// # Panics
///
/// On an id that is none.
pub fn said(session: &str, external: Option<&str>, text: &str) -> NewTurn {
    NewTurn {
        session: SessionId::new(session).expect("an id"),
        external_id: external.map(|external| ExternalId::new(external).expect("an id")),
        speaker: Speaker::new("Ada").expect("a name"),
        role: Role::User,
        content: Content {
            text: text.to_owned(),
            media: Vec::new(),
        },
        event_time: None,
        metadata: Metadata::new(),
        trust: Trust::User,
        replaces: None,
    }
}

/// Returns when these writes have left the queue.
pub async fn settled(client: &Client, space: &SpaceId, batches: &[BatchId]) -> Result<(), Fault> {
    for batches in batches.chunks(AWAITED) {
        let page = PageRequest {
            limit: 1,
            after: None,
        };
        client
            .list(&call(), space, &TurnFilter::default(), page, batches)
            .await?;
    }
    Ok(())
}

/// Every turn that a filter means, session by session.
pub async fn listed(
    client: &Client,
    space: &SpaceId,
    filter: &TurnFilter,
) -> Result<Vec<Turn>, Fault> {
    let mut turns = Vec::new();
    let mut after = None;
    loop {
        let page = PageRequest { limit: 1000, after };
        let listed = client.list(&call(), space, filter, page, &[]).await?;
        turns.extend(listed.items);
        match listed.next {
            Some(next) => after = Some(next),
            None => return Ok(turns),
        }
    }
}
