//! Which turns a search may find.

use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_ports::conformance::samples::{instant, session, speaker, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::Query;

use crate::memory::{Memory, acme};
use crate::told::query;

/// Six turns about Lisbon in three sessions, by Ada, Ben and a tool, a hundred seconds apart; the last has no event time
/// and was recorded at second 900.
fn conversation() -> Vec<AcceptedTurn> {
    let said = [
        ("monday", "Ada", Role::User),
        ("monday", "Ben", Role::Assistant),
        ("tuesday", "Ada", Role::User),
        ("tuesday", "weather", Role::Tool),
        ("friday", "Ben", Role::Assistant),
        ("friday", "Ada", Role::User),
    ];
    let turn = |(n, (name, who, role)): (usize, (&str, &str, Role))| {
        let words = format!("{n} about Lisbon");
        AcceptedTurn {
            speaker: speaker(who),
            role,
            event_time: (n < 5).then(|| instant(100 * n as i64)),
            recorded_at: instant(900),
            metadata: [
                ("parity".to_owned(), (n % 2).to_string()),
                ("half".to_owned(), (n / 3).to_string()),
            ]
            .into(),
            ..turn_in(&acme("ada"), name, &n.to_string(), &words)
        }
    };
    said.into_iter().enumerate().map(turn).collect()
}

/// The numbers of the turns that a filter lets through.
async fn numbers(memory: &Memory, filter: TurnFilter) -> Vec<usize> {
    let query = Query {
        filter,
        ..query("Lisbon", &["ada"])
    };
    let found = memory.search(&query).await.unwrap();
    assert_eq!(found.searched, found.hits.len() as u64);
    let texts = found.hits.into_iter().map(|hit| hit.turn);
    let mut numbers: Vec<_> = texts
        .map(|turn| turn.accepted.content.text[..1].parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

async fn told() -> (Memory, Vec<AcceptedTurn>) {
    let memory = Memory::new().await;
    let turns = conversation();
    memory.tell(&acme("ada"), &turns).await;
    (memory, turns)
}

#[tokio::test]
async fn conditions_on_session_speaker_role_and_turn_narrow_what_is_found() {
    let (memory, turns) = told().await;
    let none = TurnFilter::default;
    let sessions = |names: &[&str]| names.iter().map(|name| session(name)).collect();
    let cases = [
        (none(), vec![0, 1, 2, 3, 4, 5]),
        (
            TurnFilter {
                sessions: sessions(&["monday", "friday"]),
                ..none()
            },
            vec![0, 1, 4, 5],
        ),
        (
            TurnFilter {
                excluded_sessions: sessions(&["monday", "sunday"]),
                ..none()
            },
            vec![2, 3, 4, 5],
        ),
        (
            TurnFilter {
                speakers: vec![speaker("Ben"), speaker("ada")],
                ..none()
            },
            vec![1, 4],
        ),
        (
            TurnFilter {
                roles: vec![Role::Tool, Role::System],
                ..none()
            },
            vec![3],
        ),
        (
            TurnFilter {
                turns: vec![turns[2].id, turns[5].id],
                ..none()
            },
            vec![2, 5],
        ),
        (
            TurnFilter {
                sessions: sessions(&["sunday"]),
                ..none()
            },
            vec![],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(
            numbers(&memory, filter.clone()).await,
            expected,
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn a_time_range_is_half_open_and_counts_recorded_time_where_there_is_no_event_time() {
    let (memory, _) = told().await;
    let between = |start: Option<i64>, end: Option<i64>| TurnFilter {
        time: TimeRange {
            start: start.map(instant),
            end: end.map(instant),
        },
        ..TurnFilter::default()
    };
    for (filter, expected) in [
        (between(Some(100), Some(300)), vec![1, 2]),
        (between(None, Some(101)), vec![0, 1]),
        (between(Some(400), None), vec![4, 5]),
        (between(Some(401), Some(900)), vec![]),
    ] {
        assert_eq!(
            numbers(&memory, filter.clone()).await,
            expected,
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn every_label_of_a_filter_must_be_there() {
    let (memory, _) = told().await;
    let labelled = |labels: &[(&str, &str)]| TurnFilter {
        metadata: labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..TurnFilter::default()
    };
    for (filter, expected) in [
        (labelled(&[("parity", "1")]), vec![1, 3, 5]),
        (labelled(&[("parity", "1"), ("half", "1")]), vec![3, 5]),
        (labelled(&[("parity", "2")]), vec![]),
    ] {
        assert_eq!(
            numbers(&memory, filter.clone()).await,
            expected,
            "{filter:?}"
        );
    }
}

#[tokio::test]
async fn conditions_of_several_kinds_hold_together() {
    let (memory, _) = told().await;
    let filter = TurnFilter {
        speakers: vec![speaker("Ada")],
        excluded_sessions: vec![session("friday")],
        metadata: vec![("half".to_owned(), "0".to_owned())],
        time: TimeRange {
            start: Some(instant(1)),
            end: None,
        },
        ..TurnFilter::default()
    };
    assert_eq!(numbers(&memory, filter).await, [2]);
}
