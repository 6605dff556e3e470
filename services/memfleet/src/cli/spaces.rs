//! `memfleet spaces`: the spaces of a tenant and their settings.

use clap::{Args, Subcommand};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::{Space, SpaceSettings, TimeZone};
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, table, time};

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
}

#[derive(Debug, Args)]
struct SetArgs {
    /// The space
    #[arg(value_parser = values::space)]
    name: SpaceId,
    /// ISO 639-1 code of the language its turns and queries are analysed in, or `auto` for that of its first turns
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// IANA time zone in which its dates are read and rendered, for example Europe/Zurich
    #[arg(long, value_name = "ZONE", value_parser = values::time_zone)]
    time_zone: Option<TimeZone>,
    /// Days after which turns are removed for good, or `none` to keep them
    #[arg(long, value_name = "DAYS", value_parser = retention)]
    retention_days: Option<Retention>,
}

/// How long turns are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Retention(Option<u32>);

fn retention(text: &str) -> Result<Retention, String> {
    match text {
        "none" => Ok(Retention(None)),
        // On the wire 0 stands for `none`, which nobody means who writes 0.
        days => match days.parse() {
            Ok(days @ 1..=limits::RETENTION_DAYS) => Ok(Retention(Some(days))),
            _ => Err(format!(
                "is neither `none` nor a number of days from 1 to {}",
                limits::RETENTION_DAYS
            )),
        },
    }
}

/// Runs the command.
pub async fn run(args: SpacesArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let spaces = every(async |page| handle.memory.spaces(&handle.call(), page).await).await?;
    match args.command.unwrap_or(SpacesCommand::List) {
        SpacesCommand::List => output.list(&spaces, to_json, |palette| human(&spaces, palette))?,
        SpacesCommand::Set(args) => {
            let known = spaces.into_iter().find(|space| space.id == args.name);
            let name = args.name.clone();
            let settings = changed(known.map(|space| space.settings).unwrap_or_default(), args);
            let space = handle
                .memory
                .put_space(&handle.call(), &name, settings)
                .await?;
            output.answer(
                || to_json(&space),
                |palette| human(std::slice::from_ref(&space), palette),
            )?;
        }
    }
    Ok(Exit::Done)
}

fn changed(mut settings: SpaceSettings, args: SetArgs) -> SpaceSettings {
    if let Some(language) = args.language {
        settings.language = (language != "auto").then_some(language);
    }
    settings.time_zone = args.time_zone.unwrap_or(settings.time_zone);
    if let Some(Retention(days)) = args.retention_days {
        settings.retention_days = days;
    }
    settings
}

fn to_json(space: &Space) -> Value {
    json!({
        "space": space.id,
        "settings": space.settings,
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
            settings
                .retention_days
                .map_or_else(|| "for ever".to_owned(), |days| format!("{days} d")),
        ]
    });
    table(palette, columns, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(language: Option<&str>, days: Option<&str>) -> SetArgs {
        SetArgs {
            name: SpaceId::new("ada").unwrap(),
            language: language.map(str::to_owned),
            time_zone: None,
            retention_days: days.map(|days| retention(days).unwrap()),
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
    fn a_retention_of_no_days_is_refused() {
        assert!(retention("a week").is_err() && retention("0").is_err());
    }
}
