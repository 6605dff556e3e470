//! Stand-ins in tests of services: a model whose vectors are hashes of words, and that can be told to be down; an authority with a
//! list of callers; a queue where nothing waits; a reader of turns that goes by sentences.

mod sentence_reader;
mod subject_embedder;

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::access::{Grant, Right};
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, QueryVectors, TokenVectors};
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind, Scope};

use crate::access::{Authority, Caller, DEFAULT_TENANT, Proof};
use crate::context::Context;
use crate::embedder::{Embedder, missing_model, no_model};
use crate::filter::TurnFilter;
use crate::retriever::{Found, Query, Retriever};
use crate::store;
use crate::undelivered::{Matching, Undelivered, Unreadable};

pub use sentence_reader::SentenceReader;
pub use subject_embedder::SubjectEmbedder;

/// Components of its vectors.
const DIMENSIONS: usize = 16;

/// The first word piece of the second model's vocabulary.
pub const SECOND_PIECES: u32 = 30_000;

/// An embedder without a model: equal words have equal vectors. It may have a second one, whose
/// vectors have the same length, tell other words near, and have word pieces from [`SECOND_PIECES`]
/// on; it reads texts that are not ASCII.
#[derive(Debug)]
pub struct WordEmbedder {
    space: EmbeddingSpace,
    second: EmbeddingSpace,
    has_first: AtomicBool,
    has_second: AtomicBool,
    down: AtomicBool,
    texts: AtomicU32,
}

impl Default for WordEmbedder {
    fn default() -> Self {
        // The embedding space of the samples of the conformance suites, whose turns are searched
        // and derived from beside its own.
        let space = EmbeddingSpace {
            model: "sample".to_owned(),
            revision: "1".to_owned(),
            recipe: "int8-1".to_owned(),
            projection: "pca4-1".to_owned(),
        };
        Self {
            second: EmbeddingSpace {
                model: "second sample".to_owned(),
                ..space.clone()
            },
            has_first: AtomicBool::new(true),
            has_second: AtomicBool::new(false),
            space,
            down: AtomicBool::new(false),
            texts: AtomicU32::new(0),
        }
    }
}

impl WordEmbedder {
    /// From now on every call fails, or works again.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// Texts embedded so far.
    pub fn texts(&self) -> u32 {
        self.texts.load(Ordering::SeqCst)
    }

    /// From now on the second model is here.
    pub fn pull_second(&self) {
        self.has_second.store(true, Ordering::SeqCst);
    }

    /// An embedder that has the second model alone.
    pub fn of_second() -> Self {
        let it = Self::default();
        it.pull_second();
        it.has_first.store(false, Ordering::SeqCst);
        it
    }

    /// The embedding space of the second model.
    pub fn second(&self) -> &EmbeddingSpace {
        &self.second
    }

    fn embed_in(&self, space: &EmbeddingSpace, text: &str) -> Result<PassageVectors, Fault> {
        let vectors = self.embed(text)?;
        if *space == self.space && self.has_first.load(Ordering::SeqCst) {
            return Ok(vectors);
        }
        if *space != self.second || !self.has_second.load(Ordering::SeqCst) {
            return Err(no_model(space));
        }
        let mut second = PassageVectors {
            sentence: vec![0; DIMENSIONS],
            ..vectors
        };
        for piece in &mut second.tokens.pieces {
            let place = (*piece as usize / DIMENSIONS) % DIMENSIONS;
            second.sentence[place] = second.sentence[place].saturating_sub(20);
            *piece += SECOND_PIECES;
        }
        for row in second.tokens.values.chunks_mut(DIMENSIONS) {
            row.rotate_right(5);
        }
        Ok(second)
    }

    fn embed(&self, text: &str) -> Result<PassageVectors, Fault> {
        if self.down.load(Ordering::SeqCst) {
            return Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDER_UNAVAILABLE",
                "the embedder is down",
            ));
        }
        self.texts.fetch_add(1, Ordering::SeqCst);
        let mut vectors = PassageVectors {
            sentence: vec![0; DIMENSIONS],
            tokens: TokenVectors {
                dimensions: DIMENSIONS,
                ..TokenVectors::default()
            },
        };
        for word in text
            .split(|character: char| !character.is_alphanumeric())
            .filter(|word| !word.is_empty())
        {
            let piece = piece(word);
            let place = piece as usize % DIMENSIONS;
            vectors.tokens.pieces.push(piece);
            vectors
                .tokens
                .values
                .extend((0..DIMENSIONS).map(|index| if index == place { 127 } else { 0 }));
            vectors.sentence[place] = vectors.sentence[place].saturating_add(20);
        }
        Ok(vectors)
    }
}

/// FNV-1a of the word in lower case, cut to a vocabulary of 30,000.
fn piece(word: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    word.to_lowercase().bytes().fold(2_166_136_261, mix) % 30_000
}

#[async_trait]
impl Embedder for WordEmbedder {
    async fn space(&self) -> Result<EmbeddingSpace, Fault> {
        Ok(self.space.clone())
    }

