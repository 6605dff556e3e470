//! Why a block is what it is, as a person would read it: what became of it, gates, items, drops, budget, time.

use memfleet_ports::assembly::{Assembled, AssembledItem, GateEntry};

use crate::output::{Align, Palette, printable, table};

/// Dropped candidates that are listed; the rest is counted by reason.
const LISTED: usize = 10;

/// The explanation, several lines.
pub fn text(assembled: &Assembled) -> String {
    let parts = [
        outcome(assembled),
        gates(assembled),
        items(assembled),
        dropped(assembled),
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
    if let Some(margin) = gate.margin {
        by.push(format!("margin {margin:.2}"));
    }
    if let Some(best) = gate.best_score {
        let (passed, dropped) = (gate.passed, gate.dropped);
        by.push(format!("best {best:.3}, {passed} pass, {dropped} do not"));
    }
    if let Some(threshold) = gate.threshold {
        by.push(format!("threshold {threshold:.3}"));
    }
    if !gate.version.is_empty() {
        by.push(gate.version.clone());
    }
    by.join(", ")
}

fn items(assembled: &Assembled) -> String {
    let columns = [
        ("KEY", Align::Left),
        ("RELEVANCE", Align::Right),
        ("SCORE", Align::Right),
        ("TOKENS", Align::Right),
        ("FROM", Align::Left),
        ("ID", Align::Left),
    ];
    let tokens = |item: &AssembledItem| {
        if item.excerpt {
            format!("{} of {}", item.tokens, item.original_tokens)
        } else {
            item.tokens.to_string()
        }
    };
    let rows = assembled.items.iter().map(|item| {
        let relevance = item.relevance.map(|it| format!("{it:.3}"));
        let space = item.space.as_ref().map_or("", |space| space.as_str());
        [
            item.citation_key.clone(),
            relevance.unwrap_or_default(),
            format!("{:.3}", item.score),
            tokens(item),
            printable(&format!(
                "{space} / {} ({})",
                item.session,
                trust(item.trust)
            )),
            item.id.clone(),
        ]
    });
    table(Palette::default(), columns, rows)
}

fn dropped(assembled: &Assembled) -> String {
    let columns = [("LEFT OUT", Align::Left), ("BECAUSE", Align::Left)];
    let listed = assembled.dropped.iter().take(LISTED);
    let rows = listed.map(|dropped| {
        let reason = format!("{} {}", dropped.reason, dropped.detail);
        [dropped.id.clone(), reason.trim_end().to_owned()]
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
    use memfleet_domain::assembly::{Decision, Reason, SessionOrigin, Strategy};
    use memfleet_domain::ids::SessionId;

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
}
