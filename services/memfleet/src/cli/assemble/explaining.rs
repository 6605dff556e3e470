//! Why a block is what it is, as a person would read it: what became of it, gates, items, drops, budget, time.

use memfleet_domain::assembly::{GateBound, Granularity};
use memfleet_domain::ids::TurnId;
use memfleet_ports::assembly::{Assembled, AssembledItem, GateEntry};

use super::Texts;
use crate::output::{Align, Palette, printable, shortened, table};

/// Dropped candidates that are listed; the rest is counted by reason.
pub(super) const LISTED: usize = 10;

/// Characters of a text that are shown.
const TEXT: usize = 60;

/// The explanation, several lines.
pub fn text(assembled: &Assembled, texts: &Texts) -> String {
    let parts = [
        outcome(assembled),
        gates(assembled),
        items(assembled, texts),
        dropped(assembled, texts),
        budget(assembled),
        timings(assembled),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// What became of it and for whom: enough to find it again, with `memfleet injections`.
fn outcome(assembled: &Assembled) -> String {
    let reason = assembled.reason.map(|reason| format!(" ({reason})"));
    let injection = match assembled.injection {
        Some(id) => format!("injection {id}"),
        None => "not written down".to_owned(),
    };
    let session = match (&assembled.session, assembled.session_origin) {
        (Some(session), Some(origin)) => format!("session {session} ({origin})"),
        (Some(session), None) => format!("session {session}"),
        (None, _) => "no session".to_owned(),
    };
    let (used, asked) = (assembled.strategy_used, assembled.strategy_requested);
    let instead = (used != asked).then(|| format!(" instead of {asked}"));
    format!(
        "{}{}: {injection}, {}, strategy {used}{}",
        assembled.decision,
        reason.unwrap_or_default(),
        printable(&session),
        instead.unwrap_or_default()
    )
}

fn gates(assembled: &Assembled) -> String {
    let columns = [
        ("GATE", Align::Left),
        ("SAYS", Align::Left),
        ("BECAUSE", Align::Left),
        ("BY", Align::Left),
        ("MS", Align::Right),
    ];
    let rows = assembled.gates.iter().map(|gate| {
        [
            gate.gate.to_string(),
            gate.outcome.to_string(),
            gate.reason.to_string(),
            by(gate),
            format!("{:.2}", gate.duration.as_secs_f64() * 1e3),
        ]
    });
    table(Palette::default(), columns, rows)
}

fn by(gate: &GateEntry) -> String {
    let mut by = Vec::new();
    if !gate.rule.is_empty() {
        by.push(format!("{} “{}”", gate.rule, printable(&gate.pattern)));
    }
    if let (Some(memory), Some(none)) = (gate.similarity_memory, gate.similarity_none) {
        by.push(format!("like memory {memory:.2}, like none {none:.2}"));
    }
    if gate.best_score.is_some() {
        let (passed, dropped) = (gate.passed, gate.dropped);
        by.push(format!("{passed} pass, {dropped} do not"));
    }
    by.extend(gate.bounds.iter().map(bound));
    if !gate.version.is_empty() {
        by.push(gate.version.clone());
    }
    by.join(", ")
}

/// A bound as a comparison, for example `margin 0.16 ≥ 0.1`; a bound of 0 that is met does not count.
fn bound(bound: &GateBound) -> String {
    let GateBound {
        value, bound: at, ..
    } = *bound;
    let sign = match (value < at, bound.met) {
        (true, true) => "≤",
        (true, false) => "<",
        (false, true) => "≥",
        (false, false) => ">",
    };
    let (value, at) = (number(value), number(at));
    format!("{} {value} {sign} {at}", printable(&bound.name))
}

/// A number with at most four decimals, none of them idle.
fn number(value: f32) -> String {
    let digits = format!("{value:.4}");
    digits
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// The beginning of a turn's text.
fn beginning(texts: &Texts, turn: Option<TurnId>) -> String {
    let text = turn.and_then(|turn| texts.of_turn(turn));
    text.map_or_else(String::new, |text| shortened(text, TEXT))
}

fn relevance(relevance: Option<f32>) -> String {
    relevance.map_or_else(String::new, |it| format!("{it:.3}"))
}

fn items(assembled: &Assembled, texts: &Texts) -> String {
    let columns = [
        ("KEY", Align::Left),
        ("RELEVANCE", Align::Right),
        ("SCORE", Align::Right),
        ("TOKENS", Align::Right),
        ("FROM", Align::Left),
        ("ID", Align::Left),
        ("TEXT", Align::Left),
    ];
    let tokens = |item: &AssembledItem| {
        if item.excerpt {
            format!("{} of {}", item.tokens, item.original_tokens)
        } else {
            item.tokens.to_string()
        }
    };
    let rows = assembled.items.iter().map(|item| {
        let space = item.space.as_ref().map_or("", |space| space.as_str());
        [
            item.citation_key.clone(),
            relevance(item.relevance),
            format!("{:.3}", item.score),
            tokens(item),
            printable(&format!(
                "{space} / {} ({}{})",
                item.session,
                trust(item.trust),
                match item.granularity {
                    Granularity::Profile => ", who this is",
                    _ => "",
                }
            )),
            item.id.clone(),
            beginning(texts, item.turn()),
        ]
    });
    table(Palette::default(), columns, rows)
}

fn dropped(assembled: &Assembled, texts: &Texts) -> String {
    let columns = [
        ("LEFT OUT", Align::Left),
        ("RELEVANCE", Align::Right),
        ("BECAUSE", Align::Left),
        ("TEXT", Align::Left),
    ];
    let listed = assembled.dropped.iter().take(LISTED);
    let rows = listed.map(|dropped| {
        let reason = format!("{} {}", dropped.reason, dropped.detail);
        [
            dropped.id.clone(),
            relevance(dropped.relevance),
            reason.trim_end().to_owned(),
            beginning(texts, dropped.turn()),
        ]
    });
    let rest = (assembled.left_out as usize).saturating_sub(LISTED);
    let mut text = table(Palette::default(), columns, rows);
    if rest > 0 {
        text = format!("{text}\nand {rest} more");
    }
    text
}

fn budget(assembled: &Assembled) -> String {
    let budget = &assembled.budget;
    if budget.tokenizer.is_empty() {
        return String::new();
    }
    let approximate = if budget.approximate {
        " (a bound, not a count)"
    } else {
        ""
    };
    let by = match budget.limited_by.as_str() {
        "" => String::new(),
        by => format!(", limited by {by}"),
    };
    format!(
        "budget: {} of {} tokens added{by}, counted by {}{approximate}",
        budget.added_tokens, budget.effective_tokens, budget.tokenizer
    )
}

fn timings(assembled: &Assembled) -> String {
    let stage = |(stage, took): &(String, std::time::Duration)| {
        format!("{stage} {:.1}", took.as_secs_f64() * 1e3)
    };
    let stages: Vec<_> = assembled.timings.iter().map(stage).collect();
    if stages.is_empty() {
        return String::new();
    }
    format!("milliseconds: {}", stages.join(", "))
}

fn trust(trust: memfleet_domain::turn::Trust) -> &'static str {
    use memfleet_domain::turn::Trust;
    match trust {
        Trust::User => "user",
        Trust::Assistant => "assistant",
        Trust::Tool => "tool",
        Trust::Web => "web",
    }
}

#[cfg(test)]
mod tests {
    use memfleet_domain::assembly::{Decision, DropReason, Reason, SessionOrigin, Strategy};
    use memfleet_domain::ids::{SessionId, SpaceId};
    use memfleet_ports::assembly::Dropped;

    use super::*;

    #[test]
    fn it_tells_for_which_session_and_by_which_strategy() {
        let mut assembled = Assembled::skipped(Reason::NoMemory);
        assert_eq!(
            outcome(&assembled),
            "skipped (no_memory): not written down, no session, strategy none instead of append"
        );
        let id = "0197b0a5-3c1e-7000-8000-000000000001";
        (assembled.decision, assembled.reason) = (Decision::Injected, None);
        assembled.injection = Some(id.parse().unwrap());
        assembled.session = Some(SessionId::new("chat-7").unwrap());
        assembled.session_origin = Some(SessionOrigin::Given);
        assembled.strategy_used = Strategy::Append;
        assert_eq!(
            outcome(&assembled),
            format!("injected: injection {id}, session chat-7 (given), strategy append")
        );
    }

    #[test]
    fn bounds_are_shown_as_comparisons_whether_they_are_met_or_not() {
        let bounds = [
            (GateBound::at_least("words", 3.0, 4.0), "words 3 < 4"),
            (
                GateBound::at_least("gating.best_relevance", 0.33, 0.0125),
                "gating.best_relevance 0.33 ≥ 0.0125",
            ),
            (
                GateBound::at_least("gating.relevance", 0.33, 0.0),
                "gating.relevance 0.33 ≥ 0",
            ),
            (
                GateBound::at_most("personal_words", 1.0, 0.0),
                "personal_words 1 > 0",
            ),
            (
                GateBound::at_most("foreign_letters", 0.05, 0.1),
                "foreign_letters 0.05 ≤ 0.1",
            ),
        ];
        for (told, expected) in bounds {
            assert_eq!(bound(&told), expected);
        }
    }

    #[test]
    fn what_was_left_out_has_relevance_and_the_beginning_of_its_text() {
        let id: TurnId = "0197b0a5-3c1e-7000-8000-000000000002".parse().unwrap();
        let mut assembled = Assembled::skipped(Reason::BelowThreshold);
        assembled.dropped = vec![Dropped {
            space: Some(SpaceId::new("ada").unwrap()),
            id: id.to_string(),
            reason: DropReason::BelowThreshold,
            detail: String::new(),
            relevance: Some(0.004),
        }];
        let text = format!("I adopted a cat,\nand {}", "so on ".repeat(20));
        let shown = dropped(&assembled, &Texts::known([(id, text)]));
        assert!(shown.contains("0.004"), "{shown}");
        assert!(shown.contains("I adopted a cat, and so on"), "{shown}");
        assert!(shown.ends_with('…'), "{shown}");
        let shown = dropped(&assembled, &Texts::default());
        assert!(shown.contains("below_threshold"), "{shown}");
    }
}
