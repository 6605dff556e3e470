//! Whole searches.

mod explained;

use std::collections::HashMap;

use memfleet_ports::filter::TurnFilter;
use proptest::prelude::*;

use crate::fixture::{bare, day, id, index, search, search_spaces, texts, turn};
use crate::{Searched, Weights};

const TALK: [(u32, &str, &str, &str); 6] = [
    (
        0,
        "s1",
        "Ada",
        "I adopted a grey cat from the shelter yesterday.",
    ),
    (1, "s1", "Ben", "What did you call her?"),
    (2, "s1", "Ada", "Pepper, because of the spots."),
    (3, "s2", "Ben", "My train to Porto was four hours late."),
    (4, "s2", "Ada", "Did you at least get a refund?"),
    (5, "s2", "Ben", "No, only a voucher for a sandwich."),
];

fn turns() -> impl Iterator<Item = memfleet_ports::feed::IndexedTurn> {
    TALK.into_iter()
        .map(|(number, session, speaker, text)| turn(number, session, speaker, text))
}

#[test]
fn the_turn_that_says_it_comes_first_and_explains_itself() {
    let ranked = search(
        &index(turns()),
        "What animal did Ada adopt from the shelter?",
        &texts(&TALK),
        &Weights::shipped(),
    );
    assert_eq!(ranked[0].turn, id(0));
    assert_eq!(ranked[0].passage, (0, TALK[0].3.len() as u32));
    let sum: f32 = ranked[0]
        .signals
        .iter()
        .map(|signal| signal.contribution)
        .sum();
    assert!((sum - ranked[0].score).abs() < 1e-4);
    assert!(ranked.windows(2).all(|pair| pair[0].score >= pair[1].score));
}

#[test]
fn a_turn_is_found_through_its_neighbour() {
    let ranked = search(
        &index(turns()),
        "refund for the late train",
        &texts(&TALK),
        &Weights::shipped(),
    );
    let place = |number| {
        ranked
            .iter()
            .position(|ranked| ranked.turn == id(number))
            .unwrap()
    };
    assert!(place(5) < place(1) && place(5) < place(2));
}

#[test]
fn words_alone_find_turns_without_vectors() {
    let bare = index(turns().map(bare));
    assert_eq!(bare.without_vectors().count(), 6);
    let ranked = search(
        &bare,
        "Which cat was at the shelter?",
        &HashMap::new(),
        &Weights::shipped(),
    );
    assert_eq!(ranked[0].turn, id(0));
    assert!(ranked.iter().all(|ranked| ranked.score.is_finite()));
}

#[test]
fn the_best_passage_of_a_long_turn_is_named() {
    let filler = "We talked about nothing in particular for a while. ".repeat(15);
    let text = format!("{filler}The violin teacher lives in Ghent. {filler}");
    let talk = [
        (0, "s", "Ada", text.as_str()),
        (1, "s", "Ben", "I see."),
        (2, "s", "Ben", "Go on."),
    ];
    for talk in [&talk[..], &talk[..1]] {
        let told = |&(number, session, speaker, text)| turn(number, session, speaker, text);
        let ranked = search(
            &index(talk.iter().map(told)),
            "Where is the violin teacher?",
            &texts(talk),
            &Weights::shipped(),
        );
        let found = ranked.iter().find(|ranked| ranked.turn == id(0)).unwrap();
        let (start, end) = found.passage;
        assert!(text[start as usize..end as usize].contains("violin"));
    }
}

#[test]
fn several_spaces_are_ranked_as_one() {
    let spaces = [index(turns().take(3)), index(turns().skip(3))];
    let searched = |index| Searched {
        index,
        eligible: crate::SpaceIndex::eligible(index, &TurnFilter::default(), None),
        excerpt: None,
    };
    let ranked = search_spaces(
        &spaces.each_ref().map(searched),
        "the late train to Porto",
        &texts(&TALK),
        &Weights::shipped(),
    );
    assert_eq!((ranked[0].space, ranked[0].turn), (1, id(3)));
    assert_eq!(ranked.len(), 6);
    let together = search(
        &index(turns()),
        "the late train to Porto",
        &texts(&TALK),
        &Weights::shipped(),
    );
    let order =
        |ranked: &[crate::Ranked]| ranked.iter().map(|ranked| ranked.turn).collect::<Vec<_>>();
    assert_eq!(order(&ranked)[..2], order(&together)[..2]);
}

#[test]
fn an_empty_space_finds_nothing() {
    assert!(
        search(
            &index([]),
            "anything?",
            &HashMap::new(),
            &Weights::shipped()
        )
        .is_empty()
    );
}

#[test]
fn the_first_stage_bounds_the_second() {
    let many =
        (0..200).map(|number| turn(number, "s", "Ada", &format!("note {number} about bread")));
    let weights = Weights {
        exhaustive: 30,
        candidates: 30,
        ..Weights::shipped()
    };
    let found = search(&index(many), "note 7", &HashMap::new(), &weights);
    assert!((10..=30).contains(&found.len()), "{}", found.len());
    assert_eq!(found[0].turn, id(7));
}

#[test]
fn like_turns_of_many_days_are_ranked_by_the_day_that_is_named() {
    const DISHES: [&str; 12] = [
        "lentils",
        "borscht",
        "tacos",
        "moussaka",
        "fondue",
        "ravioli",
        "pierogi",
        "laksa",
        "shakshuka",
        "schnitzel",
        "ceviche",
        "gumbo",
    ];
    let lunch = |number: u32, dish: &str| {
        let text = format!("For lunch there was {dish} today.");
        turn(number, &format!("d{number}"), "Ada", &text)
    };
    let diary = index((0..12).map(|n| lunch(n, DISHES[n as usize])));
    let weights = Weights::shipped();
    for exhaustive in [weights.exhaustive, 4] {
        let weights = Weights {
            exhaustive,
            candidates: 3,
            ..weights.clone()
        };
        for number in 0..12 {
            let date = day(number).format("%-d %B %Y");
            let question = format!("What was for lunch on {date}?");
            let ranked = search(&diary, &question, &HashMap::new(), &weights);
            assert_eq!(ranked[0].turn, id(number), "{question}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_query_gives_finite_scores_in_order(query in "\\PC{0,60}") {
        let ranked = search(&index(turns()), &query, &texts(&TALK), &Weights::shipped());
        prop_assert_eq!(ranked.len(), 6);
        prop_assert!(ranked.iter().all(|ranked| ranked.score.is_finite()));
        prop_assert!(ranked.windows(2).all(|pair| pair[0].score >= pair[1].score));
    }

    #[test]
    fn the_order_of_arrival_does_not_matter_for_equal_words(shuffled in Just((0..20_u32).collect::<Vec<_>>()).prop_shuffle()) {
        let same = |number: &u32| turn(*number, "s", "Ada", "the same words again");
        let mut weights = Weights::shipped();
        weights.signals.remove(&crate::Signal::Novelty);
        let ranked = search(&index(shuffled.iter().map(same)), "same words", &HashMap::new(), &weights);
        let again = search(&index((0..20).map(|number| same(&number))), "same words", &HashMap::new(), &weights);
        let order = |ranked: &[crate::Ranked]| ranked.iter().map(|ranked| ranked.turn).collect::<Vec<_>>();
        prop_assert_eq!(order(&ranked), order(&again));
    }
}
