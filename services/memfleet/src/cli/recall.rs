//! `memfleet recall`: ranked turns.

mod explaining;

use clap::{Args, ValueEnum};
use memfleet_domain::Timestamp;
use memfleet_domain::ids::{BatchId, SessionId, SpaceId};
use memfleet_domain::intent::Intent;
use memfleet_domain::quality::SearchQuality;
use memfleet_ports::memory::{HitGranularity, RecallRequest};
use memfleet_ports::retriever::{Found, Hit, Query};
use memfleet_rpc::limits;
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::filter::{Selection, View};
use super::values::range;
use super::{Handle, values};
use crate::output::{
    Align, Output, Palette, count, derivation_json, exact, neighbour, printable, table, time,
    turn_json, turn_lines,
};

/// Find the turns that a question needs
#[derive(Debug, Args)]
pub struct RecallArgs {
    #[command(flatten)]
    search: SearchArgs,
    /// How many turns, best first
    #[arg(long, short, default_value_t = 10, value_parser = range(1..=limits::K))]
    k: u32,
    /// Turns before and after each hit to show with it
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = range(0..=limits::NEIGHBOURS))]
    neighbours: u32,
    /// Least probability, from 0 to 1, that a turn bears on the query; others are left out
    #[arg(long, value_name = "P", value_parser = values::probability)]
    min_relevance: Option<f32>,
    /// Unit of a hit
    #[arg(long, value_name = "UNIT", value_enum, default_value_t)]
    granularity: HitUnit,
    /// Show what each score is made of, and the candidates that did not become hits with their
    /// ranks
    #[arg(long)]
    explain: bool,
}

/// What to look for and where; `recall`, `answer` and `assemble` share it.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// What to find memory for
    query: String,
    /// Space to search; repeatable, several are searched as one
    #[arg(long = "space", value_name = "SPACE", required = true, value_parser = values::space)]
    spaces: Vec<SpaceId>,
    /// What "last week" is relative to; by default the time of the last turn
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    now: Option<Timestamp>,
    /// Session that the query is asked in: "she", "there" and "it" stand for what its last turns name
    #[arg(long, value_name = "SESSION", value_parser = values::session)]
    asked_in: Option<SessionId>,
    /// What kind of memory the query asks for; repeatable, by default as its wording tells
    #[arg(long = "intent", value_name = "KIND", value_enum)]
    intents: Vec<Kind>,
    /// Cost that the search may have; by default as the node is configured
    #[arg(long, value_name = "QUALITY", value_enum)]
    quality: Option<QualityFlag>,
    /// Token of a write that the answer must see; repeatable
    #[arg(long, value_name = "TOKEN")]
    wait_for: Vec<BatchId>,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    view: View,
}

impl SearchArgs {
    /// The query for `k` turns, and the writes to wait for.
    pub fn query(self, k: u32) -> (Query, Vec<BatchId>) {
        let query = Query {
            text: self.query,
            spaces: self.spaces,
            filter: self.selection.seen(self.view),
            k,
            neighbours: 0,
            now: self.now,
            session: self.asked_in,
            intent: intent(&self.intents),
            explain: false,
            quality: self.quality.map(Into::into),
            vectors: None,
        };
        (query, self.wait_for)
    }
}

/// Units of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum HitUnit {
    /// Turns
    #[default]
    Turn,
    /// Facts that turns state, each a hit of its own
    Statement,
}

impl From<HitUnit> for HitGranularity {
    fn from(unit: HitUnit) -> Self {
        match unit {
            HitUnit::Turn => Self::Turn,
            HitUnit::Statement => Self::Statement,
        }
    }
}

/// Costs of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QualityFlag {
    /// By the vectors of one model
    Fast,
    /// By those of two models, in spaces that have both
    Balanced,
    /// As balanced, and by answers that a language model imagines where no hit is relevant
    Thorough,
}

impl From<QualityFlag> for SearchQuality {
    fn from(quality: QualityFlag) -> Self {
        match quality {
            QualityFlag::Fast => Self::Fast,
            QualityFlag::Balanced => Self::Balanced,
            QualityFlag::Thorough => Self::Thorough,
        }
    }
}

/// Kinds of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Details: exact wording, a quotation, a figure
    Fine,
    /// A summary or an overview
    Abstract,
    /// How things went on over time
    Event,
    /// Single facts
    Atomic,
}

fn intent(kinds: &[Kind]) -> Option<Intent> {
    (!kinds.is_empty()).then(|| Intent {
        fine: kinds.contains(&Kind::Fine),
        abstracted: kinds.contains(&Kind::Abstract),
        event: kinds.contains(&Kind::Event),
        atomic: kinds.contains(&Kind::Atomic),
    })
}

/// Runs the command.
pub async fn run(args: RecallArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let (query, wait_for) = args.search.query(args.k);
    let query = Query {
        neighbours: args.neighbours,
        explain: args.explain,
        ..query
    };
    let several = query.spaces.len() > 1;
    let states = args.granularity == HitUnit::Statement;
    let request = RecallRequest {
        query,
        wait_for,
        min_relevance: args.min_relevance,
        granularity: args.granularity.into(),
    };
    let found = handle.memory.recall(&handle.call(), request).await?;
    output.answer(
        || to_json(&found),
        |palette| match states {
            true => statement_table(&found, palette),
            false => human(&found, several, palette),
        },
    )?;
    Ok(Exit::Done)
}

