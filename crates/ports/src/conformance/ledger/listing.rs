//! Filters, order and pages.

use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::{AcceptedTurn, Role};

use super::{commit, texts};
use crate::conformance::samples::{edit, home, instant, session, speaker, turn, turn_in};

use crate::filter::TurnFilter;
use crate::ledger::{Ledger, PageToken};
use crate::store::StoreError;

async fn conversation(store: &impl Ledger) {
    let tell = |n: i64, name: &str, who: &str, role: Role, label: &str| AcceptedTurn {
        speaker: speaker(who),
        role,
        event_time: (n % 2 == 0).then(|| instant(n * 100)),
        recorded_at: instant(1_000 + n),
        metadata: [
            ("topic".to_owned(), label.to_owned()),
            (label.to_owned(), "topic".to_owned()),
        ]
        .into(),
        ..turn_in(&home(), name, &n.to_string(), &n.to_string())
    };
    let turns = vec![
        tell(0, "s1", "Ada", Role::User, "food"),
        tell(1, "s1", "Bot", Role::Assistant, "food"),
        tell(2, "s2", "Ada", Role::User, "work"),
        tell(3, "s2", "ada", Role::User, "work"),
        tell(4, "s3", "Ben", Role::Tool, "food"),
    ];
    commit(store, "k", turns, 1).await;
}

/// Alone and together.
#[expect(
    clippy::too_many_lines,
    reason = "one row a condition; rows apart would say less"
)]
pub async fn each_filter_narrows_the_listing(store: &impl Ledger) {
    conversation(store).await;
    let none = TurnFilter::default;
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let from = |start, end| TimeRange {
        start: Some(instant(start)),
        end: Some(instant(end)),
    };
    let third = turn_in(&home(), "s2", "2", "").id;
    for (filter, expected) in [
        (none(), &["0", "1", "2", "3", "4"][..]),
        (
            TurnFilter {
                sessions: vec![session("s1"), session("s3")],
                ..none()
            },
            &["0", "1", "4"],
        ),
        (
            TurnFilter {
                excluded_sessions: vec![session("s1")],
                ..none()
            },
            &["2", "3", "4"],
        ),
        (
            TurnFilter {
                speakers: vec![speaker("Ada")],
                ..none()
            },
            &["0", "2"],
        ),
        (
            TurnFilter {
                roles: vec![Role::Tool, Role::Assistant],
                ..none()
            },
            &["1", "4"],
        ),
        (
            TurnFilter {
                turns: vec![third],
                ..none()
            },
            &["2"],
        ),
        (
            TurnFilter {
                metadata: vec![pair("topic", "food")],
                ..none()
            },
            &["0", "1", "4"],
        ),
        (
            TurnFilter {
                metadata: vec![pair("topic", "food"), pair("food", "topic")],
                ..none()
            },
            &["0", "1", "4"],
        ),
        (
            TurnFilter {
                metadata: vec![pair("topic", "food"), pair("topic", "work")],
                ..none()
            },
            &[],
        ),
        (
            TurnFilter {
                metadata: vec![pair("topi", "cfood")],
                ..none()
            },
            &[],
        ),
        // Event time where known, else recorded time; the end is outside.
        (
            TurnFilter {
                time: from(0, 400),
                ..none()
            },
            &["0", "2"],
        ),
        (
            TurnFilter {
                time: from(400, 1_003),
                ..none()
            },
            &["1", "4"],
        ),
        (
            TurnFilter {
                sessions: vec![session("s2")],
                speakers: vec![speaker("ada")],
                ..none()
            },
            &["3"],
        ),
        (
            TurnFilter {
                sessions: vec![session("nowhere")],
                ..none()
            },
            &[],
        ),
    ] {
        assert_eq!(texts(store, &filter).await, expected, "{filter:?}");
    }
}

