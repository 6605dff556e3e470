//! Follows the change feed of a space into Qdrant. Each page of changes is applied, then noted; a crash in between applies it
//! again, which changes nothing. Processes may follow the same space: each applies every change after its own last note, in order, so
//! what one of them writes late is put right by what it reads next.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use memfleet_columns::{json, to_json};
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::feed::{Change, IndexFeed};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::store::Result;
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    DeletePointsBuilder, Filter, GetPointsBuilder, PointId, PointStruct, ScrollPointsBuilder,
    UpsertPointsBuilder, Value, value::Kind,
};
use tokio::sync::Mutex;

use crate::collections::Collections;
use crate::failure::unavailable;
use crate::points;

/// Changes that are applied at a time.
const PAGE: u32 = 500;
const REACHED: &str = "reached";
/// Name of the embedding space in a note, as JSON.
const NAME: &str = "embedding";
/// Embedding spaces of a space, at most.
const NOTES: u32 = 64;

/// Where the server is and what is asked of it.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its gRPC address, such as `http://qdrant:6334`.
    pub url: String,
    /// Its key, where it asks for one.
    pub api_key: Option<String>,
    /// What the names of our collections begin with.
    pub prefix: String,
    /// What one call may take.
    pub timeout: Duration,
    /// Up to so many passages are compared by the store, one by one, and the server is not asked.
    pub compared: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            url: "http://127.0.0.1:6334".to_owned(),
            api_key: None,
            prefix: "memfleet".to_owned(),
            timeout: Duration::from_secs(5),
            compared: 16_384,
        }
    }
}

/// How far a space is mirrored in an embedding space. Read anew each time: other processes follow,
/// and may remove what this one wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MirrorNote {
    /// The last change that is applied; absent while points are removed to begin again.
    reached: Option<u64>,
}

/// Held while a space is followed in an embedding space.
type Place = Arc<Mutex<()>>;

/// The mirror of a store.
pub struct Mirror {
    pub(crate) collections: Collections,
    pub(crate) feed: Arc<dyn IndexFeed>,
    spaces: Arc<dyn SpaceCatalog>,
    places: Mutex<HashMap<(Scope, EmbeddingSpace), Place>>,
}

impl Mirror {
    /// A mirror of what the store's feed tells. No call is made yet.
    pub fn new<S>(store: Arc<S>, options: &Options) -> Result<Self>
    where
        S: IndexFeed + SpaceCatalog + 'static,
    {
        let client = Qdrant::from_url(&options.url)
            .api_key(options.api_key.clone())
            .timeout(options.timeout)
            .connect_timeout(options.timeout)
            .skip_compatibility_check()
            .build()
            .map_err(unavailable)?;
        Ok(Self {
            collections: Collections::new(client, options.prefix.clone()),
            feed: store.clone(),
            spaces: store,
            places: Mutex::default(),
        })
    }

    pub(crate) fn client(&self) -> &Qdrant {
        self.collections.client()
    }

