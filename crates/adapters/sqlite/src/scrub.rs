//! Making sure that forgotten text is in no file of the store.
//!
//! `secure_delete` zeroes a deleted cell, a freed page and an overflow page in place. One thing it does not reach: where
//! SQLite rebuilds a page of a b-tree, old copies of cells stay in the unused middle of the page, and a later delete does
//! not find them. A scrub looks for such pages on a snapshot, without a lock, zeroes their middles in short write
//! transactions (through `sqlite_dbpage`, so that log and caches know of it) and empties the write-ahead log. A forget that
//! was committed when it began is served by it. What a page that is clean holds of live rows only is rebuilt into pages
//! that hold nothing else, so no forgotten text comes back into a middle.

use std::ops::Range;
use std::time::Duration;

use futures::TryStreamExt;
use memfleet_ports::store::StoreError;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::time::{Instant, sleep};

use crate::failure::{Failure, Outcome};
use crate::store::SqliteStore;

/// How long readers of old snapshots may keep the WAL from being emptied.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longest pause between two scrubs.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Pages of 16 KiB that one write transaction zeroes.
const STRETCH: usize = 32;

/// Notes in the erasing transaction that a scrub is due: it is made up for after a crash.
pub async fn due(connection: &mut SqliteConnection) -> Outcome<()> {
    sqlx::query("INSERT INTO unscrubbed DEFAULT VALUES")
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether a scrub is due.
pub async fn is_due(connection: &mut SqliteConnection) -> Outcome<bool> {
    Ok(latest(connection).await?.is_some())
}

/// The last of the removals that wait for a scrub.
async fn latest(connection: &mut SqliteConnection) -> Outcome<Option<i64>> {
    let latest = sqlx::query_scalar("SELECT max(id) FROM unscrubbed");
    Ok(latest.fetch_one(connection).await?)
}

/// Scrubs if it is due. It goes on when its caller leaves.
pub async fn finish(store: &SqliteStore) -> Outcome<()> {
    if !is_due(&mut *store.read().await?).await? {
        return Ok(());
    }
    let store = store.clone();
    let scrubbing = tokio::spawn(async move { scrub(&store).await });
    scrubbing.await.unwrap_or_else(|error| {
        let cause = format!("the scrub stopped: {error}");
        Err(Failure(StoreError::Unexpected(cause)))
    })
}

/// One at a time. Those that waited find what they noted done, unless they noted it while the last one ran.
async fn scrub(store: &SqliteStore) -> Outcome<()> {
    let alone = store.shared.scrubbing.clone().lock_owned().await;
    let begun = Instant::now();
    let mut connection = store.connection().connect().await?;
    let Some(last) = latest(&mut connection).await? else {
        return Ok(());
    };
    let unclean = unclean(&mut connection).await?;
    for pages in unclean.chunks(STRETCH) {
        clean(store, pages).await?;
    }
    empty_wal(store, &mut connection).await?;
    connection.close().await?;
    let mut write = store.write_as_worker().await?;
    sqlx::query("DELETE FROM unscrubbed WHERE id <= ?")
        .bind(last)
        .execute(&mut *write)
        .await?;
    write.commit().await?;
    // Writers have the file to themselves for as long as the scrub took; removals that come meanwhile
    // share the next one.
    let pause = begun.elapsed().min(LONGEST_PAUSE);
    tokio::spawn(async move {
        sleep(pause).await;
        drop(alone);
    });
    Ok(())
}

/// The pages that hold something between what is in use of them.
async fn unclean(connection: &mut SqliteConnection) -> Outcome<Vec<u32>> {
    let mut unclean = Vec::new();
    let mut pages = sqlx::query("SELECT pgno, data FROM sqlite_dbpage").fetch(connection);
    while let Some(page) = pages.try_next().await? {
        let (number, bytes): (u32, &[u8]) = (page.try_get(0)?, page.try_get(1)?);
        if is_unclean(number, bytes) {
            unclean.push(number);
        }
    }
    Ok(unclean)
}

/// Zeroes what is not in use of these pages, in one transaction.
async fn clean(store: &SqliteStore, pages: &[u32]) -> Outcome<()> {
    let mut write = store.write_as_worker().await?;
    for &number in pages {
        let page: Option<Vec<u8>> =
            sqlx::query_scalar("SELECT data FROM sqlite_dbpage WHERE pgno = ?")
                .bind(number)
                .fetch_optional(&mut *write)
                .await?;
        // It may have been freed, or rebuilt, since it was looked at.
        let Some(mut page) = page.filter(|page| is_unclean(number, page)) else {
            continue;
        };
        if let Some(unused) = unused(number, &page) {
            page[unused].fill(0);
        }
        sqlx::query("UPDATE sqlite_dbpage SET data = ? WHERE pgno = ?")
            .bind(page)
            .bind(number)
            .execute(&mut *write)
            .await?;
    }
    write.commit().await
}

fn is_unclean(number: u32, page: &[u8]) -> bool {
    unused(number, page).is_some_and(|unused| page[unused].iter().any(|byte| *byte != 0))
}

/// The middle of a page of a b-tree, between the pointers to its cells and the cells. Other pages have none: their first
/// byte is the highest of a page number, which [`crate::store::MAX_PAGES`] keeps at 0 or 1.
fn unused(number: u32, page: &[u8]) -> Option<Range<usize>> {
    // The first page begins with the header of the file.
    let header = if number == 1 { 100 } else { 0 };
    let two = |at: usize| {
        let bytes: [u8; 2] = page.get(at..at + 2)?.try_into().ok()?;
        Some(usize::from(u16::from_be_bytes(bytes)))
    };
    let length = match page.get(header)? {
        // An index or a table, inside.
        0x02 | 0x05 => 12,
        // Leaves of them.
        0x0a | 0x0d => 8,
        _ => return None,
    };
    let start = header + length + 2 * two(header + 3)?;
    let end = match two(header + 5)? {
        0 => 1 << 16,
        end => end,
    };
    (start <= end && end <= page.len()).then_some(start..end)
}

/// Each try takes the writers' turn for the time of a checkpoint; between two of them they go on.
async fn empty_wal(store: &SqliteStore, connection: &mut SqliteConnection) -> Outcome<()> {
    sqlx::query("PRAGMA busy_timeout = 0")
        .execute(&mut *connection)
        .await?;
    // Most of the log is brought into the file beside the writers.
    sqlx::query("PRAGMA wal_checkpoint(PASSIVE)")
        .execute(&mut *connection)
        .await?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        let turn = store.shared.writers.turn.lock().await;
        let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(&mut *connection)
            .await?;
        drop(turn);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A leaf of a table with `cells` cells, whose content begins at `content`.
    fn leaf(number: u32, cells: u16, content: u16) -> Vec<u8> {
        let mut page = vec![7; 512];
        let header = if number == 1 { 100 } else { 0 };
        page[header] = 0x0d;
        page[header + 3..header + 5].copy_from_slice(&cells.to_be_bytes());
        page[header + 5..header + 7].copy_from_slice(&content.to_be_bytes());
        page
    }

    #[test]
    fn the_middle_of_a_page_lies_between_its_pointers_and_its_cells() {
        assert_eq!(unused(2, &leaf(2, 3, 400)), Some(14..400));
        assert_eq!(unused(1, &leaf(1, 0, 512)), Some(108..512));
        let mut inside = leaf(2, 3, 400);
        inside[0] = 0x05;
        assert_eq!(unused(2, &inside), Some(18..400));
    }

    #[test]
    fn what_is_no_page_of_a_tree_has_no_middle() {
        for first in [0, 1, 0x0c, 0xff] {
            let mut page = leaf(2, 3, 400);
            page[0] = first;
            assert_eq!(unused(2, &page), None);
        }
        // Damaged pages are left as they are.
        assert_eq!(unused(2, &leaf(2, 400, 100)), None);
        assert_eq!(unused(2, &leaf(2, 3, 600)), None);
        assert_eq!(unused(2, &[]), None);
    }
}
