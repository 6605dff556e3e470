//! What of forgotten turns is kept for prompts under way, and of prompts that were.

use memfleet_domain::Scope;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::exchanges::{conversations, secrets};
use crate::failure::Outcome;
use crate::{exchanges, injections, settings, tombstones};

/// The words of these turns of a space.
pub async fn of_turns(connection: &mut PgConnection, scope: &Scope, turns: &[Uuid]) -> Outcome<()> {
    tombstones::keep_others(connection, scope).await?;
    exchanges::forget(connection, scope, Some(turns)).await?;
    conversations::forget(connection, scope).await?;
    injections::forget(connection, scope, turns).await
}

/// All words of a space, and its settings; whether there was something. A space may have these before it has a row of its own.
pub async fn of_space(connection: &mut PgConnection, scope: &Scope) -> Outcome<bool> {
    tombstones::keep_others(connection, scope).await?;
    let exchanges = exchanges::forget(connection, scope, None).await?;
    let conversations = conversations::of_space(connection, scope).await?;
    let injections = injections::of_space(connection, scope).await?;
    let secrets = secrets::of_space(connection, scope).await?;
    let settings = settings::of_space(connection, scope).await?;
    Ok(secrets || exchanges || conversations || injections || settings)
}