    /// How many changes of the space are not in the mirror of this embedding space.
    pub async fn behind(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<u64> {
        let note = self.noted(scope, embedding).await?;
        let head = self.feed.head(scope).await?;
        let reached = note.and_then(|note| note.reached);
        // A mirror that is ahead is one of a database that was there before a restore.
        Ok(head - reached.filter(|reached| *reached <= head).unwrap_or(0))
    }

    /// Applies what is missing of an embedding space.
    pub async fn follow(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        let place = self.place(scope, embedding).await;
        let _only_one = place.lock().await;
        let note = self.noted(scope, embedding).await?;
        let head = self.feed.head(scope).await?;
        let mut reached = match note {
            None => self.begin(scope, embedding).await?,
            Some(MirrorNote {
                reached: Some(reached),
            }) if reached <= head => reached,
            Some(_) => self.begin_anew(scope, embedding).await?,
        };
        // Until a page without changes: what was forgotten while one was written has to go again.
        loop {
            let changes = self.feed.changes_in(scope, Some(embedding), reached, PAGE);
            let page = changes.await?;
            if page.reached == reached {
                return Ok(());
            }
            self.apply(scope, embedding, page.changes).await?;
            reached = page.reached;
            self.note(scope, embedding, Some(reached)).await?;
        }
    }

    /// Applies what is missing of each embedding space that the space is mirrored in, and removes
    /// what is of none that searches may use.
    pub async fn follow_mirrored(&self, scope: &Scope) -> Result<()> {
        let held = self.spaces.embeddings(scope).await?;
        for embedding in self.mirrored_in(scope).await? {
            if held.whole().any(|whole| *whole == embedding) {
                self.follow(scope, &embedding).await?;
            } else {
                self.remove(scope, &embedding).await?;
            }
        }
        self.delete(points::unnamed(scope)).await
    }

    /// Begins again from nothing.
    pub(crate) async fn restart(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        let place = self.place(scope, embedding).await;
        let _only_one = place.lock().await;
        self.begin_anew(scope, embedding).await.map(drop)
    }

    async fn remove(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        let place = self.place(scope, embedding).await;
        let _only_one = place.lock().await;
        self.note(scope, embedding, None).await?;
        self.delete(points::of_embedding(scope, embedding)).await?;
        let id = points::progress_id(scope, embedding).to_string();
        let delete = DeletePointsBuilder::new(self.collections.progress());
        let delete = delete.points(vec![PointId::from(id)]).wait(true);
        let deleted = self.client().delete_points(delete).await;
        deleted.map(drop).map_err(unavailable)
    }

    /// Noted before the first point: a forget asks whether there may be any.
    async fn begin(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<u64> {
        self.collections.ensure_progress().await?;
        self.delete(points::unnamed(scope)).await?;
        self.note(scope, embedding, Some(0)).await?;
        Ok(0)
    }

    /// A process that ends in between leaves a note of no change: the next one begins again, too.
    async fn begin_anew(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<u64> {
        self.collections.ensure_progress().await?;
        self.note(scope, embedding, None).await?;
        self.delete(points::of_embedding(scope, embedding)).await?;
        self.begin(scope, embedding).await
    }

    async fn place(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Place {
        let mut places = self.places.lock().await;
        let key = (scope.clone(), embedding.clone());
        places.entry(key).or_default().clone()
    }

    async fn noted(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<Option<MirrorNote>> {
        let progress = self.collections.progress();
        let id = points::progress_id(scope, embedding).to_string();
        let get = GetPointsBuilder::new(progress.clone(), vec![id.into()]);
        let points = match self.client().get_points(get.with_payload(true)).await {
            Ok(got) => got.result,
            Err(_) if !self.collections.exists(&progress).await? => Vec::new(),
            Err(error) => return Err(unavailable(error)),
        };
        Ok(points.first().map(|point| {
            let reached = point.payload.get(REACHED).and_then(|it| it.kind.as_ref());
            MirrorNote {
                reached: match reached {
                    Some(Kind::IntegerValue(reached)) => u64::try_from(*reached).ok(),
                    _ => None,
                },
            }
        }))
    }

    /// The embedding spaces that a space is mirrored in, whole or in part.
    async fn mirrored_in(&self, scope: &Scope) -> Result<Vec<EmbeddingSpace>> {
        let progress = self.collections.progress();
        if !self.collections.exists(&progress).await? {
            return Ok(Vec::new());
        }
        let scroll = ScrollPointsBuilder::new(progress)
            .filter(points::of_space(scope))
            .with_payload(true)
            .limit(NOTES);
        let page = self.client().scroll(scroll).await.map_err(unavailable)?;
        let names = page.result.iter().filter_map(|point| {
            match point.payload.get(NAME)?.kind.as_ref()? {
                Kind::StringValue(name) => Some(json(name)),
                _ => None,
            }
        });
        Ok(names.collect::<std::result::Result<_, _>>()?)
    }

    /// Notes how far the mirror of an embedding space is.
    async fn note(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        reached: Option<u64>,
    ) -> Result<()> {
        let mut payload = HashMap::from([
            (points::SPACE.to_owned(), Value::from(points::key(scope))),
            (NAME.to_owned(), Value::from(to_json(embedding))),
        ]);
        if let Some(reached) = reached {
            payload.insert(REACHED.to_owned(), Value::from(reached.cast_signed()));
        }
        let id = points::progress_id(scope, embedding).to_string();
        let point = PointStruct::new(id, vec![1.0], payload);
        self.upsert(self.collections.progress(), vec![point]).await
    }

    async fn apply(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        changes: Vec<Change>,
    ) -> Result<()> {
        let mut stored = HashMap::<usize, Vec<PointStruct>>::new();
        let mut forgotten = Vec::new();
        for change in changes {
            match change {
                Change::Stored(turn) => {
                    for (length, point) in points::of(scope, embedding, &turn) {
                        stored.entry(length).or_default().push(point);
                    }
                }
                Change::Forgotten(turn) => forgotten.push(turn),
                // The mirror finds turns.
                Change::Derived(_) | Change::Withdrawn(_) => {}
            }
        }
        for (length, points) in stored {
            self.collections.ensure(length).await?;
            self.upsert(self.collections.name(length), points).await?;
        }
        if forgotten.is_empty() {
            return Ok(());
        }
        self.delete(points::of_turns(scope, &forgotten)).await
    }

    /// Removes points, whatever their length.
    async fn delete(&self, which: Filter) -> Result<()> {
        for name in self.collections.names().await? {
            let delete = DeletePointsBuilder::new(name).points(which.clone());
            let deleted = self.client().delete_points(delete.wait(true)).await;
            deleted.map_err(unavailable)?;
        }
        Ok(())
    }

    async fn upsert(&self, name: String, points: Vec<PointStruct>) -> Result<()> {
        let upsert = UpsertPointsBuilder::new(name, points).wait(true);
        let upserted = self.client().upsert_points(upsert).await;
        upserted.map(drop).map_err(unavailable)
    }
}
