//! `memfleet vectors`: holds the mirror of a space's vectors against the store, or makes it anew. Runs where the fleet's
//! configuration is, beside its roles.

use std::sync::Arc;

use clap::{Args, Subcommand};
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_postgres::PostgresStore;
use memfleet_qdrant::{Findings, Mirror};
use serde_json::json;

use super::exit::{Error, Exit};
use super::values;
use crate::config::Config;
use crate::output::Output;

/// Compare the Qdrant of `vectors.url` with the database, or fill it anew (experimental)
#[derive(Debug, Args)]
pub struct VectorsArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Count what Qdrant lacks of a space and what it has too much
    Verify(Place),
    /// Remove a space from Qdrant and copy it again; searches go to the database meanwhile
    Rebuild(Place),
}

/// One space of one tenant.
#[derive(Debug, Args)]
struct Place {
    /// The space
    #[arg(value_name = "SPACE", value_parser = values::space)]
    space: SpaceId,
    /// Its tenant
    #[arg(long, value_name = "TENANT", default_value = "default", value_parser = values::tenant)]
    tenant: TenantId,
}

/// Runs the command.
pub async fn run(args: VectorsArgs, config: &Config, output: &mut Output) -> Result<Exit, Error> {
    let Some(options) = config.vectors.mirror() else {
        return Err(Error::Usage(
            "vectors.url is not set: searches by vector go to the database alone".into(),
        ));
    };
    let url = config.store.url.expose();
    let connected = PostgresStore::connect(url, memfleet_postgres::Options::default()).await;
    let store = connected.map_err(Fault::from)?;
    let store = Arc::new(store);
    let mirror = Mirror::new(store.clone(), &options).map_err(Fault::from)?;
    let (rebuild, place) = match args.what {
        What::Verify(place) => (false, place),
        What::Rebuild(place) => (true, place),
    };
    let scope = Scope {
        tenant: place.tenant,
        space: place.space,
    };
    let held = store.embeddings(&scope).await.map_err(Fault::from)?;
    let served = held.served.unwrap_or_default();
    if rebuild {
        mirror.rebuild(&scope, &served).await.map_err(Fault::from)?;
    }
    let found = mirror.verify(&scope, &served).await;
    let found = found.map_err(Fault::from)?;
    let Findings {
        stored,
        missing,
        extra,
    } = found;
    output.answer(
        || json!({ "stored": stored, "missing": missing, "extra": extra }),
        |_| format!("{stored} passages with a vector are stored: Qdrant lacks {missing} and has {extra} too many"),
    )?;
    match missing + extra {
        0 => Ok(Exit::Done),
        _ => Err(Error::Refused(
            "they differ: searches go on, and `memfleet vectors rebuild` makes them equal".into(),
        )),
    }
}
