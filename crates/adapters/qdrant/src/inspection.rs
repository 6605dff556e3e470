//! Holds the mirror of a space against the store, and makes it anew.

use std::collections::HashSet;

use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::feed::Change;
use memfleet_ports::store::Result;
use qdrant_client::qdrant::{PointId, ScrollPointsBuilder};

use crate::failure::unavailable;
use crate::mirror::Mirror;
use crate::points;

const PAGE: u32 = 1_000;

/// What a mirror has and lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Findings {
    /// Passages of the store that have a vector.
    pub stored: usize,
    /// Those of them that the mirror lacks.
    pub missing: usize,
    /// Points whose passage the store does not have.
    pub extra: usize,
}

impl Mirror {
    /// Compares passages with points of an embedding space. Passages that are written meanwhile may
    /// be counted as missing.
    pub async fn verify(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<Findings> {
        let stored = self.stored(scope, embedding).await?;
        let mirrored = self.mirrored(scope, embedding).await?;
        Ok(Findings {
            stored: stored.len(),
            missing: stored.difference(&mirrored).count(),
            extra: mirrored.difference(&stored).count(),
        })
    }

    /// Removes the mirror of a space in an embedding space and makes it again; searches ask the
    /// store meanwhile.
    pub async fn rebuild(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<()> {
        self.restart(scope, embedding).await?;
        self.follow(scope, embedding).await?;
        self.follow_mirrored(scope).await
    }

    async fn stored(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<HashSet<u32>> {
        let (mut stored, mut reached) = (HashSet::new(), 0);
        loop {
            let changes = self.feed.changes_in(scope, Some(embedding), reached, PAGE);
            let page = changes.await?;
            reached = page.reached;
            for change in page.changes {
                let Change::Stored(turn) = change else {
                    continue;
                };
                let numbered = (turn.first_passage..).zip(turn.passages);
                let with_vector = numbered.filter(|(_, passage)| passage.sentence.is_some());
                stored.extend(with_vector.map(|(number, _)| number));
            }
            if !page.more {
                return Ok(stored);
            }
        }
    }

    async fn mirrored(&self, scope: &Scope, embedding: &EmbeddingSpace) -> Result<HashSet<u32>> {
        let mut mirrored = HashSet::new();
        for name in self.collections.names().await? {
            let mut next: Option<PointId> = None;
            loop {
                let scroll = ScrollPointsBuilder::new(&name)
                    .filter(points::of_embedding(scope, embedding))
                    .with_payload(true)
                    .limit(PAGE);
                let scroll = match next {
                    Some(next) => scroll.offset(next),
                    None => scroll,
                };
                let page = self.client().scroll(scroll).await.map_err(unavailable)?;
                let payloads = page.result.iter().map(|point| &point.payload);
                let passages =
                    payloads.map(|payload| points::passage(payload.get(points::PASSAGE)));
                mirrored.extend(passages.flatten());
                next = page.next_page_offset;
                if next.is_none() {
                    break;
                }
            }
        }
        Ok(mirrored)
    }
}
