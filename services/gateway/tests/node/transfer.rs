//! Export and import: a space comes back equal in everything, with the gaps of what was forgotten.

use std::sync::Arc;

use futures::TryStreamExt;
use memfleet_domain::access::{Grant, Right, Rights};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::graph::{Entity, Identity};
use memfleet_domain::ids::TurnId;
use memfleet_domain::policy::Policy;
use memfleet_domain::space::{LegalHold, SpaceSettings};
use memfleet_domain::turn::{Media, Role};
use memfleet_ports::access::{Caller, Proof};
use memfleet_ports::conformance::knowledge::{deriving, fact};
use memfleet_ports::conformance::samples::{instant, session, speaker};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Applied, ChangeFilter, Knowledge, Work};
use memfleet_ports::knowledge_api::KnowledgeService;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::{Answers, Imported, Memory, NewTurn, PageRequest, Record, SpaceRules};
use memfleet_ports::policies::Policies;
use memfleet_ports::refresher::{ForgetRequest, Naming, Refresher};
use tokio_util::sync::DropGuard;

use crate::knowing::{Moved, correction, moved, says};
use crate::roles::{Node, acme, named, said, space};

pub async fn export(node: &Node, name: &str, filter: &TurnFilter) -> Vec<Record> {
    let records = node.gateway.export(&acme(), &space(name), filter).await;
    records.unwrap().try_collect().await.unwrap()
}

async fn import(node: &Node, name: &str, records: Vec<Record>) -> (u64, u64) {
    let imported = imported(node, name, records).await;
    assert_eq!(imported.forgotten, 0);
    (imported.accepted, imported.duplicates)
}

pub async fn imported(node: &Node, name: &str, records: Vec<Record>) -> Imported {
    let records: Answers<Record> = Box::pin(futures::stream::iter(records.into_iter().map(Ok)));
    let imported = node.gateway.import(&acme(), &space(name), records).await;
    node.settle().await;
    imported.unwrap()
}

/// 600 turns in three sessions that take turns, some with everything that a turn can have; every fiftieth is an edit of the
/// one before it in its session.
async fn eventful(node: &Node) -> Vec<TurnId> {
    let settings = SpaceSettings {
        language: Some("en".to_owned()),
        time_zone: "Europe/Zurich".parse().unwrap(),
        retention_days: Some(36_000),
        retention_turns: Some(100_000),
        retention_superseded_days: Some(36_000),
    };
    node.gateway
        .put_space(&acme(), &space("ada"), settings)
        .await
        .unwrap();
    let mut ids: Vec<TurnId> = Vec::new();
    for n in 0..600_usize {
        let mut turn = NewTurn {
            session: session(&format!("s{}", n % 3)),
            event_time: (!n.is_multiple_of(4)).then(|| instant(-(n as i64))),
            ..if n % 2 == 0 {
                said("")
            } else {
                named(&n.to_string(), "")
            }
        };
        turn.content.text = format!("Turn {n} of a long story\n with \"quotes\" and ☂");
        if n % 7 == 0 {
            turn.role = Role::Tool;
            turn.speaker = speaker("camera");
            turn.metadata = [("n".to_owned(), n.to_string())].into();
            turn.content.media = vec![Media {
                uri: format!("file:{n}"),
                mime_type: "image/png".into(),
                caption: format!("picture {n}"),
            }];
        }
        if n % 50 == 49 {
            turn.replaces = Some(ids[n - 3]);
        }
        node.clock.set(n as i64);
        let receipt = node.remember("ada", vec![turn]).await.unwrap();
        ids.push(receipt.turns[0].id);
    }
    node.settle().await;
    ids
}

async fn forget(node: &Node, filter: TurnFilter) -> usize {
    let request = ForgetRequest {
        space: space("ada"),
        everything: filter.is_everything(),
        filter,
        dry_run: false,
    };
    let receipt = node.gateway.forget(&acme(), request).await.unwrap();
    receipt.erased.turns.len()
}

