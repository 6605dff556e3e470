//! `memfleet episodes`: what conversations were about.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{BatchId, SpaceId, TurnId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge_api::EpisodeQuery;

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, said, table, time};

/// List the episodes of a space with their headlines
#[derive(Debug, Args)]
pub struct EpisodesArgs {
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// As memfleet knew them at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    known_at: Option<Timestamp>,
    /// Only episodes that hold this turn; may be repeated
    #[arg(long = "turn", value_name = "ID")]
    turns: Vec<TurnId>,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// Runs the command.
pub async fn run(args: EpisodesArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let query = EpisodeQuery {
        space: args.space,
        turns: args.turns,
        as_of: AsOf {
            known_at: args.known_at,
            happened_by: None,
        },
        wait_for: args.wait_for,
    };
    let episodes = every(async |page| {
        handle
            .knowledge
            .episodes(&handle.call(), &query, page)
            .await
    });
    let episodes = episodes.await?;
    output.list(&episodes, derivation_json, |palette| {
        human(&episodes, palette)
    })?;
    Ok(Exit::Done)
}

fn human(episodes: &[Derivation], palette: Palette) -> String {
    let columns = [
        ("ID", Align::Left),
        ("SESSION", Align::Left),
        ("BEGAN", Align::Left),
        ("TURNS", Align::Right),
        ("TITLE", Align::Left),
    ];
    let rows = episodes.iter().map(|derivation| {
        let episode = derivation.episode();
        let session = episode.map(|episode| episode.session.to_string());
        let began = episode.and_then(|episode| episode.span.start).map(time);
        [
            derivation.id.to_string(),
            session.unwrap_or_default(),
            began.unwrap_or_default(),
            derivation.turns.len().to_string(),
            said(derivation).into_owned(),
        ]
    });
    table(palette, columns, rows)
}
