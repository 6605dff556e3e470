//! `memfleet narratives`: the stories that a space tells.

use clap::Args;
use memfleet_domain::Timestamp;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{BatchId, DerivationId, SpaceId};
use memfleet_domain::time::AsOf;
use memfleet_ports::knowledge_api::NarrativeQuery;
use memfleet_ports::memory::PageRequest;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::handle::every;
use super::{Handle, values};
use crate::output::{Align, Output, Palette, derivation_json, printable, said, table, time};

/// List the stories that a space tells, or what was said of one
#[derive(Debug, Args)]
pub struct NarrativesArgs {
    /// A narrative; without one all of the space
    id: Option<DerivationId>,
    /// The space
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    /// With what was said of each, stretch by stretch; of a single one always
    #[arg(long)]
    tree: bool,
    /// Only what had begun by this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    at: Option<Timestamp>,
    /// As memfleet knew them at this instant
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    known_at: Option<Timestamp>,
    /// Token of a write that the answer must see, with what is derived from it; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
}

/// A narrative with its fragments, by time.
struct Tree {
    narrative: Derivation,
    fragments: Vec<Derivation>,
}

/// Runs the command.
pub async fn run(
    args: NarrativesArgs,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let query = NarrativeQuery {
        space: args.space,
        as_of: AsOf {
            known_at: args.known_at,
            happened_by: args.at,
        },
        wait_for: args.wait_for,
    };
    if let Some(id) = args.id {
        let trees = [tree(handle, &query, id).await?];
        show(&trees, output)?;
        return Ok(Exit::Done);
    }
    let narratives = every(async |page| {
        handle
            .knowledge
            .narratives(&handle.call(), &query, page)
            .await
    });
    let narratives = narratives.await?;
    if !args.tree {
        output.list(&narratives, derivation_json, |palette| {
            human(&narratives, palette)
        })?;
        return Ok(Exit::Done);
    }
    let mut trees = Vec::with_capacity(narratives.len());
    for narrative in narratives {
        trees.push(tree(handle, &query, narrative.id).await?);
    }
    show(&trees, output)?;
    Ok(Exit::Done)
}

async fn tree(handle: &Handle, query: &NarrativeQuery, id: DerivationId) -> Result<Tree, Error> {
    let (mut narrative, mut fragments) = (None, Vec::new());
    let mut page = PageRequest::default();
    loop {
        let call = handle.call();
        let story = handle.knowledge.narrative(&call, query, id, page).await?;
        let narrative = narrative.get_or_insert(story.narrative);
        fragments.extend(story.fragments.items);
        page = PageRequest {
            after: story.fragments.next,
            ..PageRequest::default()
        };
        if page.after.is_none() {
            fragments.sort_by_key(|fragment: &Derivation| (fragment.valid.start, fragment.id));
            return Ok(Tree {
                narrative: narrative.clone(),
                fragments,
            });
        }
    }
}

fn show(trees: &[Tree], output: &mut Output) -> Result<(), Error> {
    output.list(trees, tree_json, |palette| {
        let lines = trees.iter().map(|tree| tree_lines(palette, tree));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(())
}

fn tree_json(tree: &Tree) -> Value {
    let fragments: Vec<Value> = tree.fragments.iter().map(derivation_json).collect();
    let mut value = derivation_json(&tree.narrative);
    value["fragments"] = json!(fragments);
    value
}

fn tree_lines(palette: Palette, tree: &Tree) -> String {
    let narrative = &tree.narrative;
    let title = printable(&said(narrative)).replace('\n', " ");
    let heading = format!(
        "{}  {}",
        palette.strong(&title),
        palette.dim(&narrative.id.to_string())
    );
    let subplots = narrative.narrative().map_or(&[][..], |it| &it.subplots);
    let of = |number: Option<u32>| {
        let fragments = tree.fragments.iter();
        let of = fragments.filter(move |it| it.fragment().and_then(|it| it.subplot) == number);
        of.map(|fragment| fragment_line(palette, fragment))
    };
    let mut lines = vec![heading];
    for (number, subplot) in (0..).zip(subplots) {
        let mut fragments = of(Some(number)).peekable();
        // Its place may be all that is left of a subplot.
        if fragments.peek().is_some() {
            let headline = printable(&subplot.headline).replace('\n', " ");
            lines.push(format!("  {headline}"));
            lines.extend(fragments);
        }
    }
    // What is not put together yet.
    lines.extend(of(None));
    lines.join("\n")
}

fn fragment_line(palette: Palette, fragment: &Derivation) -> String {
    let began = fragment.valid.start.map(time).unwrap_or_default();
    let session = fragment.fragment().map(|it| it.session.to_string());
    let session = printable(&session.unwrap_or_default());
    let turns = fragment.turns.len();
    let text = printable(&said(fragment)).replace('\n', " ");
    format!(
        "    {began}  {text}  {}",
        palette.dim(&format!("{session}, {turns} turns"))
    )
}

fn human(narratives: &[Derivation], palette: Palette) -> String {
    let columns = [
        ("ID", Align::Left),
        ("BEGAN", Align::Left),
        ("OWNER", Align::Left),
        ("HEADLINE", Align::Left),
    ];
    let rows = narratives.iter().map(|derivation| {
        let owner = derivation.narrative().map(|it| it.owner.to_string());
        [
            derivation.id.to_string(),
            derivation.valid.start.map(time).unwrap_or_default(),
            owner.unwrap_or_default(),
            said(derivation).into_owned(),
        ]
    });
    table(palette, columns, rows)
}
