//! Vectors that follow: turns stored while the embedder was down are embedded when it is back.
//!
//! A text that the model fails on looks just like a model that is down. So each failure postpones its own turn or derivation,
//! longer every time, and the others go on; a few failures in a row end a round, since then it is likely the embedder itself.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::ledger::{Unembedded, UnembeddedDerivation};
use memfleet_retrieval::document::labelled;
use rand::seq::SliceRandom;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Constructor;

/// How often the ledger is asked for turns without vectors, and an embedder that is away whether it is back.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a turn or derivation is left alone after its first failure, and at most.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(5);

/// Turns embedded together …
const TURNS: usize = 32;
/// … of so many that wait: processes that each take other ones of them seldom do the same work.
const WAITING: u32 = 256;

/// Failures one after the other that end a round.
const IN_A_ROW: u32 = 3;

/// Turns and derivations that could not be embedded, by embedding space, and when they are tried
/// again.
#[derive(Debug, Default)]
pub struct Postponed {
    spaces: HashMap<EmbeddingSpace, PostponedTexts>,
}

impl Postponed {
    fn of(&mut self, space: &EmbeddingSpace) -> &mut PostponedTexts {
        self.spaces.entry(space.clone()).or_default()
    }
}

/// A turn, or a version of a derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TextOwner {
    Turn(TurnId),
    Derivation(DerivationId, u32),
}

impl TextOwner {
    fn of_turn(waiting: &Unembedded) -> Self {
        Self::Turn(waiting.turn.accepted.id)
    }

    fn of_derivation(waiting: &UnembeddedDerivation) -> Self {
        Self::Derivation(waiting.derivation.id, waiting.derivation.version)
    }
}

#[derive(Debug, Default)]
struct PostponedTexts {
    texts: HashMap<TextOwner, (u32, Instant)>,
}

impl PostponedTexts {
    /// How many more are asked for: all that are postponed may come first, of one space, which
    /// gives half of what is asked for at most.
    fn room(&self) -> u32 {
        u32::try_from(2 * self.texts.len()).unwrap_or(u32::MAX / 2)
    }

    fn is_due(&self, owner: TextOwner) -> bool {
        self.texts
            .get(&owner)
            .is_none_or(|(_, until)| *until <= Instant::now())
    }

    fn postpone(&mut self, owner: TextOwner) {
        let (failures, until) = self.texts.entry(owner).or_insert((0, Instant::now()));
        let pause = FIRST.saturating_mul(1 << (*failures).min(10)).min(LONGEST);
        *failures += 1;
        *until = Instant::now() + pause;
    }

    /// Lets go of those that were not tried again for a while: forgotten, or embedded elsewhere.
    fn let_go(&mut self) {
        let now = Instant::now();
        self.texts.retain(|_, (_, until)| *until + LONGEST > now);
    }
}

/// Whether spaces take vectors of an embedding space, asked once a space.
struct TakingSpaces<'a> {
    constructor: &'a Constructor,
    space: &'a EmbeddingSpace,
    default: &'a EmbeddingSpace,
    known: HashMap<Scope, bool>,
}

