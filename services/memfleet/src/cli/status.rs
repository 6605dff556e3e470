//! `memfleet status`: what a node says of itself.

use memfleet_ports::maintenance::Status;
use serde_json::{Value, json};

use super::Handle;
use super::exit::{Error, Exit};
use crate::output::{Output, Palette, count, printable, time};

/// Runs the command; a part in trouble makes the exit code that of an unavailable node.
pub async fn run(handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let status = handle.maintenance.status(&handle.call()).await?;
    output.answer(|| to_json(&status), |palette| human(&status, palette))?;
    let working = status.parts.iter().all(|part| part.trouble.is_none());
    Ok(if working {
        Exit::Done
    } else {
        Exit::Unavailable
    })
}

fn to_json(status: &Status) -> Value {
    let parts = status
        .parts
        .iter()
        .map(|part| json!({ "name": part.name, "trouble": part.trouble, "since": part.since }));
    json!({
        "version": status.version,
        "embedding_space": status.embedding_space,
        "parts": parts.collect::<Vec<_>>(),
        "queue": {
            "batches": status.queue.batches,
            "turns": status.queue.turns,
            "bytes": status.queue.bytes,
            "oldest": status.queue.oldest,
            "dead_letters": status.queue.dead_letters,
        },
    })
}

fn model(status: &Status) -> String {
    let space = status.embedding_space.as_ref();
    space.map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn human(status: &Status, palette: Palette) -> String {
    let mut lines = vec![
        format!(
            "{}      memfleet {}",
            palette.strong("version"),
            status.version
        ),
        format!("{}        {}", palette.strong("model"), model(status)),
    ];
    for part in &status.parts {
        let state = match &part.trouble {
            None => palette.good("works"),
            Some(trouble) => {
                let since = part.since.map(|since| format!(" (since {})", time(since)));
                let since = since.unwrap_or_default();
                palette.warning(&format!("{}{since}", printable(trouble)))
            }
        };
        lines.push(format!("{:<13}{state}", part.name));
    }
    let queue = &status.queue;
    let oldest = queue
        .oldest
        .map(|oldest| format!(" since {}", time(oldest)))
        .unwrap_or_default();
    lines.push(format!(
        "{}        {} waiting{oldest}",
        palette.strong("queue"),
        count(queue.turns, "turn")
    ));
    if queue.dead_letters > 0 {
        lines.push(palette.warning(&format!(
            "{}; see `memfleet dead-letters list --space SPACE`",
            count(queue.dead_letters, "dead letter")
        )));
    }
    lines.join("\n")
}
