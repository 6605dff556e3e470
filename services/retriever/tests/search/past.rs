//! Searches as of a past instant, on both axes of time.

use memfleet_domain::time::AsOf;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{instant, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::Query;

use crate::memory::{Memory, acme};
use crate::told::query;

/// Ada's city: told at second 100, corrected at second 200, told to have changed at second 300.
async fn corrected() -> Memory {
    let memory = Memory::new().await;
    let tell = |name: &str, words: &str, second| AcceptedTurn {
        recorded_at: instant(second),
        ..turn_in(&acme("ada"), "monday", name, words)
    };
    let first = tell("1", "I live in the city of Porto", 100);
    let second = AcceptedTurn {
        replaces: Some(first.id),
        ..tell("2", "I live in the city of Lisbon", 200)
    };
    let third = AcceptedTurn {
        event_time: Some(instant(-1_000)),
        ..tell("3", "I moved to the city of Faro", 300)
    };
    for turn in [first, second, third] {
        memory.tell(&acme("ada"), &[turn]).await;
    }
    memory
}

async fn cities(memory: &Memory, filter: TurnFilter) -> Vec<String> {
    let query = Query {
        filter,
        ..query("city", &["ada"])
    };
    let found = memory.found(&query).await;
    let mut cities: Vec<_> = found
        .iter()
        .filter_map(|text| text.rsplit(' ').next())
        .map(str::to_owned)
        .collect();
    cities.sort();
    cities
}

fn known_at(second: i64) -> TurnFilter {
    TurnFilter {
        as_of: AsOf {
            known_at: Some(instant(second)),
            happened_by: None,
        },
        ..TurnFilter::default()
    }
}

#[tokio::test]
async fn a_replaced_turn_is_found_only_by_whoever_asks_for_it() {
    let memory = corrected().await;
    assert_eq!(
        cities(&memory, TurnFilter::default()).await,
        ["Faro", "Lisbon"]
    );
    let all = TurnFilter {
        include_replaced: true,
        ..TurnFilter::default()
    };
    assert_eq!(cities(&memory, all).await, ["Faro", "Lisbon", "Porto"]);
}

#[tokio::test]
async fn memory_as_of_a_past_instant_is_what_was_known_then() {
    let memory = corrected().await;
    for (second, expected) in [
        (99, vec![]),
        (100, vec!["Porto"]),
        (199, vec!["Porto"]),
        (200, vec!["Lisbon"]),
        (299, vec!["Lisbon"]),
        (300, vec!["Faro", "Lisbon"]),
    ] {
        assert_eq!(
            cities(&memory, known_at(second)).await,
            expected,
            "{second}"
        );
    }
}

#[tokio::test]
async fn what_had_happened_by_an_instant_is_told_from_when_it_was_recorded() {
    let memory = corrected().await;
    let happened_by = |second| TurnFilter {
        as_of: AsOf {
            known_at: None,
            happened_by: Some(instant(second)),
        },
        ..TurnFilter::default()
    };
    assert_eq!(cities(&memory, happened_by(-1_001)).await, [""; 0]);
    assert_eq!(cities(&memory, happened_by(0)).await, ["Faro"]);
    let mut both = known_at(250);
    both.as_of.happened_by = Some(instant(0));
    assert_eq!(cities(&memory, both).await, [""; 0]);
}

#[tokio::test]
async fn a_replaced_turn_is_no_neighbour_either() {
    let memory = corrected().await;
    let around = Query {
        neighbours: 10,
        ..query("Faro", &["ada"])
    };
    let found = memory.search(&around).await.unwrap();
    let neighbours = &found.hits[0].neighbours;
    let ids: Vec<_> = neighbours
        .iter()
        .filter_map(|turn| turn.accepted.external_id.as_ref())
        .map(ToString::to_string)
        .collect();
    assert_eq!(ids, ["2"]);
}
