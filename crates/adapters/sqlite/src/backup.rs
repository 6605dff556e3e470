//! A copy of the running database, as of one instant.

use std::fs::File;
use std::path::{Path, PathBuf};

use memfleet_ports::store::StoreError;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::failure::Outcome;
use crate::private;
use crate::store::SqliteStore;

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Backups never overwrite.
    #[error("{0} exists already")]
    Exists(PathBuf),
    /// The database could not be read, or the copy not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The copy could not be put in its place.
    #[error("{path}: {cause}")]
    Place {
        /// The file or directory.
        path: PathBuf,
        /// What the operating system says.
        cause: std::io::Error,
    },
}

impl SqliteStore {
    /// Copies the database to `to` while it is in use.
    pub async fn backup(&self, to: &Path) -> Result<(), BackupError> {
        backup(&self.shared.path, to).await
    }
}

/// Copies the database `from`, which a node (of this or another process) may be using, to `to`: on disk and complete, or
/// not there at all. The copy is a database like any other: restoring is opening it, or moving it where the lost one was,
/// whose `-wal` and `-shm` must be gone by then (docs/errors.md).
pub async fn backup(from: &Path, to: &Path) -> Result<(), BackupError> {
    if to.exists() {
        return Err(BackupError::Exists(to.to_owned()));
    }
    let partial = partial(to);
    let outcome = copy(from, &partial, to).await;
    if outcome.is_err() {
        // Nothing to add when it was never made.
        let _absent = std::fs::remove_file(&partial);
    }
    outcome
}

async fn copy(from: &Path, partial: &Path, to: &Path) -> Result<(), BackupError> {
    private::make(partial).map_err(|cause| BackupError::Place {
        path: partial.to_owned(),
        cause,
    })?;
    vacuum_into(from, partial).await.map_err(StoreError::from)?;
    let (partial, to) = (partial.to_owned(), to.to_owned());
    let placed = tokio::task::spawn_blocking(move || place(&partial, &to)).await;
    placed.map_err(|cause| BackupError::Store(StoreError::Unexpected(cause.to_string())))?
}

/// Reads one snapshot, beside writers and without the lock of the node.
async fn vacuum_into(from: &Path, partial: &Path) -> Outcome<()> {
    let options = SqliteConnectOptions::new().filename(from);
    let mut connection = options.disable_statement_logging().connect().await?;
    let copied = sqlx::query("VACUUM INTO ?")
        .bind(partial.to_string_lossy().into_owned())
        .execute(&mut connection)
        .await;
    connection.close().await?;
    copied?;
    Ok(())
}

/// Beside the target, so that the rename stays in one file system.
fn partial(to: &Path) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    name.into()
}

fn place(partial: &Path, to: &Path) -> Result<(), BackupError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |cause| BackupError::Place { path, cause }
    };
    File::open(partial)
        .and_then(|file| file.sync_all())
        .map_err(at(partial))?;
    std::fs::rename(partial, to).map_err(at(to))?;
    let directory = match to.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)
        .and_then(|file| file.sync_all())
        .map_err(at(directory))
}
