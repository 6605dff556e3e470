//! After a forget no word that only forgotten turns said is left in any table or file of a node, whatever was made of it: generated
//! conversations go through all stages that work by rules, some turns are forgotten, and all stages go on.
#![allow(clippy::unwrap_used)]

mod bench;
mod talk;

use std::collections::BTreeSet;

use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::session;
use memfleet_ports::filter::TurnFilter;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use bench::Bench;
use talk::Talk;

/// The words that these turns and their speakers say.
fn words<'t>(turns: impl IntoIterator<Item = &'t AcceptedTurn>) -> BTreeSet<String> {
    let turns = turns.into_iter();
    let said = turns.map(|turn| format!("{} {}", turn.speaker, turn.content.text).to_lowercase());
    let words = said.flat_map(|said| {
        let words = said.split(|letter: char| !letter.is_alphanumeric());
        words.map(str::to_owned).collect::<Vec<_>>()
    });
    words.filter(|word| talk::is_mark(word)).collect()
}

/// Filter of a turn, a session, or all turns of a speaker.
fn filter(random: &mut StdRng, turns: &[AcceptedTurn]) -> TurnFilter {
    let turn = &turns[random.random_range(0..turns.len())];
    let none = TurnFilter::default;
    match random.random_range(0..6) {
        0 => TurnFilter {
            sessions: vec![turn.session.clone()],
            ..none()
        },
        1 => TurnFilter {
            speakers: vec![turn.speaker.clone()],
            ..none()
        },
        _ => TurnFilter {
            turns: vec![turn.id],
            ..none()
        },
    }
}

/// Generated conversations: 5, or as many as `FORGET_SEEDS` says.
fn seeds() -> u64 {
    std::env::var("FORGET_SEEDS").map_or(5, |seeds| seeds.parse().unwrap())
}

#[tokio::test]
async fn no_word_that_only_forgotten_turns_said_is_left_anywhere() {
    let (mut facts, mut forgets, mut checked) = (0, 0, 0);
    for seed in 0..seeds() {
        let mut random = StdRng::seed_from_u64(seed);
        let bench = Bench::new().await;
        let mut talk = Talk::new(seed);
        let mut turns = talk.turns(&[session("s1"), session("s2")], 18);
        bench.store(&turns).await;
        bench.work().await;
        for turn in &turns {
            bench.prompt(turn).await;
        }
        bench.queue(&mut talk, &mut turns).await;
        facts += bench.facts().await;
        let everything = words(&turns);
        let before = bench.left(&everything).await;
        assert!(
            before.len() > everything.len(),
            "the search finds what is there"
        );
        while turns.len() > 6 {
            let filter = filter(&mut random, &turns);
            bench.forget(&filter).await;
            forgets += 1;
            let (forgotten, rest): (Vec<_>, Vec<_>) =
                turns.into_iter().partition(|turn| filter.passes(turn));
            assert!(!forgotten.is_empty(), "{filter:?}");
            turns = rest;
            let stays = words(&turns);
            let lost: BTreeSet<_> = words(&forgotten).difference(&stays).cloned().collect();
            checked += lost.len();
            // At once, and after all stages went on with what is left.
            for stage in ["at once", "after all stages"] {
                let left = bench.left(&lost).await;
                assert_eq!(left, [""; 0], "{stage}, seed {seed}, {filter:?}");
                bench.work().await;
            }
        }
    }
    let tried = format!("{facts} facts, {forgets} forgets, {checked} words");
    println!("{tried}");
    assert!(facts > 50 && checked > 50, "{tried}");
}
