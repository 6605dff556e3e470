//! Candidates of a search as people read them: ranks and scores by source and stage, and what puts
//! a turn behind the last hit.

use std::collections::HashMap;

use memfleet_ports::retriever::{CandidateTrace, Found, Hit, SearchExplanation, StageRank};
use serde_json::{Value, json};

use crate::output::{Align, Palette, count, exact, printable, shortened, table};

/// Columns that a line takes at most.
const WIDTH: usize = 100;
/// Signals that are named of a turn that is no hit.
const SIGNALS: usize = 3;

/// Sources and stages that have a column.
const COLUMNS: [&str; 5] = [
    "words",
    "vectors",
    "both",
    "late_interaction",
    "first_round",
];

/// The explanation as JSON, as docs/cli.md lists its keys.
pub fn to_json(explanation: &SearchExplanation) -> Value {
    json!({
        "candidates": explanation.candidates,
        "exhaustive": explanation.is_exhaustive,
        "shown": explanation.shown.iter().map(candidate_json).collect::<Vec<_>>(),
    })
}

fn candidate_json(candidate: &CandidateTrace) -> Value {
    json!({
        "space": candidate.space,
        "turn_id": candidate.turn,
        "session": candidate.session,
        "speaker": candidate.speaker,
        "excerpt": candidate.excerpt,
        "rank": candidate.rank,
        "score": exact(&candidate.score),
        "relevance": exact(&candidate.relevance),
        "hit": candidate.hit,
        "copy": candidate.is_copy,
        "sources": exact(&candidate.sources),
        "stages": exact(&candidate.stages),
        "signals": exact(&candidate.signals),
    })
}

/// Two lines: where a hit comes from, and its ranks on the way.
pub fn origin(found: &Found, hit: &Hit) -> Option<String> {
    let explanation = found.explanation.as_ref()?;
    let is_it = |it: &&CandidateTrace| it.turn == hit.turn.accepted.id && it.space == hit.space;
    let candidate = explanation.shown.iter().find(is_it)?;
    let (rank, all) = (candidate.rank, explanation.candidates);
    let sources = ranks(&candidate.sources);
    let stages = ranks(&candidate.stages);
    Some(format!(
        "    rank {rank} of {}; {sources}\n    {stages}",
        count(u64::from(all), "candidate")
    ))
}

fn ranks(ranks: &[StageRank]) -> String {
    if ranks.is_empty() {
        return "named by no source".to_owned();
    }
    let named = ranks
        .iter()
        .map(|one| format!("{} {}", one.stage, rank(one)));
    named.collect::<Vec<_>>().join(", ")
}

/// A rank with the score that it is by.
fn rank(one: &StageRank) -> String {
    match one.score {
        Some(score) => format!("{} ({score:.2})", one.rank),
        None => one.rank.to_string(),
    }
}

/// The candidates that are no hits; nothing where there are none.
pub fn text(explanation: &SearchExplanation, searched: u64, palette: Palette) -> Option<String> {
    let others = explanation.shown.iter().filter(|it| it.hit.is_none());
    let others: Vec<&CandidateTrace> = others.collect();
    if others.is_empty() {
        return None;
    }
    let columns = [
        ("  RANK", Align::Right),
        ("SCORE", Align::Right),
        ("REL", Align::Right),
        ("WORDS", Align::Right),
        ("VECTORS", Align::Right),
        ("BOTH", Align::Right),
        ("LATE", Align::Right),
        ("FIRST", Align::Right),
    ];
    let table = table(palette, columns, others.iter().map(|it| row(it)));
    let mut lines = vec![heading(explanation, others.len(), searched)];
    let mut rows = table.lines().map(str::to_owned);
    lines.extend(rows.next());
    let last = explanation.shown.iter().max_by_key(|it| it.hit);
    let last = last.filter(|it| it.hit.is_some());
    for (row, candidate) in rows.zip(others) {
        lines.push(row);
        let below = below(candidate, last).into_iter();
        lines.extend(below.map(|line| palette.dim(&line)));
    }
    let behind = u64::from(explanation.candidates).saturating_sub(explanation.shown.len() as u64);
    if behind > 0 {
        let more = count(behind, "more candidate");
        lines.push(format!("{more} behind these: a larger -k shows them"));
    }
    Some(lines.join("\n"))
}

fn heading(explanation: &SearchExplanation, others: usize, searched: u64) -> String {
    let candidates = count(u64::from(explanation.candidates), "candidate");
    let of = match explanation.is_exhaustive {
        true => "every turn searched is one".to_owned(),
        false => format!("what no source names of the {searched} searched is none"),
    };
    format!("No hits: {others} of {candidates} ({of})")
}

fn row(candidate: &CandidateTrace) -> [String; 8] {
    let ranks = candidate.sources.iter().chain(&candidate.stages);
    let ranks: HashMap<&str, &StageRank> = ranks.map(|one| (&*one.stage, one)).collect();
    let cell = |name: &str| {
        ranks
            .get(name)
            .map_or_else(|| "-".to_owned(), |one| rank(one))
    };
    let [words, vectors, both, late, first] = COLUMNS.map(cell);
    let relevance = candidate.relevance;
    [
        candidate.rank.to_string(),
        format!("{:.3}", candidate.score),
        relevance.map_or_else(|| "-".to_owned(), |it| format!("{it:.3}")),
        words,
        vectors,
        both,
        late,
        first,
    ]
}

