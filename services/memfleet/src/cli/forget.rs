//! `memfleet forget`: removes turns for good. What would go is always shown first.

use std::io::{self, BufRead, IsTerminal};

use clap::Args;
use futures::TryStreamExt;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::erasure::DependentCounts;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};
use serde_json::{Value, json};

use super::exit::{Error, Exit};
use super::filter::Selection;
use super::subject::WhoseTurns;
use super::{Handle, values};
use crate::output::{Output, Palette, count, neighbour, printable, time, turn_json};

/// Turns that a plan shows at most.
const SHOWN: u32 = 20;

/// Remove turns for good
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct ForgetArgs {
    /// Space to forget in
    #[arg(long, value_parser = values::space, required_unless_present = "subject")]
    space: Option<SpaceId>,
    #[command(flatten)]
    whose: WhoseTurns,
    /// In every space of the tenant
    #[arg(long, requires = "subject", conflicts_with_all = ["space", "everything"])]
    all_spaces: bool,
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
    if let Some(subject) = args.whose.subject(&filter)? {
        if !args.all_spaces {
            return Err(Error::Usage(
                "--subject forgets in every space: say so with --all-spaces, or use --space with --speaker".to_owned(),
            ));
        }
        return everywhere(subject, args.dry_run, args.yes, handle, output).await;
    }
    if filter.is_everything() != args.everything {
        return Err(Error::Usage(
            "say either which turns to forget (--turn, --session, --speaker, --after, …) or --everything".to_owned(),
        ));
    }
    let space = args.space;
    let request = ForgetRequest {
        space: space.expect("the parser takes a space or a person"),
        filter,
        everything: args.everything,
        dry_run: true,
    };
    let plan = handle
        .memory
        .forget(&handle.long_call(), request.clone())
        .await?;
    if args.dry_run || plan.is_empty() {
        let shown = first(handle, &request, &plan).await?;
        let json = || {
            let mut json = to_json(&plan);
            json["first"] = shown.iter().map(turn_json).collect();
            json
        };
        output.answer(json, |palette| with_texts(&plan, &shown, palette))?;
        return Ok(Exit::Done);
    }
    if !args.yes {
        let shown = first(handle, &request, &plan).await?;
        eprintln!("{}", with_texts(&plan, &shown, Palette::default()));
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

/// The first stored turns of a plan; none where the key may not read.
async fn first(
    handle: &Handle,
    request: &ForgetRequest,
    plan: &ForgetReceipt,
) -> Result<Vec<Turn>, Error> {
    if plan.turns == 0 {
        return Ok(Vec::new());
    }
    let filter = TurnFilter {
        include_replaced: true,
        ..request.filter.clone()
    };
    let page = PageRequest {
        limit: SHOWN,
        after: None,
    };
    let listed = handle
        .memory
        .list(&handle.call(), &request.space, &filter, page, &[])
        .await;
    match listed {
        Ok(page) => Ok(page.items),
        Err(fault) if fault.kind == FaultKind::PermissionDenied => Ok(Vec::new()),
        Err(fault) => Err(fault.into()),
    }
}

/// A plan with a line for each of its first turns.
fn with_texts(plan: &ForgetReceipt, shown: &[Turn], palette: Palette) -> String {
    let mut text = human(plan, palette);
    for turn in shown {
        text.push('\n');
        text += &neighbour(palette, turn);
    }
    let more = plan.turns.saturating_sub(shown.len() as u64);
    if more > 0 && !shown.is_empty() {
        let more = count(more, "turn");
        text = format!("{text}\n      … and {more} more");
    }
    text
}

/// Forgets one person in every space: tried first, unless nothing is asked. What stays in spaces on
/// legal hold ends with code 4.
async fn everywhere(
    subject: Subject,
    dry_run: bool,
    yes: bool,
    handle: &Handle,
    output: &mut Output,
) -> Result<Exit, Error> {
    let request = |dry_run| SubjectForget {
        subject: subject.clone(),
        dry_run,
    };
    if dry_run {
        walk(request(true), handle, |progress| report(progress, output)).await?;
        return Ok(Exit::Done);
    }
    if !yes {
        let shown = |progress: &SubjectProgress| {
            if let Some(line) = human_progress(progress, Palette::default()) {
                eprintln!("{line}");
            }
            Ok(())
        };
        walk(request(true), handle, shown).await?;
        confirm(io::stdin().is_terminal(), &mut io::stdin().lock())?;
    }
    let total = walk(request(false), handle, |progress| report(progress, output)).await?;
    Ok(match total.held_turns {
        0 => Exit::Done,
        _ => Exit::Refused,
    })
}

/// Goes through the spaces; the total. A stream that ends without one broke off.
async fn walk(
    request: SubjectForget,
    handle: &Handle,
    mut said: impl FnMut(&SubjectProgress) -> io::Result<()>,
) -> Result<SubjectTotal, Error> {
    let call = handle.long_call();
    let mut progress = handle.memory.forget_subject(&call, request).await?;
    while let Some(next) = progress.try_next().await? {
        said(&next)?;
        if let SubjectProgress::Total(total) = next {
            return Ok(total);
        }
    }
    let message = "the node stopped before every space was done: run it again";
    Err(Fault::new(FaultKind::Unavailable, "", message).into())
}

fn report(progress: &SubjectProgress, output: &mut Output) -> io::Result<()> {
    if output.is_json() {
        output.json(&progress_json(progress))?;
    } else if let Some(line) = human_progress(progress, output.palette()) {
        output.text(&line)?;
    }
    output.flush()
}

fn progress_json(progress: &SubjectProgress) -> Value {
    match progress {
        SubjectProgress::Space(space, InSpace::Forgotten(receipt)) => {
            json!({"space": space, "receipt": to_json(receipt), "held": null})
        }
        SubjectProgress::Space(space, InSpace::Held { hold, turns }) => {
            let held = json!({"since": hold.since, "reason": hold.reason, "turns": turns});
            json!({"space": space, "receipt": null, "held": held})
        }
        SubjectProgress::Total(total) => json!({"total": {
            "dry_run": total.dry_run,
            "spaces": total.spaces,
            "changed_spaces": total.changed_spaces,
            "turn_count": total.turns,
            "emptied_session_count": total.sessions,
            "passages": total.passages,
            "undelivered": total.undelivered,
            "unreadable": total.unreadable,
            "dependents": dependents_json(&total.dependents),
            "held_spaces": total.held_spaces,
            "held_turn_count": total.held_turns,
        }}),
    }
}

/// A line a space in which something goes or stays, and one for all.
fn human_progress(progress: &SubjectProgress, palette: Palette) -> Option<String> {
    match progress {
        SubjectProgress::Space(_, InSpace::Forgotten(receipt)) if receipt.is_empty() => None,
        SubjectProgress::Space(space, InSpace::Forgotten(receipt)) => {
            let space = printable(space.as_str());
            Some(format!("{space}: {}", human(receipt, palette)))
        }
        SubjectProgress::Space(space, InSpace::Held { hold, turns }) => Some(format!(
            "{}: on legal hold since {} ({}), {} of theirs stay",
            printable(space.as_str()),
            time(hold.since),
            printable(&hold.reason),
            count(*turns, "turn"),
        )),
        SubjectProgress::Total(total) => Some(human_total(total, palette)),
    }
}

fn human_total(total: &SubjectTotal, palette: Palette) -> String {
    let verb = match total.dry_run {
        true => "would be forgotten",
        false => "forgotten",
    };
    let mut line = format!(
        "{}: {} in {} of {}",
        palette.strong(verb),
        count(total.turns + total.undelivered, "turn"),
        count(total.changed_spaces, "space"),
        total.spaces,
    );
    let also: Vec<_> = with_them(&total.dependents).collect();
    if !also.is_empty() {
        line = format!("{line}, with {}", also.join(", "));
    }
    if total.held_spaces > 0 {
        let turns = count(total.held_turns, "turn");
        let spaces = count(total.held_spaces, "space");
        line = format!("{line}; on legal hold: {turns} in {spaces}, kept until that is lifted");
    }
    line
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
        "dependents": dependents_json(&erased.dependents),
        "space": erased.space,
    })
}

