//! `memfleet assemble`: the block of memory for a prompt, alone on standard output.

mod explaining;
mod texts;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use memfleet_domain::assembly::{GateMode, Granularity, ProviderFormat, Reason, Strategy};
use memfleet_domain::ids::{DerivationId, ExchangeName, Speaker, TurnId};
use memfleet_domain::policy::Policy;
use memfleet_ports::assembly::{AssembleRequest, Assembled, Prompt};
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::Handle;
use super::exit::{Error, Exit};
use super::recall::SearchArgs;
use super::values::{self, range};
use crate::output::{Output, count, exact, turn_json};
pub use texts::Texts;

/// Render the memory that belongs in a prompt
#[derive(Debug, Args)]
#[command(mut_arg("query", |query| query.required(false).required_unless_present_any(["narratives", "request"]).default_value("")))]
pub struct AssembleArgs {
    #[command(flatten)]
    search: SearchArgs,
    /// Tokens that may be added; by default as the policies say
    #[arg(long, value_name = "TOKENS", value_parser = range(0..=limits::BUDGET_TOKENS))]
    budget: Option<u32>,
    /// Tokenizer that the budget is counted with; by default that of the model
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<String>,
    /// Model that the prompt is for, as its provider knows it
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Turns to choose from
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = range(1..=limits::K))]
    candidates: u32,
    /// At most this many turns
    #[arg(long, value_name = "N", value_parser = range(1..=1_000))]
    max_items: Option<u32>,
    /// At most this many tokens a turn; longer turns become excerpts
    #[arg(long, value_name = "TOKENS", value_parser = range(1..=limits::BUDGET_TOKENS))]
    max_item_tokens: Option<u32>,
    /// Only what was said of this narrative, in the order of time; repeatable. Without a query its headline is the query
    #[arg(long = "narrative", value_name = "ID")]
    narratives: Vec<DerivationId>,
    /// Begin with a section "who this is": what holds of the one user who spoke in the session, and is worth remembering
    #[arg(long)]
    profile: bool,
    /// Begin with that section of this speaker
    #[arg(long, value_name = "NAME", value_parser = values::speaker)]
    profile_of: Option<Speaker>,
    /// Tokens of that section at most; by default as the policies say
    #[arg(long, value_name = "TOKENS", value_parser = range(0..=10_000))]
    profile_tokens: Option<u32>,
    /// Whole turns only: never cut one to its relevant sentences
    #[arg(long)]
    no_excerpts: bool,
    /// Whether gates are asked; by default as the policies say
    #[arg(long, value_name = "MODE", value_parser = named::<GateMode>)]
    gate: Option<GateMode>,
    /// Least relevance of an item, 0 to 1; by default as the policies say
    #[arg(long, value_name = "PROBABILITY")]
    relevance: Option<f32>,
    /// Milliseconds that gates and search may take
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 10_000, value_parser = range(1..=600_000))]
    deadline: u32,
    /// Where the block goes, in the order of preference; by default as the policies say
    #[arg(long = "strategy", value_name = "STRATEGY", value_parser = named::<Strategy>)]
    strategies: Vec<Strategy>,
    /// Exchange of the session that the query is asked in: its requests get the same block again
    #[arg(long, value_name = "NAME", requires = "asked_in", value_parser = exchange)]
    exchange: Option<ExchangeName>,
    /// File with a request to a model's provider, `-` for standard input; printed is then the request with the memory in it
    #[arg(long, value_name = "FILE", requires = "format")]
    request: Option<PathBuf>,
    /// What that request is
    #[arg(long, value_name = "FORMAT", value_parser = named::<ProviderFormat>)]
    format: Option<ProviderFormat>,
    /// Show what gates said and every bound of theirs, each item and what was left out with text and relevance, and the budget
    #[arg(long)]
    explain: bool,
}

fn named<T: std::str::FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

fn exchange(text: &str) -> Result<ExchangeName, String> {
    ExchangeName::new(text.to_owned()).map_err(|error| error.to_string())
}

impl AssembleArgs {
    fn policy(&self) -> Policy {
        let mut policy = Policy::default();
        policy.budget.max_tokens = self.budget;
        policy.budget.max_items = self.max_items;
        policy.budget.max_item_tokens = self.max_item_tokens;
        let asks = self.profile || self.profile_of.is_some();
        policy.selection.profile = asks.then_some(true);
        policy.budget.profile_tokens = self.profile_tokens;
        policy.selection.excerpts = self.no_excerpts.then_some(false);
        policy.gating.mode = self.gate;
        policy.gating.relevance = self.relevance;
        policy.failure.deadline_ms = Some(self.deadline);
        let strategies = &self.strategies;
        policy.placing.strategies = (!strategies.is_empty()).then(|| strategies.clone());
        policy
    }
}

