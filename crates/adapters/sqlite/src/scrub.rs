//! Making sure that forgotten text is in no file of the store.
//!
//! `secure_delete` zeroes a deleted cell, but where SQLite rebuilds a page of the b-tree (`rebuildPage`), old copies of cells
//! stay in the unused middle of the page, and a later delete does not find them: after random deletes hundreds of fragments
//! can be read in the raw file. Only a rewrite removes them, so a removal is followed by `VACUUM` (the time of copying the
//! file twice, free disk of twice its size while it lasts; writers wait, readers do not) and an emptied WAL. One scrub
//! serves all the removals before it.

use std::time::Duration;

use memfleet_ports::store::StoreError;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

/// How long readers of old snapshots may keep the WAL from being emptied.
const PATIENCE: Duration = Duration::from_secs(10);

/// Notes in the erasing transaction that a scrub is due: it is made up for after a crash.
pub async fn due(connection: &mut SqliteConnection) -> Outcome<()> {
    sqlx::query("INSERT OR IGNORE INTO unscrubbed (id) VALUES (1)")
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether a scrub is due.
pub async fn is_due(connection: &mut SqliteConnection) -> Outcome<bool> {
    let due = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM unscrubbed)");
    Ok(due.fetch_one(connection).await?)
}

/// Scrubs if it is due. It goes on when its caller leaves: a rewrite that was begun runs to its end in SQLite, and must keep
/// the writers' turn as long.
pub async fn finish(store: &SqliteStore) -> Outcome<()> {
    // Asked on a reader first: what is not due takes no writer's turn.
    if !is_due(&mut *store.read().await?).await? {
        return Ok(());
    }
    let store = store.clone();
    let rewriting = tokio::spawn(async move { rewrite(&store).await });
    rewriting.await.unwrap_or_else(|error| {
        let cause = format!("the scrub stopped: {error}");
        Err(Failure(StoreError::Unexpected(cause)))
    })
}

async fn rewrite(store: &SqliteStore) -> Outcome<()> {
    let _turn = store.shared.writers.turn.lock().await;
    let mut connection = options(store).connect().await?;
    let outcome = scrub(&mut connection).await;
    connection.close().await?;
    outcome
}

/// Pages of the copy go to a temporary file and not to memory, which would take as much as the database is large. The file
/// lies beside the database: the system's folder for temporary files may be small, in memory, or not as private.
///
/// The pragma sets the folder for the whole process. It is safe beside other threads, since SQLite changes and reads it
/// under a lock of its own (an environment variable would have to be set before any thread starts). Only scrubs make
/// temporary files; of two stores in one process the last one to scrub decides, and a folder that is gone is passed over.
fn options(store: &SqliteStore) -> SqliteConnectOptions {
    let options = store.connection().pragma("temp_store", "FILE");
    let folder = match store.shared.path.parent() {
        None => Some("."),
        // A bare name is in the working directory; an empty folder would mean the system's.
        Some(folder) if folder.as_os_str().is_empty() => Some("."),
        Some(folder) => folder.to_str(),
    };
    match folder {
        Some(folder) => {
            let quoted = format!("'{}'", folder.replace('\'', "''"));
            options.pragma("temp_store_directory", quoted)
        }
        // SQLite takes no name that is not Unicode.
        None => options,
    }
}

async fn scrub(connection: &mut SqliteConnection) -> Outcome<()> {
    // Another one may have come first.
    if !is_due(connection).await? {
        return Ok(());
    }
    sqlx::query("VACUUM").execute(&mut *connection).await?;
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
                "readers keep the write-ahead log from being emptied: the turns are gone, but their text may still be in the file, which is tried again in the background".into(),
            )));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
