//! What holds no longer goes after its time, and nothing else does.

use memfleet_domain::derivation::{ChangeKind, Derivation, Origin};
use memfleet_domain::ids::ChangeId;
use memfleet_domain::space::{LegalHold, SpaceSettings};
use memfleet_domain::time::{TimeRange, Timestamp};

use super::forgetting::forget;
use super::{all, change, closing, conflict, deriving, fact, home, make, moved, passages, store};
use crate::conformance::samples::{instant, turn};
use crate::erasure::{Erased, Erasure};
use crate::feed::{Change, IndexFeed};
use crate::knowledge::{ChangeFilter, Knowledge, Question, Revision, Rewrite, Work};
use crate::ledger::Ledger;
use crate::spaces::SpaceCatalog;

const DAY: i64 = 86_400;

/// A store that all this can be asked of.
pub trait Expiring: Ledger + Knowledge + Erasure + IndexFeed + SpaceCatalog {}

impl<S: Ledger + Knowledge + Erasure + IndexFeed + SpaceCatalog> Expiring for S {}

/// Keeps what holds no longer for a day.
async fn keep_a_day(store: &impl Expiring) {
    let settings = SpaceSettings {
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    store
        .put(&home(), &settings, instant(0))
        .await
        .expect("put");
}

/// A day and some seconds later.
async fn expire(store: &impl Expiring, seconds: i64) -> u64 {
    let now = instant(DAY + seconds);
    let mut versions = 0;
    loop {
        let erased = store.expire(&home(), now, 100).await.expect("expire");
        let nothing_else = Erased {
            versions: erased.versions,
            ..Erased::default()
        };
        assert_eq!(erased, nothing_else);
        if erased.versions == 0 {
            return versions;
        }
        versions += erased.versions;
    }
}

/// The next version of a derivation, made by a change of a kind at a second.
fn next(of: &Derivation, kind: ChangeKind, valid: TimeRange, seconds: i64) -> Rewrite {
    let version = (of.version + 1).to_be_bytes();
    let id = ChangeId::of("test", &[of.id.as_bytes(), &version]);
    let mut derivation = of.next(id);
    derivation.valid = valid;
    derivation.succeeded_by = None;
    derivation.known.start = Some(instant(seconds));
    if kind == ChangeKind::Corrected {
        derivation.origin = Origin::Corrected;
    }
    Rewrite {
        change: change(id, kind, seconds),
        revisions: vec![Revision {
            derivation,
            passage: passages("in other words").pop(),
        }],
    }
}

fn written(rewrite: &Rewrite) -> Derivation {
    rewrite.revisions[0].derivation.clone()
}

fn from(start: i64, end: Option<i64>) -> TimeRange {
    TimeRange {
        start: Some(instant(start)),
        end: end.map(instant),
    }
}

fn never(start: i64) -> TimeRange {
    from(start, Some(start))
}

async fn numbers(knowledge: &impl Knowledge, of: &Derivation) -> Vec<u32> {
    let versions = knowledge.versions(&home(), of.id).await;
    let versions = versions.expect("versions");
    versions.iter().map(|version| version.version).collect()
}

async fn changes(knowledge: &impl Knowledge) -> Vec<ChangeId> {
    let (space, filter) = (home(), ChangeFilter::default());
    let page = knowledge.changes(&space, &filter, 99, None).await;
    let changes = page.expect("changes").items;
    assert!(changes.iter().all(|recorded| !recorded.wrote.is_empty()));
    changes.iter().map(|recorded| recorded.change.id).collect()
}

/// By recorded time; the change goes with what it wrote, and the fact is found and read as before.
pub async fn earlier_versions_go_after_their_time(store_: &impl Expiring) {
    let (_, _, rome, oslo) = moved(store_).await;
    let second = next(&rome, ChangeKind::Derived, from(5, None), 30);
    let third = next(&written(&second), ChangeKind::Derived, from(6, None), 50);
    for rewrite in [&second, &third] {
        make(store_, rewrite.clone()).await;
    }
    keep_a_day(store_).await;
    let head = store_.head(&home()).await;
    assert_eq!(expire(store_, 30).await, 0);
    assert_eq!(expire(store_, 31).await, 1);
    assert_eq!(numbers(store_, &rome).await, [2, 3]);
    assert_eq!(expire(store_, 60).await, 1);
    assert_eq!(expire(store_, 60).await, 0);
    assert_eq!(
        all(store_, &Question::default()).await,
        [written(&third), oslo.clone()]
    );
    assert_eq!(changes(store_).await, [third.change.id, oslo.change]);
    assert_eq!(
        store_.head(&home()).await,
        head,
        "an index has no part in it"
    );
    // The history goes on from there.
    let fourth = next(&written(&third), ChangeKind::Derived, from(7, None), 70);
    make(store_, fourth).await;
    assert_eq!(numbers(store_, &rome).await, [3, 4]);
}

/// With its conflict, from every read and every index; the fact that took its place stays.
pub async fn a_fact_that_was_succeeded_goes_after_its_time(store_: &impl Expiring) {
    let (_, _, rome, oslo) = moved(store_).await;
    let found = Work {
        found: vec![conflict(&rome, &oslo)],
        ..Work::default()
    };
    store_.apply(&home(), found).await.expect("apply");
    make(store_, closing(&rome, &oslo, 30)).await;
    keep_a_day(store_).await;
    assert_eq!(expire(store_, 30).await, 0);
    let head = store_.head(&home()).await.expect("head");
    assert_eq!(expire(store_, 31).await, 2);
    let known = Question {
        withdrawn: true,
        ..Question::default()
    };
    assert_eq!(all(store_, &known).await, std::slice::from_ref(&oslo));
    assert_eq!(numbers(store_, &rome).await, [0_u32; 0]);
    assert_eq!(changes(store_).await, [oslo.change]);
    let conflicts = store_.conflicts(&home(), &[], 9, None).await;
    assert_eq!(conflicts.expect("conflicts").items, []);
    let after = store_.changes_after(&home(), head, 9).await.expect("feed");
    assert_eq!(after.changes, [Change::Withdrawn(rome.id)]);
    assert!(!after.more && after.reached == head + 1);
    // Derived again it begins anew, and an index that reads all has it.
    make(store_, deriving(&[&rome])).await;
    let feed = store_.changes_after(&home(), 0, 99).await.expect("feed");
    let last = feed.changes.last().expect("changes");
    assert!(matches!(last, Change::Derived(derived) if derived.id == rome.id));
}

/// Also by the end of its interval, which may come long after it was written.
pub async fn what_was_withdrawn_or_ended_goes_after_its_time(store_: &impl Expiring) {
    let told = ["1", "2", "3"].map(|name| turn(name, "x"));
    store(store_, &told.each_ref()).await;
    let gone = fact(&told[0], "Ada", "Rome", instant(5));
    let mut until = fact(&told[1], "Ben", "Oslo", instant(5));
    until.valid = from(5, Some(100));
    // Known at second 1.
    let mut past = fact(&told[2], "Eve", "Kyiv", instant(-9));
    past.valid = from(-9, Some(-5));
    make(store_, deriving(&[&gone])).await;
    make(store_, deriving(&[&until])).await;
    make(store_, deriving(&[&past])).await;
    make(store_, next(&gone, ChangeKind::Derived, never(5), 30)).await;
    keep_a_day(store_).await;
    assert_eq!(expire(store_, 31).await, 2);
    assert_eq!(numbers(store_, &gone).await, [0_u32; 0]);
    assert_eq!(expire(store_, 100).await, 0);
    assert_eq!(expire(store_, 101).await, 1);
    assert_eq!(numbers(store_, &until).await, [0_u32; 0]);
    // What was told as past says what was.
    assert_eq!(expire(store_, 9 * DAY).await, 0);
    assert_eq!(all(store_, &Question::default()).await, [past]);
}

/// As long as nothing newer took its place.
pub async fn what_a_caller_said_last_stays(store_: &impl Expiring) {
    let (_, _, rome, oslo) = moved(store_).await;
    let withdrawn = next(&rome, ChangeKind::Corrected, never(10), 30);
    let undone = next(&oslo, ChangeKind::Reverted, never(20), 30);
    for rewrite in [&withdrawn, &undone] {
        make(store_, rewrite.clone()).await;
    }
    keep_a_day(store_).await;
    assert_eq!(expire(store_, 9 * DAY).await, 2, "what was before");
    assert_eq!(numbers(store_, &rome).await, [2]);
    assert_eq!(numbers(store_, &oslo).await, [2]);
    let again = next(
        &written(&withdrawn),
        ChangeKind::Corrected,
        from(7, None),
        40,
    );
    make(store_, again).await;
    assert_eq!(expire(store_, 9 * DAY).await, 1);
    assert_eq!(numbers(store_, &rome).await, [3]);
}

/// Of a version that a conflict closed the one before stays, and what closed it: a forget of the latter opens the former again.
pub async fn what_a_forget_may_open_again_stays(store_: &impl Expiring) {
    let (_, oslo_turn, rome, oslo) = moved(store_).await;
    make(store_, closing(&rome, &oslo, 30)).await;
    // It does not hold any more, and it is not over yet.
    let later = instant(9 * DAY);
    let mut until = closing(&rome, &oslo, 30);
    until.revisions[0].derivation.valid.end = Some(later);
    let id = ChangeId::of("test", &[b"until"]);
    let Revision { derivation, .. } = &mut until.revisions[0];
    (derivation.version, derivation.change) = (3, id);
    until.change = change(id, ChangeKind::Updated, 40);
    make(store_, until).await;
    make(store_, next(&oslo, ChangeKind::Derived, never(20), 35)).await;
    keep_a_day(store_).await;
    assert_eq!(expire(store_, DAY).await, 1, "the first of the newer fact");
    assert_eq!(numbers(store_, &rome).await, [1, 2, 3]);
    assert_eq!(numbers(store_, &oslo).await, [2]);
    forget(store_, oslo_turn.id).await;
    assert_eq!(all(store_, &Question::default()).await, [rome]);
}

/// One names the next, so they go one after the other.
pub async fn a_chain_of_succeeded_facts_goes_whole(store_: &impl Expiring) {
    let told = ["1", "2", "3"].map(|name| turn(name, "x"));
    store(store_, &told.each_ref()).await;
    let at = [("Rome", 10), ("Oslo", 20), ("Kyiv", 30)];
    let mut facts = Vec::new();
    for (turn, (value, from)) in told.iter().zip(at) {
        let fact = fact(turn, "Ada", value, instant(from));
        make(store_, deriving(&[&fact])).await;
        facts.push(fact);
    }
    make(store_, closing(&facts[1], &facts[2], 40)).await;
    make(store_, closing(&facts[0], &facts[1], 50)).await;
    keep_a_day(store_).await;
    assert_eq!(expire(store_, 45).await, 0, "the first names the second");
    assert_eq!(expire(store_, 60).await, 4);
    assert_eq!(all(store_, &Question::default()).await, [facts.remove(2)]);
}

/// No version goes either.
pub async fn versions_of_a_space_on_hold_stay(store_: &impl Expiring) {
    let (_, _, rome, oslo) = moved(store_).await;
    make(store_, closing(&rome, &oslo, 30)).await;
    keep_a_day(store_).await;
    let due = async |now: Timestamp| store_.expired(now).await.expect("expired");
    assert_eq!(due(instant(2 * DAY)).await, [home()]);
    let hold = LegalHold {
        since: instant(0),
        reason: "case 7".into(),
    };
    store_.hold(&home(), Some(&hold)).await.expect("hold");
    assert_eq!(due(instant(2 * DAY)).await, []);
    assert_eq!(expire(store_, DAY).await, 0);
    // What destroys nothing goes on.
    make(store_, next(&oslo, ChangeKind::Derived, from(25, None), 60)).await;
    assert_eq!(numbers(store_, &oslo).await, [1, 2]);
    store_.hold(&home(), None).await.expect("hold");
    assert_eq!(expire(store_, DAY).await, 3);
}
