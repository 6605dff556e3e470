//! `memfleet assemble`: the block of memory for a prompt, alone on standard output.

use clap::Args;
use memfleet_domain::ids::DerivationId;
use memfleet_ports::assembly::{AssembleRequest, Assembled};
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::Handle;
use super::exit::{Error, Exit};
use super::recall::SearchArgs;
use super::values::range;
use crate::output::{Output, count, decimal};

/// Render the memory that belongs in a prompt
#[derive(Debug, Args)]
#[command(mut_arg("query", |query| query.required(false).required_unless_present("narratives").default_value("")))]
pub struct AssembleArgs {
    #[command(flatten)]
    search: SearchArgs,
    /// Tokens that the block may have
    #[arg(long, value_name = "TOKENS", default_value_t = 1000, value_parser = range(1..=limits::BUDGET_TOKENS))]
    budget: u32,
    /// Tokenizer that the budget is counted with
    #[arg(long, value_name = "NAME", default_value = "o200k_base")]
    tokenizer: String,
    /// Turns to choose from
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = range(1..=limits::K))]
    candidates: u32,
    /// At most this many turns
    #[arg(long, value_name = "N", value_parser = range(1..=u32::MAX))]
    max_items: Option<u32>,
    /// At most this many tokens a turn; longer turns become excerpts
    #[arg(long, value_name = "TOKENS", value_parser = range(1..=u32::MAX))]
    max_item_tokens: Option<u32>,
    /// Only what was said of this narrative, in the order of time; repeatable. Without a query its headline is the query
    #[arg(long = "narrative", value_name = "ID")]
    narratives: Vec<DerivationId>,
    /// Whole turns only: never cut one to its relevant sentences
    #[arg(long)]
    no_excerpts: bool,
}

/// Runs the command.
pub async fn run(args: AssembleArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let (query, wait_for) = args.search.query(args.candidates);
    let request = AssembleRequest {
        query,
        budget_tokens: args.budget,
        tokenizer: args.tokenizer,
        max_items: args.max_items,
        max_item_tokens: args.max_item_tokens,
        excerpts: !args.no_excerpts,
        wait_for,
        narratives: args.narratives,
    };
    let assembled = handle.assembly.assemble(&handle.call(), request).await?;
    if output.is_json() {
        output.json(&to_json(&assembled))?;
    } else {
        output.text(assembled.block.trim_end_matches('\n'))?;
        output.flush()?;
        eprintln!("{}", summary(&assembled, args.budget));
    }
    Ok(Exit::Done)
}

fn to_json(assembled: &Assembled) -> Value {
    let items = assembled.items.iter().map(|item| {
        json!({
            "space": item.space,
            "turn": item.turn,
            "score": decimal(item.score),
            "tokens": item.tokens,
            "excerpt": item.excerpt,
        })
    });
    json!({
        "block": assembled.block,
        "tokens": assembled.tokens,
        "items": items.collect::<Vec<_>>(),
        "left_out": assembled.left_out,
        "degraded": assembled.degraded,
    })
}

/// What was put together, on one line, and what was missing, on one each.
pub fn summary(assembled: &Assembled, budget: u32) -> String {
    let excerpts = assembled.items.iter().filter(|item| item.excerpt).count();
    let first = format!(
        "{} ({} cut) in {} of {budget} tokens, {} left out",
        count(assembled.items.len() as u64, "turn"),
        excerpts,
        assembled.tokens,
        assembled.left_out
    );
    let missing = assembled
        .degraded
        .iter()
        .map(|missing| format!("incomplete: {missing}"));
    std::iter::once(first)
        .chain(missing)
        .collect::<Vec<_>>()
        .join("\n")
}
