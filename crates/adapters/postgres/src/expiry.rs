//! Removing what is past its time, of all tenants.

use memfleet_domain::time::Timestamp;
use memfleet_ports::store::Result;

use crate::store::PostgresStore;

/// Rows that one statement removes: few enough for its time limit, whatever was left to remove.
const AT_ONCE: i64 = 10_000;

impl PostgresStore {
    /// Calls a function that removes about so many rows up to an instant, until there are no more; how many rows.
    pub(crate) async fn expire_by(
        &self,
        operation: &'static str,
        function: &'static str,
        until: Timestamp,
    ) -> Result<u64> {
        let mut all = 0;
        loop {
            let expired = async {
                let mut write = self.write_across().await?;
                let gone: i64 = sqlx::query_scalar(function)
                    .bind(until.timestamp_micros())
                    .bind(AT_ONCE)
                    .fetch_one(&mut *write)
                    .await?;
                write.commit().await?;
                Ok(gone)
            };
            let gone = self.ask(operation, expired).await?;
            all += gone.cast_unsigned();
            if gone < AT_ONCE {
                return Ok(all);
            }
        }
    }
}
