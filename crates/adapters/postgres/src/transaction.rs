//! A transaction that acts as `memfleet_app` for one tenant. All that it sets ends with it.

use std::fmt::Write as _;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use memfleet_domain::ids::TenantId;
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Executor, PgConnection, PgPool, Postgres, raw_sql};
use tokio::runtime::Handle;

use crate::failure::{Outcome, is_lost};

/// The role that every statement runs as.
pub const ROLE: &str = "memfleet_app";

/// What a transaction is for.
#[derive(Debug, Clone, Copy)]
pub enum Mode {
    /// One snapshot.
    Read,
    /// The latest state, under locks.
    Write,
}

/// What is set in every transaction.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Schemas of our tables and of the type of vectors.
    pub search_path: String,
    /// How long a statement may take; less where the caller's deadline comes first.
    pub statement_timeout: Duration,
}

/// Time that a statement has beyond the deadline of its caller, who hears of the deadline so and
/// not of the statement.
const GRACE: Duration = Duration::from_millis(100);

/// Rolled back when dropped.
#[derive(Debug)]
pub struct Transaction {
    /// Absent once it ended.
    connection: Option<PoolConnection<Postgres>>,
}

impl Transaction {
    /// A connection that broke while nobody used it shows here: then another one is taken.
    pub async fn begin(
        pool: &PgPool,
        settings: &Settings,
        mode: Mode,
        tenant: Option<&TenantId>,
    ) -> Outcome<Self> {
        let timeout = timeout(settings, memfleet_trace::remaining());
        let statement = begin_statement(settings, timeout, mode, tenant);
        let mut spare = pool.num_idle();
        loop {
            // Before it begins: the caller may leave on the way.
            let mut begun = Self {
                connection: Some(pool.acquire().await?),
            };
            let statement = raw_sql(AssertSqlSafe(statement.clone()));
            match begun.execute(statement).await {
                Ok(_) => return Ok(begun),
                Err(error) => {
                    // It may have got half-way.
                    begun.end().close_on_drop();
                    if spare == 0 || !is_lost(&error) {
                        return Err(error.into());
                    }
                    spare -= 1;
                }
            }
        }
    }

    pub async fn commit(mut self) -> Outcome<()> {
        // The driver's own transactions are not used: a connection on which one of them failed to begin cannot be closed.
        self.execute(raw_sql("COMMIT")).await?;
        drop(self.end());
        Ok(())
    }

    fn end(&mut self) -> PoolConnection<Postgres> {
        self.connection.take().expect("it ends once")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            connection.close_on_drop();
            return;
        };
        runtime.spawn(async move {
            if connection.execute(raw_sql("ROLLBACK")).await.is_err() {
                connection.close_on_drop();
            }
        });
    }
}

impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("it has not ended")
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("it has not ended")
    }
}

/// Acts for another tenant from now on.
pub async fn switch(connection: &mut PgConnection, tenant: &TenantId) -> Outcome<()> {
    sqlx::query("SELECT set_config('memfleet.tenant', $1, true)")
        .bind(tenant.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

fn timeout(settings: &Settings, remaining: Option<Duration>) -> Duration {
    let due = remaining.map(|remaining| remaining + GRACE);
    due.map_or(settings.statement_timeout, |due| {
        due.min(settings.statement_timeout)
    })
}

/// All in one round trip, so parameters cannot be used: the tenant comes in digits, which no quotes can get out of.
fn begin_statement(
    settings: &Settings,
    timeout: Duration,
    mode: Mode,
    tenant: Option<&TenantId>,
) -> String {
    let mode = match mode {
        Mode::Read => " ISOLATION LEVEL REPEATABLE READ READ ONLY",
        Mode::Write => " ISOLATION LEVEL READ COMMITTED READ WRITE",
    };
    let tenant = tenant.map_or("", TenantId::as_str);
    let mut digits = String::with_capacity(tenant.len() * 2);
    for byte in tenant.bytes() {
        write!(digits, "{byte:02x}").expect("a string takes everything");
    }
    format!(
        "BEGIN{mode}; SELECT set_config('role', '{ROLE}', true), set_config('search_path', '{}', true), \
         set_config('statement_timeout', '{}', true), set_config('jit', 'off', true), \
         set_config('memfleet.tenant', convert_from(decode('{digits}', 'hex'), 'UTF8'), true)",
        settings.search_path.replace('\'', "''"),
        timeout.as_millis(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_soon_after_its_caller_left() {
        let settings = Settings {
            search_path: "memfleet".into(),
            statement_timeout: Duration::from_secs(30),
        };
        let of = |seconds: Option<u64>| timeout(&settings, seconds.map(Duration::from_secs));
        assert_eq!(of(None), Duration::from_secs(30));
        assert_eq!(of(Some(600)), Duration::from_secs(30));
        assert_eq!(of(Some(2)), Duration::from_millis(2_100));
        // Never zero, which would be no limit at all.
        assert_eq!(of(Some(0)), GRACE);
    }

    #[test]
    fn a_name_cannot_leave_its_quotes() {
        let settings = Settings {
            search_path: "memfleet, public".into(),
            statement_timeout: Duration::from_secs(30),
        };
        let tenant = TenantId::new("a'; DROP SCHEMA memfleet; --").unwrap();
        let timeout = settings.statement_timeout;
        let statement = begin_statement(&settings, timeout, Mode::Write, Some(&tenant));
        assert!(statement.contains("decode('61273b2044524f50"));
        assert!(!statement.contains("DROP"), "{statement}");
    }
}