#[tokio::test]
async fn a_space_goes_to_another_node_and_comes_back_equal() {
    let (here, there) = (Node::new().await, Node::new().await);
    eventful(&here).await;
    there.clock.set(1_000_000);
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(records.len(), 601, "the replaced turns are among them");
    assert_eq!(import(&there, "ada", records.clone()).await, (600, 0));
    assert_eq!(export(&there, "ada", &TurnFilter::default()).await, records);
    assert_eq!(import(&there, "ada", records.clone()).await, (0, 600));
    assert_eq!(export(&there, "ada", &TurnFilter::default()).await, records);
}

#[tokio::test]
async fn a_turn_that_replaces_one_of_a_later_session_travels_with_it() {
    let (here, there) = (Node::new().await, Node::new().await);
    let on = |day: &str, name: &str| NewTurn {
        session: session(day),
        ..named(name, name)
    };
    here.told("ada", vec![on("monday", "We meet")]).await;
    here.clock.set(1);
    let old = here.told("ada", vec![on("tuesday", "At five")]).await;
    let edit = NewTurn {
        replaces: Some(old.turns[0].id),
        ..on("monday", "At six")
    };
    here.told("ada", vec![edit]).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(import(&there, "ada", records.clone()).await, (3, 0));
    assert_eq!(export(&there, "ada", &TurnFilter::default()).await, records);
    let versions = there
        .gateway
        .history(&acme(), &space("ada"), old.turns[0].id)
        .await;
    assert_eq!(versions.unwrap().len(), 2);
}

#[tokio::test]
async fn gaps_of_what_was_forgotten_travel_too() {
    let (here, there) = (Node::new().await, Node::new().await);
    let ids = eventful(&here).await;
    // The first turns of a session, one in the middle, an edit, and one that was replaced.
    let turns = vec![ids[0], ids[3], ids[300], ids[99], ids[146]];
    let some = TurnFilter {
        turns,
        ..TurnFilter::default()
    };
    // With the edit goes what it replaced.
    assert_eq!(forget(&here, some).await, 6);
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(records.len(), 595);
    assert_eq!(import(&there, "ada", records.clone()).await, (594, 0));
    let arrived = export(&there, "ada", &TurnFilter::default()).await;
    for (arrived, sent) in arrived.iter().zip(&records) {
        assert_eq!(arrived, sent);
    }
    assert_eq!(arrived.len(), records.len());
    there.told("ada", vec![said("Life goes on")]).await;
    assert_eq!(
        there.found("ada", "life goes on").await.unwrap()[0],
        "Life goes on"
    );
}

#[tokio::test]
async fn an_import_into_a_space_with_turns_of_its_own_keeps_the_order_of_both() {
    let (here, there) = (Node::new().await, Node::new().await);
    here.told("ada", vec![named("1", "One"), named("2", "Two")])
        .await;
    there
        .told(
            "bob",
            vec![named("a", "A"), named("b", "B"), named("c", "C")],
        )
        .await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    import(&there, "bob", records).await;
    let records = export(&there, "bob", &TurnFilter::default()).await;
    let places = records.iter().filter_map(|record| match record {
        Record::Turn(turn) => Some((turn.accepted.content.text.as_str(), turn.position)),
        _ => None,
    });
    assert!(places.eq([("A", 0), ("B", 1), ("C", 2), ("One", 3), ("Two", 4)]));
}

#[tokio::test]
async fn a_space_that_exists_keeps_its_settings_when_something_is_imported() {
    let (here, there) = (Node::new().await, Node::new().await);
    let kept_for = |days| SpaceSettings {
        retention_days: days,
        ..SpaceSettings::default()
    };
    for (node, days) in [(&here, Some(1)), (&there, None)] {
        node.gateway
            .put_space(&acme(), &space("ada"), kept_for(days))
            .await
            .unwrap();
    }
    here.told("ada", vec![named("1", "One")]).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(import(&there, "ada", records).await, (1, 0));
    let records = export(&there, "ada", &TurnFilter::default()).await;
    assert_eq!(records[0], Record::Space(space("ada"), kept_for(None)));
}