impl TakingSpaces<'_> {
    /// True where a space has vectors of the embedding space; of spaces without any, where new
    /// ones are made in it.
    async fn has(&mut self, scope: &Scope) -> Result<bool, Fault> {
        if let Some(known) = self.known.get(scope) {
            return Ok(*known);
        }
        let held = self.constructor.spaces.embeddings(scope).await?;
        let takes = held.served.as_ref().unwrap_or(self.default) == self.space
            || held.other.is_some_and(|other| other.space == *self.space);
        self.known.insert(scope.clone(), takes);
        Ok(takes)
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
        spaces.insert(0, default.clone());
        let (mut embedded, mut failure) = (0, None);
        for space in spaces {
            match self.backfill_in(&space, &default, postponed).await {
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
        default: &EmbeddingSpace,
        postponed: &mut Postponed,
    ) -> Result<usize, Fault> {
        let mut taking = TakingSpaces {
            constructor: self,
            space,
            default,
            known: HashMap::new(),
        };
        let postponed = postponed.of(space);
        postponed.let_go();
        let (mut embedded, mut failure) = self.backfill_turns(&mut taking, postponed).await?;
        if failure.is_none() {
            let derived = self.backfill_derivations(&mut taking, postponed).await;
            let (derived, fault) = derived.unwrap_or_else(|fault| (0, Some(fault)));
            (embedded, failure) = (embedded + derived, fault);
        }
        match failure {
            Some(fault) if embedded == 0 => Err(fault),
            _ => Ok(embedded),
        }
    }

    /// How many turns got vectors, and the last failure of the model.
    async fn backfill_turns(
        &self,
        taking: &mut TakingSpaces<'_>,
        postponed: &mut PostponedTexts,
    ) -> Result<(usize, Option<Fault>), Fault> {
        let limit = WAITING.saturating_add(postponed.room());
        let mut waiting = self.ledger.without_vectors(taking.space, limit).await?;
        waiting.retain(|turn| postponed.is_due(TextOwner::of_turn(turn)));
        waiting.shuffle(&mut rand::rng());
        let (mut embedded, mut in_a_row, mut failure) = (0, 0, None);
        let mut tried = 0;
        for turn in &waiting {
            let accepted = &turn.turn.accepted;
            if in_a_row == IN_A_ROW || tried == TURNS {
                break;
            }
            if !taking.has(&turn.scope).await? {
                continue;
            }
            tried += 1;
            match self.backfill_turn(turn, taking.space).await {
                Ok(()) => {
                    (embedded, in_a_row) = (embedded + 1, 0);
                }
                Err(fault) => {
                    tracing::warn!(scope = %turn.scope, turn = %accepted.id, reason = %fault.reason, "no vectors yet: {fault}");
                    postponed.postpone(TextOwner::of_turn(turn));
                    in_a_row += 1;
                    failure = Some(fault);
                }
            }
        }
        Ok((embedded, failure))
    }

    /// The same for what is derived: together, and one by one where the model fails on some.
    async fn backfill_derivations(
        &self,
        taking: &mut TakingSpaces<'_>,
        postponed: &mut PostponedTexts,
    ) -> Result<(usize, Option<Fault>), Fault> {
        let (space, limit) = (
            taking.space,
            (2 * TURNS as u32).saturating_add(postponed.room()),
        );
        let waiting = self.ledger.derivations_without_vectors(space, limit);
        let mut due = Vec::new();
        for waiting in waiting.await? {
            if due.len() < TURNS
                && postponed.is_due(TextOwner::of_derivation(&waiting))
                && taking.has(&waiting.scope).await?
            {
                due.push(waiting);
            }
        }
        if self.embed_derivations(&due, space).await.is_ok() {
            return Ok((due.len(), None));
        }
        let (mut embedded, mut in_a_row, mut failure) = (0, 0, None);
        for waiting in &due {
            if in_a_row == IN_A_ROW {
                break;
            }
            match self
                .embed_derivations(std::slice::from_ref(waiting), space)
                .await
            {
                Ok(()) => (embedded, in_a_row) = (embedded + 1, 0),
                Err(fault) => {
                    let derivation = waiting.derivation.id;
                    tracing::warn!(scope = %waiting.scope, %derivation, reason = %fault.reason, "no vectors yet: {fault}");
                    postponed.postpone(TextOwner::of_derivation(waiting));
                    in_a_row += 1;
                    failure = Some(fault);
                }
            }
        }
        Ok((embedded, failure))
    }

    async fn embed_derivations(
        &self,
        waiting: &[UnembeddedDerivation],
        space: &EmbeddingSpace,
    ) -> Result<(), Fault> {
        if waiting.is_empty() {
            return Ok(());
        }
        let texts = waiting.iter().map(|it| it.derivation.body.found_by());
        let vectors = self.embedder.embed_passages_in(space, texts.collect());
        for (waiting, vectors) in waiting.iter().zip(vectors.await?) {
            let derivation = (waiting.derivation.id, waiting.derivation.version);
            self.ledger
                .attach_derived_vectors(&waiting.scope, derivation, space, vectors)
                .await?;
        }
        Ok(())
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
