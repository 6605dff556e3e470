//! From PostgreSQL's codes to [`StoreError`]. Private so that `?` works on all of them; ports see [`StoreError`] only.

use memfleet_columns::Damage;
use memfleet_ports::store::StoreError;
use sqlx::error::DatabaseError;

/// Shorthand of this crate.
pub type Outcome<T> = Result<T, Failure>;

/// A [`StoreError`] on its way out.
#[derive(Debug)]
pub enum Failure {
    /// For the caller.
    Store(StoreError),
    /// The server ended the transaction since it crossed another one: worth trying again at once.
    Crossed(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Crossed(cause) => Self::Unavailable(cause),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Damage> for Failure {
    fn from(damage: Damage) -> Self {
        Self::Store(damage.into())
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        let unavailable = |cause: &str| StoreError::Unavailable(cause.to_owned());
        Self::Store(match &error {
            sqlx::Error::Database(database) => return of_database(database.as_ref()),
            sqlx::Error::PoolTimedOut => unavailable(
                "no connection came in time: the server is down, or too much is going on",
            ),
            sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => unavailable("it is closed"),
            sqlx::Error::Io(cause) => unavailable(&cause.to_string()),
            sqlx::Error::Tls(cause) => unavailable(&format!("TLS: {cause}")),
            // An answer that a server cut off as it went down.
            sqlx::Error::Protocol(cause) => unavailable(&format!("protocol: {cause}")),
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
            other => Self::Store(StoreError::Damaged(format!("schema: {other}"))),
        }
    }
}

/// Whether the connection is gone, and another one may do.
pub fn is_lost(error: &sqlx::Error) -> bool {
    let begins = |code: String| code.starts_with("08") || code.starts_with("57P");
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_))
        || code(error).is_some_and(begins)
}

/// The server's code of an error.
pub fn code(error: &sqlx::Error) -> Option<String> {
    let code = error.as_database_error()?.code()?;
    Some(code.into_owned())
}

fn of_database(error: &dyn DatabaseError) -> Failure {
    of_code(&error.code().unwrap_or_default(), error.message())
}

/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
fn of_code(code: &str, message: &str) -> Failure {
    let message = match code.get(..2) {
        // What is wrong with data quotes it.
        Some("22") => format!("SQLSTATE {code}"),
        _ => format!("{message} (SQLSTATE {code})"),
    };
    Failure::Store(match code {
        "40001" | "40P01" => return Failure::Crossed(message),
        "53100" => StoreError::Full(message),
        "XX001" | "XX002" => StoreError::Damaged(message),
        // Read-only (a standby), lock not available, statement timeout, disk error.
        "25006" | "55P03" | "57014" | "58030" => StoreError::Unavailable(message),
        _ => match code.get(..2) {
            // Connection, role, database, resources, the administrator.
            Some("08" | "28" | "3D" | "53" | "57") => StoreError::Unavailable(message),
            _ => StoreError::Unexpected(message),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_that_is_cut_off_is_worth_another_try() {
        let cut = || sqlx::Error::Protocol("a message of 5 bytes ended after 3".into());
        assert!(is_lost(&cut()));
        let error = StoreError::from(Failure::from(cut()));
        assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    }

    #[test]
    fn codes_say_what_the_caller_can_do() {
        let of = |code| StoreError::from(of_code(code, "m"));
        assert!(matches!(of("53100"), StoreError::Full(_)));
        assert!(matches!(of("XX001"), StoreError::Damaged(_)));
        for code in ["08006", "57P01", "53300", "28P01", "40P01", "57014"] {
            assert!(matches!(of(code), StoreError::Unavailable(_)), "{code}");
        }
        assert!(matches!(of_code("40001", "m"), Failure::Crossed(_)));
        assert!(matches!(of("23505"), StoreError::Unexpected(_)));
        assert!(matches!(of(""), StoreError::Unexpected(_)));
    }

    #[test]
    fn a_message_about_data_is_left_out() {
        let error = StoreError::from(of_code("22P02", "invalid input: \"secret\""));
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
