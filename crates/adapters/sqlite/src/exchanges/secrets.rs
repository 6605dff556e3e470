//! Keys of the digests of messages, one a space.

use memfleet_columns::to_secret;
use memfleet_domain::Scope;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::exchanges::Secret;
use sqlx::SqliteConnection;

use crate::failure::Outcome;

/// The name under which the secret of no space is kept.
const NONE: &str = "";

/// The secret, if it was made.
pub async fn find(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    space: Option<&SpaceId>,
) -> Outcome<Option<Secret>> {
    let secret: Option<Vec<u8>> =
        sqlx::query_scalar("SELECT secret FROM secrets WHERE tenant = ?1 AND space = ?2")
            .bind(tenant.as_str())
            .bind(space.map_or(NONE, SpaceId::as_str))
            .fetch_optional(connection)
            .await?;
    Ok(secret.as_deref().map(to_secret).transpose()?)
}

/// The secret, made unless another writer made it meanwhile.
pub async fn make(
    connection: &mut SqliteConnection,
    tenant: &TenantId,
    space: Option<&SpaceId>,
) -> Outcome<Secret> {
    let secret: Vec<u8> = sqlx::query_scalar(
        "INSERT INTO secrets (tenant, space, secret) VALUES (?1, ?2, ?3)
         ON CONFLICT (tenant, space) DO UPDATE SET space = excluded.space RETURNING secret",
    )
    .bind(tenant.as_str())
    .bind(space.map_or(NONE, SpaceId::as_str))
    .bind(rand::random::<Secret>().as_slice())
    .fetch_one(connection)
    .await?;
    Ok(to_secret(&secret)?)
}

/// Removes that of a space; whether there was one.
pub async fn of_space(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<bool> {
    let gone = sqlx::query("DELETE FROM secrets WHERE tenant = ?1 AND space = ?2")
        .bind(scope.tenant.as_str())
        .bind(scope.space.as_str())
        .execute(connection)
        .await?;
    Ok(gone.rows_affected() > 0)
}
