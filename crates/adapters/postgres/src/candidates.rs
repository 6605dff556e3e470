//! Searches inside the database, for spaces that a retriever does not hold in memory.

mod near;
mod words;

use std::collections::HashMap;

use async_trait::async_trait;
use memfleet_columns::{VectorSlot, runs};
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::candidates::{Among, Candidates, Extent, Near, TermPassages};
use memfleet_ports::feed::{Changes, IndexedPassage};
use memfleet_ports::store::Result;
use sqlx::PgConnection;

use crate::failure::Outcome;
use crate::feed::{Depth, changes_after, load_passages};
use crate::ledger::slot;
use crate::scope;
use crate::store::PostgresStore;

#[async_trait]
impl Candidates for PostgresStore {
    async fn extent(&self, scope: &Scope, embedding: Option<&EmbeddingSpace>) -> Result<Extent> {
        let extent = async {
            let mut read = self.read(&scope.tenant).await?;
            extent(&mut read, scope, embedding).await
        };
        self.ask("extent", extent).await
    }

    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        let changes = async {
            let mut read = self.read(&scope.tenant).await?;
            let (after, limit) = (after as i64, limit.max(1));
            changes_after(&mut read, scope, None, after, limit, Depth::Outline).await
        };
        self.ask("outline_after", changes).await
    }

    async fn postings(&self, scope: &Scope, terms: &[String]) -> Result<Vec<TermPassages>> {
        let postings = async {
            let mut read = self.read(&scope.tenant).await?;
            words::postings(&mut read, scope, terms).await
        };
        self.ask("postings", postings).await
    }

    async fn nearest(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>> {
        let nearest = async {
            let mut read = self.read(&scope.tenant).await?;
            let space = scope::find(&mut read, scope).await?;
            let found = space.and_then(|space| Some((space, slot(space, embedding)?)));
            let Some((space, slot)) = found else {
                return Ok(Vec::new());
            };
            let search = near::Search {
                tenant: scope.tenant.as_str(),
                space: space.id,
                slot,
                vector,
                among,
                limit,
            };
            search.run(&mut read, self.scans_on()).await
        };
        self.ask("nearest", nearest).await
    }

    async fn passages(
        &self,
        scope: &Scope,
        embedding: Option<&EmbeddingSpace>,
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>> {
        let passages = async {
            let mut read = self.read(&scope.tenant).await?;
            passages(&mut read, scope, embedding, numbers).await
        };
        self.ask("passages", passages).await
    }
}

async fn extent(
    connection: &mut PgConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
) -> Outcome<Extent> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(Extent::default());
    };
    let slot = slot(space, embedding);
    let without_vectors = sqlx::query_scalar(match slot {
        // Turns say whether they have vectors in the place that was the only one.
        Some(VectorSlot::First) if space.slots.second.is_none() => {
            "SELECT count(*) FROM turns t WHERE t.tenant = $1 AND t.space = $2 AND t.embedding IS NULL"
        }
        Some(VectorSlot::First) => {
            "SELECT count(*) FROM turns t JOIN passages g ON g.tenant = $1 AND g.space = $2 AND g.passage = t.first_passage
             JOIN spaces p ON p.tenant = $1 AND p.id = $2
             WHERE t.tenant = $1 AND t.space = $2 AND t.change > p.embedded AND g.sentence IS NULL"
        }
        Some(VectorSlot::Second) => {
            "SELECT count(*) FROM turns t JOIN spaces p ON p.tenant = t.tenant AND p.id = t.space
             WHERE t.tenant = $1 AND t.space = $2 AND t.change > p.second_embedded AND NOT EXISTS (
                 SELECT FROM second_vectors v WHERE v.tenant = $1 AND v.space = $2 AND v.passage = t.first_passage)"
        }
        None => {
            "SELECT coalesce(sum(s.turns), 0)::bigint FROM sessions s WHERE s.tenant = $1 AND s.space = $2"
        }
    });
    let without_vectors: i64 = without_vectors
        .bind(scope.tenant.as_str())
        .bind(space.id)
        .fetch_one(connection)
        .await?;
    Ok(Extent {
        passages: space.next_passage,
        without_vectors: without_vectors as u64,
    })
}

async fn passages(
    connection: &mut PgConnection,
    scope: &Scope,
    embedding: Option<&EmbeddingSpace>,
    numbers: &[u32],
) -> Outcome<Vec<Option<IndexedPassage>>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(vec![None; numbers.len()]);
    };
    let known = numbers.iter().filter(|&&number| number < u32::MAX);
    let runs = runs(known.map(|&number| (number, 1)));
    let found: HashMap<u32, IndexedPassage> = load_passages(
        connection,
        scope.tenant.as_str(),
        space.id,
        slot(space, embedding),
        &runs,
    )
    .await?;
    let passage = |number| found.get(number).cloned();
    Ok(numbers.iter().map(passage).collect())
}
