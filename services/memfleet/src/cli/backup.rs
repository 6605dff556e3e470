//! `memfleet backup`: a copy of the node's database, while the node runs or not.

use std::path::PathBuf;

use clap::Args;
use memfleet_domain::{Fault, FaultKind};
use memfleet_runtime::BoxError;
use serde_json::json;

use super::exit::{Error, Exit};
use crate::config::Store;
use crate::output::{Output, size};

/// Copy the database of the configured node to a file; the node may be running
#[derive(Debug, Args)]
pub struct BackupArgs {
    /// File to write; it must not exist
    to: PathBuf,
    /// Database file to copy instead of the configured one
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Runs the command.
pub async fn run(args: BackupArgs, store: &Store, output: &mut Output) -> Result<Exit, Error> {
    let from = args.from.or_else(|| store.path()).ok_or_else(|| {
        Error::Usage(format!(
            "store.url `{}` is no database file; name one with --from",
            store.url
        ))
    })?;
    if args.to.exists() {
        return Err(Error::Refused(format!(
            "{} exists already; backups never overwrite",
            args.to.display()
        )));
    }
    if !from.exists() {
        let message = format!(
            "there is no database at {}; name one with --from, or its configuration with --config",
            from.display()
        );
        return Err(Fault::new(FaultKind::NotFound, "NOT_FOUND", message).into());
    }
    memfleet_sqlite::backup(&from, &args.to)
        .await
        .map_err(|error| BoxError::from(format!("{}: {error}", from.display())))?;
    let bytes = std::fs::metadata(&args.to)
        .map_err(Error::file(&args.to))?
        .len();
    output.answer(
        || json!({ "from": from, "to": args.to, "bytes": bytes }),
        |palette| {
            format!(
                "{}  {} ({})",
                palette.strong("copied"),
                args.to.display(),
                size(bytes)
            )
        },
    )?;
    Ok(Exit::Done)
}
