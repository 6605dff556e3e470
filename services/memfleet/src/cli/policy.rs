//! `memfleet policy`: how memory enters prompts, as the owner of it sets it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use memfleet_domain::Fault;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::policy::Policy;
use memfleet_ports::policies::{PolicyInForce, policy_key};
use serde_json::{Map, Value, json};

use super::exit::{Error, Exit};
use super::{Handle, STANDARD_OUTPUT, values};
use crate::output::{Align, Output, Palette, exact, printable, table};

/// How memory enters prompts: show, set or remove the policy of the tenant or of a space
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Show(ShowArgs),
    Set(SetArgs),
    Remove(RemoveArgs),
}

/// Show the policy in force, and where each part of it comes from
#[derive(Debug, Args)]
struct ShowArgs {
    #[command(flatten)]
    whose: Whose,
}

/// Set what a policy says, all of it; what it does not say is as in the one below it
#[derive(Debug, Args)]
struct SetArgs {
    #[command(flatten)]
    whose: Whose,
    /// File with the policy as JSON, `-` for standard input
    #[arg(long, value_name = "FILE", default_value = STANDARD_OUTPUT)]
    file: PathBuf,
    #[command(flatten)]
    follows: Follows,
}

/// Remove a policy: the one below it is in force again
#[derive(Debug, Args)]
struct RemoveArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    follows: Follows,
}

#[derive(Debug, Args)]
struct Whose {
    /// The space; by default all of the tenant
    #[arg(long, value_parser = values::space)]
    space: Option<SpaceId>,
}

#[derive(Debug, Args)]
pub struct Follows {
    /// Only if this is the latest version, 0 for none: two who change it at a time cannot undo each other
    #[arg(long, value_name = "N")]
    pub expected_version: Option<u32>,
}

/// Runs the command.
pub async fn run(args: PolicyArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    match args.command {
        PolicyCommand::Show(args) => show(args, handle, output).await,
        PolicyCommand::Set(args) => set(args, handle, output).await,
        PolicyCommand::Remove(args) => remove(args, handle, output).await,
    }
}

async fn show(args: ShowArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let space = args.whose.space;
    let policy = handle
        .policies
        .policy(&handle.call(), space.clone())
        .await?;
    output.answer(
        || to_json(&policy, space.as_ref()),
        |palette| human(&policy, palette),
    )?;
    Ok(Exit::Done)
}

async fn set(args: SetArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let policy = read(&args.file)?;
    let expected = args.follows.expected_version;
    let call = handle.call();
    let put = handle
        .policies
        .put_policy(&call, args.whose.space, policy, expected);
    told(put.await?, output)
}

async fn remove(args: RemoveArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let key = policy_key(args.whose.space);
    let expected = args.follows.expected_version;
    let call = handle.call();
    let removed = handle.policies.remove_document(&call, key, expected);
    told(removed.await?, output)
}

/// Which version was made.
pub fn told(version: u32, output: &mut Output) -> Result<Exit, Error> {
    let text = match version {
        0 => "there was none".to_owned(),
        version => format!("version {version}"),
    };
    output.answer(|| json!({ "version": version }), |_| text)?;
    Ok(Exit::Done)
}

/// A policy of a file, or of standard input.
pub fn read(path: &Path) -> Result<Policy, Error> {
    let policy = serde_json::from_str(&input(path)?);
    Ok(policy.map_err(|error| Fault::invalid("--file", format!("is no policy: {error}")))?)
}

