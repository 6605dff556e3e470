//! What a forgotten turn takes with it, and what is bound anew.

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::knowledge::Knowledge;

use crate::bench::{About, Bench, Said, narrative};

const GARDEN: &str = "The garden of the old house needs a new fence along the whole road this year";
const CHOIR: &str = "The choir rehearses a requiem for the concert in the cathedral next winter";

/// The garden in two sessions, and the choir.
async fn told(bench: &Bench) -> Vec<memfleet_domain::ids::TurnId> {
    let asked = bench
        .say([
            Said("s1", GARDEN, About::Garden),
            Said("s1", "Keep it low", About::Nothing),
            Said("s2", CHOIR, About::Choir),
            Said(
                "s3",
                "Back to the fence of the garden, which the storm has blown down",
                About::Garden,
            ),
        ])
        .await;
    bench.bind().await;
    asked
}

#[tokio::test]
async fn the_turn_that_began_a_story_takes_its_headline_along() {
    let bench = Bench::new().await;
    let asked = told(&bench).await;
    let before = bench.bind().await;
    bench.forget(asked[0]).await;
    let fragments = bench.bind().await;
    let narratives = bench.of(Kind::Narrative).await;
    assert_eq!(narratives.len(), 2, "{narratives:?}");
    let story = |turn| {
        let id = narrative(&fragments, turn);
        let found = narratives.iter().find(|it| it.id == id);
        found
            .and_then(Derivation::narrative)
            .unwrap()
            .headline
            .clone()
    };
    assert!(story(asked[3]).starts_with("Back to the fence"));
    assert_ne!(
        narrative(&fragments, asked[3]),
        narrative(&before, asked[3])
    );
    // What followed the forgotten turn is bound still; nothing of what was forgotten is left in any words.
    assert!(fragments.iter().any(|it| it.turns.contains(&asked[1])));
    let all = format!("{fragments:?}{narratives:?}");
    assert!(!all.contains("new fence"), "{all}");
}

#[tokio::test]
async fn a_turn_in_the_middle_of_a_fragment_leaves_the_rest_bound() {
    let bench = Bench::new().await;
    let asked = told(&bench).await;
    bench.forget(asked[1]).await;
    let fragments = bench.bind().await;
    assert!(fragments.iter().any(|it| it.turns.contains(&asked[0])));
    assert!(fragments.iter().all(|it| !it.turns.contains(&asked[1])));
    assert_eq!(
        narrative(&fragments, asked[0]),
        narrative(&fragments, asked[3])
    );
}

#[tokio::test]
async fn a_story_of_which_all_is_forgotten_is_gone() {
    let bench = Bench::new().await;
    told(&bench).await;
    let before = bench.of(Kind::Narrative).await.len();
    bench.forget_session("s2").await;
    bench.bind().await;
    let narratives = bench.of(Kind::Narrative).await;
    assert_eq!(narratives.len(), before - 1);
    assert!(!format!("{narratives:?}").contains("choir"));
}

#[tokio::test]
async fn a_story_whose_only_session_is_forgotten_is_begun_anew_by_who_speaks_of_it_later() {
    let bench = Bench::new().await;
    bench.say([Said("s1", GARDEN, About::Garden)]).await;
    bench.bind().await;
    bench.forget_session("s1").await;
    let later = bench
        .say([Said(
            "s2",
            "Back to the fence of the garden, which the storm has blown down",
            About::Garden,
        )])
        .await;
    let fragments = bench.bind().await;
    let narratives = bench.of(Kind::Narrative).await;
    assert_eq!(narratives.len(), 1);
    assert_eq!(narratives[0].id, narrative(&fragments, later[0]));
}

/// Every version of every narrative, as it is printed.
async fn all_versions(bench: &Bench) -> String {
    let mut all = Vec::new();
    for narrative in bench.of(Kind::Narrative).await {
        let versions = bench.store.versions(&home(), narrative.id).await;
        all.extend(versions.unwrap());
    }
    format!("{all:?}")
}

#[tokio::test]
async fn of_whoever_is_forgotten_no_version_says_that_they_took_part() {
    let bench = Bench::new().await;
    let storm = |session| {
        let words = "Back to the fence of the garden, which the storm has blown down";
        Said(session, words, About::Garden)
    };
    let answer = |session| {
        Said(
            session,
            "Make it low at the gate of the garden",
            About::Nothing,
        )
    };
    // Ben is there from the beginning, and Cleo joins later.
    let begun = bench.say([Said("s1", GARDEN, About::Garden)]).await;
    bench.say_by("Ben", answer("s1")).await;
    bench.consolidate().await;
    let later = bench.say([storm("s2")]).await;
    bench.say_by("Cleo", answer("s2")).await;
    let last = bench.say([storm("s3")]).await;
    bench
        .say([
            Said("s4", CHOIR, About::Choir),
            Said("s4", "Sing it low", About::Nothing),
        ])
        .await;
    bench.consolidate().await;
    let told = all_versions(&bench).await;
    assert!(told.contains("Ben") && told.contains("Cleo"), "{told}");
    for name in ["Cleo", "Ben"] {
        bench.forget_speaker(name).await;
        bench.consolidate().await;
        let told = all_versions(&bench).await;
        assert!(!told.contains(name), "{told}");
        // What Ada said of it is one story still.
        let fragments = bench.of(Kind::Fragment).await;
        let story = narrative(&fragments, begun[0]);
        for turn in [later[0], last[0]] {
            assert_eq!(narrative(&fragments, turn), story);
        }
        assert_eq!(bench.of(Kind::Narrative).await.len(), 2);
    }
}
