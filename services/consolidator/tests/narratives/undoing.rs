//! What a caller undid stays undone, and nothing hangs in the air for it.

use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::narrative::Momentum;

use crate::bench::{About, Bench, Said, narrative};

const GARDEN: &str = "The garden of the old house needs a new fence along the whole road this year";
const STORM: &str = "Back to the fence of the garden, which the storm of last night has blown down";

const BOAT: &str = "The boat in the harbour gets a new coat of paint before the summer begins";
const CHOIR: &str = "The choir sings a requiem in the cathedral on the evening of all souls";

fn storm(session: &'static str) -> Said {
    Said(session, STORM, About::Garden)
}

/// The ids of the narratives that hold.
async fn stories(bench: &Bench) -> Vec<memfleet_domain::ids::DerivationId> {
    let all = bench.of(Kind::Narrative).await;
    all.iter().map(|it| it.id).collect()
}

#[tokio::test]
async fn what_is_said_later_binds_nothing_that_was_undone() {
    let bench = Bench::new().await;
    let undone = bench
        .say([
            Said("s1", GARDEN, About::Garden),
            Said("s1", "Keep it low at the gate", About::Nothing),
        ])
        .await;
    let bound = bench.bind().await;
    bench.undo(&bound[0]).await;
    let said = [Said("s1", "Make it strong at the road", About::Nothing)];
    let later = bench.say(said).await;
    let fragments = bench.bind().await;
    let is_in = |turn| {
        let mut turns = fragments.iter().flat_map(|it| &it.turns);
        turns.any(|it| *it == turn)
    };
    assert!(undone.iter().all(|turn| !is_in(*turn)), "{fragments:?}");
    assert!(is_in(later[0]));
    assert_eq!(stories(&bench).await, [narrative(&fragments, later[0])]);
}

#[tokio::test]
async fn a_fragment_that_was_made_shorter_again_stays_so() {
    let bench = Bench::new().await;
    bench.say([Said("s1", GARDEN, About::Garden)]).await;
    let short = bench.bind().await;
    let said = [Said("s1", "Keep it low at the gate", About::Nothing)];
    let undone = bench.say(said).await[0];
    let grown = bench.bind().await;
    assert!(grown[0].turns.contains(&undone));
    bench.undo(&grown[0]).await;
    let said = [Said("s1", "Make it strong at the road", About::Nothing)];
    let later = bench.say(said).await[0];
    let fragments = bench.bind().await;
    assert_eq!(fragments[0].turns, short[0].turns);
    assert!(fragments.iter().all(|it| !it.turns.contains(&undone)));
    assert!(fragments.iter().any(|it| it.turns.contains(&later)));
}

#[tokio::test]
async fn what_was_bound_to_a_story_whose_beginning_is_undone_tells_it_on() {
    let bench = Bench::new().await;
    let first = bench.say([Said("s1", GARDEN, About::Garden)]).await;
    let begun = bench.bind().await;
    let second = bench.say([storm("s2")]).await;
    bench.bind().await;
    bench.undo(&begun[0]).await;
    let fragments = bench.bind().await;
    assert!(fragments.iter().all(|it| !it.turns.contains(&first[0])));
    assert_eq!(stories(&bench).await, [narrative(&fragments, second[0])]);
    let told = bench.of(Kind::Narrative).await;
    let headline = |it: &Derivation| it.narrative().unwrap().headline.clone();
    assert!(headline(&told[0]).starts_with("Back to the fence"));
    // What is said later is told of what is there.
    let third = bench.say([storm("s3")]).await;
    let fragments = bench.bind().await;
    assert_eq!(stories(&bench).await, [narrative(&fragments, third[0])]);
}

/// The narrative of the garden.
async fn garden(bench: &Bench) -> Derivation {
    let all = bench.of(Kind::Narrative).await;
    let mut found = all
        .into_iter()
        .filter(|it| it.narrative().unwrap().headline.contains("garden"));
    found.next().unwrap()
}

/// Enough for the garden to be left.
fn others(one: &'static str, other: &'static str) -> [Said; 2] {
    [
        Said(one, BOAT, About::Boat),
        Said(other, CHOIR, About::Choir),
    ]
}

#[tokio::test]
async fn a_story_that_was_put_together_and_is_not_stays_so_until_it_goes_on() {
    let mut bench = Bench::new().await;
    bench.say([Said("s1", GARDEN, About::Garden)]).await;
    bench.say(others("s2", "s3")).await;
    bench.consolidate().await;
    bench.undo(&garden(&bench).await).await;
    let undone = garden(&bench).await;
    assert_eq!(undone.narrative().unwrap().momentum, Momentum::Active);
    // By who remembers it, and by who does not.
    for (one, other) in [("s4", "s5"), ("s6", "s7")] {
        bench.say(others(one, other)).await;
        bench.consolidate().await;
        assert_eq!(garden(&bench).await, undone);
        bench.restart();
    }
    bench.say([storm("s8")]).await;
    bench.say(others("s9", "s10")).await;
    bench.consolidate().await;
    let garden = garden(&bench).await;
    let told = garden.narrative().unwrap();
    assert_eq!(
        (told.momentum, told.subplots.len()),
        (Momentum::Inactive, 1)
    );
}
