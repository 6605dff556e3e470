//! Vectors that follow: turns stored while the embedder was down are embedded when it is back.
//!
//! A text that the model fails on looks just like a model that is down. So each failure postpones its own turn or derivation,
//! longer every time, and the others go on; a few failures in a row end a round, since then it is likely the embedder itself.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::ledger::{TextOwner, TextVectors, Unembedded};
use memfleet_retrieval::document::labelled;
use rand::seq::SliceRandom;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Constructor;
use crate::following_language::SAMPLE;

/// How often the ledger is asked for turns without vectors, and an embedder that is away whether it is back.
const PERIOD: Duration = Duration::from_secs(1);

/// How long a turn or derivation is left alone after its first failure, and at most.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(5);

/// Texts of a round …
const TEXTS: usize = 32;
/// … and bytes of those that are embedded together, some 130 pieces. More at once are not faster,
/// and searches meanwhile have a longer tail (docs/benchmarks.md).
const PART_BYTES: usize = 512;
/// Turns of which a round takes some: processes that each take other ones seldom do the same work.
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

/// A text without vectors.
struct WaitingText {
    scope: Scope,
    owner: TextOwner,
    /// As the model reads them.
    passages: Vec<String>,
}

impl WaitingText {
    fn bytes(&self) -> usize {
        self.passages.iter().map(String::len).sum()
    }
}

/// Texts of a round, in parts that are embedded together.
#[derive(Default)]
struct RoundTexts {
    parts: Vec<Vec<WaitingText>>,
}

impl RoundTexts {
    fn is_full(&self) -> bool {
        self.parts.iter().map(Vec::len).sum::<usize>() == TEXTS
    }

