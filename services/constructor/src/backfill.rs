//! Vectors that follow: turns stored while the embedder was down are embedded when it is back.
//!
//! A turn that the model fails on looks just like a model that is down. So each failure postpones its own turn, longer
//! every time, and the others go on; a few failures in a row end a round, since then it is likely the embedder itself.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::TurnId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::ledger::Unembedded;
use memfleet_retrieval::document::labelled;
use rand::seq::SliceRandom;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Constructor;

/// How often the ledger is asked for turns without vectors, and an embedder that is away whether it is back.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a turn is left alone after its first failure, and at most.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(5);

/// Turns embedded together …
const TURNS: usize = 32;
/// … of so many that wait: processes that each take other ones of them seldom do the same work.
const WAITING: u32 = 256;

/// Failures one after the other that end a round.
const IN_A_ROW: u32 = 3;

/// Turns that could not be embedded, by embedding space, and when they are tried again.
#[derive(Debug, Default)]
pub struct Postponed {
    spaces: HashMap<EmbeddingSpace, PostponedTurns>,
}

impl Postponed {
    fn of(&mut self, space: &EmbeddingSpace) -> &mut PostponedTurns {
        self.spaces.entry(space.clone()).or_default()
    }
}

#[derive(Debug, Default)]
struct PostponedTurns {
    turns: HashMap<TurnId, (u32, Instant)>,
}

impl PostponedTurns {
    /// How many are known.
    fn len(&self) -> u32 {
        u32::try_from(self.turns.len()).unwrap_or(u32::MAX)
    }

    fn is_due(&self, turn: TurnId) -> bool {
        self.turns
            .get(&turn)
            .is_none_or(|(_, until)| *until <= Instant::now())
    }

    fn postpone(&mut self, turn: TurnId) {
        let (failures, until) = self.turns.entry(turn).or_insert((0, Instant::now()));
        let pause = FIRST.saturating_mul(1 << (*failures).min(10)).min(LONGEST);
        *failures += 1;
        *until = Instant::now() + pause;
    }

    /// Lets go of those that wait for vectors no more: forgotten, or embedded.
    fn keep(&mut self, waiting: &[Unembedded]) {
        self.turns.retain(|id, _| {
            waiting
                .iter()
                .any(|waiting| waiting.turn.accepted.id == *id)
        });
    }
}

impl Constructor {
    /// Brings missing vectors until `shutdown`.
    pub async fn run_backfill(&self, shutdown: CancellationToken) {
        let mut postponed = Postponed::default();
        while !shutdown.is_cancelled() {
            match self.backfill_once(&mut postponed).await {
                Ok(0) => {}
                Ok(turns) => {
                    tracing::info!(turns, "missing vectors added");
                    continue;
                }
                Err(fault) => {
                    tracing::warn!(reason = %fault.reason, "vectors are still missing: {fault}");
                    if self.embedder_is_back(&shutdown).await {
                        // The turns were not to blame.
                        postponed = Postponed::default();
                        continue;
                    }
                }
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    /// Waits for an embedder that is away; false where it was there all the time.
    async fn embedder_is_back(&self, shutdown: &CancellationToken) -> bool {
        let mut was_away = false;
        while self
            .embedder
            .embed_query("status".to_owned())
            .await
            .is_err()
        {
            was_away = true;
            let pause = tokio::time::sleep(PERIOD);
            if shutdown.run_until_cancelled(pause).await.is_none() {
                return false;
            }
        }
        was_away
    }

    /// Embeds some of the turns that have no vectors and are not postponed, by the model of each
    /// embedding space that the store has; how many. Fails when it tried and none could be.
    pub async fn backfill_once(&self, postponed: &mut Postponed) -> Result<usize, Fault> {
        let default = self.embedder.space().await?;
        self.spaces.name_embedding(&default).await?;
        let mut spaces = self.ledger.embedding_spaces().await?;
        spaces.retain(|space| *space != default);
        spaces.insert(0, default);
        let (mut embedded, mut failure) = (0, None);
        for space in spaces {
            match self.backfill_in(&space, postponed).await {
                Ok(turns) => embedded += turns,
                Err(fault) => failure = Some(fault),
            }
        }
        match failure {
            Some(fault) if embedded == 0 => Err(fault),
            _ => Ok(embedded),
        }
    }

    async fn backfill_in(
        &self,
        space: &EmbeddingSpace,
        postponed: &mut Postponed,
    ) -> Result<usize, Fault> {
        let postponed = postponed.of(space);
        // As many more as may be postponed: these come first as long as they wait.
        let limit = WAITING.saturating_add(postponed.len());
        let mut waiting = self.ledger.without_vectors(space, limit).await?;
        postponed.keep(&waiting);
        waiting.retain(|turn| postponed.is_due(turn.turn.accepted.id));
        waiting.shuffle(&mut rand::rng());
        let (mut embedded, mut in_a_row, mut failure) = (0, 0, None);
        for turn in waiting.iter().take(TURNS) {
            let accepted = &turn.turn.accepted;
            if in_a_row == IN_A_ROW {
                break;
            }
            match self.backfill_turn(turn, space).await {
                Ok(()) => {
                    (embedded, in_a_row) = (embedded + 1, 0);
                }
                Err(fault) => {
                    tracing::warn!(scope = %turn.scope, turn = %accepted.id, reason = %fault.reason, "no vectors yet: {fault}");
                    postponed.postpone(accepted.id);
                    in_a_row += 1;
                    failure = Some(fault);
                }
            }
        }
        if failure.is_none() {
            embedded += self.backfill_derivations(space).await?;
        }
        match failure {
            Some(fault) if embedded == 0 => Err(fault),
            _ => Ok(embedded),
        }
    }

    /// The same for what is derived.
    async fn backfill_derivations(&self, space: &EmbeddingSpace) -> Result<usize, Fault> {
        let waiting = self.ledger.derivations_without_vectors(space, TURNS as u32);
        let waiting = waiting.await?;
        if waiting.is_empty() {
            return Ok(0);
        }
        let texts = waiting.iter().map(|it| it.derivation.body.found_by());
        let vectors = self.embedder.embed_passages_in(space, texts.collect());
        for (waiting, vectors) in waiting.iter().zip(vectors.await?) {
            let derivation = (waiting.derivation.id, waiting.derivation.version);
            self.ledger
                .attach_derived_vectors(&waiting.scope, derivation, space, vectors)
                .await?;
        }
        Ok(waiting.len())
    }

    async fn backfill_turn(
        &self,
        waiting: &Unembedded,
        space: &EmbeddingSpace,
    ) -> Result<(), Fault> {
        let vectors = self
            .embedder
            .embed_passages_in(space, texts(waiting)?)
            .await?;
        let turn = waiting.turn.accepted.id;
        self.ledger
            .attach_vectors(&waiting.scope, turn, space, vectors)
            .await?;
        Ok(())
    }
}

fn texts(waiting: &Unembedded) -> Result<Vec<String>, Fault> {
    let text = waiting.turn.accepted.content.searchable_text();
    let speaker = waiting.turn.accepted.speaker.as_str();
    let passage = |&(start, end): &(u32, u32)| {
        let passage = text.get(start as usize..end as usize).ok_or_else(|| {
            let message = "a stored passage lies outside of its turn";
            Fault::new(FaultKind::DataLoss, "STORE_DAMAGED", message)
        })?;
        Ok(labelled(speaker, passage))
    };
    waiting.ranges.iter().map(passage).collect()
}
