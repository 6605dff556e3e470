//! Collections: one for the vectors of each length, and one that says how far each space is mirrored. Made when they are first
//! needed.

use std::collections::HashSet;

use memfleet_ports::store::Result;
use qdrant_client::qdrant::{
    CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Datatype, Distance, FieldType,
    HnswConfigDiffBuilder, KeywordIndexParamsBuilder, VectorParamsBuilder,
};
use qdrant_client::{Qdrant, QdrantError};
use tokio::sync::Mutex;

use crate::failure::unavailable;
use crate::points::{SPACE, TURN};

/// Links of a vector within its space. Spaces are searched one by one, so links across them would be for nothing.
const LINKS: u64 = 16;

/// The collections of one prefix.
pub struct Collections {
    client: Qdrant,
    prefix: String,
    /// Lengths whose collection is known to be there.
    made: Mutex<HashSet<usize>>,
}

impl Collections {
    pub fn new(client: Qdrant, prefix: String) -> Self {
        Self {
            client,
            prefix,
            made: Mutex::default(),
        }
    }

    pub fn client(&self) -> &Qdrant {
        &self.client
    }

    /// Of vectors of this length.
    pub fn name(&self, length: usize) -> String {
        format!("{}_{length}", self.prefix)
    }

    /// Of the spaces' progress.
    pub fn progress(&self) -> String {
        format!("{}_progress", self.prefix)
    }

    /// Of vectors, all that exist.
    pub async fn names(&self) -> Result<Vec<String>> {
        let listed = self.client.list_collections().await.map_err(unavailable)?;
        let names = listed.collections.into_iter().map(|found| found.name);
        let ours = |name: &String| {
            let length = name.strip_prefix(&self.prefix);
            let length = length.and_then(|rest| rest.strip_prefix('_'));
            length.is_some_and(|length| length.parse::<usize>().is_ok())
        };
        Ok(names.filter(ours).collect())
    }

    /// Makes the collection of vectors of this length, unless it is there.
    pub async fn ensure(&self, length: usize) -> Result<()> {
        let mut made = self.made.lock().await;
        if made.contains(&length) {
            return Ok(());
        }
        let name = self.name(length);
        let vectors = VectorParamsBuilder::new(length as u64, Distance::Dot)
            // Exact for the bytes that our vectors have.
            .datatype(Datatype::Float16);
        let links = HnswConfigDiffBuilder::default().m(0).payload_m(LINKS);
        let create = CreateCollectionBuilder::new(&name)
            .vectors_config(vectors)
            .hnsw_config(links);
        self.create(&name, create).await?;
        let together = KeywordIndexParamsBuilder::default().is_tenant(true);
        let space = CreateFieldIndexCollectionBuilder::new(&name, SPACE, FieldType::Keyword)
            .field_index_params(together)
            .wait(true);
        let turn = CreateFieldIndexCollectionBuilder::new(&name, TURN, FieldType::Keyword);
        for index in [space, turn.wait(true)] {
            let made = self.client.create_field_index(index).await;
            made.map_err(unavailable)?;
        }
        made.insert(length);
        Ok(())
    }

    /// Makes the collection of the spaces' progress, unless it is there.
    pub async fn ensure_progress(&self) -> Result<()> {
        let name = self.progress();
        // It is asked by id; no vector means anything.
        let vectors = VectorParamsBuilder::new(1, Distance::Dot);
        let create = CreateCollectionBuilder::new(&name).vectors_config(vectors);
        self.create(&name, create).await
    }

    /// Another replica may do the same at this moment.
    async fn create(&self, name: &str, create: CreateCollectionBuilder) -> Result<()> {
        if self.exists(name).await? {
            return Ok(());
        }
        match self.client.create_collection(create).await {
            Ok(_) => Ok(()),
            Err(error) if self.exists(name).await? => {
                tracing::debug!(%error, name, "another process made the collection");
                Ok(())
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    pub async fn exists(&self, name: &str) -> Result<bool> {
        let exists: std::result::Result<bool, QdrantError> =
            self.client.collection_exists(name).await;
        exists.map_err(unavailable)
    }
}
