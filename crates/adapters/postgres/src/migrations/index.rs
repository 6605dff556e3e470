//! `CREATE INDEX CONCURRENTLY`, on partitioned tables too, where PostgreSQL has no such command:
//! the index of each partition is made by itself and attached to one of the whole table, which is
//! valid as soon as all are.

use sqlx::{PgConnection, Row};

use super::{Step, attempt};
use crate::failure::Outcome;

/// An index to make.
#[derive(Debug, PartialEq, Eq)]
pub struct ConcurrentIndex<'a> {
    name: &'a str,
    table: &'a str,
    /// Columns and condition.
    of: &'a str,
}

impl<'a> ConcurrentIndex<'a> {
    /// The index of a step that makes one.
    pub fn read(step: &'a str) -> Option<Self> {
        let mut lines = step.lines().skip_while(|line| line.starts_with("--"));
        let statement = lines.next().filter(|_| lines.next().is_none())?;
        let rest = statement.strip_prefix("CREATE INDEX CONCURRENTLY ")?;
        let (name, rest) = rest.split_once(" ON ")?;
        let (table, of) = rest.trim_end_matches(';').split_once(' ')?;
        Some(Self { name, table, of })
    }

    /// Makes it, or what a crash left of it undone. Does nothing where it is there.
    pub async fn build(&self, connection: &mut PgConnection) -> Outcome<()> {
        let Self { name, table, of } = self;
        if is_valid(connection, name).await? {
            return Ok(());
        }
        let partitions = partitions(connection, table).await?;
        if partitions.is_empty() {
            return self.replace(connection, name, table).await;
        }
        let whole = format!("CREATE INDEX IF NOT EXISTS {name} ON ONLY {table} {of}");
        attempt(connection, &Step::Statement(&whole)).await?;
        let suffix = name.strip_prefix(table).unwrap_or(name);
        for partition in partitions {
            let part = format!("{partition}{suffix}");
            // A valid one stays: the crash was before it was attached.
            if !is_valid(connection, &part).await? {
                self.replace(connection, &part, &partition).await?;
            }
            let attached = format!("ALTER INDEX {name} ATTACH PARTITION {part}");
            attempt(connection, &Step::Statement(&attached)).await?;
        }
        Ok(())
    }

    /// An index that broke off is there and is not used.
    async fn replace(&self, connection: &mut PgConnection, name: &str, table: &str) -> Outcome<()> {
        let dropped = format!("DROP INDEX CONCURRENTLY IF EXISTS {name}");
        attempt(connection, &Step::Statement(&dropped)).await?;
        let made = format!("CREATE INDEX CONCURRENTLY {name} ON {table} {}", self.of);
        attempt(connection, &Step::Statement(&made)).await
    }
}

async fn is_valid(connection: &mut PgConnection, index: &str) -> Outcome<bool> {
    let valid = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('memfleet.' || $1) AND indisvalid)",
    );
    Ok(valid.bind(index).fetch_one(connection).await?)
}

async fn partitions(connection: &mut PgConnection, table: &str) -> Outcome<Vec<String>> {
    let rows = sqlx::query(
        "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
         WHERE i.inhparent = ('memfleet.' || $1)::regclass ORDER BY c.relname",
    );
    let rows = rows.bind(table).fetch_all(connection).await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_makes_an_index_is_read() {
        let index = ConcurrentIndex {
            name: "turns_by_time",
            table: "turns",
            of: "(tenant, space) WHERE a IS NULL",
        };
        let step = "-- By time.\nCREATE INDEX CONCURRENTLY turns_by_time ON turns (tenant, space) WHERE a IS NULL;";
        assert_eq!(ConcurrentIndex::read(step), Some(index));
        assert_eq!(ConcurrentIndex::read("DO $$ BEGIN END $$;"), None);
    }
}
