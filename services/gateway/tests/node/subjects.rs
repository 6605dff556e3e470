//! One person in many spaces: forgotten and exported under all their names, with a space on hold,
//! twice.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::admin::Admin;
use memfleet_ports::audit::{AuditFilter, AuditKind};
use memfleet_ports::conformance::samples::{batch_in, instant, scope, speaker, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest, Record};
use memfleet_ports::queue::{Bounds, DeadLetter, IngestQueue};
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};
use tokio_util::sync::CancellationToken;

use crate::administering::{administrator, with_operator};
use crate::roles::{Node, acme, call_of, named, request, space};
use crate::transfer::{export, imported};

fn by(name: &str, text: &str) -> NewTurn {
    NewTurn {
        speaker: speaker(name),
        ..named(text, text)
    }
}

fn ada() -> Subject {
    Subject {
        name: speaker("Ada"),
        aliases: vec![speaker("A. Lovelace")],
    }
}

/// Ada speaks in three spaces of four, in two of them under another name.
async fn peopled(node: &Node) {
    let garden = vec![by("Ada", "Roses"), by("Bob", "Weeds")];
    node.told("garden", garden).await;
    let old = node.told("kitchen", vec![by("A. Lovelace", "Soup")]).await;
    let edit = NewTurn {
        replaces: Some(old.turns[0].id),
        ..by("Ada", "Broth")
    };
    node.told("kitchen", vec![edit]).await;
    node.told(
        "library",
        vec![by("A. Lovelace", "Books"), by("Bob", "Maps")],
    )
    .await;
    node.told("attic", vec![by("Bob", "Dust")]).await;
}

async fn forget(node: &Node, dry_run: bool) -> (Vec<(String, InSpace)>, SubjectTotal) {
    let request = SubjectForget {
        subject: ada(),
        dry_run,
    };
    let progress = node.gateway.forget_subject(&acme(), request).await;
    let mut progress: Vec<_> = progress.unwrap().try_collect().await.unwrap();
    let Some(SubjectProgress::Total(total)) = progress.pop() else {
        panic!("the total comes last");
    };
    let spaces = progress.into_iter().map(|progress| match progress {
        SubjectProgress::Space(space, done) => (space.to_string(), done),
        SubjectProgress::Total(_) => panic!("there is one total"),
    });
    (spaces.collect(), total)
}

/// The turns that went of each space; none of one on hold.
fn gone(spaces: &[(String, InSpace)]) -> Vec<(&str, Option<u64>)> {
    let gone = |done: &InSpace| match done {
        InSpace::Forgotten(receipt) => Some(receipt.turns),
        InSpace::Held { .. } => None,
    };
    spaces
        .iter()
        .map(|(space, done)| (space.as_str(), gone(done)))
        .collect()
}

async fn left(node: &Node, name: &str) -> Vec<String> {
    let records = export(node, name, &TurnFilter::default()).await;
    let texts = records.into_iter().filter_map(|record| match record {
        Record::Turn(turn) => Some(turn.accepted.content.text),
        _ => None,
    });
    texts.collect()
}

async fn hold(node: &Node, held: bool) {
    let (call, library) = (acme(), space("library"));
    let set = node
        .gateway
        .set_legal_hold(&call, &library, held, "case 7".into());
    set.await.unwrap();
}

#[tokio::test]
async fn a_person_is_forgotten_in_every_space_but_those_on_hold_and_a_second_run_says_what_remains()
{
    let node = Node::new().await;
    peopled(&node).await;
    hold(&node, true).await;
    // Tried only.
    let (spaces, planned) = forget(&node, true).await;
    let expected = [
        ("attic", Some(0)),
        ("garden", Some(1)),
        ("kitchen", Some(2)),
        ("library", None),
    ];
    assert_eq!(gone(&spaces), expected);
    assert!(planned.dry_run);
    assert_eq!(left(&node, "garden").await, ["Roses", "Weeds"]);
    // Done.
    let (spaces, total) = forget(&node, false).await;
    assert_eq!(gone(&spaces), expected);
    let counts = SubjectTotal {
        dry_run: false,
        ..planned
    };
    assert_eq!(total, counts);
    assert_eq!((total.spaces, total.changed_spaces), (4, 2));
    assert_eq!(
        (total.turns, total.held_spaces, total.held_turns),
        (3, 1, 1)
    );
    let InSpace::Held { hold: kept, .. } = &spaces[3].1 else {
        panic!("the library is on hold");
    };
    assert_eq!(kept.reason, "case 7");
    assert_eq!(left(&node, "attic").await, ["Dust"]);
    assert_eq!(left(&node, "garden").await, ["Weeds"]);
    assert!(left(&node, "kitchen").await.is_empty());
    assert_eq!(left(&node, "library").await, ["Books", "Maps"]);
    // Again: nothing more goes, and the hold still keeps what it kept.
    let (_, again) = forget(&node, false).await;
    assert_eq!(
        (again.turns, again.changed_spaces, again.held_turns),
        (0, 0, 1)
    );
    hold(&node, false).await;
    let (_, last) = forget(&node, false).await;
    assert_eq!((last.turns, last.held_spaces, last.held_turns), (1, 0, 0));
    assert_eq!(left(&node, "library").await, ["Maps"]);
}

