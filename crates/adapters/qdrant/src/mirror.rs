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
use memfleet_ports::store::Result;
use qdrant_client::Qdrant;
use qdrant_client::qdrant::{
    DeletePointsBuilder, Filter, GetPointsBuilder, PointStruct, UpsertPointsBuilder, Value,
    value::Kind,
};
use tokio::sync::Mutex;

use crate::collections::Collections;
use crate::failure::unavailable;
use crate::points;

/// Changes that are applied at a time.
const PAGE: u32 = 500;
const REACHED: &str = "reached";
const EMBEDDING: &str = "embedding";

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

/// How far a space is mirrored, and the embedding space of its points: of one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MirrorNote {
    reached: u64,
    pub(crate) embedding: EmbeddingSpace,
}

/// The note of a space, as this process knows it. Held while it is followed.
type Place = Arc<Mutex<Option<MirrorNote>>>;

/// The mirror of a store.
pub struct Mirror {
    pub(crate) collections: Collections,
    pub(crate) feed: Arc<dyn IndexFeed>,
    places: Mutex<HashMap<Scope, Place>>,
}

impl Mirror {
    /// A mirror of what the feed tells. No call is made yet.
    pub fn new(feed: Arc<dyn IndexFeed>, options: &Options) -> Result<Self> {
        let client = Qdrant::from_url(&options.url)
            .api_key(options.api_key.clone())
            .timeout(options.timeout)
            .connect_timeout(options.timeout)
            .skip_compatibility_check()
            .build()
            .map_err(unavailable)?;
        Ok(Self {
            collections: Collections::new(client, options.prefix.clone()),
            feed,
            places: Mutex::default(),
        })
    }

    pub(crate) fn client(&self) -> &Qdrant {
        self.collections.client()
    }

    /// How many changes of the space are not in the mirror of this embedding space. Nothing is
    /// known to be there of a space that was never followed, or was for another one.
    pub async fn behind(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<u64> {
        let place = self.place(scope).await;
        let mut place = place.lock().await;
        let known = self.known(scope, &mut place).await?;
        let head = self.feed.head(scope).await?;
        // A mirror that is ahead is one of a database that was there before a restore.
        let known = known.filter(|note| note.reached <= head && note.embedding == *embedding);
        Ok(head - known.map_or(0, |note| note.reached))
    }

    /// Applies what is missing. Points of another embedding space go first.
    pub async fn follow(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        let place = self.place(scope).await;
        let mut place = place.lock().await;
        let known = self.known(scope, &mut place).await?;
        let head = self.feed.head(scope).await?;
        let mut note = match known {
            Some(note) if note.reached <= head && note.embedding == *embedding => note,
            Some(_) => self.begin_anew(scope, embedding, &mut place).await?,
            None => self.begin(scope, embedding, &mut place).await?,
        };
        // Until a page without changes: what was forgotten while one was written has to go again.
        loop {
            let changes = self
                .feed
                .changes_in(scope, Some(embedding), note.reached, PAGE);
            let page = changes.await?;
            if page.reached == note.reached {
                return Ok(());
            }
            self.apply(scope, page.changes).await?;
            note.reached = page.reached;
            self.note(scope, &note).await?;
            *place = Some(note.clone());
        }
    }

    /// Applies what is missing, if the space is mirrored at all.
    pub async fn follow_mirrored(&self, scope: &Scope) -> Result<()> {
        let place = self.place(scope).await;
        let known = self.known(scope, &mut *place.lock().await).await?;
        match known {
            Some(note) => self.follow(scope, &note.embedding).await,
            None => Ok(()),
        }
    }

    /// Begins again from nothing.
    pub(crate) async fn restart(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        let place = self.place(scope).await;
        let mut place = place.lock().await;
        self.begin_anew(scope, embedding, &mut place)
            .await
            .map(drop)
    }

    /// The note of a space; none where it was never followed.
    pub(crate) async fn noted_of(&self, scope: &Scope) -> Result<Option<MirrorNote>> {
        let place = self.place(scope).await;
        let mut place = place.lock().await;
        self.known(scope, &mut place).await
    }

    /// Noted before the first point: a forget asks whether there may be any.
    async fn begin(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        place: &mut Option<MirrorNote>,
    ) -> Result<MirrorNote> {
        self.collections.ensure_progress().await?;
        let note = MirrorNote {
            reached: 0,
            embedding: embedding.clone(),
        };
        self.note(scope, &note).await?;
        *place = Some(note.clone());
        Ok(note)
    }

    async fn begin_anew(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        place: &mut Option<MirrorNote>,
    ) -> Result<MirrorNote> {
        // Until the others are gone nothing says that this is a mirror.
        *place = None;
        self.delete(points::of_space(scope)).await?;
        self.begin(scope, embedding, place).await
    }

    /// What is known of a space is read anew the next time: the server does not have what it should.
    pub(crate) async fn doubt(&self, scope: &Scope) {
        *self.place(scope).await.lock().await = None;
    }

    async fn place(&self, scope: &Scope) -> Place {
        let mut places = self.places.lock().await;
        places.entry(scope.clone()).or_default().clone()
    }

    /// What is noted is read once; after that this process knows.
    async fn known(
        &self,
        scope: &Scope,
        place: &mut Option<MirrorNote>,
    ) -> Result<Option<MirrorNote>> {
        if place.is_none()
            && self
                .collections
                .exists(&self.collections.progress())
                .await?
        {
            *place = self.noted(scope).await?;
        }
        Ok(place.clone())
    }

    async fn noted(&self, scope: &Scope) -> Result<Option<MirrorNote>> {
        let id = points::progress_id(scope).to_string();
        let get = GetPointsBuilder::new(self.collections.progress(), vec![id.into()]);
        let got = self.client().get_points(get.with_payload(true)).await;
        let points = got.map_err(unavailable)?.result;
        let Some(point) = points.first() else {
            return Ok(None);
        };
        let reached = match point.payload.get(REACHED).and_then(|it| it.kind.as_ref()) {
            Some(Kind::IntegerValue(reached)) => u64::try_from(*reached).ok(),
            _ => None,
        };
        let embedding = match point.payload.get(EMBEDDING).and_then(|it| it.kind.as_ref()) {
            Some(Kind::StringValue(embedding)) => json(embedding)?,
            // Builds of before did not say it: the mirror is made anew.
            _ => EmbeddingSpace::default(),
        };
        Ok(reached.map(|reached| MirrorNote { reached, embedding }))
    }

    async fn note(&self, scope: &Scope, note: &MirrorNote) -> Result<()> {
        let payload = [
            (REACHED, Value::from(note.reached.cast_signed())),
            (EMBEDDING, Value::from(to_json(&note.embedding))),
        ];
        let id = points::progress_id(scope).to_string();
        let point = PointStruct::new(id, vec![1.0], payload);
        self.upsert(self.collections.progress(), vec![point]).await
    }

    async fn apply(&self, scope: &Scope, changes: Vec<Change>) -> Result<()> {
        let mut stored = HashMap::<usize, Vec<PointStruct>>::new();
        let mut forgotten = Vec::new();
        for change in changes {
            match change {
                Change::Stored(turn) => {
                    for (length, point) in points::of(scope, &turn) {
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