    fn push(&mut self, scope: &Scope, owner: TextOwner, passages: Vec<String>) {
        let text = WaitingText {
            scope: scope.clone(),
            owner,
            passages,
        };
        let bytes = |part: &[WaitingText]| part.iter().map(WaitingText::bytes).sum::<usize>();
        match self.parts.last_mut() {
            Some(part) if bytes(part) + text.bytes() <= PART_BYTES => part.push(text),
            _ => self.parts.push(vec![text]),
        }
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

    fn postpone(&mut self, scope: &Scope, owner: TextOwner, fault: &Fault) {
        tracing::warn!(%scope, %owner, reason = %fault.reason, "no vectors yet: {fault}");
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

/// Embedding spaces of memory spaces without vectors, each by the language of its texts.
type FirstChoices = HashMap<Scope, EmbeddingSpace>;

/// Whether spaces take vectors of an embedding space, asked once a space.
struct TakingSpaces<'a> {
    constructor: &'a Constructor,
    space: &'a EmbeddingSpace,
    choices: &'a mut FirstChoices,
    known: HashMap<Scope, bool>,
}

impl TakingSpaces<'_> {
    /// True where a space has vectors of the embedding space; of spaces without any, where some of
    /// their texts are best embedded in it.
    async fn has(
        &mut self,
        scope: &Scope,
        texts: impl FnOnce() -> Vec<String>,
    ) -> Result<bool, Fault> {
        if let Some(known) = self.known.get(scope) {
            return Ok(*known);
        }
        let held = self.constructor.spaces.embeddings(scope).await?;
        let space = self.space;
        let takes = match (held.served, held.other) {
            (None, None) => self.choice(scope, texts()).await? == space,
            (served, other) => {
                served.is_some_and(|served| served == *space)
                    || other.is_some_and(|other| other.space == *space)
            }
        };
        self.known.insert(scope.clone(), takes);
        Ok(takes)
    }

    async fn choice(
        &mut self,
        scope: &Scope,
        texts: Vec<String>,
    ) -> Result<&EmbeddingSpace, Fault> {
        if !self.choices.contains_key(scope) {
            let embedder = &self.constructor.embedder;
            let choice = embedder.space_for(&texts).await?;
            self.choices.insert(scope.clone(), choice);
        }
        Ok(&self.choices[scope])
    }
}

impl Constructor {
    /// Brings missing vectors until `shutdown`.
    pub async fn run_backfill(&self, shutdown: CancellationToken) {
        let mut postponed = Postponed::default();
        while !shutdown.is_cancelled() {
            match self.backfill_once(&mut postponed).await {
                Ok(0) => {}
                Ok(texts) => {
                    tracing::info!(texts, "missing vectors added");
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
        let (mut choices, mut done) = (FirstChoices::new(), 0);
        while let Some(space) = spaces.get(done).cloned() {
            match self.backfill_in(&space, &mut choices, postponed).await {
                Ok(turns) => embedded += turns,
                Err(fault) => failure = Some(fault),
            }
            done += 1;
            for choice in choices.values() {
                if !spaces.contains(choice) {
                    spaces.push(choice.clone());
                }
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
        choices: &mut FirstChoices,
        postponed: &mut Postponed,
    ) -> Result<usize, Fault> {
        let mut taking = TakingSpaces {
            constructor: self,
            space,
            choices,
            known: HashMap::new(),
        };
        let postponed = postponed.of(space);
        postponed.let_go();
        let turns = self.waiting_turns(&mut taking, postponed).await?;
        let (mut embedded, mut failure) = self.embed_round(&turns, space, postponed).await;
        if failure.is_none() {
            match self.waiting_derivations(&mut taking, postponed).await {
                Ok(derived) => {
                    let (derived, fault) = self.embed_round(&derived, space, postponed).await;
                    (embedded, failure) = (embedded + derived, fault);
                }
                Err(fault) => failure = Some(fault),
            }
        }
        match failure {
            Some(fault) if embedded == 0 => Err(fault),
            _ => Ok(embedded),
        }
    }

    /// Some of the turns that may be embedded now.
    async fn waiting_turns(
        &self,
        taking: &mut TakingSpaces<'_>,
        postponed: &mut PostponedTexts,
    ) -> Result<RoundTexts, Fault> {
        let limit = WAITING.saturating_add(postponed.room());
        let mut waiting = self.ledger.without_vectors(taking.space, limit).await?;
        waiting.shuffle(&mut rand::rng());
        let mut round = RoundTexts::default();
        for turn in &waiting {
            let owner = TextOwner::Turn(turn.turn.accepted.id);
            if round.is_full() {
                break;
            }
            let texts = || {
                let own = waiting.iter().filter(|other| other.scope == turn.scope);
                own.take(SAMPLE)
                    .map(|it| it.turn.accepted.content.searchable_text())
                    .collect()
            };
            if !postponed.is_due(owner) || !taking.has(&turn.scope, texts).await? {
                continue;
            }
            match passages(turn) {
                Ok(passages) => round.push(&turn.scope, owner, passages),
                Err(fault) => postponed.postpone(&turn.scope, owner, &fault),
            }
        }
        Ok(round)
    }

    /// Some of the derivations that may be embedded now.
    async fn waiting_derivations(
        &self,
        taking: &mut TakingSpaces<'_>,
        postponed: &PostponedTexts,
    ) -> Result<RoundTexts, Fault> {
        let limit = (2 * TEXTS as u32).saturating_add(postponed.room());
        let waiting = self.ledger.derivations_without_vectors(taking.space, limit);
        let mut round = RoundTexts::default();
        for waiting in waiting.await? {
            let derivation = &waiting.derivation;
            let owner = TextOwner::Derivation(derivation.id, derivation.version);
            if round.is_full() {
                break;
            }
            let text = derivation.body.found_by();
            if postponed.is_due(owner) && taking.has(&waiting.scope, || vec![text.clone()]).await? {
                round.push(&waiting.scope, owner, vec![text]);
            }
        }
        Ok(round)
    }

    /// Embeds texts part by part, and one by one where the model fails on some; how many got
    /// vectors, and the last failure.
    async fn embed_round(
        &self,
        RoundTexts { parts }: &RoundTexts,
        space: &EmbeddingSpace,
        postponed: &mut PostponedTexts,
    ) -> (usize, Option<Fault>) {
        let (mut made, mut in_a_row, mut failure) = (Vec::new(), 0, None);
        'round: for part in parts {
            if let Ok(vectors) = self.embed(part, space).await {
                made.extend(vectors);
                in_a_row = 0;
                continue;
            }
            for text in part {
                match self.embed(std::slice::from_ref(text), space).await {
                    Ok(vectors) => {
                        made.extend(vectors);
                        in_a_row = 0;
                    }
                    Err(fault) => {
                        postponed.postpone(&text.scope, text.owner, &fault);
                        in_a_row += 1;
                        failure = Some(fault);
                    }
                }
                if in_a_row == IN_A_ROW {
                    break 'round;
                }
            }
        }
        let (embedded, refusal) = self.attach(made, space, postponed).await;
        (embedded, refusal.or(failure))
    }

    async fn embed<'t>(
        &self,
        texts: &'t [WaitingText],
        space: &EmbeddingSpace,
    ) -> Result<Vec<(&'t Scope, TextVectors)>, Fault> {
        let passages = texts.iter().flat_map(|text| text.passages.iter().cloned());
        let vectors = self.embedder.embed_passages_in(space, passages.collect());
        let mut vectors = vectors.await?.into_iter();
        let made = texts.iter().map(|text| {
            let made = TextVectors {
                owner: text.owner,
                vectors: vectors.by_ref().take(text.passages.len()).collect(),
            };
            (&text.scope, made)
        });
        Ok(made.collect())
    }

    /// Stores the vectors of each space together, and one by one where the store refuses some; how
    /// many, and the last refusal.
    async fn attach(
        &self,
        made: Vec<(&Scope, TextVectors)>,
        space: &EmbeddingSpace,
        postponed: &mut PostponedTexts,
    ) -> (usize, Option<Fault>) {
        let mut by_space: HashMap<&Scope, Vec<TextVectors>> = HashMap::new();
        for (scope, text) in made {
            by_space.entry(scope).or_default().push(text);
        }
        let (mut attached, mut in_a_row, mut refusal) = (0, 0, None);
        for (scope, texts) in by_space {
            let together = self.ledger.attach_vectors(scope, space, &texts).await;
            if together.is_ok() {
                attached += texts.len();
                continue;
            }
            for text in &texts {
                let alone = std::slice::from_ref(text);
                match self.ledger.attach_vectors(scope, space, alone).await {
                    Ok(()) => (attached, in_a_row) = (attached + 1, 0),
                    Err(error) => {
                        let fault = Fault::from(error);
                        postponed.postpone(scope, text.owner, &fault);
                        in_a_row += 1;
                        refusal = Some(fault);
                    }
                }
                if in_a_row == IN_A_ROW {
                    return (attached, refusal);
                }
            }
        }
        (attached, refusal)
    }
}

/// The passages of a turn, as the model reads them.
fn passages(waiting: &Unembedded) -> Result<Vec<String>, Fault> {
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
