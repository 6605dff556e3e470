//! Counts of what is made from the turns of a forget and goes with them.

use memfleet_columns::from_kind;
use memfleet_domain::Scope;
use memfleet_domain::derivation::Kind;
use memfleet_ports::erasure::DependentCounts;
use sqlx::PgConnection;
use uuid::Uuid;

use super::Doomed;
use crate::failure::Outcome;
use crate::rows::id_list;

/// Injections that hold words of these turns of a space; without turns, of any.
const BLOCKS: &str = "SELECT count(*) FROM injections WHERE tenant = $1 AND NOT forgotten AND id IN (
     SELECT id FROM injection_turns WHERE tenant = $1 AND space = $2 AND turn = ANY ($3)
     UNION SELECT id FROM injection_spaces WHERE tenant = $1 AND space = $2 AND $3::uuid[] IS NULL)";

/// Exchanges that hold words of them.
const EXCHANGES_UNDER_WAY: &str =
    "SELECT count(DISTINCT exchange) FROM exchange_turns WHERE tenant = $1 AND space = $2
     AND ($3::uuid[] IS NULL OR turn = ANY ($3))";

/// Counts them.
pub async fn count(
    connection: &mut PgConnection,
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
        ..derived(connection, scope, doomed).await?
    })
}

/// Derivations that draw on the turns in any version.
async fn derived(
    connection: &mut PgConnection,
    scope: &Scope,
    doomed: &Doomed,
) -> Outcome<DependentCounts> {
    let Some(space) = doomed.space else {
        return Ok(DependentCounts::default());
    };
    let turns: Vec<Uuid> = id_list(doomed.turns.iter().map(|turn| &turn.id));
    let rows: Vec<(i16, i64)> = sqlx::query_as(
        "SELECT kind, count(DISTINCT id) FROM derivations WHERE tenant = $1 AND space = $2 AND id IN (
             SELECT derivation FROM derivation_turns WHERE tenant = $1 AND space = $2 AND turn = ANY ($3))
         GROUP BY kind",
    )
    .bind(scope.tenant.as_str())
    .bind(space.id)
    .bind(turns)
    .fetch_all(connection)
    .await?;
    let counted = rows.into_iter().flat_map(|(kind, number)| {
        let is_it = move |known: &Kind| from_kind(*known) == i64::from(kind);
        let kinds = Kind::ALL.into_iter().filter(is_it);
        kinds.map(move |known| (known, number.unsigned_abs()))
    });
    Ok(DependentCounts::of_kinds(counted))
}