#[tokio::test]
async fn settings_that_no_space_may_have_are_refused_in_an_import_too() {
    let node = Node::new().await;
    let settings = SpaceSettings {
        retention_days: Some(0),
        ..SpaceSettings::default()
    };
    let records: Answers<Record> = Box::pin(futures::stream::iter([Ok(Record::Space(
        space("ada"),
        settings,
    ))]));
    let fault = node.gateway.import(&acme(), &space("ada"), records).await;
    assert_eq!(
        fault.unwrap_err().fields[0].field,
        "settings.retention_days"
    );
}

#[tokio::test]
async fn an_import_that_breaks_off_is_sent_again_and_completed() {
    let (here, there) = (Node::new().await, Node::new().await);
    eventful(&here).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    let broken = memfleet_domain::Fault::invalid("record", "is torn");
    let half = records[..400].iter().cloned().map(Ok);
    let torn: Answers<Record> = Box::pin(futures::stream::iter(
        half.chain([Err(broken)]).collect::<Vec<_>>(),
    ));
    let fault = there.gateway.import(&acme(), &space("ada"), torn).await;
    assert_eq!(fault.unwrap_err().fields[0].field, "record");
    there.settle().await;
    let (accepted, duplicates) = import(&there, "ada", records.clone()).await;
    assert_eq!(accepted + duplicates, 600);
    assert_eq!(export(&there, "ada", &TurnFilter::default()).await, records);
}

#[tokio::test]
async fn what_is_stored_already_is_not_queued_again_in_whatever_chunks_it_comes() {
    let (here, there) = (Node::new().await, Node::new().await);
    eventful(&here).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(import(&there, "ada", records.clone()).await, (600, 0));
    let others = imported(&there, "ada", records[101..].to_vec()).await;
    assert_eq!((others.accepted, others.duplicates), (0, 500));
    assert_eq!(others.batches, [], "nothing to wait for");
    let mut changed = records;
    let Record::Turn(turn) = &mut changed[2] else {
        panic!("the space comes first");
    };
    turn.accepted.content.text = "Something else".into();
    let changed: Answers<Record> = Box::pin(futures::stream::iter(changed.into_iter().map(Ok)));
    let fault = there.gateway.import(&acme(), &space("ada"), changed).await;
    assert_eq!(fault.unwrap_err().reason, "EXTERNAL_ID_CONFLICT");
}

#[tokio::test]
async fn an_export_of_some_turns_holds_those_only() {
    let node = Node::new().await;
    eventful(&node).await;
    let filter = TurnFilter {
        speakers: vec![speaker("camera")],
        sessions: vec![session("s1")],
        ..TurnFilter::default()
    };
    let records = export(&node, "ada", &filter).await;
    assert!(matches!(records[0], Record::Space(..)));
    assert!(records.len() > 10);
    for record in &records[1..] {
        let Record::Turn(turn) = record else {
            panic!("one space a file");
        };
        assert_eq!(turn.accepted.speaker, speaker("camera"));
        assert_eq!(turn.accepted.session, session("s1"));
        assert_eq!(turn.replaced, None);
    }
}

#[tokio::test]
async fn an_import_counts_turns_and_not_the_batches_they_come_in() {
    let (here, there) = (Node::new().await, Node::new().await);
    eventful(&here).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    import(&there, "ada", records[..101].to_vec()).await;
    let again = import(&there, "ada", records[..201].to_vec()).await;
    assert_eq!(again, (100, 100));
    assert_eq!(import(&there, "ada", records).await, (400, 200));
}

#[tokio::test]
async fn an_import_does_not_bring_back_turns_that_were_forgotten_on_purpose() {
    let node = Node::new().await;
    let ids = eventful(&node).await;
    let records = export(&node, "ada", &TurnFilter::default()).await;
    let some = TurnFilter {
        turns: vec![ids[1], ids[2], ids[400]],
        ..TurnFilter::default()
    };
    assert_eq!(forget(&node, some).await, 3);
    let left = export(&node, "ada", &TurnFilter::default()).await;
    // Whole, and cut in another way.
    for (records, expected) in [
        (&records[..], (0, 597, 3)),
        (&records[..301], (0, 298, 2)),
        (&records[301..], (0, 299, 1)),
    ] {
        let Imported {
            accepted,
            duplicates,
            forgotten,
            ..
        } = imported(&node, "ada", records.to_vec()).await;
        assert_eq!((accepted, duplicates, forgotten), expected);
    }
    assert_eq!(export(&node, "ada", &TurnFilter::default()).await, left);
    // Told again it is another matter.
    let told = node.told("ada", vec![named("1", "Told again")]).await;
    assert_eq!(told.turns.len(), 1);
}

