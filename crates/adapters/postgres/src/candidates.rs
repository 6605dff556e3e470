//! Searches inside the database, for spaces that a retriever does not hold in memory.

mod near;
mod words;

use std::collections::HashMap;

use async_trait::async_trait;
use memfleet_columns::{runs, space_key};
use memfleet_domain::Scope;
use memfleet_ports::candidates::{Among, Candidates, Extent, Near, TermPassages};
use memfleet_ports::feed::{Changes, IndexedPassage};
use memfleet_ports::store::Result;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::feed::{Depth, changes_after, load_passages};
use crate::scope;
use crate::store::PostgresStore;

#[async_trait]
impl Candidates for PostgresStore {
    async fn extent(&self, scope: &Scope) -> Result<Extent> {
        let extent = async {
            let mut read = self.read(&scope.tenant).await?;
            extent(&mut read, scope).await
        };
        self.ask("extent", extent).await
    }

    async fn outline_after(&self, scope: &Scope, after: u64, limit: u32) -> Result<Changes> {
        let changes = async {
            let mut read = self.read(&scope.tenant).await?;
            let (after, limit) = (after as i64, limit.max(1));
            changes_after(&mut read, scope, after, limit, Depth::Outline).await
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
        vector: &[i8],
        among: &Among,
        limit: u32,
    ) -> Result<Vec<Near>> {
        let nearest = async {
            let mut read = self.read(&scope.tenant).await?;
            let Some(space) = scope::find(&mut read, scope).await? else {
                return Ok(Vec::new());
            };
            let search = near::Search {
                tenant: scope.tenant.as_str(),
                space: space.id,
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
        numbers: &[u32],
    ) -> Result<Vec<Option<IndexedPassage>>> {
        let passages = async {
            let mut read = self.read(&scope.tenant).await?;
            passages(&mut read, scope, numbers).await
        };
        self.ask("passages", passages).await
    }
}

async fn extent(connection: &mut PgConnection, scope: &Scope) -> Outcome<Extent> {
    let row = sqlx::query(
        "SELECT p.next_passage, (SELECT count(*) FROM turns t WHERE t.tenant = $1 AND t.space = p.id AND t.embedding IS NULL)
         FROM spaces p WHERE p.tenant = $1 AND p.key = $2",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else {
        return Ok(Extent::default());
    };
    Ok(Extent {
        passages: row.try_get::<i64, _>(0)? as u32,
        without_vectors: row.try_get::<i64, _>(1)? as u64,
    })
}

async fn passages(
    connection: &mut PgConnection,
    scope: &Scope,
    numbers: &[u32],
) -> Outcome<Vec<Option<IndexedPassage>>> {
    let Some(space) = scope::find(connection, scope).await? else {
        return Ok(vec![None; numbers.len()]);
    };
    let known = numbers.iter().filter(|&&number| number < u32::MAX);
    let runs = runs(known.map(|&number| (number, 1)));
    let found: HashMap<u32, IndexedPassage> =
        load_passages(connection, scope.tenant.as_str(), space.id, &runs).await?;
    let passage = |number| found.get(number).cloned();
    Ok(numbers.iter().map(passage).collect())
}
