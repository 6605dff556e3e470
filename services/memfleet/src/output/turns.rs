//! Turns as people read them: one line that says who, when and where, then what was said.

use memfleet_domain::turn::Turn;

use super::{Palette, printable, time};

/// The heading of a turn and its text, indented.
pub fn turn_lines(palette: Palette, mark: &str, space: Option<&str>, turn: &Turn) -> String {
    let accepted = &turn.accepted;
    let session = printable(accepted.session.as_str());
    let place = match space {
        Some(space) => format!("{} / {session} #{}", printable(space), turn.position),
        None => format!("{session} #{}", turn.position),
    };
    let speaker = palette.strong(&printable(accepted.speaker.as_str()));
    let when = time(accepted.effective_time());
    format!(
        "{mark}{when}  {speaker}  {}\n{}",
        palette.dim(&place),
        indented(&accepted.content.searchable_text())
    )
}

/// A turn that is shown around another one, on one line.
pub fn neighbour(palette: Palette, turn: &Turn) -> String {
    let text = printable(&turn.accepted.content.searchable_text());
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = text.chars().take(100).collect::<String>();
    let more = if short.len() < text.len() { "…" } else { "" };
    palette.dim(&format!(
        "      #{} {}: {short}{more}",
        turn.position,
        printable(turn.accepted.speaker.as_str())
    ))
}

fn indented(text: &str) -> String {
    let text = printable(text);
    text.lines()
        .map(|line| format!("    {line}").trim_end().to_owned())
        .collect::<Vec<_>>()
        .join("\n")
}