/// Both axes.
pub async fn a_listing_as_of_the_past_shows_what_was_known_and_had_happened(store: &impl Ledger) {
    let old = AcceptedTurn {
        event_time: Some(instant(100)),
        recorded_at: instant(200),
        ..turn("a", "old")
    };
    let new = AcceptedTurn {
        event_time: Some(instant(100)),
        recorded_at: instant(300),
        ..edit(&old, "b", "new")
    };
    let late = AcceptedTurn {
        event_time: Some(instant(50)),
        recorded_at: instant(400),
        ..turn("c", "late")
    };
    let undated = AcceptedTurn {
        recorded_at: instant(250),
        ..turn("d", "undated")
    };
    commit(store, "k", vec![old, new, late, undated], 1).await;
    let as_of = |known: Option<i64>, happened: Option<i64>| TurnFilter {
        as_of: AsOf {
            known_at: known.map(instant),
            happened_by: happened.map(instant),
        },
        ..TurnFilter::default()
    };
    for (filter, expected) in [
        (as_of(Some(199), None), &[][..]),
        (as_of(Some(200), None), &["old"]),
        (as_of(Some(299), None), &["old", "undated"]),
        (as_of(Some(300), None), &["new", "undated"]),
        (as_of(Some(400), None), &["new", "late", "undated"]),
        (as_of(None, Some(60)), &["late"]),
        (as_of(None, Some(100)), &["new", "late"]),
        (as_of(Some(299), Some(100)), &["old"]),
        (
            TurnFilter {
                include_replaced: true,
                ..as_of(Some(300), None)
            },
            &["old", "new", "undated"],
        ),
    ] {
        assert_eq!(texts(store, &filter).await, expected, "{filter:?}");
    }
}

/// Whichever session was told last.
pub async fn a_listing_is_ordered_by_session_start_then_position(store: &impl Ledger) {
    let tell = |name: &str, text: &str, second| AcceptedTurn {
        recorded_at: instant(second),
        ..turn_in(&home(), name, text, text)
    };
    commit(
        store,
        "k1",
        vec![
            tell("zoo", "0", 10),
            tell("bar", "3", 20),
            tell("zoo", "1", 30),
        ],
        1,
    )
    .await;
    commit(
        store,
        "k2",
        vec![
            tell("bar", "4", 40),
            tell("zoo", "2", 50),
            tell("abc", "5", 60),
        ],
        2,
    )
    .await;
    assert_eq!(
        texts(store, &TurnFilter::default()).await,
        ["0", "1", "2", "3", "4", "5"]
    );
}

/// New turns may come or not; nothing is skipped and nothing comes twice.
pub async fn pages_bring_every_turn_once_while_writes_go_on(store: &impl Ledger) {
    let tell = |n: u32| {
        turn_in(
            &home(),
            &format!("s{}", n % 3),
            &n.to_string(),
            &n.to_string(),
        )
    };
    commit(store, "k", (0..50).map(tell).collect(), 10).await;
    let mut seen = Vec::new();
    let mut after = None;
    for page in 1..100 {
        let listed = store
            .list(&home(), &TurnFilter::default(), 7, after.as_ref())
            .await
            .expect("list");
        assert!(listed.items.len() == 7 || listed.next.is_none());
        seen.extend(
            listed
                .items
                .into_iter()
                .map(|turn| turn.accepted.content.text),
        );
        after = listed.next;
        if after.is_none() {
            break;
        }
        commit(
            store,
            &format!("later {page}"),
            vec![tell(1_000 + page)],
            20 + u64::from(page),
        )
        .await;
        commit(
            store,
            &format!("earlier {page}"),
            vec![tell(2_000 + page)],
            1,
        )
        .await;
    }
    assert_eq!(after, None, "the listing ends");
    let unique: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(unique.len(), seen.len());
    assert!((0..50).all(|n| unique.contains(&n.to_string())));
}

/// Instead of a listing from somewhere.
pub async fn a_foreign_page_token_is_refused(store: &impl Ledger) {
    commit(store, "k", vec![turn("a", "one")], 1).await;
    let token = PageToken("no token".into());
    let page = store
        .list(&home(), &TurnFilter::default(), 7, Some(&token))
        .await;
    assert_eq!(page, Err(StoreError::PageToken));
}

/// An export is in this order: what replaces a turn of another session comes after it. Page by page.
pub async fn the_order_of_acceptance_runs_across_sessions(store: &impl Ledger) {
    for (acceptance, names) in [(1, ["s1", "s2"]), (2, ["s1", "s3"]), (3, ["s2", "s1"])] {
        let tell = |name: &str| {
            let text = format!("{acceptance} {name}");
            turn_in(&home(), name, &text, &text)
        };
        let key = acceptance.to_string();
        commit(store, &key, names.map(tell).to_vec(), acceptance).await;
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let all = TurnFilter::default();
        let page = store.list_accepted(&home(), &all, 2, after.as_ref()).await;
        let page = page.expect("list");
        let texts = page
            .items
            .into_iter()
            .map(|turn| turn.accepted.content.text);
        found.extend(texts);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["1 s1", "1 s2", "2 s1", "2 s3", "3 s2", "3 s1"]);
    let some = TurnFilter {
        sessions: vec![session("s2")],
        ..TurnFilter::default()
    };
    let page = store.list_accepted(&home(), &some, 10, None).await;
    assert_eq!(page.expect("list").items.len(), 2);
}
