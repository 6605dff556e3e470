//! `memfleet key`: API keys of a tenant. They live in the store, except for entries of the configuration, which are made here.

use clap::{Args, Subcommand};
use memfleet_domain::access::{Grant, Right, SpacePattern};
use memfleet_domain::ids::{KeyId, TenantId};
use memfleet_domain::time::{Clock, SystemClock};
use memfleet_gateway::access::new_secret;
use memfleet_ports::admin::{Issued, NewKey, Rotation};
use memfleet_ports::keys::{Key, Standing};
use memfleet_runtime::config::HumanDuration;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::place::OfTenant;
use super::{Handle, values};
use crate::config::KeyEntry;
use crate::output::{Align, Output, Palette, printable, table, time};

/// Make, list, revoke and rotate API keys
#[derive(Debug, Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    pub command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make a key; its secret is shown only now
    Create(CreateArgs),
    /// List the keys of a tenant
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// Take a key back for good, at every gateway within three seconds
    Revoke {
        /// The key, as `list` shows it
        id: KeyId,
        #[command(flatten)]
        whose: Whose,
    },
    /// Put a new key in the place of an old one, whose secret goes on for a while
    Rotate {
        /// The key, as `list` shows it
        id: KeyId,
        /// How long the old secret goes on
        #[arg(long, value_name = "DURATION", default_value = "1d")]
        grace: HumanDuration,
        #[command(flatten)]
        whose: Whose,
    },
    /// Make a key for `auth.keys` of the configuration, without a node
    Entry {
        #[command(flatten)]
        tenant: OfTenant,
    },
}

/// Whose keys, quota or log a command is about.
#[derive(Debug, Args)]
pub struct Whose {
    /// Another tenant than that of the API key; takes an operator's
    #[arg(long, value_name = "TENANT", value_parser = values::tenant)]
    pub tenant: Option<TenantId>,
}

#[derive(Debug, Args)]
pub struct CreateArgs {
    /// What the key is for, as `list` shows it
    label: String,
    /// What it allows: read, write, admin; several with commas between
    #[arg(
        long,
        value_name = "RIGHT",
        value_delimiter = ',',
        default_value = "read,write"
    )]
    rights: Vec<Right>,
    /// Only this space, or with `*` at the end those whose names begin so; may be repeated
    #[arg(long = "space", value_name = "SPACE", value_parser = values::space_pattern)]
    spaces: Vec<SpacePattern>,
    /// Whether it may manage every tenant; includes every right in the tenant `default`
    #[arg(long, conflicts_with_all = ["spaces", "rights", "tenant"])]
    operator: bool,
    /// How long it lasts, for example `90d`; for ever without it
    #[arg(long, value_name = "DURATION")]
    expires_in: Option<HumanDuration>,
    /// Calls a minute that it has at each gateway
    #[arg(long, value_name = "CALLS", value_parser = values::range(1..=u32::MAX))]
    calls_per_minute: Option<u32>,
    #[command(flatten)]
    whose: Whose,
}

/// Runs a command that needs a node.
pub async fn run(command: KeyCommand, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let (admin, call) = (&handle.admin, handle.call());
    match command {
        KeyCommand::Create(args) => {
            show(&admin.create_key(&call, args.into()).await?, output)?;
        }
        KeyCommand::List { whose } => {
            let keys = every(async |page| {
                let tenant = whose.tenant.clone();
                admin.keys(&handle.call(), tenant, page).await
            })
            .await?;
            output.list(&keys, to_json, |palette| human(&keys, palette))?;
        }
        KeyCommand::Revoke { id, whose } => {
            let key = admin.revoke_key(&call, whose.tenant, id).await?;
            output.answer(|| to_json(&key), |_| format!("{} is revoked", key.id))?;
        }
        KeyCommand::Rotate { id, grace, whose } => {
            let rotation = Rotation {
                tenant: whose.tenant,
                id,
                grace: Some(grace.get()),
            };
            show(&admin.rotate_key(&call, rotation).await?, output)?;
        }
        KeyCommand::Entry { tenant } => return entry(tenant.name().clone(), output),
    }
    Ok(Exit::Done)
}

impl From<CreateArgs> for NewKey {
    fn from(args: CreateArgs) -> Self {
        let grant = match args.operator {
            true => Grant::ALL,
            false => Grant {
                rights: args.rights.into_iter().collect(),
                spaces: args.spaces,
            },
        };
        let end = |lifetime: HumanDuration| {
            let lifetime = chrono::TimeDelta::from_std(lifetime.get()).ok()?;
            SystemClock.now().checked_add_signed(lifetime)
        };
        Self {
            tenant: args.whose.tenant,
            label: args.label,
            grant,
            is_operator: args.operator,
            calls_per_minute: args.calls_per_minute,
            expires_at: args.expires_in.and_then(end),
        }
    }
}

/// An entry of the configuration. The key is printed once and kept nowhere.
pub fn entry(tenant: TenantId, output: &mut Output) -> Result<Exit, Error> {
    let (key, hash) = new_secret();
    let entry = KeyEntry { tenant, hash };
    output.answer(
        || json!({ "tenant": entry.tenant, "key": key, "entry": entry.to_string() }),
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

fn show(issued: &Issued, output: &mut Output) -> Result<(), Error> {
    output.answer(
        || {
            let mut answer = to_json(&issued.key);
            answer["secret"] = json!(issued.secret);
            answer
        },
        |palette| {
            format!(
                "{}  {}\n{}  {}\n        for callers, as --api-key or MEMFLEET_API_KEY; it is shown only now",
                palette.strong("id    "),
                issued.key.id,
                palette.strong("key   "),
                issued.secret
            )
        },
    )?;
    Ok(())
}

fn to_json(key: &Key) -> Value {
    json!({
        "id": key.id,
        "tenant": key.tenant,
        "label": key.label,
        "rights": key.grant.rights.iter().collect::<Vec<_>>(),
        "spaces": key.grant.spaces,
        "operator": key.is_operator,
        "calls_per_minute": key.calls_per_minute,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "last_used_at": key.last_used_at,
        "revoked_at": key.revoked_at,
        "replaced_by": key.replaced_by,
    })
}

fn human(keys: &[Key], palette: Palette) -> String {
    let columns = [
        ("ID", Align::Left),
        ("LABEL", Align::Left),
        ("RIGHTS", Align::Left),
        ("SPACES", Align::Left),
        ("STATE", Align::Left),
        ("ENDS", Align::Left),
        ("LAST USED", Align::Left),
    ];
    let now = SystemClock.now();
    let instant = |at: Option<_>| at.map_or_else(|| "-".to_owned(), time);
    let rows = keys.iter().map(|key| {
        let state = match key.standing(now) {
            Standing::Valid => "valid",
            Standing::Expired => "expired",
            Standing::Revoked => "revoked",
        };
        [
            key.id.to_string(),
            printable(&key.label),
            rights(key),
            spaces(key),
            state.to_owned(),
            instant(key.expires_at),
            instant(key.last_used_at),
        ]
    });
    table(palette, columns, rows)
}

fn rights(key: &Key) -> String {
    if key.is_operator {
        return "operator".to_owned();
    }
    let names = key.grant.rights.iter().map(Right::name);
    names.collect::<Vec<_>>().join(",")
}

fn spaces(key: &Key) -> String {
    if key.grant.is_everywhere() {
        return "all".to_owned();
    }
    let patterns = key.grant.spaces.iter().map(SpacePattern::as_str);
    patterns.collect::<Vec<_>>().join(",")
}