#[tokio::test]
async fn the_tokens_of_an_import_name_what_was_taken_without_what_was_left_out() {
    let (here, there) = (Node::new().await, Node::new().await);
    let ids = eventful(&here).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    assert_eq!(import(&there, "ada", records[..3].to_vec()).await, (2, 0));
    let filter = TurnFilter {
        turns: vec![ids[1]],
        ..TurnFilter::default()
    };
    forget(&there, filter).await;
    let imported = imported(&there, "ada", records).await;
    assert_eq!((imported.duplicates, imported.forgotten), (1, 1));
    let mut followed = 0;
    for batch in &imported.batches {
        let states = there.gateway.watch(&acme(), &space("ada"), *batch).await;
        let states: Vec<_> = states.unwrap().try_collect().await.unwrap();
        followed += states.len() as u64;
    }
    assert_eq!(followed, imported.accepted);
    assert_eq!(imported.batches.len(), 3, "256 turns at a time");
}

#[tokio::test]
async fn a_space_that_was_forgotten_as_a_whole_can_be_imported_anew() {
    let node = Node::new().await;
    eventful(&node).await;
    let records = export(&node, "ada", &TurnFilter::default()).await;
    assert_eq!(forget(&node, TurnFilter::default()).await, 600);
    assert_eq!(import(&node, "ada", records.clone()).await, (600, 0));
    assert_eq!(export(&node, "ada", &TurnFilter::default()).await, records);
    // What is forgotten of the new space stays forgotten.
    let camera = TurnFilter {
        speakers: vec![speaker("camera")],
        ..TurnFilter::default()
    };
    let gone = forget(&node, camera).await as u64;
    let imported = imported(&node, "ada", records).await;
    assert_eq!((imported.accepted, imported.forgotten), (0, gone));
}

#[tokio::test]
async fn an_export_carries_what_callers_decided_and_comes_back_byte_equal() {
    let Moved {
        node: here,
        rome,
        oslo,
        settling,
    } = moved().await;
    // The update is undone, one fact is corrected twice and once undone, names are one and then are
    // not.
    here.clock.set(1_001);
    let space_of = || space("ada");
    here.gateway
        .revert(&acme(), &space_of(), settling)
        .await
        .unwrap();
    for (second, city) in [(1_002, "Bergen"), (1_003, "Narvik")] {
        here.clock.set(second);
        here.gateway
            .update(
                &acme(),
                correction(oslo.id, says(&format!("Ada lives in {city}."), city)),
            )
            .await
            .unwrap();
    }
    let changes = ChangeFilter {
        derivation: Some(oslo.id),
        ..ChangeFilter::default()
    };
    let scope = acme().scope(&space_of());
    let last = here.store.changes(&scope, &changes, 1, None).await.unwrap();
    here.clock.set(1_004);
    here.gateway
        .revert(&acme(), &space_of(), last.items[0].change.id)
        .await
        .unwrap();
    for (second, same) in [(1_005, true), (1_006, false)] {
        here.clock.set(second);
        let naming = Naming {
            identity: Identity {
                entity: Entity::new("ada", "Ada"),
                other: Entity::new("ada lovelace", "Ada Lovelace"),
                same,
            },
            turns: rome.turns.clone(),
        };
        let namings = [naming];
        here.refresher
            .identify(&acme(), &space_of(), &namings)
            .await
            .unwrap();
    }
    let mut policy = Policy::default();
    policy.budget.max_tokens = Some(700);
    here.gateway
        .put_policy(&acme(), Some(space_of()), policy, None)
        .await
        .unwrap();
    here.gateway
        .set_legal_hold(&acme(), &space_of(), true, "case 7".into())
        .await
        .unwrap();

    let everything = TurnFilter::default();
    let records = export(&here, "ada", &everything).await;
    let decided = |record: &&Record| matches!(record, Record::Decided(_));
    assert!(matches!(records[1], Record::Rules(_)));
    assert_eq!(records.iter().filter(decided).count(), 3);

    let there = Node::new().await;
    let _working = there.start_constructor();
    there.clock.set(5_000);
    let imported = imported(&there, "ada", records.clone()).await;
    assert_eq!((imported.decided, imported.left_out), (3, Vec::new()));
    let arrived = export(&there, "ada", &everything).await;
    assert_eq!(arrived, records);
    // Again it is there already; the hold is one.
    let again = self::imported(&there, "ada", records.clone()).await;
    assert_eq!((again.accepted, again.decided), (0, 0));
    assert_eq!(export(&there, "ada", &everything).await, records);
    let whole = ForgetRequest {
        space: space_of(),
        filter: everything,
        everything: true,
        dry_run: false,
    };
    let held = there.gateway.forget(&acme(), whole).await;
    assert_eq!(held.unwrap_err().reason, "LEGAL_HOLD");
}

