//! `memfleet entity`: the names of an entity, and which names are one.

use clap::{Args, Subcommand};
use memfleet_domain::graph::Entity;
use memfleet_domain::ids::{BatchId, ChangeId, SpaceId};
use memfleet_ports::knowledge_api::{
    EntityName, EntityRequest, MergeRequest, NamedEntity, SplitRequest,
};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::{Handle, values};
use crate::output::{Output, printable};

/// Show the names of an entity, or say which names are one
#[derive(Debug, Args)]
pub struct EntityArgs {
    #[command(subcommand)]
    command: EntityCommand,
}

#[derive(Debug, Subcommand)]
enum EntityCommand {
    /// Show all names of an entity, and what they rest on
    Show(ShowArgs),
    /// Say that two names are of one entity; `memfleet revert` undoes it
    Merge(MergeArgs),
    /// Say that a name is not of the entity that it was taken for; `memfleet revert` undoes it
    Split(NameArgs),
}

#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    name: NameArgs,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

#[derive(Debug, Args)]
struct NameArgs {
    /// The entity, by name or by id
    #[arg(value_name = "ENTITY")]
    entity: String,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

#[derive(Debug, Args)]
struct MergeArgs {
    /// The entity, by the name that it goes by or by id
    #[arg(value_name = "ENTITY")]
    entity: String,
    /// Its other name
    #[arg(value_name = "OTHER")]
    other: String,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
}

/// Runs the command.
pub async fn run(args: EntityArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let (knowledge, call) = (&handle.knowledge, handle.call());
    match args.command {
        EntityCommand::Show(ShowArgs { name, wait_for }) => {
            let request = EntityRequest {
                space: name.space,
                entity: name.entity,
                at: None,
                wait_for,
            };
            let found = knowledge.entity(&call, &request).await?;
            output.answer(|| named_json(&found), |_| named(&found))?;
        }
        EntityCommand::Merge(args) => {
            let request = MergeRequest {
                space: args.space,
                entity: args.entity,
                other: args.other,
            };
            let merged = knowledge.merge(&call, &request).await?;
            let mut value = named_json(&merged.entity);
            value["change"] = json!(merged.change);
            let text = || format!("{}\n{}", named(&merged.entity), told(merged.change));
            output.answer(|| value, |_| text())?;
        }
        EntityCommand::Split(NameArgs { entity, space }) => {
            let request = SplitRequest { space, entity };
            let split = knowledge.split(&call, &request).await?;
            let value = json!({
                "entity": entity_json(&split.entity),
                "parted": split.parted.iter().map(entity_json).collect::<Vec<_>>(),
                "change": split.change,
            });
            let text = || match &split.parted[..] {
                [] => format!("{} has no other name", printable(&split.entity.name)),
                parted => {
                    let from: Vec<_> = parted.iter().map(|it| printable(&it.name)).collect();
                    let name = printable(&split.entity.name);
                    let from = from.join(", ");
                    format!("{name} is not {from}\n{}", told(split.change))
                }
            };
            output.answer(|| value, |_| text())?;
        }
    }
    Ok(Exit::Done)
}

fn told(change: Option<ChangeId>) -> String {
    match change {
        Some(change) => format!("change {change}"),
        None => "nothing changed: they were one already".to_owned(),
    }
}

fn named(found: &NamedEntity) -> String {
    let entity = printable(&found.entity.name);
    match &found.names[..] {
        [] => entity,
        names => {
            let names: Vec<_> = names.iter().map(|it| printable(&it.entity.name)).collect();
            format!("{entity}, also {}", names.join(", "))
        }
    }
}

fn named_json(found: &NamedEntity) -> Value {
    let name = |name: &EntityName| {
        let mut value = entity_json(&name.entity);
        value["because"] = json!(name.because);
        value
    };
    json!({
        "entity": entity_json(&found.entity),
        "names": found.names.iter().map(name).collect::<Vec<_>>(),
    })
}

fn entity_json(entity: &Entity) -> Value {
    json!({ "id": entity.id, "key": entity.key, "name": entity.name })
}
