//! What a space knows of turns that are about to come.

use memfleet_columns::space_key;
use memfleet_domain::Scope;
use memfleet_domain::ids::TurnId;
use memfleet_ports::ledger::Known;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::rows::{id_list, to_turn_id};

pub async fn known(connection: &mut PgConnection, scope: &Scope, ids: &[TurnId]) -> Outcome<Known> {
    let rows = sqlx::query(
        "WITH here AS (SELECT id, erased FROM spaces WHERE tenant = $1 AND key = $2)
         SELECT t.id, true FROM turns t
         WHERE t.tenant = $1 AND t.space = (SELECT id FROM here) AND t.id = ANY ($3)
         UNION ALL
         SELECT f.id, false FROM forgotten f
         WHERE f.tenant = $1 AND f.space = (SELECT id FROM here) AND f.id = ANY ($3)
             AND f.change > (SELECT erased FROM here)",
    )
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(id_list(ids))
    .fetch_all(connection)
    .await?;
    let mut known = Known::default();
    for row in rows {
        let id = to_turn_id(row.try_get(0)?);
        if row.try_get(1)? {
            known.stored.insert(id);
        } else {
            known.forgotten.insert(id);
        }
    }
    Ok(known)
}
