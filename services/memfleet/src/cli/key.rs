//! `memfleet key`: a new API key, and what the configuration keeps of it.

use clap::Args;
use memfleet_domain::ids::{NameError, TenantId};
use memfleet_rpc::auth::KeyHash;
use serde_json::json;

use super::exit::{Error, Exit};
use crate::config::KeyEntry;
use crate::output::Output;

/// Make an API key for a tenant
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Tenant that the key speaks for
    #[arg(value_parser = tenant)]
    tenant: TenantId,
}

fn tenant(text: &str) -> Result<TenantId, NameError> {
    TenantId::new(text)
}

/// Runs the command. The key is printed once and kept nowhere.
pub fn run(args: &KeyArgs, output: &mut Output) -> Result<Exit, Error> {
    let random = blake3::Hash::from_bytes(rand::random());
    let key = format!("memfleet-{}", random.to_hex());
    let entry = KeyEntry {
        tenant: args.tenant.clone(),
        hash: KeyHash::of(&key),
    };
    let entry = entry.to_string();
    output.answer(
        || json!({ "tenant": args.tenant, "key": key, "entry": entry }),
        |palette| {
            format!(
                "{}  {key}\n        for callers, as --api-key or MEMFLEET_API_KEY; it is shown only now\n{}  \"{entry}\"\n        for auth.keys in the configuration of the node",
                palette.strong("key   "),
                palette.strong("entry ")
            )
        },
    )?;
    Ok(Exit::Done)
}