#[tokio::test]
async fn an_export_of_some_turns_has_what_was_decided_about_these_alone() {
    let moved = moved().await;
    moved.corrected(moved.oslo.id).await;
    hold_and_lift(&moved.node).await;
    let count = async |turn: TurnId| {
        let filter = TurnFilter {
            turns: vec![turn],
            ..TurnFilter::default()
        };
        let records = export(&moved.node, "ada", &filter).await;
        assert!(
            !records
                .iter()
                .any(|record| matches!(record, Record::Rules(_)))
        );
        let decided = records
            .iter()
            .filter(|record| matches!(record, Record::Decided(_)));
        decided.count()
    };
    assert_eq!(count(moved.oslo.turns[0]).await, 1);
    assert_eq!(count(moved.rome.turns[0]).await, 0);
}

async fn hold_and_lift(node: &Node) {
    for held in [true, false, true] {
        node.gateway
            .set_legal_hold(&acme(), &space("ada"), held, "case 7".into())
            .await
            .unwrap();
    }
}

/// A node that has all of an export.
async fn copy_of(records: &[Record]) -> (Node, DropGuard) {
    let node = Node::new().await;
    let working = node.start_constructor();
    imported(&node, "ada", records.to_vec()).await;
    (node, working)
}

#[tokio::test]
async fn what_was_decided_here_stays_and_a_newer_export_brings_what_is_newer() {
    let moved = moved().await;
    let decide = async |node: &Node, city: &str| {
        let says = says(&format!("Ada lives in {city}."), city);
        let request = correction(moved.oslo.id, says);
        node.gateway.update(&acme(), request).await.unwrap();
        export(node, "ada", &TurnFilter::default()).await
    };
    let early = decide(&moved.node, "Bergen").await;
    let (quiet, _one) = copy_of(&early).await;
    let (busy, _other) = copy_of(&early).await;
    moved.node.clock.set(2_000);
    let late = decide(&moved.node, "Narvik").await;
    assert_eq!(imported(&quiet, "ada", late.clone()).await.decided, 1);
    assert_eq!(export(&quiet, "ada", &TurnFilter::default()).await, late);
    // An older one brings nothing back.
    assert_eq!(imported(&quiet, "ada", early.clone()).await.decided, 0);
    assert_eq!(export(&quiet, "ada", &TurnFilter::default()).await, late);
    let naming = Naming {
        identity: Identity {
            entity: Entity::new("ada", "Ada"),
            other: Entity::new("ada lovelace", "Ada Lovelace"),
            same: true,
        },
        turns: moved.rome.turns.clone(),
    };
    let namings = [naming];
    busy.refresher
        .identify(&acme(), &space("ada"), &namings)
        .await
        .unwrap();
    let before = export(&busy, "ada", &TurnFilter::default()).await;
    assert_eq!(imported(&busy, "ada", early).await.decided, 0);
    assert_eq!(export(&busy, "ada", &TurnFilter::default()).await, before);
}