fn dependents_json(dependents: &DependentCounts) -> Value {
    json!({
        "facts": dependents.facts,
        "episodes": dependents.episodes,
        "fragments": dependents.fragments,
        "narratives": dependents.narratives,
        "identities": dependents.identities,
        "blocks": dependents.blocks,
        "exchanges": dependents.exchanges,
    })
}

/// A part for each kind of what goes with the turns, without those of which there is none.
fn with_them(dependents: &DependentCounts) -> impl Iterator<Item = String> {
    let numbers = [
        (dependents.facts, "fact"),
        (dependents.episodes, "episode"),
        (dependents.fragments, "fragment"),
        (dependents.narratives, "narrative"),
        (dependents.identities, "naming"),
        (dependents.blocks, "block"),
        (dependents.exchanges, "exchange"),
    ];
    let some = numbers.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, noun)| count(number, noun))
}

fn human(receipt: &ForgetReceipt, palette: Palette) -> String {
    let erased = &receipt.erased;
    if receipt.is_empty() {
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
    parts.extend(with_them(&erased.dependents));
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
    use clap::Parser;
    use memfleet_domain::space::LegalHold;
    use memfleet_domain::time::Timestamp;
    use memfleet_ports::erasure::Erased;
    use memfleet_ports::memory::Record;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        forget: ForgetArgs,
    }

    #[test]
    fn a_forget_is_in_a_space_or_of_a_person_in_all_of_them() {
        let parse = |arguments: &[&str]| Line::try_parse_from([&["forget"], arguments].concat());
        let person = ["--subject", "Ada", "--alias", "A. Lovelace", "--all-spaces"];
        for right in [
            &["--space", "ada", "--everything"][..],
            &person,
            &[&person[..], &["--dry-run"]].concat(),
        ] {
            assert!(parse(right).is_ok(), "{right:?}");
        }
        for wrong in [
            &[][..],
            &["--all-spaces"],
            &[&person[..], &["--space", "ada"]].concat(),
            &[&person[..], &["--everything"]].concat(),
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_plan_shows_its_first_texts_cut_and_says_how_many_more_there_are() {
        let line = |text: &str| {
            let line = json!({
                "record": "turn", "id": "00000000-0000-4000-8000-000000000001", "session": "s", "external_id": null,
                "speaker": "Ada", "role": "user", "content": {"text": text, "media": []}, "event_time": null,
                "recorded_at": "2026-01-02T03:04:05Z", "metadata": {}, "trust": "user", "replaces": null, "position": 0,
                "replaced": null,
            });
            match memfleet_rpc::jsonl::read(&line.to_string()).unwrap() {
                Record::Turn(turn) => *turn,
                _ => panic!("it is a turn"),
            }
        };
        let shown = [line("Roses\nare red"), line(&"x".repeat(300))];
        let plan = ForgetReceipt {
            turns: 5,
            ..ForgetReceipt::of(
                Erased {
                    passages: 9,
                    ..Erased::default()
                },
                true,
            )
        };
        let text = with_texts(&plan, &shown, Palette::default());
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("would be forgotten: 5 turns"));
        assert_eq!(lines[1], "#0 Ada: Roses are red");
        assert_eq!(lines[2], format!("#0 Ada: {}…", "x".repeat(100)));
        assert_eq!(lines[3], "… and 3 turns more");
        assert_eq!(
            with_texts(&plan, &[], Palette::default()).lines().count(),
            1
        );
    }

    #[test]
    fn a_person_is_reported_space_by_space_and_what_stays_is_named() {
        let space = |name: &str| SpaceId::new(name).unwrap();
        let dependents = DependentCounts {
            facts: 3,
            blocks: 1,
            ..DependentCounts::default()
        };
        let erased = Erased {
            passages: 2,
            undelivered: 1,
            dependents,
            ..Erased::default()
        };
        let hold = LegalHold {
            since: Timestamp::UNIX_EPOCH,
            reason: "case 7".into(),
        };
        let mut total = SubjectTotal::default();
        let mut lines = Vec::new();
        for (name, done) in [
            (
                "attic",
                InSpace::Forgotten(ForgetReceipt::of(Erased::default(), false)),
            ),
            (
                "garden",
                InSpace::Forgotten(ForgetReceipt::of(erased, false)),
            ),
            ("library", InSpace::Held { hold, turns: 3 }),
        ] {
            total.add(&done);
            let progress = SubjectProgress::Space(space(name), done);
            lines.extend(human_progress(&progress, Palette::default()));
        }
        lines.extend(human_progress(
            &SubjectProgress::Total(total),
            Palette::default(),
        ));
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("garden: forgotten: 0 turns, 2 indexed passages"));
        assert!(lines[0].contains("0 whole sessions, 3 facts, 1 block"));
        assert!(lines[1].starts_with("library: on legal hold since 1970-01-01"));
        assert!(lines[1].ends_with("(case 7), 3 turns of theirs stay"));
        assert_eq!(
            lines[2],
            "forgotten: 1 turn in 1 space of 3, with 3 facts, 1 block; on legal hold: 3 turns in 1 space, kept until that is lifted"
        );
    }

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
