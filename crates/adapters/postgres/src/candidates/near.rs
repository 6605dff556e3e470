//! The passages nearest to a vector. Some thousands are compared one by one; of more, only the first of a space are, and the
//! others are found through the HNSW index, which is searched on until enough of them may be found.

use memfleet_columns::VectorSlot;
use memfleet_ports::candidates::{Among, Near};
use pgvector::HalfVector;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, PgConnection, Row};

use crate::failure::Outcome;
use crate::ledger::from_sentence;
use crate::rows::{from_u32, to_u32};

/// Passages with lower numbers are in no HNSW index: the migration says the same.
const COMPARED: u32 = 16_384;
/// What the search of the index keeps in view, and how many rows it looks at before it gives up (docs/benchmarks.md).
const VIEW: &str = "400";
const MOST: &str = "40000";

/// What is asked.
pub struct Search<'s> {
    pub tenant: &'s str,
    pub space: i64,
    pub slot: VectorSlot,
    pub vector: &'s [i8],
    pub among: &'s Among,
    pub limit: u32,
}

impl Search<'_> {
    /// The table of the vectors.
    fn table(&self) -> &'static str {
        match self.slot {
            VectorSlot::First => "passages",
            VectorSlot::Second => "second_vectors",
        }
    }

    /// `scans_on`: the extension searches an index on until it has enough, so that it may be asked.
    pub async fn run(&self, connection: &mut PgConnection, scans_on: bool) -> Outcome<Vec<Near>> {
        let Some(vector) = from_sentence(self.vector).filter(|_| self.limit > 0) else {
            return Ok(Vec::new());
        };
        if self.among.len() <= COMPARED as usize {
            return self.compare_these(connection, &vector).await;
        }
        if scans_on {
            let found = self.ask_index(connection, &vector).await?;
            if found.len() == self.limit as usize {
                return Ok(found);
            }
        }
        self.compare_all(connection, &vector).await
    }

    /// Each by its number.
    async fn compare_these(
        &self,
        connection: &mut PgConnection,
        vector: &HalfVector,
    ) -> Outcome<Vec<Near>> {
        let table = self.table();
        let statement = format!(
            "SELECT g.passage, -(g.sentence <#> $3) FROM unnest($4::integer[]) AS asked(passage)
             JOIN {table} g ON g.tenant = $1 AND g.space = $2 AND g.passage = asked.passage
             WHERE vector_dims(g.sentence) = $5 ORDER BY g.sentence <#> $3, g.passage LIMIT $6"
        );
        let rows = sqlx::query(AssertSqlSafe(statement))
            .bind(self.tenant)
            .bind(self.space)
            .bind(vector)
            .bind(from_u32(self.among.iter()))
            .bind(self.vector.len() as i32)
            .bind(i64::from(self.limit))
            .fetch_all(connection)
            .await?;
        near(&rows)
    }

    /// All of the space.
    async fn compare_all(
        &self,
        connection: &mut PgConnection,
        vector: &HalfVector,
    ) -> Outcome<Vec<Near>> {
        let statement = format!("{} LIMIT $4", self.compared("true"));
        self.fetch(connection, vector, statement).await
    }

    async fn ask_index(
        &self,
        connection: &mut PgConnection,
        vector: &HalfVector,
    ) -> Outcome<Vec<Near>> {
        sqlx::query(
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true),
                 set_config('hnsw.max_scan_tuples', $2, true)",
        )
        .bind(VIEW)
        .bind(MOST)
        .execute(&mut *connection)
        .await?;
        let (length, table) = (self.vector.len(), self.table());
        let distance = format!("sentence::halfvec({length}) <#> $3::halfvec({length})");
        let first = self.compared(&format!("passage < {COMPARED}"));
        let statement = format!(
            "({first} LIMIT $4) UNION ALL (
                 SELECT passage, -({distance}) AS product FROM {table}
                 WHERE tenant = $1 AND space = $2 AND passage >= {COMPARED} AND vector_dims(sentence) = {length} AND {AMONG}
                 ORDER BY {distance} LIMIT $4)
             ORDER BY product DESC, passage LIMIT $4"
        );
        self.fetch(connection, vector, statement).await
    }

    /// Without the cast no index is asked.
    fn compared(&self, which: &str) -> String {
        let (length, table) = (self.vector.len(), self.table());
        format!(
            "SELECT passage, -(sentence <#> $3) AS product FROM {table}
             WHERE tenant = $1 AND space = $2 AND {which} AND vector_dims(sentence) = {length} AND {AMONG}
             ORDER BY sentence <#> $3, passage"
        )
    }

    async fn fetch(
        &self,
        connection: &mut PgConnection,
        vector: &HalfVector,
        statement: String,
    ) -> Outcome<Vec<Near>> {
        let bytes = self.among.bytes();
        // Planned for these numbers: a plan for any would be a guess.
        let rows = sqlx::query(AssertSqlSafe(statement))
            .persistent(false)
            .bind(self.tenant)
            .bind(self.space)
            .bind(vector)
            .bind(i64::from(self.limit))
            .bind(bytes)
            .bind(bytes.len() as i32 * 8)
            .fetch_all(connection)
            .await?;
        near(&rows)
    }
}

/// Whether a passage is among those that are asked for; the order of a `CASE` is kept.
const AMONG: &str = "CASE WHEN passage < $6 THEN get_bit($5, passage) = 1 ELSE false END";

fn near(rows: &[PgRow]) -> Outcome<Vec<Near>> {
    let near = |row: &PgRow| Ok((to_u32(row.try_get(0)?), row.try_get::<f64, _>(1)? as f32));
    rows.iter().map(near).collect()
}