    async fn embed_passages(&self, texts: Vec<String>) -> Result<Vec<PassageVectors>, Fault> {
        texts.iter().map(|text| self.embed(text)).collect()
    }

    async fn embed_query(&self, text: String) -> Result<QueryVectors, Fault> {
        self.embed(&text)
    }

    async fn embed_passages_in(
        &self,
        space: &EmbeddingSpace,
        texts: Vec<String>,
    ) -> Result<Vec<PassageVectors>, Fault> {
        texts
            .iter()
            .map(|text| self.embed_in(space, text))
            .collect()
    }

    async fn embed_query_in(
        &self,
        space: &EmbeddingSpace,
        text: String,
    ) -> Result<QueryVectors, Fault> {
        self.embed_in(space, &text)
    }

    /// The second model, where it is here, reads texts with letters beyond ASCII.
    async fn space_for(&self, texts: &[String]) -> Result<EmbeddingSpace, Fault> {
        self.embed("")?;
        let has_second = self.has_second.load(Ordering::SeqCst);
        let others = texts.iter().filter(|text| !text.is_ascii()).count();
        Ok(match has_second && 5 * others >= texts.len().max(1) {
            true => self.second.clone(),
            false => self.space.clone(),
        })
    }

    async fn space_of(&self, model: &str) -> Result<EmbeddingSpace, Fault> {
        let has_second = self.has_second.load(Ordering::SeqCst);
        let spaces = [Some(&self.space), Some(&self.second).filter(|_| has_second)];
        let mut spaces = spaces.into_iter().flatten();
        let found = spaces.find(|space| space.model == model);
        found.cloned().ok_or_else(|| missing_model(model))
    }
}

/// Somebody of a tenant who may do everything, named as the tenant.
pub fn caller(tenant: &str) -> Caller {
    Caller {
        tenant: TenantId::new(tenant).expect("a valid sample"),
        name: tenant.to_owned(),
        grant: Grant::ALL,
        is_operator: false,
        calls_per_minute: None,
        proof: Proof::Configured,
    }
}

/// An authority that knows some callers by their credentials; without any, everybody.
#[derive(Debug, Default)]
pub struct Callers {
    known: HashMap<String, Caller>,
    banned: AtomicBool,
    refusals: Mutex<Vec<String>>,
}

impl Callers {
    /// Those with these credentials.
    pub fn new<'a>(known: impl IntoIterator<Item = (&'a str, Caller)>) -> Self {
        let known = known.into_iter();
        Self {
            known: known
                .map(|(key, caller)| (key.to_owned(), caller))
                .collect(),
            ..Self::default()
        }
    }

    /// From now on nobody is believed any more.
    pub fn ban(&self) {
        self.banned.store(true, Ordering::SeqCst);
    }

    /// Methods that were refused for want of the right `admin`.
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.lock().expect("no test panics here").clone()
    }
}

fn unauthenticated(reason: &'static str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, reason, "not this one")
}

#[async_trait]
impl Authority for Callers {
    async fn identify(&self, credential: Option<&str>) -> Result<Caller, Fault> {
        if self.known.is_empty() {
            return Ok(caller(DEFAULT_TENANT));
        }
        let Some(credential) = credential else {
            return Err(unauthenticated("CREDENTIAL_MISSING"));
        };
        let known = self.known.get(credential).cloned();
        known.ok_or_else(|| unauthenticated("CREDENTIAL_UNKNOWN"))
    }

    async fn renew(&self, _: &Caller) -> Result<(), Fault> {
        match self.banned.load(Ordering::SeqCst) {
            true => Err(unauthenticated("CREDENTIAL_REVOKED")),
            false => Ok(()),
        }
    }

    async fn count(&self, _: &Caller) -> Result<(), Fault> {
        Ok(())
    }

    fn refused(&self, _: &Caller, _: &str, method: &str, _: Right) {
        let mut refusals = self.refusals.lock().expect("no test panics here");
        refusals.push(method.to_owned());
    }
}

/// A retriever of empty spaces.
#[derive(Debug)]
pub struct EmptyRetriever;

#[async_trait]
impl Retriever for EmptyRetriever {
    async fn search(&self, _: &Context, _: &Query) -> Result<Found, Fault> {
        Ok(Found::default())
    }
}

/// A queue without turns or letters.
#[derive(Debug)]
pub struct NothingWaits;

#[async_trait]
impl Undelivered for NothingWaits {
    async fn last_acceptance(&self) -> store::Result<u64> {
        Ok(0)
    }

    async fn matching(&self, _: &Scope, _: &TurnFilter, _: Unreadable) -> store::Result<Matching> {
        Ok(Matching::default())
    }

    async fn withdraw(&self, _: &Scope, _: &Matching) -> store::Result<()> {
        Ok(())
    }

    async fn with_letters(&self, _: &[Scope]) -> store::Result<HashSet<Scope>> {
        Ok(HashSet::new())
    }
}
