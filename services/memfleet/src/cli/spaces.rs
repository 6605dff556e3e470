//! `memfleet spaces`: the spaces of a tenant and their settings.

use clap::{Args, Subcommand};
use memfleet_domain::space::{Space, SpaceSettings, TimeZone};
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::place::InSpace;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, printable, table, time};

/// List spaces, or set what a space is like
#[derive(Debug, Args)]
pub struct SpacesArgs {
    #[command(subcommand)]
    command: Option<SpacesCommand>,
}

#[derive(Debug, Subcommand)]
enum SpacesCommand {
    /// List the spaces by name (the default)
    List,
    /// Create a space or change its settings; what is left out stays as it is
    Set(SetArgs),
    /// Put a space on legal hold: nothing of it is forgotten or removed until it is released. Takes the right `admin`
    Hold(HoldArgs),
    /// Lift the legal hold of a space. Takes the right `admin`
    Release(HoldArgs),
}

#[derive(Debug, Args)]
struct HoldArgs {
    #[command(flatten)]
    space: InSpace,
    /// Why; it is written to the audit log, and shown with the space while it is on hold
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

#[derive(Debug, Args)]
struct SetArgs {
    #[command(flatten)]
    space: InSpace,
    #[command(flatten)]
    settings: SettingsArgs,
}

#[derive(Debug, Args)]
struct SettingsArgs {
    /// ISO 639-1 code of the language its turns and queries are analysed in, or `auto` for that of its first turns
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// IANA time zone in which its dates are read and rendered, for example Europe/Zurich
    #[arg(long, value_name = "ZONE", value_parser = values::time_zone)]
    time_zone: Option<TimeZone>,
    /// Days after which turns are removed for good, or `none` to keep them
    #[arg(long, value_name = "DAYS", value_parser = retention::<{ limits::RETENTION_DAYS }>)]
    retention_days: Option<Retention>,
    /// How many turns are kept, the newest; older ones are removed for good. `none` keeps all
    #[arg(long, value_name = "TURNS", value_parser = retention::<{ limits::RETENTION_TURNS }>)]
    retention_turns: Option<Retention>,
    /// Days after which versions of facts and episodes that hold no longer are removed for good, or `none` to keep them
    #[arg(long, value_name = "DAYS", value_parser = retention::<{ limits::RETENTION_DAYS }>)]
    retention_superseded_days: Option<Retention>,
}

/// How long, or how much, is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Retention(Option<u32>);

fn retention<const MOST: u32>(text: &str) -> Result<Retention, String> {
    if text == "none" {
        return Ok(Retention(None));
    }
    // On the wire 0 stands for `none`, which nobody means who writes 0.
    match text.parse() {
        Ok(number) if (1..=MOST).contains(&number) => Ok(Retention(Some(number))),
        _ => Err(format!("is neither `none` nor a number from 1 to {MOST}")),
    }
}

/// Runs the command.
pub async fn run(args: SpacesArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let space = match args.command.unwrap_or(SpacesCommand::List) {
        SpacesCommand::List => {
            let spaces = all(handle).await?;
            output.list(&spaces, to_json, |palette| human(&spaces, palette))?;
            return Ok(Exit::Done);
        }
        SpacesCommand::Set(args) => set(args, handle).await?,
        SpacesCommand::Hold(args) => hold(args, true, handle).await?,
        SpacesCommand::Release(args) => hold(args, false, handle).await?,
    };
    output.answer(
        || to_json(&space),
        |palette| human(std::slice::from_ref(&space), palette),
    )?;
    Ok(Exit::Done)
}

async fn all(handle: &Handle) -> Result<Vec<Space>, Error> {
    Ok(every(async |page| handle.memory.spaces(&handle.call(), page).await).await?)
}

async fn set(args: SetArgs, handle: &Handle) -> Result<Space, Error> {
    let (name, args) = (args.space.name().clone(), args.settings);
    let known = all(handle).await?;
    let known = known.into_iter().find(|space| space.id == name);
    let settings = changed(known.map(|space| space.settings).unwrap_or_default(), args);
    let call = handle.call();
    let put = handle.memory.put_space(&call, &name, settings);
    Ok(put.await?)
}

async fn hold(args: HoldArgs, held: bool, handle: &Handle) -> Result<Space, Error> {
    let (name, reason) = (args.space.name().clone(), args.reason);
    let call = handle.call();
    let set = handle.memory.set_legal_hold(&call, &name, held, reason);
    Ok(set.await?)
}

fn changed(mut settings: SpaceSettings, args: SettingsArgs) -> SpaceSettings {
    if let Some(language) = args.language {
        settings.language = (language != "auto").then_some(language);
    }
    settings.time_zone = args.time_zone.unwrap_or(settings.time_zone);
    for (setting, given) in [
        (&mut settings.retention_days, args.retention_days),
        (&mut settings.retention_turns, args.retention_turns),
        (
            &mut settings.retention_superseded_days,
            args.retention_superseded_days,
        ),
    ] {
        if let Some(Retention(kept)) = given {
            *setting = kept;
        }
    }
    settings
}

fn to_json(space: &Space) -> Value {
    json!({
        "space": space.id,
        "settings": space.settings,
        "hold": space.hold.as_ref().map(|hold| json!({ "since": hold.since, "reason": hold.reason })),
        "created_at": space.created_at,
        "sessions": space.sessions,
        "turns": space.turns,
        "last_turn_at": space.last_turn_at,
    })
}

fn human(spaces: &[Space], palette: Palette) -> String {
    let columns = [
        ("SPACE", Align::Left),
        ("SESSIONS", Align::Right),
        ("TURNS", Align::Right),
        ("LAST TURN", Align::Left),
        ("LANGUAGE", Align::Left),
        ("TIME ZONE", Align::Left),
        ("KEPT", Align::Left),
        ("ON HOLD", Align::Left),
    ];
    let rows = spaces.iter().map(|space| {
        let settings = &space.settings;
        [
            space.id.to_string(),
            space.sessions.to_string(),
            space.turns.to_string(),
            space.last_turn_at.map_or_else(|| "-".to_owned(), time),
            settings
                .language
                .clone()
                .unwrap_or_else(|| "auto".to_owned()),
            settings.time_zone.0.name().to_owned(),
            kept(settings),
            space
                .hold
                .as_ref()
                .map_or_else(|| "-".to_owned(), |hold| printable(&hold.reason)),
        ]
    });
    table(palette, columns, rows)
}

/// What is kept of turns, and for how long of what holds no longer.
fn kept(settings: &SpaceSettings) -> String {
    let limits = [
        settings.retention_days.map(|days| format!("{days} d")),
        settings
            .retention_turns
            .map(|turns| format!("{turns} turns")),
        settings
            .retention_superseded_days
            .map(|days| format!("superseded {days} d")),
    ];
    let limits: Vec<_> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        return "for ever".to_owned();
    }
    limits.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(language: Option<&str>, days: Option<&str>) -> SettingsArgs {
        SettingsArgs {
            language: language.map(str::to_owned),
            time_zone: None,
            retention_days: days.map(|days| retention::<{ limits::RETENTION_DAYS }>(days).unwrap()),
            retention_turns: None,
            retention_superseded_days: None,
        }
    }

    #[test]
    fn settings_that_are_left_out_stay() {
        let german = changed(SpaceSettings::default(), set(Some("de"), None));
        let kept = changed(german, set(None, Some("30")));
        assert_eq!(
            (kept.language.as_deref(), kept.retention_days),
            (Some("de"), Some(30))
        );
    }

    #[test]
    fn auto_and_none_take_settings_back() {
        let set_once = changed(SpaceSettings::default(), set(Some("de"), Some("30")));
        assert_eq!(
            changed(set_once, set(Some("auto"), Some("none"))),
            SpaceSettings::default()
        );
    }

    #[test]
    fn what_is_kept_is_said_in_a_few_words() {
        let settings = SpaceSettings {
            retention_days: Some(30),
            retention_superseded_days: Some(7),
            ..SpaceSettings::default()
        };
        assert_eq!(kept(&settings), "30 d, superseded 7 d");
        assert_eq!(kept(&SpaceSettings::default()), "for ever");
    }

    #[test]
    fn a_retention_of_no_days_is_refused() {
        for wrong in ["a week", "0", "36526"] {
            assert!(retention::<{ limits::RETENTION_DAYS }>(wrong).is_err());
        }
    }
}
