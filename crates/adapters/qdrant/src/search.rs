//! The store's searches, with the mirror asked for what is near a vector where many passages may be.

use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::candidates::{Among, Candidates, Extent, Near, TermPassages};
use memfleet_ports::feed::{Changes, IndexedPassage};
use memfleet_ports::store::Result;
use qdrant_client::qdrant::{QueryPointsBuilder, ScoredPoint, SearchParamsBuilder};

use crate::failure::unavailable;
use crate::mirror::Mirror;
use crate::points;

/// A search brings the mirror up to date itself when no more is missing; otherwise that goes on behind it.
const AT_ONCE: u64 = 500;
/// What a search of the index keeps in view.
const VIEW: u64 = 200;
/// Points that are asked for before the store is asked instead, because too few of them are among those wanted.
const MOST: u64 = 8_000;

/// A store whose vectors are mirrored.
pub struct MirroredCandidates {
    store: Arc<dyn Candidates>,
    mirror: Arc<Mirror>,
    compared: usize,
}

impl MirroredCandidates {
    /// `compared`: see [`crate::Options`].
    pub fn new(store: Arc<dyn Candidates>, mirror: Arc<Mirror>, compared: usize) -> Self {
        Self {
            store,
            mirror,
            compared,
        }
    }

    /// `None` while the mirror has not what the store has, or too little of it is wanted.
    async fn in_mirror(
        &self,
        scope: &Scope,
        embedding: &EmbeddingSpace,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Option<Vec<Near>>> {
        match self.mirror.behind(scope, embedding).await? {
            0 => {}
            1..=AT_ONCE => self.mirror.follow(scope, embedding).await?,
            _ => {
                self.follow_behind(scope, embedding);
                return Ok(None);
            }
        }
        let name = self.mirror.collections.name(vector.len());
        if !self.mirror.collections.exists(&name).await? {
            return Ok(None);
        }
        let mut asked = u64::from(limit).max(1) * 2;
        while asked <= MOST {
            let (found, all) = self.ask(&name, (scope, embedding), vector, asked).await?;
            let wanted = found.iter().filter_map(points::near);
            let wanted = wanted.filter(|(passage, _)| among.contains(*passage));
            let wanted = wanted.take(limit as usize).collect::<Vec<_>>();
            if wanted.len() == limit as usize || all {
                return Ok(Some(wanted));
            }
            asked *= 4;
        }
        Ok(None)
    }

    /// The nearest points of the space in an embedding space, and whether these are all there are.
    async fn ask(
        &self,
        name: &str,
        (scope, embedding): (&Scope, &EmbeddingSpace),
        vector: &[i8],
        limit: u64,
    ) -> Result<(Vec<ScoredPoint>, bool)> {
        let vector: Vec<f32> = vector.iter().map(|&part| f32::from(part)).collect();
        let query = QueryPointsBuilder::new(name)
            .query(vector)
            .filter(points::of_embedding(scope, embedding))
            .params(SearchParamsBuilder::default().hnsw_ef(VIEW.max(limit)))
            .with_payload(true)
            .limit(limit);
        let answer = self.mirror.client().query(query).await;
        let found = answer.map_err(unavailable)?.result;
        let all = (found.len() as u64) < limit;
        Ok((found, all))
    }

    /// A space that is followed already waits for that.
    fn follow_behind(&self, scope: &Scope, embedding: &EmbeddingSpace) {
        let (mirror, scope, embedding) = (self.mirror.clone(), scope.clone(), embedding.clone());
        tokio::spawn(async move {
            if let Err(error) = mirror.follow(&scope, &embedding).await {
                tracing::warn!(%error, space = %scope.space, "the vectors of a space were not mirrored");
            }
        });
    }
}

#[async_trait]
impl Candidates for MirroredCandidates {
    async fn extent(&self, scope: &Scope, embedding: Option<&EmbeddingSpace>) -> Result<Extent> {
        self.store.extent(scope, embedding).await
    }

    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        self.store.outline_after(scope, after, limit).await
    }

    async fn postings(&self, scope: &Scope, terms: &[String]) -> Result<Vec<TermPassages>> {
        self.store.postings(scope, terms).await
    }

    async fn nearest(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>> {
        if let Some(embedding) = embedding
            && limit > 0
            && among.len() > self.compared
        {
            let found = self.in_mirror(scope, embedding, vector, among, limit);
            match found.await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "the mirror of vectors was not asked: the store answers");
                }
            }
        }
        self.store
            .nearest(scope, embedding, vector, among, limit)
            .await
    }

    async fn passages(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>> {
        self.store.passages(scope, embedding, numbers).await
    }
}