#[tokio::test]
async fn what_draws_on_a_turn_that_is_not_there_is_left_out_and_named() {
    let moved = moved().await;
    moved.corrected(moved.oslo.id).await;
    let mut records = export(&moved.node, "ada", &TurnFilter::default()).await;
    records.retain(|record| !matches!(record, Record::Turn(_)));
    let there = Node::new().await;
    let said = imported(&there, "ada", records).await;
    assert_eq!((said.decided, said.left_out.len()), (0, 1));
    assert!(said.left_out[0].contains(&moved.oslo.id.to_string()));
}

#[tokio::test]
async fn a_writer_without_the_right_to_manage_brings_no_hold_and_no_policy() {
    let here = Node::new().await;
    here.told("ada", vec![named("1", "One")]).await;
    hold_and_lift(&here).await;
    let records = export(&here, "ada", &TurnFilter::default()).await;
    let there = Node::new().await;
    let records: Answers<Record> = Box::pin(futures::stream::iter(records.into_iter().map(Ok)));
    let said = there
        .gateway
        .import(&writer(), &space("ada"), records)
        .await;
    there.settle().await;
    assert_eq!(said.unwrap().left_out.len(), 1);
    let records = export(&there, "ada", &TurnFilter::default()).await;
    assert!(
        !records
            .iter()
            .any(|record| matches!(record, Record::Rules(_)))
    );
}

/// Imports an export into an empty node on which the time is a later one; what comes out of it.
async fn sent(records: &[Record]) -> Vec<Record> {
    let there = Node::new().await;
    let _working = there.start_constructor();
    there.clock.set(9_000);
    let imported = imported(&there, "ada", records.to_vec()).await;
    let decided = records
        .iter()
        .filter(|record| matches!(record, Record::Decided(_)));
    assert_eq!(imported.left_out, Vec::<String>::new());
    assert_eq!(imported.decided, decided.count() as u64);
    export(&there, "ada", &TurnFilter::default()).await
}

#[tokio::test]
async fn a_history_that_lost_a_version_to_a_forget_comes_back_equal() {
    let moved = moved().await;
    let (node, ada) = (&moved.node, space("ada"));
    node.gateway
        .revert(&acme(), &ada, moved.settling)
        .await
        .unwrap();
    let oslo = TurnFilter {
        turns: moved.oslo.turns.clone(),
        ..TurnFilter::default()
    };
    assert_eq!(forget(node, oslo).await, 1);
    let records = export(node, "ada", &TurnFilter::default()).await;
    let Some(Record::Decided(memory)) = records.last() else {
        panic!("the undoing is a decision");
    };
    let versions: Vec<_> = memory
        .versions
        .iter()
        .map(|it| it.derivation.version)
        .collect();
    assert_eq!(versions, [1, 3]);
    assert_eq!(sent(&records).await, records);
}

/// Writes two facts of one turn, known from a second on.
async fn derive_both(node: &Node, seconds: i64) -> [Derivation; 2] {
    let scope = acme().scope(&space("ada"));
    let page = node
        .store
        .list(&scope, &TurnFilter::default(), 1, None)
        .await;
    let turn = page.unwrap().items.remove(0).accepted;
    let facts = [("Ada", "Rome"), ("Bob", "Oslo")].map(|(who, city)| {
        let mut fact = fact(&turn, who, city, instant(10));
        fact.known.start = Some(instant(seconds));
        fact
    });
    let mut rewrite = deriving(&[&facts[0], &facts[1]]);
    rewrite.change.at = instant(seconds);
    let work = Work {
        rewrites: vec![rewrite],
        ..Work::default()
    };
    let applied = node.store.apply(&scope, work).await.unwrap();
    assert_ne!(applied, Applied::Stale);
    facts
}

async fn decide(node: &Node, fact: &Derivation, city: &str) {
    let says = says(&format!("Ada lives in {city}."), city);
    let request = correction(fact.id, says);
    node.gateway.update(&acme(), request).await.unwrap();
}

