//! `memfleet forget`: removes turns for good. What would go is always shown first.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::erasure::Erased;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::filter::Selection;
use super::{Handle, values};
use crate::output::{Output, Palette, count};

/// Remove turns for good
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// Space to forget in
    #[arg(long, value_parser = values::space)]
    space: SpaceId,
    #[command(flatten)]
    selection: Selection,
    /// The whole space, settings included
    #[arg(long)]
    everything: bool,
    /// Only show what would go
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; needed where standard input is not a terminal
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
}

/// Runs the command.
pub async fn run(args: ForgetArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let filter = args.selection.filter();
    if filter.is_everything() != args.everything {
        return Err(Error::Usage(
            "say either which turns to forget (--turn, --session, --speaker, --after, …) or --everything".to_owned(),
        ));
    }
    let request = ForgetRequest {
        space: args.space,
        filter,
        everything: args.everything,
        dry_run: true,
    };
    let plan = handle
        .memory
        .forget(&handle.long_call(), request.clone())
        .await?;
    let empty = plan.erased == Erased::default();
    if args.dry_run || empty {
        output.answer(|| to_json(&plan), |palette| human(&plan, palette))?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        eprintln!("{}", human(&plan, Palette::default()));
        confirm(io::stdin().is_terminal(), &mut io::stdin().lock())?;
    }
    let receipt = handle
        .memory
        .forget(
            &handle.long_call(),
            ForgetRequest {
                dry_run: false,
                ..request
            },
        )
        .await?;
    output.answer(|| to_json(&receipt), |palette| human(&receipt, palette))?;
    Ok(Exit::Done)
}

/// Asks a person; without one only `--yes` will do.
fn confirm(terminal: bool, answers: &mut impl BufRead) -> Result<(), Error> {
    if !terminal {
        return Err(Error::Refused(
            "nothing was forgotten: nobody can confirm it here; add --yes".to_owned(),
        ));
    }
    eprint!("This cannot be undone. Forget them? Type `yes`: ");
    let mut answer = String::new();
    answers.read_line(&mut answer)?;
    match answer.trim() {
        "yes" => Ok(()),
        _ => Err(Error::Refused("nothing was forgotten".to_owned())),
    }
}

fn to_json(receipt: &ForgetReceipt) -> Value {
    let erased = &receipt.erased;
    json!({
        "dry_run": receipt.dry_run,
        "turns": erased.turns,
        "emptied_sessions": erased.emptied_sessions,
        "turn_count": receipt.turns,
        "emptied_session_count": receipt.sessions,
        "lists_cut": receipt.is_cut(),
        "passages": erased.passages,
        "undelivered": erased.undelivered,
        "unreadable": erased.unreadable,
        "space": erased.space,
    })
}

fn human(receipt: &ForgetReceipt, palette: Palette) -> String {
    let erased = &receipt.erased;
    if *erased == Erased::default() {
        return "nothing to forget: no turn matches".to_owned();
    }
    let verb = if receipt.dry_run {
        "would be forgotten"
    } else {
        "forgotten"
    };
    let mut parts = vec![
        count(receipt.turns, "turn"),
        count(erased.passages, "indexed passage"),
        count(receipt.sessions, "whole session"),
    ];
    if erased.undelivered > 0 {
        parts.push(format!(
            "{} not stored yet",
            count(erased.undelivered, "turn")
        ));
    }
    if erased.unreadable > 0 {
        let letters = count(erased.unreadable, "dead letter");
        parts.push(format!("{letters} that cannot be read"));
    }
    if erased.space {
        parts.push("the space itself".to_owned());
    }
    format!("{}: {}", palette.strong(verb), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_confirms() {
        assert!(confirm(true, &mut &b"yes\n"[..]).is_ok());
        assert!(matches!(
            confirm(true, &mut &b"y\n"[..]),
            Err(Error::Refused(_))
        ));
        assert!(matches!(
            confirm(true, &mut &b""[..]),
            Err(Error::Refused(_))
        ));
    }

    #[test]
    fn without_a_terminal_nothing_is_forgotten_unasked() {
        let error = confirm(false, &mut &b"yes\n"[..]).unwrap_err();
        assert_eq!(error.exit(), Exit::Refused);
        assert!(error.to_string().contains("--yes"));
    }
}
