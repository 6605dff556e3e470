//! `memfleet audit`: who did what, and which turns entered which prompt.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::time::TimeRange;
use memfleet_ports::audit::{AuditFilter, AuditKind, AuditRecord};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::at_most;
use super::key::Whose;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, printable, renamed, table, time};

/// Show the audit log of a tenant, the newest first
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only this kind, for example `injected` or `key_revoked`; may be repeated
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<AuditKind>,
    /// Only records from then on
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    since: Option<Timestamp>,
    /// Only records before then
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    until: Option<Timestamp>,
    /// How many at most
    #[arg(long, short = 'n', default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    whose: Whose,
}

/// Runs the command.
pub async fn run(args: AuditArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = AuditFilter {
        kinds: args.kinds,
        time: TimeRange {
            start: args.since,
            end: args.until,
        },
    };
    let read = async |page| {
        let call = handle.call();
        handle
            .admin
            .audit(&call, args.whose.tenant.clone(), filter.clone(), page)
            .await
    };
    let records = at_most(args.limit, read).await?;
    output.list(&records, to_json, |palette| human(&records, palette))?;
    Ok(Exit::Done)
}

fn to_json(record: &AuditRecord) -> Value {
    json!({
        "at": record.at,
        "kind": record.kind.name(),
        "caller": record.caller,
        "request_id": record.request_id,
        "space": record.space,
        "key": record.key,
        "turns": record.turns.iter().map(|turn| renamed(json!(turn), "turn", "turn_id")).collect::<Vec<_>>(),
        "detail": record.detail,
    })
}

fn human(records: &[AuditRecord], palette: Palette) -> String {
    let columns = [
        ("TIME", Align::Left),
        ("KIND", Align::Left),
        ("CALLER", Align::Left),
        ("SPACE", Align::Left),
        ("TURNS", Align::Right),
        ("DETAIL", Align::Left),
    ];
    let rows = records.iter().map(|record| {
        let named = record
            .detail
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let key = record.key.map(|key| format!("key={key}"));
        let detail: Vec<_> = key.into_iter().chain(named).collect();
        [
            time(record.at),
            record.kind.to_string(),
            printable(&record.caller),
            record
                .space
                .as_ref()
                .map_or_else(|| "-".to_owned(), |space| printable(space.as_str())),
            record.turns.len().to_string(),
            printable(&detail.join(" ")),
        ]
    });
    table(palette, columns, rows)
}