#[tokio::test]
async fn two_facts_of_one_change_travel_one_after_the_other() {
    let (here, there) = (Node::new().await, Node::new().await);
    here.told("ada", vec![named("1", "I live in Rome, Bob in Oslo.")])
        .await;
    let [one, other] = derive_both(&here, 1).await;
    here.clock.set(1_000);
    decide(&here, &one, "Bergen").await;
    let everything = TurnFilter::default();
    let records = export(&here, "ada", &everything).await;
    // An agent there read the turn before the decision came.
    imported(&there, "ada", records[..2].to_vec()).await;
    derive_both(&there, 4_000).await;
    let _working = there.start_constructor();
    there.clock.set(5_000);
    assert_eq!(imported(&there, "ada", records.clone()).await.decided, 1);
    assert_eq!(export(&there, "ada", &everything).await, records);
    decide(&there, &other, "Narvik").await;
    let both = export(&there, "ada", &everything).await;
    assert_eq!(both.len(), records.len() + 1);
    assert_eq!(sent(&both).await, both);
}

#[tokio::test]
async fn a_record_that_cannot_be_taken_is_named_and_the_others_are_taken() {
    let moved = moved().await;
    let node = &moved.node;
    moved.corrected(moved.oslo.id).await;
    moved.corrected(moved.rome.id).await;
    let mut policy = Policy::default();
    policy.format.template = Some("of-this-node".to_owned());
    let rules = SpaceRules {
        hold: None,
        policy: Some(policy),
    };
    let mut records = export(node, "ada", &TurnFilter::default()).await;
    records.insert(1, Record::Rules(Box::new(rules)));
    let first = records
        .iter_mut()
        .find_map(|record| match record {
            Record::Decided(memory) => Some(memory),
            _ => None,
        })
        .unwrap();
    first.versions.reverse();
    let broken = first.id().unwrap();
    let there = Node::new().await;
    let _working = there.start_constructor();
    let said = imported(&there, "ada", records).await;
    assert_eq!((said.accepted, said.decided), (2, 1));
    assert_eq!(said.left_out.len(), 2, "{:?}", said.left_out);
    assert!(said.left_out[0].starts_with("the policy: "));
    let reason = format!("memory {broken}: has versions out of their order");
    assert_eq!(said.left_out[1], reason);
}

/// A call with a credential that may not set a hold.
fn writer() -> Context {
    let writer = Caller {
        tenant: acme().tenant,
        name: "writer".into(),
        grant: Grant {
            rights: Rights::from_iter([Right::Read, Right::Write]),
            spaces: Vec::new(),
        },
        is_operator: false,
        calls_per_minute: None,
        proof: Proof::Open,
    };
    Context {
        caller: Some(Arc::new(writer)),
        ..acme()
    }
}

async fn imported_by(call: &Context, node: &Node, records: &[Record]) -> Imported {
    let records: Answers<Record> = Box::pin(futures::stream::iter(
        records.iter().cloned().map(Ok).collect::<Vec<_>>(),
    ));
    let imported = node.gateway.import(call, &space("ada"), records).await;
    node.settle().await;
    imported.unwrap()
}

async fn hold_of(node: &Node) -> Option<LegalHold> {
    let spaces = node.gateway.spaces(&acme(), PageRequest::default()).await;
    spaces.unwrap().items.remove(0).hold
}

