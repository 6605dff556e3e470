//! Which fragments there are, and whose.

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::narrative::Momentum;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_workers::Agent;

use crate::bench::{About, Bench, Said, narrative};

/// Words enough that nothing takes it for a mere addition.
const GARDEN: &str = "The garden of the old house needs a new fence along the whole road this year";
const BOAT: &str = "The boat in the harbour gets a new coat of paint before the summer begins";

fn two_stories() -> [Said; 4] {
    [
        Said("s1", GARDEN, About::Garden),
        Said("s1", "Keep it low", About::Nothing),
        Said("s1", BOAT, About::Boat),
        Said("s1", "Make it blue", About::Nothing),
    ]
}

fn turns(fragments: &[Derivation]) -> Vec<usize> {
    fragments.iter().map(|it| it.turns.len()).collect()
}

#[tokio::test]
async fn what_names_nothing_goes_on_with_what_was_spoken_of() {
    let bench = Bench::new().await;
    let asked = bench.say(two_stories()).await;
    let fragments = bench.bind().await;
    assert_eq!(turns(&fragments), [4, 4]);
    let [garden, low, boat, blue] = asked[..] else {
        unreachable!()
    };
    assert_eq!(narrative(&fragments, garden), narrative(&fragments, low));
    assert_eq!(narrative(&fragments, boat), narrative(&fragments, blue));
    assert_ne!(narrative(&fragments, garden), narrative(&fragments, boat));
    let narratives = bench.of(Kind::Narrative).await;
    assert_eq!(narratives.len(), 2);
    let story = narratives[0].narrative().unwrap();
    assert!(story.headline.starts_with("The garden"), "{story:?}");
    assert_eq!(
        (story.owner.as_str(), story.momentum),
        ("Ada", Momentum::Active)
    );
    assert_eq!(narratives[0].turns, [garden]);
}

#[tokio::test]
async fn after_a_change_of_the_model_stories_are_told_apart_by_the_new_one() {
    let mut bench = Bench::new().await;
    let asked = bench.say(two_stories()).await;
    bench.bind().await;
    let about = |text: &str| match text {
        GARDEN => About::Garden,
        BOAT => About::Boat,
        _ => About::Nothing,
    };
    bench.change_model(about).await;
    let words = "Back to the coat of paint, which the rain has washed off again";
    let later = bench.say([Said("s2", words, About::Boat)]).await[0];
    let fragments = bench.bind().await;
    assert_eq!(
        narrative(&fragments, later),
        narrative(&fragments, asked[2])
    );
}

#[tokio::test]
async fn a_story_goes_on_in_another_session() {
    let bench = Bench::new().await;
    let asked = bench.say(two_stories()).await;
    bench.bind().await;
    let later = bench
        .say([Said(
            "s2",
            "Back to the fence of the garden, which the storm has blown down",
            About::Garden,
        )])
        .await;
    let fragments = bench.bind().await;
    assert_eq!(fragments.len(), 3);
    assert_eq!(
        narrative(&fragments, later[0]),
        narrative(&fragments, asked[0])
    );
    assert_eq!(bench.of(Kind::Narrative).await.len(), 2);
}

#[tokio::test]
async fn turn_by_turn_and_with_restarts_comes_to_the_same_as_at_once() {
    let (at_once, mut slowly) = (Bench::new().await, Bench::new().await);
    at_once.say(two_stories()).await;
    let expected = at_once.bind().await;
    for said in two_stories() {
        slowly.say([said]).await;
        slowly.bind().await;
        slowly.restart();
    }
    let fragments = slowly.bind().await;
    let told = |all: &[Derivation]| -> Vec<_> {
        let told = all
            .iter()
            .map(|it| (it.id, it.turns.clone(), it.body.clone()));
        told.collect()
    };
    assert_eq!(told(&fragments), told(&expected));
}

#[tokio::test]
async fn a_round_that_is_done_twice_writes_nothing_twice() {
    let bench = Bench::new().await;
    bench.say(two_stories()).await;
    let before = bench.bind().await;
    // As when the answer to the write is lost: the same round again, by somebody who does not know of it.
    let refused = bench.consolidator.work(&home(), 0).await;
    refused.unwrap();
    assert_eq!(bench.of(Kind::Fragment).await, before);
    assert!(before.iter().all(|fragment| fragment.version == 1));
}

#[tokio::test]
async fn fragments_grow_by_versions_that_past_instants_still_see() {
    let bench = Bench::new().await;
    bench.say([Said("s1", GARDEN, About::Garden)]).await;
    let first = bench.bind().await;
    bench.say([Said("s1", "Keep it low", About::Nothing)]).await;
    let second = bench.bind().await;
    assert_eq!((first[0].id, first[0].version), (second[0].id, 1));
    assert_eq!((second[0].version, second[0].turns.len()), (2, 4));
    let versions = bench.store.versions(&home(), first[0].id).await.unwrap();
    assert_eq!(versions[0].turns, first[0].turns);
}

#[tokio::test]
async fn while_one_works_another_one_waits() {
    let bench = Bench::new().await;
    bench.say(two_stories()).await;
    let (store, space) = (&bench.store, home());
    let claim = || store.claim(&space, Stage::Bind, instant(0), instant(60));
    assert!(claim().await.unwrap().is_some());
    assert_eq!(claim().await.unwrap(), None);
}

#[tokio::test]
async fn what_was_replaced_is_in_no_story_and_its_story_is_gone() {
    let bench = Bench::new().await;
    let asked = bench.say([Said("s1", GARDEN, About::Garden)]).await;
    bench.bind().await;
    let boat = Said("s1", BOAT, About::Boat);
    let instead = bench.say_instead(asked[0], boat).await;
    let fragments = bench.bind().await;
    assert!(fragments.iter().all(|it| !it.turns.contains(&asked[0])));
    assert!(fragments.iter().any(|it| it.turns.contains(&instead)));
    let bound: Vec<_> = fragments.iter().filter_map(Derivation::fragment).collect();
    let narratives = bench.of(Kind::Narrative).await;
    // Neither a story that nothing is told of, nor something that is told of no story.
    assert!(
        narratives
            .iter()
            .all(|story| bound.iter().any(|it| it.narrative == story.id))
    );
    assert!(
        bound
            .iter()
            .all(|it| narratives.iter().any(|story| story.id == it.narrative))
    );
}
