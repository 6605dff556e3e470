//! The index under any history: what it holds depends on the turns alone, not on how they came.

use std::collections::{BTreeMap, HashMap};

use memfleet_domain::ids::{SessionId, Speaker, TurnId};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::Role;
use memfleet_ports::feed::{Change, Changes, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use proptest::prelude::*;

use super::SpaceIndex;
use crate::fixture::{bare, day, id, index, search, turn};
use crate::{Ranked, Weights};

const WORDS: [&str; 12] = [
    "river", "lamp", "yoga", "Porto", "seven", "dog", "train", "bread", "Monday", "song", "paint",
    "the",
];

/// A turn whose words, session and speaker follow from its number.
fn said(number: u32) -> IndexedTurn {
    let word = |at: u32| WORDS[((number * 7 + at * at + 3 * at) % 12) as usize];
    let words: Vec<&str> = (0..3 + number % 5).map(word).collect();
    let long = if number % 6 == 5 { 60 } else { 1 };
    let session = ["a", "b", "c"][(number % 3) as usize];
    let speaker = ["Ada", "Ben"][(number / 3 % 2) as usize];
    turn(
        number,
        session,
        speaker,
        &format!("I saw {}. ", words.join(" ")).repeat(long),
    )
}

#[derive(Debug, Clone)]
enum Step {
    Store(u32),
    StoreBare(u32),
    Replace(u32),
    Forget(u32),
    Search,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0_u32..30;
    let step = prop_oneof![
        4 => number.clone().prop_map(Step::Store),
        1 => number.clone().prop_map(Step::StoreBare),
        1 => number.clone().prop_map(Step::Replace),
        2 => number.prop_map(Step::Forget),
        1 => Just(Step::Search),
    ];
    prop::collection::vec(step, 0..60)
}

/// The end of the feed is reached.
fn settle(index: &mut SpaceIndex) {
    index.advance(Changes {
        changes: Vec::new(),
        reached: 0,
        more: false,
    });
}

/// The index after a history, and the turns that should be in it.
fn after(steps: &[Step]) -> (SpaceIndex, BTreeMap<u32, IndexedTurn>) {
    let (mut index, mut turns) = (SpaceIndex::new(), BTreeMap::new());
    for step in steps {
        let stored = match *step {
            Step::Store(number) => (number, said(number)),
            Step::StoreBare(number) => (number, bare(said(number))),
            Step::Replace(number) => (
                number,
                IndexedTurn {
                    replaced_at: Some(day(number + 1)),
                    ..said(number)
                },
            ),
            Step::Forget(number) => {
                turns.remove(&number);
                index.apply(Change::Forgotten(id(number)));
                continue;
            }
            Step::Search => {
                settle(&mut index);
                found(&index);
                continue;
            }
        };
        index.apply(Change::Stored(Box::new(stored.1.clone())));
        turns.insert(stored.0, stored.1);
    }
    settle(&mut index);
    (index, turns)
}

/// The turns that are found and their scores.
fn found(index: &SpaceIndex) -> Vec<(TurnId, f32)> {
    let query = "Which dog did Ada see in Porto?";
    let found = search(index, query, &HashMap::new(), &Weights::shipped());
    let score = |ranked: Ranked| (ranked.turn, ranked.score);
    found.into_iter().map(score).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_history_ends_in_the_same_index_as_its_outcome(steps in steps()) {
        let (lived, turns) = after(&steps);
        let fresh = index(turns.values().cloned());
        prop_assert_eq!(lived.turns(), turns.len());
        prop_assert!(lived.without_vectors().count() == fresh.without_vectors().count());
        prop_assert_eq!(lived.passages().alive(), fresh.passages().alive());
        prop_assert_eq!(lived.passages().window_length(), fresh.passages().window_length());
        prop_assert_eq!(lived.passages().total_length(), fresh.passages().total_length());
        prop_assert_eq!(lived.passages().sentences.sum(), fresh.passages().sentences.sum());
        prop_assert_eq!(found(&lived), found(&fresh));
    }

    #[test]
    fn what_is_forgotten_leaves_no_name_behind(steps in steps()) {
        let (mut lived, turns) = after(&steps);
        for number in turns.keys() {
            lived.apply(Change::Forgotten(id(*number)));
        }
        prop_assert_eq!(lived.turns(), 0);
        prop_assert_eq!(lived.speakers().count(), 0);
        prop_assert_eq!(lived.sessions(), 0);
        prop_assert!(WORDS.iter().all(|word| lived.passages().terms.postings(word).is_none()));
        prop_assert_eq!(lived.passages().window_length(), 0);
    }
}

#[test]
fn late_turns_take_their_place_in_the_session() {
    let turns = [4, 0, 2, 1, 3].map(|number| turn(number, "s", "Ada", "hello there"));
    let index = index(turns);
    let everything = index.eligible(&TurnFilter::default(), None);
    assert_eq!(
        index.neighbours(id(2), 2, &everything),
        [0, 1, 3, 4].map(id)
    );
    assert_eq!(index.neighbours(id(0), 1, &everything), [id(1)]);
    assert!(index.neighbours(id(9), 3, &everything).is_empty());
}

#[test]
fn neighbours_that_may_not_be_found_are_passed_over() {
    let mut turns = [0, 1, 2].map(|number| turn(number, "s", "Ada", "hello"));
    turns[1].replaced_at = Some(day(5));
    let index = index(turns);
    let current = index.eligible(&TurnFilter::default(), None);
    assert_eq!(index.neighbours(id(0), 1, &current), [id(2)]);
}

#[test]
fn reached_follows_the_feed() {
    let mut index = SpaceIndex::new();
    assert_eq!(index.reached(), 0);
    let changes = vec![Change::Stored(Box::new(said(1))), Change::Forgotten(id(7))];
    index.advance(Changes {
        changes,
        reached: 9,
        more: false,
    });
    assert_eq!((index.reached(), index.turns()), (9, 1));
}

#[test]
fn many_forgotten_turns_give_their_memory_back() {
    let mut index = index((0..600).map(said));
    let full = index.bytes();
    (0..590).for_each(|number| index.apply(Change::Forgotten(id(number))));
    assert!(index.passages().rows() < 600);
    assert!(index.bytes() < full, "{} {full}", index.bytes());
}

/// The turns of 12 that pass a filter.
fn passing(filter: &TurnFilter) -> Vec<u32> {
    let index = index((0..12).map(|number| {
        let mut turn = said(number);
        turn.replaced_at = (number == 3).then(|| day(8));
        turn.role = if number == 5 {
            Role::Assistant
        } else {
            Role::User
        };
        turn.event_time = turn.event_time.filter(|_| number != 6);
        turn
    }));
    let eligible = index.eligible(filter, None);
    let found = |number: &u32| {
        let slot = index.by_id[&id(*number)];
        eligible.contains(index.turn(slot).first_row)
    };
    let numbers: Vec<u32> = (0..12).filter(found).collect();
    assert_eq!(eligible.turns(), numbers.len());
    numbers
}

#[test]
fn filters_let_through_what_they_say() {
    let session = |name: &str| vec![SessionId::new(name).unwrap()];
    let everything = TurnFilter::default;
    assert_eq!(passing(&everything()), [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(
        passing(&TurnFilter {
            include_replaced: true,
            ..everything()
        })
        .len(),
        12
    );
    assert_eq!(
        passing(&TurnFilter {
            sessions: session("b"),
            ..everything()
        }),
        [1, 4, 7, 10]
    );
    assert_eq!(
        passing(&TurnFilter {
            sessions: session("z"),
            ..everything()
        }),
        [0; 0]
    );
    assert_eq!(
        passing(&TurnFilter {
            excluded_sessions: session("b"),
            ..everything()
        }),
        [0, 2, 5, 6, 8, 9, 11]
    );
    let speakers = vec![Speaker::new("Ben").unwrap()];
    assert_eq!(
        passing(&TurnFilter {
            speakers,
            ..everything()
        }),
        [4, 5, 9, 10, 11]
    );
    assert_eq!(
        passing(&TurnFilter {
            roles: vec![Role::Assistant],
            ..everything()
        }),
        [5]
    );
    assert_eq!(
        passing(&TurnFilter {
            turns: vec![id(2), id(3)],
            ..everything()
        }),
        [2]
    );
    let time = TimeRange {
        start: Some(day(5)),
        end: Some(day(8)),
    };
    assert_eq!(
        passing(&TurnFilter {
            time,
            ..everything()
        }),
        [5, 6, 7]
    );
}

#[test]
fn the_past_is_seen_as_it_was_known() {
    let as_of = |known_at, happened_by| TurnFilter {
        as_of: AsOf {
            known_at,
            happened_by,
        },
        ..TurnFilter::default()
    };
    assert_eq!(passing(&as_of(Some(day(4)), None)), [0, 1, 2, 3, 4]);
    assert_eq!(
        passing(&as_of(Some(day(8)), None)),
        [0, 1, 2, 4, 5, 6, 7, 8]
    );
    assert_eq!(passing(&as_of(None, Some(day(2)))), [0, 1, 2]);
}

#[test]
fn labels_narrow_further() {
    let index = index((0..6).map(said));
    let labelled = [id(1), id(4)].into();
    assert_eq!(
        index
            .eligible(&TurnFilter::default(), Some(&labelled))
            .turns(),
        2
    );
}

#[test]
fn last_time_of_a_turn_dated_ahead_is_that_of_the_others() {
    let ahead = |number: u32| IndexedTurn {
        event_time: Some(day(27_000)),
        ..turn(number, "s", "Ada", "Calendar: the harvest festival.")
    };
    let last = |turns: Vec<IndexedTurn>| {
        let index = index(turns);
        let eligible = index.eligible(&TurnFilter::default(), None);
        index.last_time(&eligible)
    };
    assert_eq!(last(vec![said(1), said(3), ahead(4)]), Some(day(3)));
    assert_eq!(last(vec![ahead(4)]), Some(day(27_000)));
    let undated = IndexedTurn {
        event_time: None,
        ..said(5)
    };
    assert_eq!(last(vec![undated]), Some(day(5)));
    assert_eq!(last(Vec::new()), None);
}