/// The text of a file, or of standard input.
pub fn input(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = if path == Path::new(STANDARD_OUTPUT) {
        std::io::stdin().lock().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(Error::file(path))?;
    Ok(text)
}

fn to_json(policy: &PolicyInForce, space: Option<&SpaceId>) -> Value {
    let parts = parts(policy).into_iter();
    let from: Map<_, _> = parts
        .map(|part| (part.field, json!(part.from.join("+"))))
        .collect();
    json!({
        "in_force": exact(&policy.in_force),
        "from": from,
        "node": exact(&policy.of_node),
        "tenant": { "version": policy.tenant_version, "policy": exact(&policy.of_tenant) },
        "space": space.map(|space| json!({
            "name": space,
            "version": policy.space_version,
            "policy": exact(&policy.of_space),
        })),
    })
}

fn human(policy: &PolicyInForce, palette: Palette) -> String {
    let columns = [
        ("SETTING", Align::Left),
        ("VALUE", Align::Left),
        ("FROM", Align::Left),
    ];
    let named = |from: &str| match from {
        "space" => format!("space, version {}", policy.space_version),
        "tenant" => format!("tenant, version {}", policy.tenant_version),
        other => other.to_owned(),
    };
    let rows = parts(policy).into_iter().map(|part| {
        let from: Vec<_> = part.from.iter().map(|from| named(from)).collect();
        let value = printable(&part.value.to_string());
        [printable(&part.field), value, from.join(" and ")]
    });
    table(palette, columns, rows)
}

/// One value of a policy.
struct Part {
    field: String,
    value: Value,
    from: Vec<&'static str>,
}

/// Every value that is in force, and whose it is. Redactions and topics add up, so they may have
/// several owners.
fn parts(policy: &PolicyInForce) -> Vec<Part> {
    let owners = [
        ("node", exact(&policy.of_node)),
        ("tenant", exact(&policy.of_tenant)),
        ("space", exact(&policy.of_space)),
    ];
    let mut parts = Vec::new();
    let in_force = exact(&policy.in_force);
    for (section, values) in in_force.as_object().into_iter().flatten() {
        for (field, value) in values.as_object().into_iter().flatten() {
            let says = |(_, policy): &&(_, Value)| policy[section].get(field).is_some();
            let mut from: Vec<_> = owners
                .iter()
                .filter(says)
                .map(|(owner, _)| *owner)
                .collect();
            let adds_up = section == "format" && field == "redactions";
            if !adds_up {
                from.drain(..from.len().saturating_sub(1));
            }
            if from.is_empty() {
                from.push("shipped");
            }
            parts.push(Part {
                field: format!("{section}.{field}"),
                value: value.clone(),
                from,
            });
        }
    }
    parts.extend(policy.in_force.topics.iter().flatten().map(|topic| {
        let owners = [
            ("space", &policy.of_space),
            ("tenant", &policy.of_tenant),
            ("node", &policy.of_node),
        ];
        let is_owner =
            |(_, owner): &&(&str, &Policy)| owner.topics.iter().flatten().any(|it| it == topic);
        let owner = owners.iter().find(is_owner);
        Part {
            field: format!("topics.{}", topic.name),
            value: json!({
                "action": topic.action,
                "description": topic.description,
                "examples": topic.examples.len(),
            }),
            from: owner.map(|(owner, _)| *owner).into_iter().collect(),
        }
    }));
    parts
}

#[cfg(test)]
mod tests {
    use memfleet_domain::topic::{Topic, TopicAction};

    use super::*;

    #[test]
    fn the_sample_of_the_document_is_a_policy() {
        let document = include_str!("../../../../docs/amp.md");
        let sample = document.split("```json\n").nth(1).unwrap();
        let sample = sample.split("```").next().unwrap();
        let policy: Policy = serde_json::from_str(sample).unwrap();
        assert_eq!(policy.problems(), []);
        assert_eq!(policy.budget.max_tokens, Some(2000));
    }

    #[test]
    fn every_value_in_force_is_told_with_its_owner() {
        let mut policy = PolicyInForce::default();
        policy.of_space.budget.max_tokens = Some(0);
        policy.of_tenant.budget.max_tokens = Some(9);
        policy.of_tenant.tools.rounds = Some(1);
        (
            policy.of_node.tools.rounds,
            policy.of_node.audit.retention_days,
        ) = (Some(2), Some(3));
        policy.of_space.format.redactions = Some(vec!["a".to_owned()]);
        policy.of_tenant.format.redactions = Some(vec!["b".to_owned()]);
        let topic = |name: &str, action| Topic {
            name: name.to_owned(),
            action,
            description: "Illnesses.".to_owned(),
            examples: vec!["I have asthma.".to_owned()],
        };
        policy.of_tenant.topics = Some(vec![
            topic("health", TopicAction::LeaveOut),
            topic("ills", TopicAction::Keep),
        ]);
        policy.of_space.topics = Some(vec![topic("health", TopicAction::Tag)]);
        let said = policy.of_space.clone().over(policy.of_tenant.clone());
        policy.in_force = said.over(policy.of_node.clone()).settled().into();
        let parts = parts(&policy);
        let of = |field: &str| {
            let part = parts.iter().find(|part| part.field == field).unwrap();
            (part.value.clone(), part.from.as_slice())
        };
        assert_eq!(of("budget.max_tokens"), (json!(0), ["space"].as_slice()));
        assert_eq!(of("tools.rounds"), (json!(1), ["tenant"].as_slice()));
        assert_eq!(of("audit.retention_days"), (json!(3), ["node"].as_slice()));
        let both = (json!(["b", "a"]), ["tenant", "space"].as_slice());
        assert_eq!(of("format.redactions"), both);
        let told =
            |action: &str| json!({"action": action, "description": "Illnesses.", "examples": 1});
        assert_eq!(of("topics.health"), (told("tag"), ["space"].as_slice()));
        assert_eq!(of("topics.ills"), (told("keep"), ["tenant"].as_slice()));
        let (relevance, from) = of("gating.relevance");
        assert_eq!(
            (&*relevance.to_string(), from),
            ("0.0002", ["shipped"].as_slice())
        );
    }
}
