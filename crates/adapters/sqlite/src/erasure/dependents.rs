//! Counts of what is made from the turns of a forget and goes with them.

use memfleet_columns::from_kind;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_ports::erasure::DependentCounts;
use sqlx::SqliteConnection;

use super::Doomed;
use crate::failure::Outcome;
use crate::mentions::{EXCHANGES, INJECTIONS};
use crate::rows::id_list;
use crate::store::SqliteStore;

/// Injections that hold words of these turns (an id list) of a space; without a list, of any turn.
const BLOCKS: &str = "SELECT count(*) FROM injections WHERE NOT forgotten AND key IN (
     SELECT injection FROM injection_turns WHERE tenant = ?1 AND space = ?2
         AND turn IN (SELECT unhex(value, '-') FROM json_each(?3))
     UNION SELECT injection FROM injection_spaces WHERE tenant = ?1 AND space = ?2 AND ?3 IS NULL)";

/// Exchanges that hold words of them.
const EXCHANGES_UNDER_WAY: &str =
    "SELECT count(DISTINCT exchange) FROM exchange_turns WHERE tenant = ?1 AND space = ?2
     AND (?3 IS NULL OR turn IN (SELECT unhex(value, '-') FROM json_each(?3)))";

impl SqliteStore {
    /// Lists the mentions that wait, before a plan counts them.
    pub(super) async fn list_waiting(&self) -> Outcome<()> {
        for mentions in [&EXCHANGES, &INJECTIONS] {
            let waiting = mentions.waiting(&mut *self.read().await?).await?;
            if waiting > 0 {
                self.list(mentions).await?;
            }
        }
        Ok(())
    }
}

/// Lists all mentions that wait, in the transaction of a forget.
pub async fn list_waiting(connection: &mut SqliteConnection) -> Outcome<()> {
    for mentions in [&EXCHANGES, &INJECTIONS] {
        mentions.list_all(connection).await?;
    }
    Ok(())
}

/// Counts them; mentions that wait to be listed are left out.
pub async fn count(
    connection: &mut SqliteConnection,
    scope: &Scope,
    doomed: &Doomed,
) -> Outcome<DependentCounts> {
    let ids = doomed.ids();
    if ids.is_empty() && !doomed.everything {
        return Ok(DependentCounts::default());
    }
    let ids = (!doomed.everything).then(|| id_list(&ids));
    let mut numbers = [0; 2];
    for (number, query) in numbers.iter_mut().zip([BLOCKS, EXCHANGES_UNDER_WAY]) {
        let counted: i64 = sqlx::query_scalar(query)
            .bind(scope.tenant.as_str())
            .bind(scope.space.as_str())
            .bind(&ids)
            .fetch_one(&mut *connection)
            .await?;
        *number = counted.unsigned_abs();
    }
    let [blocks, exchanges] = numbers;
    Ok(DependentCounts {
        blocks,
        exchanges,
        ..derived(connection, doomed).await?
    })
}

/// Derivations that draw on the turns in any version.
async fn derived(connection: &mut SqliteConnection, doomed: &Doomed) -> Outcome<DependentCounts> {
    let Some(space) = doomed.space else {
        return Ok(DependentCounts::default());
    };
    let rows: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT kind, count(DISTINCT id) FROM derivations WHERE space = ?1 AND id IN (
             SELECT derivation FROM derivation_turns WHERE space = ?1 AND turn IN (
                 SELECT id FROM turns WHERE key IN (SELECT value FROM json_each(?2))))
         GROUP BY kind",
    )
    .bind(space.id)
    .bind(doomed.keys())
    .fetch_all(connection)
    .await?;
    let counted = rows.into_iter().flat_map(|(kind, number)| {
        let is_it = move |known: &Kind| from_kind(*known) == kind;
        let kinds = Kind::ALL.into_iter().filter(is_it);
        kinds.map(move |known| (known, number.unsigned_abs()))
    });
    Ok(DependentCounts::of_kinds(counted))
}
