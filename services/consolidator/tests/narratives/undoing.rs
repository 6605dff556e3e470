//! What a caller undid stays undone, and nothing hangs in the air for it.

use memfleet_domain::derivation::{Derivation, Kind};

use crate::bench::{About, Bench, Said, narrative};

const GARDEN: &str = "The garden of the old house needs a new fence along the whole road this year";
const STORM: &str = "Back to the fence of the garden, which the storm of last night has blown down";

fn storm(session: &'static str) -> Said {
    Said(session, STORM, About::Garden)
}

/// The ids of the narratives that hold.
async fn stories(bench: &Bench) -> Vec<memfleet_domain::ids::DerivationId> {
    let all = bench.of(Kind::Narrative).await;
    all.iter().map(|it| it.id).collect()
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