#[tokio::test]
async fn a_run_that_broke_off_is_finished_by_the_next() {
    let node = Node::new().await;
    peopled(&node).await;
    let request = SubjectForget {
        subject: ada(),
        dry_run: false,
    };
    let progress = node.gateway.forget_subject(&acme(), request).await;
    let mut progress = progress.unwrap();
    // The attic and the garden; the caller hangs up then.
    for _ in 0..2 {
        progress.next().await.unwrap().unwrap();
    }
    drop(progress);
    assert_eq!(left(&node, "garden").await, ["Weeds"]);
    assert_eq!(left(&node, "library").await, ["Books", "Maps"]);
    let (spaces, total) = forget(&node, false).await;
    let expected = [
        ("attic", Some(0)),
        ("garden", Some(0)),
        ("kitchen", Some(2)),
        ("library", Some(1)),
    ];
    assert_eq!(gone(&spaces), expected);
    assert_eq!((total.turns, total.changed_spaces), (3, 2));
}

#[tokio::test]
async fn the_first_write_of_a_space_and_a_dead_letter_without_one_are_reached_too() {
    let node = Node::new().await;
    let cellar = scope("acme", "cellar");
    let lost = AcceptedTurn {
        speaker: speaker("Ada"),
        ..turn_in(&cellar, "monday", "lost", "Never stored")
    };
    let (batch, now) = (batch_in(&cellar, "lost", vec![lost]), instant(0));
    let published = node.store.publish(&batch, now, Bounds::NONE).await.unwrap();
    node.store.take(10).await.unwrap();
    let letter = DeadLetter {
        acceptance: published.acceptance,
        batch,
        reason: "PAYLOAD_REFUSED: a sample".into(),
        failed_at: now,
        attempts: 1,
    };
    node.store.dead_letter(&letter).await.unwrap();
    node.remember("garden", vec![by("Ada", "Roses")])
        .await
        .unwrap();
    let constructor = node.start_constructor();
    let (spaces, total) = forget(&node, false).await;
    drop(constructor);
    let names: Vec<_> = spaces.iter().map(|(space, _)| space.as_str()).collect();
    assert_eq!(names, ["cellar", "garden"]);
    assert_eq!((total.turns, total.undelivered), (1, 1));
    let letters = node
        .store
        .dead_letters(&acme().tenant, None, 10, None)
        .await;
    assert!(letters.unwrap().items.is_empty());
}

#[tokio::test]
async fn an_export_of_a_person_has_the_spaces_in_which_they_spoke_and_can_be_imported() {
    let (here, there) = (Node::new().await, Node::new().await);
    peopled(&here).await;
    let other = call_of("other", Duration::from_mins(1));
    let told = request("garden", vec![by("Ada", "Of another tenant")]);
    here.gateway.remember(&other, told).await.unwrap();
    here.settle().await;
    let records = here.gateway.export_subject(&acme(), &ada()).await;
    let records: Vec<_> = records.unwrap().try_collect().await.unwrap();
    let lines = records.iter().map(|record| match record {
        Record::Space(name, _) => format!("{name}:"),
        Record::Turn(turn) => turn.accepted.content.text.clone(),
        other => panic!("{other:?} was not expected"),
    });
    let expected = [
        "garden:", "Roses", "kitchen:", "Soup", "Broth", "library:", "Books",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    // Equal in everything where the space comes alone.
    let kitchen = records[2..5].to_vec();
    imported(&there, "kitchen", kitchen.clone()).await;
    let arrived = export(&there, "kitchen", &TurnFilter::default()).await;
    assert_eq!(arrived, kitchen);
}

#[tokio::test]
async fn the_audit_log_has_the_run_and_the_turns_of_each_space_and_no_name() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    let mut ids: Vec<TurnId> = Vec::new();
    for name in ["garden", "kitchen"] {
        let told = request(name, vec![by("A. Lovelace", "Roses"), by("Bob", "Weeds")]);
        let receipt = node.gateway.remember(&acme, told).await.unwrap();
        ids.push(receipt.turns[0].id);
    }
    node.settle().await;
    for dry_run in [true, false] {
        let request = SubjectForget {
            subject: ada(),
            dry_run,
        };
        let progress = node.gateway.forget_subject(&acme, request).await;
        let _read: Vec<_> = progress.unwrap().try_collect().await.unwrap();
    }
    let stop = CancellationToken::new();
    stop.cancel();
    node.gateway.access.run(stop).await;
    let filter = AuditFilter {
        kinds: vec![AuditKind::ForgetBegun, AuditKind::Forgotten],
        ..AuditFilter::default()
    };
    let log = node
        .gateway
        .audit(&acme, None, filter, PageRequest::default());
    let log = log.await.unwrap().items;
    assert_eq!(log.len(), 3, "{log:?}");
    let begun = log
        .iter()
        .find(|record| record.kind == AuditKind::ForgetBegun);
    let begun = begun.unwrap();
    assert_eq!(
        (&begun.space, begun.detail["spaces"].as_str()),
        (&None, "all")
    );
    let mut forgotten: Vec<_> = log.iter().flat_map(|record| &record.turns).collect();
    forgotten.sort_by_key(|turn| turn.space.clone());
    let forgotten: Vec<_> = forgotten.iter().map(|turn| turn.turn).collect();
    assert_eq!(forgotten, ids);
    assert!(!format!("{log:?}").contains("Lovelace"));
}