#[tokio::test]
async fn a_space_with_turns_takes_the_hold_of_an_export_and_names_its_policy() {
    let here = Node::new().await;
    here.told("ada", vec![named("1", "One")]).await;
    hold_and_lift(&here).await;
    let mut policy = Policy::default();
    policy.budget.max_tokens = Some(700);
    here.gateway
        .put_policy(&acme(), Some(space("ada")), policy, None)
        .await
        .unwrap();
    let records = export(&here, "ada", &TurnFilter::default()).await;
    let there = Node::new().await;
    let said = imported_by(&writer(), &there, &records).await;
    let right = "this credential has no right `admin`";
    let both = [
        format!("the policy: {right}"),
        format!("the legal hold: {right}"),
    ];
    assert_eq!(said.left_out, both);
    assert_eq!(hold_of(&there).await, None);
    // Again by an administrator, when the turns are there: they were on no hold before.
    let policy = ["the policy: the space has turns already"];
    for second in [2_000, 3_000] {
        there.clock.set(second);
        let said = imported_by(&acme(), &there, &records).await;
        assert_eq!(said.left_out, policy);
        let hold = hold_of(&there).await.unwrap();
        assert_eq!(
            (hold.since, hold.reason.as_str()),
            (instant(2_000), "case 7")
        );
    }
    let whole = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter::default(),
        everything: true,
        dry_run: false,
    };
    let held = there.gateway.forget(&acme(), whole).await;
    assert_eq!(held.unwrap_err().reason, "LEGAL_HOLD");
    // No mention of rules that are in force already, whoever brings them.
    let said = imported_by(&writer(), &here, &records).await;
    assert_eq!(said.left_out, Vec::<String>::new());
}

/// A node with the turns of an export, in a space on hold since a second.
async fn held_copy(records: &[Record], seconds: i64) -> Node {
    let node = Node::new().await;
    imported(&node, "ada", records[..2].to_vec()).await;
    node.clock.set(seconds);
    hold_and_lift(&node).await;
    node
}

#[tokio::test]
async fn an_import_replaces_nothing_that_was_known_when_a_hold_began() {
    let here = Node::new().await;
    here.told("ada", vec![named("1", "I live in Rome, Bob in Oslo.")])
        .await;
    let facts = derive_both(&here, 1).await;
    here.clock.set(1_000);
    decide(&here, &facts[0], "Bergen").await;
    let everything = TurnFilter::default();
    let records = export(&here, "ada", &everything).await;
    let versions = async |node: &Node| {
        let (call, ada) = (acme(), space("ada"));
        let versions = node.gateway.versions(&call, &ada, facts[0].id);
        versions.await.unwrap()
    };
    // Whoever imports, where agents derived it before the hold; only who may set and lift the hold
    // where they derived it since.
    for (derived, call, reason) in [
        (1_500, acme(), Some("legal hold since")),
        (1_500, writer(), Some("no right `admin`")),
        (2_500, writer(), Some("no right `admin`")),
        (2_500, acme(), None),
    ] {
        let there = held_copy(&records, 2_000).await;
        derive_both(&there, derived).await;
        let before = versions(&there).await;
        let _working = there.start_constructor();
        let said = imported_by(&call, &there, &records).await;
        assert_eq!(said.decided, u64::from(reason.is_none()));
        match reason {
            Some(reason) => {
                assert_eq!(said.left_out.len(), 1);
                assert!(said.left_out[0].contains(reason), "{:?}", said.left_out);
                assert_eq!(versions(&there).await, before);
            }
            None => {
                assert_eq!(said.left_out, Vec::<String>::new());
                assert_eq!(versions(&there).await, versions(&here).await);
                // What is there already is not named, whoever brings it.
                let again = imported_by(&writer(), &there, &records).await;
                assert_eq!((again.decided, again.left_out), (0, Vec::new()));
            }
        }
    }
}

#[tokio::test]
async fn a_space_on_hold_arrives_whole_though_agents_were_there_first() {
    let (here, there) = (Node::new().await, Node::new().await);
    here.told("ada", vec![named("1", "I live in Rome, Bob in Oslo.")])
        .await;
    for (fact, second) in derive_both(&here, 1).await.iter().zip([1_000, 1_001]) {
        here.clock.set(second);
        decide(&here, fact, "Bergen").await;
    }
    hold_and_lift(&here).await;
    let everything = TurnFilter::default();
    let records = export(&here, "ada", &everything).await;
    there.clock.set(5_000);
    imported(&there, "ada", records[..3].to_vec()).await;
    derive_both(&there, 5_000).await;
    let _working = there.start_constructor();
    let said = imported(&there, "ada", records.clone()).await;
    assert_eq!((said.decided, said.left_out), (2, Vec::new()));
    assert_eq!(export(&there, "ada", &everything).await, records);
}
