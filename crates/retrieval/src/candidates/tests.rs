use chrono_tz::Tz;

use super::*;
use crate::fixture::{analyzer, everything, index, search, texts, turn, vectors};
use crate::lexical;

/// About thirty passages.
fn long(number: u32) -> String {
    format!("Line {number} of a log about the garden of the old house. ").repeat(400)
}

fn few() -> Weights {
    Weights {
        exhaustive: 5,
        candidates: 30,
        ..Weights::shipped()
    }
}

#[test]
fn of_long_turns_only_what_was_chosen_is_read() {
    let index = index((0..40).map(|number| turn(number, "s", "Ada", &long(number))));
    let spaces = [everything(&index)];
    assert!(index.passages().rows() > 1_000);
    let plan = Plan::new("garden", &spaces, &analyzer(), None, Tz::UTC);
    let plan = plan.with_vectors(Some(vectors("garden")));
    let weights = few();
    let lexical = lexical(&spaces, &plan, &weights);
    let candidates = candidates(&spaces, &plan, lexical, &weights);
    let most = weights.candidates * (1 + 2 * weights.window.len());
    let read = candidates.needed()[0].len();
    assert!((1..=most).contains(&read), "{read} passages");
}

#[test]
fn few_turns_of_many_passages_have_a_first_stage_too() {
    let index = index((0..150).map(|number| turn(number, "s", "Ada", &long(number))));
    let spaces = [everything(&index)];
    let weights = Weights::shipped();
    assert!(index.turns() <= weights.exhaustive);
    assert!(index.passages().rows() > EXHAUSTIVE_ROWS);
    let plan = Plan::new("garden", &spaces, &analyzer(), None, Tz::UTC);
    let lexical = lexical(&spaces, &plan, &weights);
    let candidates = candidates(&spaces, &plan, lexical, &weights);
    assert!(candidates.needed()[0].len() < EXHAUSTIVE_ROWS);
}

#[test]
fn a_long_turn_is_found_by_its_best_passage() {
    let told = format!("{} The password of the shed is heron. {}", long(1), long(2));
    let told = [
        (1, "s", "Ada", told.as_str()),
        (2, "s", "Ben", "The garden is far"),
        (3, "s", "Ada", "So it is"),
    ];
    let turns = told.map(|(number, session, speaker, text)| turn(number, session, speaker, text));
    let weights = Weights {
        exhaustive: 1,
        ..few()
    };
    let found = search(
        &index(turns),
        "password of the shed",
        &texts(&told),
        &weights,
    );
    assert_eq!(found[0].turn, crate::fixture::id(1));
    let (start, end) = found[0].passage;
    assert!(told[0].3[start as usize..end as usize].contains("heron"));
}
