//! From SQLite's result codes to [`StoreError`]. Private so that `?` works on both; ports see [`StoreError`] only.

use memfleet_columns::Damage;
use memfleet_ports::store::StoreError;

/// Shorthand of this crate.
pub type Outcome<T> = Result<T, Failure>;

/// A [`StoreError`] on its way out.
#[derive(Debug)]
pub struct Failure(pub StoreError);

/// Primary result codes (the low byte of an extended one), <https://www.sqlite.org/rescode.html>.
mod code {
    pub const BUSY: u32 = 5;
    pub const LOCKED: u32 = 6;
    pub const READONLY: u32 = 8;
    pub const IOERR: u32 = 10;
    pub const CORRUPT: u32 = 11;
    pub const FULL: u32 = 13;
    pub const CANTOPEN: u32 = 14;
    pub const NOTADB: u32 = 26;
    /// Extended: the shared-memory file of the WAL cannot grow, which is how a full disk shows there.
    pub const IOERR_SHMSIZE: u32 = 4874;
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self(damage.into())
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self(match &error {
            sqlx::Error::Database(database) => {
                let extended = database.code().and_then(|code| code.parse().ok());
                of_code(extended.unwrap_or_default(), database.message().to_owned())
            }
            sqlx::Error::PoolTimedOut => StoreError::Unavailable("too much is going on".into()),
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                StoreError::Unavailable("it is closed".into())
            }
            sqlx::Error::Io(cause) => StoreError::Unavailable(cause.to_string()),
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) => {
                StoreError::Damaged(error.to_string())
            }
            _ => StoreError::Unexpected(error.to_string()),
        })
    }
}

impl From<sqlx::migrate::MigrateError> for Failure {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        use sqlx::migrate::MigrateError;
        match error {
            MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => cause.into(),
            other => Self(StoreError::Damaged(format!("schema: {other}"))),
        }
    }
}

/// A stored value that no version of memfleet writes.
pub fn damaged(what: impl std::fmt::Display) -> Failure {
    Failure(StoreError::Damaged(what.to_string()))
}

fn of_code(extended: u32, message: String) -> StoreError {
    if extended == code::IOERR_SHMSIZE {
        return StoreError::Full(message);
    }
    match extended & 0xff {
        code::FULL => StoreError::Full(message),
        code::CORRUPT | code::NOTADB => StoreError::Damaged(message),
        code::BUSY | code::LOCKED | code::READONLY | code::IOERR | code::CANTOPEN => {
            StoreError::Unavailable(format!("{message} (SQLite code {extended})"))
        }
        _ => StoreError::Unexpected(format!("{message} (SQLite code {extended})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extended_codes_fall_into_their_family() {
        let of = |extended| of_code(extended, "m".into());
        assert!(matches!(of(13), StoreError::Full(_)));
        assert!(matches!(of(4874), StoreError::Full(_)));
        assert!(matches!(of(11 | (1 << 8)), StoreError::Damaged(_)));
        assert!(matches!(of(5 | (2 << 8)), StoreError::Unavailable(_)));
        assert!(matches!(of(19), StoreError::Unexpected(_)));
    }
}
