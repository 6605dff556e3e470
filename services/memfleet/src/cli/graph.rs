//! `memfleet graph`: who is connected to what.

mod drawing;

use clap::{Args, ValueEnum};
use memfleet_domain::Timestamp;
use memfleet_domain::graph::Entity;
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_ports::knowledge_api::{Edge, EntityQuery, EntityRequest, PathsQuery};
use memfleet_ports::memory::PageRequest;
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::values::range;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, span, table};

/// List the entities that facts are about, show what one is connected to, or how two are
#[derive(Debug, Args)]
pub struct GraphArgs {
    /// An entity, by name or by id; without one all are listed
    #[arg(value_name = "ENTITY")]
    entity: Option<String>,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// Only entities whose names begin so
    #[arg(long, value_name = "TEXT", conflicts_with = "entity")]
    prefix: Option<String>,
    /// How it is connected to this entity
    #[arg(long, value_name = "ENTITY", requires = "entity")]
    to: Option<String>,
    /// Facts between the two at most
    #[arg(long, value_name = "N", default_value_t = limits::HOPS, value_parser = range(1..=limits::HOPS), requires = "to")]
    hops: u32,
    /// Only what held at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    at: Option<Timestamp>,
    /// How connections are shown; `--json` takes its place
    #[arg(long, value_enum, default_value_t = Format::Table, requires = "entity")]
    format: Format,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// How connections are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line each
    Table,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

/// Runs the command.
pub async fn run(args: GraphArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let Some(entity) = args.entity else {
        let query = EntityQuery {
            space: args.space,
            prefix: args.prefix.unwrap_or_default(),
            wait_for: args.wait_for,
        };
        let entities = every(async |page| {
            let call = handle.call();
            handle.knowledge.entities(&call, &query, page).await
        });
        let entities = entities.await?;
        output.list(&entities, entity_json, |palette| named(&entities, palette))?;
        return Ok(Exit::Done);
    };
    let request = EntityRequest {
        space: args.space,
        entity,
        at: args.at,
        wait_for: args.wait_for,
    };
    match args.to {
        Some(to) => {
            let query = PathsQuery {
                from: request,
                to,
                hops: args.hops,
                limit: limits::PATHS,
            };
            let found = handle.knowledge.paths(&handle.call(), &query).await?;
            if found.truncated {
                eprintln!("incomplete: entities on the way have more facts than are looked at");
            }
            let paths: Vec<&[Edge]> = found.paths.iter().map(Vec::as_slice).collect();
            show(&paths, None, args.format, output)?;
        }
        None => {
            let (edges, centre) = neighbours(handle, &request).await?;
            let each: Vec<&[Edge]> = edges.iter().map(std::slice::from_ref).collect();
            show(&each, Some(&centre), args.format, output)?;
        }
    }
    Ok(Exit::Done)
}

/// All that an entity is connected to.
async fn neighbours(
    handle: &Handle,
    request: &EntityRequest,
) -> Result<(Vec<Edge>, Entity), Error> {
    let (mut edges, mut page) = (Vec::new(), PageRequest::default());
    loop {
        let call = handle.call();
        let found = handle.knowledge.neighbours(&call, request, page).await?;
        edges.extend(found.edges.items);
        page = PageRequest {
            after: found.edges.next,
            ..PageRequest::default()
        };
        if page.after.is_none() {
            return Ok((edges, found.entity));
        }
    }
}

/// Paths, of which connections of one entity are the shortest.
fn show(
    paths: &[&[Edge]],
    centre: Option<&Entity>,
    format: Format,
    output: &mut Output,
) -> Result<(), Error> {
    let edges = || paths.iter().copied().flatten();
    match format {
        Format::Dot if !output.is_json() => output.text(&drawing::dot(edges()))?,
        Format::Svg if !output.is_json() => output.text(&drawing::svg(edges(), centre))?,
        _ => output.list(paths, path_json, |palette| match centre {
            Some(_) => lines(paths, palette),
            None => steps(paths, palette),
        })?,
    }
    Ok(())
}

fn path_json(path: &&[Edge]) -> Value {
    match path {
        [edge] => edge_json(edge),
        _ => json!(path.iter().map(edge_json).collect::<Vec<_>>()),
    }
}

fn edge_json(edge: &Edge) -> Value {
    let triplet = &edge.triplet;
    json!({
        "fact": triplet.fact,
        "subject": edge.subject.name,
        "predicate": triplet.predicate,
        "object": edge.object.name,
        "negated": triplet.negated,
        "valid": triplet.valid,
        "confidence": crate::output::exact(&triplet.confidence),
        "turns": triplet.turns,
    })
}

fn entity_json(entity: &Entity) -> Value {
    json!({ "id": entity.id, "key": entity.key, "name": entity.name })
}

fn named(entities: &[Entity], palette: Palette) -> String {
    let columns = [("ID", Align::Left), ("NAME", Align::Left)];
    let rows = entities
        .iter()
        .map(|entity| [entity.id.to_string(), entity.name.clone()]);
    table(palette, columns, rows)
}

fn lines(paths: &[&[Edge]], palette: Palette) -> String {
    let columns = [
        ("HELD", Align::Left),
        ("SUBJECT", Align::Left),
        ("PREDICATE", Align::Left),
        ("OBJECT", Align::Left),
    ];
    table(palette, columns, paths.iter().copied().flatten().map(line))
}

/// The same of paths of several connections, each with its number.
fn steps(paths: &[&[Edge]], palette: Palette) -> String {
    let columns = [
        ("PATH", Align::Right),
        ("HELD", Align::Left),
        ("SUBJECT", Align::Left),
        ("PREDICATE", Align::Left),
        ("OBJECT", Align::Left),
    ];
    let rows = (1..).zip(paths).flat_map(|(number, path)| {
        path.iter().map(move |edge| {
            let [held, subject, predicate, object] = line(edge);
            [number.to_string(), held, subject, predicate, object]
        })
    });
    table(palette, columns, rows)
}

fn line(edge: &Edge) -> [String; 4] {
    [
        span(edge.triplet.valid),
        edge.subject.name.clone(),
        predicate(edge),
        edge.object.name.clone(),
    ]
}

fn predicate(edge: &Edge) -> String {
    let not = if edge.triplet.negated { "not " } else { "" };
    format!("{not}{}", edge.triplet.predicate)
}
