use chrono_tz::Tz;
use memfleet_ports::feed::Change;
use memfleet_ports::filter::TurnFilter;

use super::*;
use crate::SpaceIndex;
use crate::fixture::{analyzer, everything, id, index, relating, turn};

/// Ada knows Ben, Ben keeps bees, Cleo lives in Rome; nothing is said of the last turn.
fn told() -> SpaceIndex {
    let mut index = index((0..5).map(|number| turn(number, "s", "Ada", "Something else.")));
    let facts = [
        relating(1, 0, &["ada", "ben"]),
        relating(2, 1, &["ben", "bees"]),
        relating(3, 2, &["cleo", "rome"]),
        relating(4, 3, &["cleo", "piano"]),
    ];
    let told = facts.map(|fact| Change::Derived(Box::new(fact)));
    told.into_iter().for_each(|change| index.apply(change));
    index
}

fn walk(searched: &[Searched<'_>], query: &str) -> Walk {
    Walk::of(
        searched,
        &Plan::new(query, searched, &analyzer(), None, Tz::UTC),
    )
}

#[test]
fn what_is_said_of_a_named_entity_is_reached_and_then_what_that_is_connected_with() {
    let index = told();
    let walk = walk(&[everything(&index)], "What about ben?");
    let (near, far) = (walk.value(0, id(0)), walk.value(0, id(2)));
    assert!(near > far, "{near} {far}");
    let through = self::walk(&[everything(&index)], "Who are Ada’s friends?");
    let (first, second) = (through.value(0, id(0)), through.value(0, id(1)));
    assert!(first > second && second > through.value(0, id(3)));
    assert_eq!(through.best(1), [(0, id(0))]);
}

#[test]
fn where_no_entity_is_named_nobody_sets_out() {
    let index = told();
    let walk = walk(&[everything(&index)], "What of dragons?");
    assert!(walk.value(0, id(0)).is_nan());
    assert_eq!(walk.best(9), []);
}

#[test]
fn what_may_not_be_found_is_not_walked_through() {
    let index = told();
    let without = TurnFilter {
        turns: [1, 2, 3, 4].map(id).to_vec(),
        ..TurnFilter::default()
    };
    let searched = Searched {
        index: &index,
        eligible: index.eligible(&without, None),
        excerpt: None,
    };
    let walk = walk(&[searched], "What about Ada?");
    assert_eq!(walk.best(9), []);
}

#[test]
fn a_forgotten_turn_is_gone_from_the_graph() {
    let mut index = told();
    index.apply(Change::Forgotten(id(0)));
    assert_eq!(index.facts().entity("ada"), None);
    let walk = walk(&[everything(&index)], "What about Ben?");
    assert_eq!(walk.best(9), [(0, id(1))]);
}

#[test]
fn nobody_walks_on_from_what_everything_is_about() {
    let turns = 1_200;
    let mut index = index((0..turns).map(|number| turn(number, "s", "Ada", "Something.")));
    for number in 0..turns {
        let fact = relating(number, number, &["ada", "rome"]);
        index.apply(Change::Derived(Box::new(fact)));
    }
    assert!(
        walk(&[everything(&index)], "Ada in Rome?")
            .best(9)
            .is_empty()
    );
}
