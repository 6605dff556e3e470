//! `memfleet tenants`: what tenants have and may have.

use clap::{Args, Subcommand};
use memfleet_domain::access::Quota;
use memfleet_domain::ids::TenantId;
use memfleet_ports::admin::Account;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::key::Whose;
use super::{Handle, values};
use crate::output::{Align, Output, size, table};

/// List tenants, show what one uses, set what it may use
#[derive(Debug, Args)]
pub struct TenantsArgs {
    #[command(subcommand)]
    command: TenantsCommand,
}

#[derive(Debug, Subcommand)]
enum TenantsCommand {
    /// List the tenants by name; takes an operator's key
    List,
    /// Show what a tenant has and may have
    Usage {
        #[command(flatten)]
        whose: Whose,
    },
    /// Set what a tenant may have, in place of what was set before; takes an operator's key
    Quota {
        /// The tenant
        #[arg(value_parser = values::tenant)]
        tenant: TenantId,
        /// Calls a minute of all its callers together, at each gateway; no limit without it
        #[arg(long, value_name = "CALLS", value_parser = values::range(1..=u32::MAX))]
        calls_per_minute: Option<u32>,
        /// Turns stored and waiting to be stored; no limit without it
        #[arg(long, value_name = "TURNS", value_parser = clap::value_parser!(u64).range(1..))]
        turns: Option<u64>,
    },
}

/// Runs the command.
pub async fn run(args: TenantsArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let admin = &handle.admin;
    match args.command {
        TenantsCommand::List => {
            let tenants = every(async |page| admin.tenants(&handle.call(), page).await).await?;
            output.list(
                &tenants,
                |tenant| json!({ "tenant": tenant }),
                |palette| {
                    let rows = tenants.iter().map(|tenant| [tenant.to_string()]);
                    table(palette, [("TENANT", Align::Left)], rows)
                },
            )?;
        }
        TenantsCommand::Usage { whose } => {
            show(&admin.account(&handle.call(), whose.tenant).await?, output)?;
        }
        TenantsCommand::Quota {
            tenant,
            calls_per_minute,
            turns,
        } => {
            let quota = Quota {
                calls_per_minute,
                turns,
            };
            let account = admin.set_quota(&handle.call(), &tenant, quota).await?;
            show(&account, output)?;
        }
    }
    Ok(Exit::Done)
}

fn show(account: &Account, output: &mut Output) -> Result<(), Error> {
    let Account {
        tenant,
        usage,
        quota,
    } = account;
    let limit =
        |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    output.answer(
        || to_json(account),
        |palette| {
            let columns = [
                ("TENANT", Align::Left),
                ("SPACES", Align::Right),
                ("TURNS", Align::Right),
                ("OF", Align::Right),
                ("TEXT", Align::Right),
                ("CALLS A MINUTE", Align::Right),
            ];
            let row = [
                tenant.to_string(),
                usage.spaces.to_string(),
                usage.turns.to_string(),
                limit(quota.turns),
                size(usage.bytes),
                limit(quota.calls_per_minute.map(u64::from)),
            ];
            table(palette, columns, [row])
        },
    )?;
    Ok(())
}

fn to_json(account: &Account) -> Value {
    json!({
        "tenant": account.tenant,
        "spaces": account.usage.spaces,
        "turns": account.usage.turns,
        "bytes": account.usage.bytes,
        "quota": {
            "calls_per_minute": account.quota.calls_per_minute,
            "turns": account.quota.turns,
        },
    })
}