/// Runs the command.
pub async fn run(args: AssembleArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let policy = args.policy();
    let prompt = match (&args.request, args.format) {
        (Some(path), Some(format)) => Prompt::Provider {
            format,
            body: read(path)?,
        },
        _ => Prompt::Unknown,
    };
    let patches = prompt != Prompt::Unknown;
    let (mut query, wait_for) = args.search.query(args.candidates);
    query.explain = args.explain;
    let mut request = AssembleRequest {
        prompt,
        narratives: args.narratives,
        speaker: args.profile_of,
        exchange: args.exchange,
        policy,
        tokenizer: args.tokenizer,
        patch: patches,
        wait_for,
        ..AssembleRequest::new(query)
    };
    request.model.name = args.model.unwrap_or_default();
    let assembled = handle.assembly.assemble(&handle.call(), request).await?;
    let texts = match args.explain {
        true => Texts::of(handle, &assembled).await?,
        false => Texts::default(),
    };
    if output.is_json() {
        output.json(&to_json(&assembled, &texts))?;
        return Ok(exit(&assembled));
    }
    match &assembled.patched {
        Some(request) => output.text(&String::from_utf8_lossy(request))?,
        None => output.text(assembled.block.trim_end_matches('\n'))?,
    }
    output.flush()?;
    if args.explain {
        eprintln!("{}", explaining::text(&assembled, &texts));
    }
    eprintln!("{}", summary(&assembled));
    Ok(exit(&assembled))
}

/// The exit code: a space that does not exist is not success, though a model could go on with the answer.
fn exit(assembled: &Assembled) -> Exit {
    match assembled.reason {
        Some(Reason::UnknownSpace) => Exit::NotFound,
        _ => Exit::Done,
    }
}

/// A file, or standard input.
fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut body)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.map_err(Error::file(path))?;
    Ok(body)
}

/// An answer as JSON for programs, with the texts that are known.
pub fn to_json(assembled: &Assembled, texts: &Texts) -> Value {
    let milliseconds = |time: Duration| exact(&(time.as_secs_f32() * 1e3));
    let with_text = |mut told: Value, turn: Option<TurnId>| {
        if let Some(text) = turn.and_then(|turn| texts.of_turn(turn)) {
            told["text"] = text.into();
        }
        told
    };
    let items = assembled.items.iter();
    let items = items.map(|item| with_text(turn_json(&exact(item)), item.turn()));
    let dropped = assembled.dropped.iter();
    let dropped = dropped.map(|it| with_text(exact(it), it.turn()));
    let gates = assembled.gates.iter().map(|gate| {
        let mut told = exact(gate);
        told["duration"] = milliseconds(gate.duration);
        told
    });
    let timings = assembled.timings.iter();
    let timings = timings.map(|(stage, took)| (stage.clone(), milliseconds(*took)));
    let (items, gates) = (items.collect::<Vec<_>>(), gates.collect::<Vec<_>>());
    let mut answer = json!(assembled);
    answer["items"] = items.into();
    answer["dropped"] = dropped.collect();
    answer["gates"] = gates.into();
    answer["timings"] = Value::Object(timings.collect());
    let patched = assembled.patched.as_deref();
    answer["patched"] = json!(patched.map(String::from_utf8_lossy));
    answer
}

/// What was put together, on one line, and what was missing, on one each.
pub fn summary(assembled: &Assembled) -> String {
    let items = assembled.items.iter();
    let (lines, turns): (Vec<_>, Vec<_>) =
        items.partition(|item| item.granularity == Granularity::Profile);
    let excerpts = turns.iter().filter(|item| item.excerpt).count();
    let profile = match (&assembled.profile, assembled.reason) {
        (None, _) => String::new(),
        (Some(_), None) => format!("{} of who this is and ", count(lines.len() as u64, "line")),
        (Some(_), Some(reason)) => {
            let lines = count(lines.len() as u64, "line");
            format!("{lines} of who this is, and ({reason}) ")
        }
    };
    let budget = &assembled.budget;
    let first = match assembled.reason {
        Some(reason) if assembled.block.is_empty() => format!("nothing is injected: {reason}"),
        _ => format!(
            "{profile}{} ({excerpts} cut) in {} of {} tokens, {} left out",
            count(turns.len() as u64, "turn"),
            assembled.tokens,
            budget.effective_tokens,
            assembled.left_out
        ),
    };
    let missing = assembled.degraded.iter();
    let missing = missing.map(|missing| format!("incomplete: {missing}"));
    let is_unknown = assembled.reason == Some(Reason::UnknownSpace);
    let hint = is_unknown.then(|| "`memfleet spaces` lists what is there".to_owned());
    std::iter::once(first)
        .chain(missing)
        .chain(hint)
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use memfleet_domain::assembly::SessionOrigin;
    use memfleet_domain::ids::SessionId;

    use super::*;

    #[test]
    fn a_space_that_does_not_exist_is_named_and_no_success() {
        let mut assembled = Assembled::skipped(Reason::UnknownSpace);
        assembled.degraded = vec!["space `nope` does not exist".to_owned()];
        assert_eq!(exit(&assembled), Exit::NotFound);
        assert_eq!(
            summary(&assembled),
            "nothing is injected: unknown_space\nincomplete: space `nope` does not exist\n`memfleet spaces` lists what is there"
        );
        assert_eq!(exit(&Assembled::skipped(Reason::NoMemory)), Exit::Done);
    }

    #[test]
    fn programs_are_told_how_the_session_is_known() {
        let mut assembled = Assembled::skipped(Reason::NoMemory);
        assembled.session_origin = Some(SessionOrigin::Forked);
        assembled.session_lineage = vec![SessionId::new("chat-7").unwrap()];
        let told = to_json(&assembled, &Texts::default());
        assert_eq!(told["session_origin"], "forked");
        assert_eq!(told["session_lineage"], json!(["chat-7"]));
    }
}