fn to_json(found: &Found) -> Value {
    json!({
        "hits": found.hits.iter().map(hit_to_json).collect::<Vec<_>>(),
        "searched": found.searched,
        "scorer": found.scorer,
        "degraded": found.degraded,
        "understood": found.understood,
        "explanation": found.explanation.as_ref().map(explaining::to_json),
    })
}

fn hit_to_json(hit: &Hit) -> Value {
    json!({
        "space": hit.space,
        "turn": turn_json(&hit.turn),
        "score": exact(&hit.score),
        "relevance": exact(&hit.relevance),
        "passage": hit.passage,
        "signals": exact(&hit.signals),
        "neighbours": hit.neighbours.iter().map(turn_json).collect::<Vec<_>>(),
        "facts": hit.facts.iter().map(derivation_json).collect::<Vec<_>>(),
        "outdated": hit.outdated,
    })
}

/// Statements as people read them, each with who said it and when.
fn statement_table(found: &Found, palette: Palette) -> String {
    let columns = [
        ("RELEVANCE", Align::Right),
        ("SAID", Align::Left),
        ("BY", Align::Left),
        ("STATEMENT", Align::Left),
        ("UNTIL", Align::Left),
    ];
    let rows = found.hits.iter().map(|hit| {
        let turn = &hit.turn.accepted;
        let text = turn.content.searchable_text();
        let words = text.get(hit.passage.0 as usize..hit.passage.1 as usize);
        let until = hit.facts.first().and_then(|fact| fact.valid.end);
        [
            hit.relevance
                .map_or_else(String::new, |it| format!("{it:.3}")),
            time(turn.effective_time()),
            printable(turn.speaker.as_str()),
            printable(words.unwrap_or(&text)),
            until.map(time).unwrap_or_default(),
        ]
    });
    let table = table(palette, columns, rows);
    let hits = count(found.hits.len() as u64, "statement");
    let searched = format!("{hits}; {} searched", count(found.searched, "turn"));
    [table, with_degraded(&searched, found, palette)].join("\n\n")
}

/// The hits as people read them; `several` names the space of each.
pub fn human(found: &Found, several: bool, palette: Palette) -> String {
    let hits = found
        .hits
        .iter()
        .zip(1..)
        .map(|(hit, rank)| hit_lines(found, hit, rank, several, palette));
    let explanation = found.explanation.as_ref();
    let others = explanation.and_then(|it| explaining::text(it, found.searched, palette));
    let parts = hits.chain(others).chain([summary(found, palette)]);
    parts.collect::<Vec<_>>().join("\n\n")
}

fn hit_lines(found: &Found, hit: &Hit, rank: usize, several: bool, palette: Palette) -> String {
    let mark = format!("{rank:>2}  {:>6.3}  ", hit.score);
    let mut lines = vec![turn_lines(
        palette,
        &mark,
        several.then(|| hit.space.as_str()),
        &hit.turn,
    )];
    if let Some(fact) = hit.outdated_fact() {
        let mark = match fact.valid.end {
            _ if fact.is_withdrawn() => "this was wrong".to_owned(),
            Some(end) => format!("no longer so since {}", time(end)),
            None => "corrected".to_owned(),
        };
        // Named, since the turn may say more than what is no longer so.
        let text = fact.fact().map_or("", |draft| draft.text.as_str());
        lines.push(palette.warning(&format!("    {mark}: {}", printable(text))));
    }
    if !hit.neighbours.is_empty() {
        lines.push(palette.dim("    around it:"));
        lines.extend(hit.neighbours.iter().map(|turn| neighbour(palette, turn)));
    }
    if !hit.signals.is_empty() {
        lines.push(palette.dim(&relevance(hit, &found.scorer)));
        lines.extend(explaining::origin(found, hit).map(|origin| palette.dim(&origin)));
        lines.push(signal_table(hit, palette));
    }
    lines.join("\n")
}

/// How likely it bears on the query, and what says so.
fn relevance(hit: &Hit, scorer: &str) -> String {
    match hit.relevance {
        Some(relevance) => format!("    relevance {relevance:.3} ({scorer})"),
        None => "    relevance unknown".to_owned(),
    }
}

fn signal_table(hit: &Hit, palette: Palette) -> String {
    let columns = [
        ("    SIGNAL", Align::Left),
        ("VALUE", Align::Right),
        ("ADDS", Align::Right),
    ];
    let rows = hit.signals.iter().map(|one| {
        [
            format!("    {}", one.signal),
            format!("{:.3}", one.value),
            format!("{:+.3}", one.contribution),
        ]
    });
    table(palette, columns, rows)
}

fn summary(found: &Found, palette: Palette) -> String {
    let hits = count(found.hits.len() as u64, "turn");
    let searched = format!("{hits} of {} searched", found.searched);
    with_degraded(&searched, found, palette)
}

/// Summary of a search with everything that was missing.
fn with_degraded(searched: &str, found: &Found, palette: Palette) -> String {
    let mut text = palette.dim(searched);
    for missing in &found.degraded {
        text.push('\n');
        text.push_str(&palette.warning(&format!("incomplete: {missing}")));
    }
    text
}