/// Lines below the ranks of a candidate: the turn, other sources that name it, and why it is no
/// hit.
fn below(candidate: &CandidateTrace, last: Option<&CandidateTrace>) -> Vec<String> {
    let said = format!(
        "        {}  {}: ",
        candidate.turn,
        shortened(candidate.speaker.as_str(), 20)
    );
    let left = WIDTH.saturating_sub(said.chars().count() + 1);
    let mut lines = vec![format!("{said}{}", shortened(&candidate.excerpt, left))];
    let others = candidate.sources.iter();
    let others = others
        .filter(|one| !COLUMNS.contains(&&*one.stage))
        .cloned();
    let others: Vec<StageRank> = others.collect();
    if !others.is_empty() {
        lines.push(format!(
            "        also named by {}",
            printable(&ranks(&others))
        ));
    }
    if candidate.is_copy {
        lines.push("        its speaker says the same in a better hit".to_owned());
    } else if let Some(last) = last {
        lines.extend(lacking(candidate, last));
    }
    lines
}

/// The signals that put a candidate behind the last hit, the most costly first.
fn lacking(candidate: &CandidateTrace, last: &CandidateTrace) -> Option<String> {
    let mut lacking: HashMap<&str, f32> = HashMap::new();
    for (signals, sign) in [(&candidate.signals, 1.0), (&last.signals, -1.0)] {
        for one in signals {
            *lacking.entry(&*one.signal).or_default() += sign * one.contribution;
        }
    }
    let mut lacking: Vec<(&str, f32)> = lacking.into_iter().filter(|it| it.1 <= -5e-4).collect();
    lacking.sort_by(|a, b| a.1.total_cmp(&b.1).then_with(|| a.0.cmp(b.0)));
    let named = lacking.iter().take(SIGNALS);
    let named: Vec<String> = named.map(|(name, it)| format!("{name} {it:+.3}")).collect();
    let place = last.hit?;
    let is_behind = candidate.rank > last.rank && !named.is_empty();
    is_behind.then(|| {
        format!(
            "        behind hit {place}: {}",
            printable(&named.join(", "))
        )
    })
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SessionId, SpaceId, Speaker};
    use memfleet_ports::retriever::SignalScore;

    use super::*;

    fn candidate(rank: u32, hit: Option<u32>, signals: &[(&'static str, f32)]) -> CandidateTrace {
        let stage = |stage: &'static str, score| StageRank {
            stage: stage.into(),
            rank: 987,
            score,
        };
        let signal = |&(signal, contribution): &(&'static str, f32)| SignalScore {
            signal: signal.into(),
            value: contribution,
            contribution,
        };
        CandidateTrace {
            space: SpaceId::new("ada").unwrap(),
            turn: format!("00000000-0000-0000-0000-{rank:012}")
                .parse()
                .unwrap(),
            session: SessionId::new("s1").unwrap(),
            speaker: Speaker::new("Ada ".repeat(20)).unwrap(),
            excerpt: "I adopted\u{1b} a grey cat ".repeat(20),
            rank,
            score: -12.345,
            relevance: Some(0.21),
            hit,
            is_copy: false,
            sources: vec![
                stage("words", Some(-12.34)),
                stage("vectors", Some(-0.83)),
                stage("both", Some(-12.34)),
                stage("day", None),
            ],
            stages: vec![
                stage("late_interaction", Some(-12.34)),
                stage("first_round", Some(-12.34)),
            ],
            signals: signals.iter().map(signal).collect(),
        }
    }

    fn explanation(shown: Vec<CandidateTrace>) -> SearchExplanation {
        SearchExplanation {
            candidates: 612,
            is_exhaustive: false,
            shown,
        }
    }

    #[test]
    fn candidate_that_is_no_hit_shows_which_signals_put_it_there() {
        let last = [("date", 2.6), ("cosine", 0.5), ("maxsim", 0.1)];
        let behind = [("date", 0.0), ("cosine", 0.25), ("maxsim", 0.4)];
        let copy = CandidateTrace {
            is_copy: true,
            ..candidate(3, None, &behind)
        };
        let shown = vec![
            candidate(1, Some(1), &last),
            candidate(2, None, &behind),
            copy,
        ];
        let text = text(&explanation(shown), 20_000, Palette::default()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("2 of 612 candidates"), "{text}");
        assert!(lines[1].trim_start().starts_with("RANK"), "{text}");
        assert!(lines[3].contains("00000002  Ada"), "{text}");
        assert_eq!(lines[4], "        also named by day 987");
        assert_eq!(lines[5], "        behind hit 1: date -2.600, cosine -0.250");
        assert_eq!(lines[8], "        also named by day 987");
        assert_eq!(
            lines[9],
            "        its speaker says the same in a better hit"
        );
        assert_eq!(
            lines[10],
            "609 more candidates behind these: a larger -k shows them"
        );
    }

    #[test]
    fn explanation_fits_a_hundred_columns() {
        let shown = (1..=900).map(|rank| candidate(rank, None, &[]));
        let text = text(&explanation(shown.collect()), 20_000, Palette::default()).unwrap();
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= WIDTH, "{widest:?}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn explanation_without_other_candidates_is_not_printed() {
        let shown = vec![candidate(1, Some(1), &[])];
        assert_eq!(text(&explanation(shown), 1, Palette::default()), None);
    }

    #[test]
    fn keys_of_the_json_are_those_of_the_documentation() {
        let json = to_json(&explanation(vec![candidate(1, Some(1), &[])]));
        let keys =
            |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
        let documentation = include_str!("../../../../../docs/cli.md");
        let row = documentation
            .lines()
            .find(|line| line.starts_with("| `recall` |"));
        let row = row.unwrap();
        for key in keys(&json).iter().chain(&keys(&json["shown"][0])) {
            assert!(row.contains(key.as_str()), "{key}");
        }
        assert_eq!(json["shown"][0]["sources"][3]["score"], Value::Null);
        assert_eq!(json["shown"][0]["relevance"].to_string(), "0.21");
    }
}
