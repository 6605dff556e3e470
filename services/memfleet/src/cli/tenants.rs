//! `memfleet tenants`: what tenants have and may have.

use std::str::FromStr;

use clap::{ArgGroup, Args, Subcommand};
use memfleet_domain::access::Quota;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::admin::{Account, ModelUse};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::key::Whose;
use super::place::OfTenant;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, size, table};

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
    /// Show what a tenant has and may have, and what language models cost it day by day
    Usage {
        /// Only days from then on; default: the last 30
        #[arg(long, value_name = "TIME", value_parser = values::instant)]
        since: Option<Timestamp>,
        /// Only days before then
        #[arg(long, value_name = "TIME", value_parser = values::instant)]
        until: Option<Timestamp>,
        #[command(flatten)]
        whose: Whose,
    },
    /// Set what a tenant may have; what is not named stays as it is. Takes an operator's key
    #[command(group(ArgGroup::new("limits").required(true).multiple(true)))]
    Quota {
        #[command(flatten)]
        tenant: OfTenant,
        /// Calls a minute of all its callers together, at each gateway; or `none`
        #[arg(long, value_name = "CALLS", group = "limits")]
        calls_per_minute: Option<Limit<u32>>,
        /// Turns stored and waiting to be stored; or `none`
        #[arg(long, value_name = "TURNS", group = "limits")]
        turns: Option<Limit<u64>>,
        /// Spaces; or `none`
        #[arg(long, value_name = "SPACES", group = "limits")]
        spaces: Option<Limit<u64>>,
    },
}

/// A number, or that there is no limit.
#[derive(Debug, Clone, Copy)]
struct Limit<N>(Option<N>);

impl<N: FromStr + PartialEq + Default> FromStr for Limit<N> {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = text.parse().ok().filter(|number| *number != N::default());
        let number = number.ok_or("must be a number of at least 1, or `none` for no limit")?;
        Ok(Self(Some(number)))
    }
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
        TenantsCommand::Usage {
            since,
            until,
            whose,
        } => {
            let time = TimeRange {
                start: since,
                end: until,
            };
            let account = admin.account(&handle.call(), whose.tenant, time).await?;
            show(&account, output)?;
        }
        TenantsCommand::Quota {
            tenant,
            calls_per_minute,
            turns,
            spaces,
        } => {
            let tenant = tenant.name().clone();
            let account = admin
                .account(&handle.call(), Some(tenant.clone()), TimeRange::default())
                .await?;
            let before = account.quota;
            let quota = Quota {
                calls_per_minute: calls_per_minute.map_or(before.calls_per_minute, |limit| limit.0),
                turns: turns.map_or(before.turns, |limit| limit.0),
                spaces: spaces.map_or(before.spaces, |limit| limit.0),
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
        language_models,
    } = account;
    let limit =
        |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    output.answer(
        || to_json(account),
        |palette| {
            let columns = [
                ("TENANT", Align::Left),
                ("SPACES", Align::Right),
                ("OF", Align::Right),
                ("TURNS", Align::Right),
                ("OF", Align::Right),
                ("TEXT", Align::Right),
                ("CALLS A MINUTE", Align::Right),
            ];
            let row = [
                tenant.to_string(),
                usage.spaces.to_string(),
                limit(quota.spaces),
                usage.turns.to_string(),
                limit(quota.turns),
                size(usage.bytes),
                limit(quota.calls_per_minute.map(u64::from)),
            ];
            let mut shown = table(palette, columns, [row]);
            if !language_models.is_empty() {
                shown.push('\n');
                shown.push_str(&models(language_models, palette));
            }
            shown
        },
    )?;
    Ok(())
}

fn models(days: &[ModelUse], palette: Palette) -> String {
    let columns = [
        ("DAY", Align::Left),
        ("MODEL CALLS", Align::Right),
        ("TOKENS", Align::Right),
        ("COST", Align::Right),
    ];
    let rows = days.iter().map(|ModelUse { day, used }| {
        [
            day.to_string(),
            used.calls.to_string(),
            used.tokens.to_string(),
            money(used.micros),
        ]
    });
    table(palette, columns, rows)
}

/// Millionths as a decimal number.
fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn to_json(account: &Account) -> Value {
    json!({
        "tenant": account.tenant,
        "spaces": account.usage.spaces,
        "turns": account.usage.turns,
        "bytes": account.usage.bytes,
        "exchanges": account.usage.exchanges,
        "injections": account.usage.injections,
        "quota": {
            "calls_per_minute": account.quota.calls_per_minute,
            "turns": account.quota.turns,
            "spaces": account.quota.spaces,
        },
        "language_models": account.language_models.iter().map(|of| json!({
            "day": of.day,
            "calls": of.used.calls,
            "tokens": of.used.tokens,
            "micros": of.used.micros,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_all_its_digits() {
        assert_eq!(money(0), "0.000000");
        assert_eq!(money(12_000_345), "12.000345");
    }
}
