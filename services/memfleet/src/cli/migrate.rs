//! `memfleet migrate`: brings the database of a fleet up to date.

use clap::Args;
use memfleet_domain::Fault;
use serde_json::json;

use super::exit::{Error, Exit};
use crate::config::Store;
use crate::output::Output;

/// Bring the PostgreSQL database of a fleet up to date, as its owner
#[derive(Debug, Args)]
pub struct MigrateArgs {}

/// Runs the command.
pub async fn run(store: &Store, output: &mut Output) -> Result<Exit, Error> {
    let owner = store.owner_url.as_ref().ok_or_else(|| {
        Error::Usage("store.owner_url is not set: it is the address of the database with the user who owns its tables, `postgres://owner:password@host/database`; a SQLite file is migrated when it is opened".into())
    })?;
    let migrated = memfleet_postgres::migrate(owner.expose())
        .await
        .map_err(Fault::from)?;
    output.answer(
        || json!({ "from": migrated.from, "to": migrated.to }),
        |_| {
            if migrated.from == migrated.to {
                format!("the database has schema version {} already", migrated.to)
            } else {
                format!(
                    "migrated from schema version {} to {}",
                    migrated.from, migrated.to
                )
            }
        },
    )?;
    Ok(Exit::Done)
}
