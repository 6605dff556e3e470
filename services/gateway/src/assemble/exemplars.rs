//! The examples of the second gate as vectors: those that are shipped, and those of tenants. They are embedded behind the query that asks for
//! them first, and once more where examples or model are others; until that is done the gate abstains, and nobody waits.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::TenantId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_gates::routing::{Exemplars, ExemplarsError, Router};
use memfleet_ports::embedder::Embedder;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::sync::Semaphore;

/// Examples that are embedded at a time.
const BATCH: usize = 64;
/// Pause after a failure before they are embedded again.
const PAUSE: Duration = Duration::from_secs(10);
/// Bytes of vectors that are kept: where those of more tenants are asked for, they are embedded again and again.
const KEPT: u64 = 64 << 20;
/// What a document of some hundred examples takes.
const USUAL: u64 = 128 << 10;
/// Owners whose examples may be on their way at a time; the next one's begin with a later query.
const UNDER_WAY: usize = 64;

/// Examples, and what tells them from all others.
#[derive(Debug)]
pub struct Examples {
    exemplars: Exemplars,
    hash: blake3::Hash,
}

/// Who examples are of. Those of one tenant are never looked at for another, be they the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Whose {
    /// They are shipped.
    Everybody,
    /// They are this tenant's own.
    Tenant(TenantId),
}

/// The vectors of all examples that were asked for lately.
pub struct Routing {
    kept: Cache<Key, Arc<Made>, Bytes>,
    under_way: Mutex<HashSet<Whose>>,
    /// Who embeds the next batch: one at a time, so that queries and what is remembered have the model, too.
    turn: Semaphore,
}

type Key = (Whose, blake3::Hash);

/// What became of examples, for one embedding space.
struct Made {
    space: EmbeddingSpace,
    /// Absent: their vectors cannot be compared with.
    router: Option<Arc<Router>>,
}

/// Weighs routers by the memory that they take.
#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Made>> for Bytes {
    fn weight(&self, _: &Key, made: &Arc<Made>) -> u64 {
        let router = made.router.as_ref().map_or(0, |router| router.bytes());
        router as u64 + 512
    }
}

impl Examples {
    /// Reads a document; `version` goes to the trace.
    pub fn parse(body: &str, version: String) -> Result<Self, ExemplarsError> {
        let mut exemplars = Exemplars::parse(body)?;
        exemplars.version = version;
        Ok(Self::of(exemplars, body))
    }

    /// Those that come with memfleet.
    pub fn shipped() -> &'static Arc<Self> {
        static SHIPPED: LazyLock<Arc<Examples>> = LazyLock::new(|| {
            let exemplars = Exemplars::shipped().clone();
            Arc::new(Examples::of(exemplars, ""))
        });
        &SHIPPED
    }

    fn of(exemplars: Exemplars, body: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(exemplars.version.as_bytes());
        hasher.update(&[0]);
        hasher.update(body.as_bytes());
        let hash = hasher.finalize();
        Self { exemplars, hash }
    }
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            kept: Cache::with_weighter((KEPT / USUAL) as usize, KEPT, Bytes),
            under_way: Mutex::default(),
            turn: Semaphore::new(1),
        }
    }
}

impl Routing {
    /// What compares a query of this embedding space with the examples, once there is such.
    pub(super) fn router(
        self: &Arc<Self>,
        whose: Whose,
        examples: &Arc<Examples>,
        space: &EmbeddingSpace,
        embedder: &Arc<dyn Embedder>,
    ) -> Option<Arc<Router>> {
        let key = (whose, examples.hash);
        let made = self.kept.get(&key);
        if made.as_ref().is_none_or(|made| made.space != *space) {
            self.begin(key, examples.clone(), embedder.clone());
        }
        made?.router.clone()
    }

    /// Whether no examples are on their way.
    pub fn is_idle(&self) -> bool {
        self.under_way().is_empty()
    }

    fn begin(self: &Arc<Self>, key: Key, examples: Arc<Examples>, embedder: Arc<dyn Embedder>) {
        {
            let mut under_way = self.under_way();
            if under_way.len() >= UNDER_WAY || !under_way.insert(key.0.clone()) {
                return;
            }
        }
        let place = Place {
            routing: self.clone(),
            whose: key.0.clone(),
        };
        tokio::spawn(async move {
            match place.routing.embed(&examples.exemplars, &*embedder).await {
                Ok(made) => place.routing.kept.insert(key, Arc::new(made)),
                Err(fault) => {
                    tell(&fault);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }

    async fn embed(&self, exemplars: &Exemplars, embedder: &dyn Embedder) -> Result<Made, Fault> {
        let space = embedder.space().await?;
        let texts: Vec<String> = exemplars.texts().map(str::to_owned).collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(BATCH) {
            vectors.extend(self.batch(batch, embedder).await?);
        }
        if embedder.space().await? != space {
            let message = "the model changed while examples were embedded";
            return Err(Fault::new(
                FaultKind::Unavailable,
                "EMBEDDER_UNAVAILABLE",
                message,
            ));
        }
        let router = Router::new(exemplars, vectors, space.clone());
        let router = router.map_err(|error| {
            let version = &exemplars.version;
            tracing::error!(
                version,
                "gate 2 abstains, its examples cannot be used: {error}"
            );
        });
        let router = router.ok().map(Arc::new);
        Ok(Made { space, router })
    }

    /// The sentence vectors of some texts. A model that is busy or away for a while does not undo those before.
    async fn batch(
        &self,
        texts: &[String],
        embedder: &dyn Embedder,
    ) -> Result<Vec<Vec<i8>>, Fault> {
        loop {
            let embedded = {
                let _turn = self.turn.acquire().await.expect("it is never closed");
                embedder.embed_passages(texts.to_vec()).await
            };
            match embedded {
                Ok(embedded) => return Ok(embedded.into_iter().map(|it| it.sentence).collect()),
                Err(fault) if fault.is_retryable() => tell(&fault),
                Err(fault) => return Err(fault),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn under_way(&self) -> MutexGuard<'_, HashSet<Whose>> {
        self.under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place among what is on its way; it is free again however that ends.
struct Place {
    routing: Arc<Routing>,
    whose: Whose,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.routing.under_way().remove(&self.whose);
    }
}

fn tell(fault: &Fault) {
    tracing::warn!(reason = %fault.reason, "gate 2 abstains, its examples are not embedded: {fault}");
}
