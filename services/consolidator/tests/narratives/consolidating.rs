//! Narratives that nobody speaks of any more are put together.

use memfleet_consolidator::Mode;
use memfleet_domain::derivation::{Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::narrative::{Momentum, Narrative};
use memfleet_domain::time::AsOf;
use memfleet_ports::conformance::samples::{home, instant};
use memfleet_ports::knowledge::{Knowledge, Question};
use memfleet_workers::Agent;

use crate::bench::{About, Bench, Said};

const FENCE: &str = "The garden of the old house needs a new fence along the whole road this year";
const BOAT: &str = "The boat in the harbour gets a new coat of paint before the summer begins";
const CHOIR: &str = "The choir sings a requiem in the cathedral on the evening of all souls";
const STORM: &str = "Back to the fence of the garden, which the storm of last night has blown down";

/// The garden, and then two things that are not the garden.
fn garden_and_others() -> [Said; 3] {
    [
        Said("s1", FENCE, About::Garden),
        Said("s2", BOAT, About::Boat),
        Said("s3", CHOIR, About::Choir),
    ]
}

/// Enough for the garden to be left.
fn others() -> [Said; 2] {
    [
        Said("s5", BOAT, About::Boat),
        Said("s6", CHOIR, About::Choir),
    ]
}

/// The narrative whose headline begins so.
async fn story(bench: &Bench, headline: &str) -> Derivation {
    let all = bench.of(Kind::Narrative).await;
    let mut found = all
        .into_iter()
        .filter(|it| it.narrative().unwrap().headline.starts_with(headline));
    found.next().unwrap()
}

fn told(derivation: &Derivation) -> &Narrative {
    derivation.narrative().unwrap()
}

/// The subplots of the fragments of a narrative.
async fn subplots(bench: &Bench, narrative: DerivationId) -> Vec<Option<u32>> {
    let fragments = bench.of(Kind::Fragment).await;
    let of = fragments.iter().filter_map(Derivation::fragment);
    let of = of.filter(|it| it.narrative == narrative);
    of.map(|it| it.subplot).collect()
}

#[tokio::test]
async fn a_story_that_nobody_speaks_of_is_put_together() {
    let bench = Bench::new().await;
    bench.say(garden_and_others()).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).momentum, Momentum::Inactive);
    assert_eq!(told(&garden).subplots.len(), 1);
    assert!(told(&garden).subplots[0].headline.starts_with("The garden"));
    assert_eq!(subplots(&bench, garden.id).await, [Some(0)]);
    // Nothing came after it for four turns.
    let choir = story(&bench, "The choir").await;
    assert_eq!(
        (choir.version, told(&choir).momentum),
        (1, Momentum::Active)
    );
    assert_eq!(subplots(&bench, choir.id).await, [None]);
}

#[tokio::test]
async fn a_new_fragment_makes_it_active_until_it_is_put_together_again() {
    let mut bench = Bench::new().await;
    bench.say(garden_and_others()).await;
    bench.consolidate().await;
    bench.say([Said("s4", STORM, About::Garden)]).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).momentum, Momentum::Active);
    assert_eq!(subplots(&bench, garden.id).await, [Some(0), None]);
    // Whoever works on has looked at nothing yet.
    bench.restart();
    bench.say(others()).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).momentum, Momentum::Inactive);
    // What is alike is one subplot.
    assert_eq!(subplots(&bench, garden.id).await, [Some(0), Some(0)]);
    assert_eq!(told(&garden).subplots.len(), 1);
}

#[tokio::test]
async fn a_round_that_is_done_twice_writes_nothing_twice() {
    let mut bench = Bench::new().await;
    bench.say(garden_and_others()).await;
    bench.consolidate().await;
    let before = bench.of(Kind::Narrative).await;
    // As when the answer to the write is lost: the same round again, by somebody who does not know of it.
    bench.restart();
    bench.plotter.work(&home(), 0).await.unwrap();
    assert_eq!(bench.of(Kind::Narrative).await, before);
}

#[tokio::test]
async fn past_instants_still_see_the_story_as_it_was() {
    let bench = Bench::new().await;
    bench.say(garden_and_others()).await;
    bench.bind().await;
    let garden = story(&bench, "The garden").await;
    bench.consolidate().await;
    let versions = bench.store.versions(&home(), garden.id).await.unwrap();
    assert_eq!(told(&versions[0]).momentum, Momentum::Active);
    assert_eq!(told(&versions[1]).momentum, Momentum::Inactive);
    let question = Question {
        ids: vec![garden.id],
        as_of: AsOf {
            known_at: Some(instant(99)),
            happened_by: None,
        },
        ..Question::default()
    };
    let unknown = bench.store.all_derivations(&home(), &question).await;
    assert_eq!(unknown.unwrap(), []);
}

#[tokio::test]
async fn forgetting_a_turn_takes_its_headlines_from_the_story() {
    let bench = Bench::new().await;
    let asked = bench.say(garden_and_others()).await;
    bench.say([Said("s4", STORM, About::Garden)]).await;
    bench.say(others()).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).subplots.len(), 1);
    bench.forget(asked[0]).await;
    bench.consolidate().await;
    let garden = story(&bench, "Back to the fence").await;
    let told = told(&garden);
    let words = told.subplots.iter().map(|it| it.headline.as_str());
    assert!(
        words
            .chain([told.headline.as_str()])
            .all(|it| !it.contains("old house"))
    );
    let versions = bench.store.versions(&home(), garden.id).await.unwrap();
    assert!(!format!("{versions:?}").contains("old house"));
}

#[tokio::test]
async fn each_fragment_is_put_together_at_once_where_that_is_asked_for() {
    let mut bench = Bench::new().await;
    bench.consolidate_by(Mode::Rapid);
    bench.say([Said("s1", FENCE, About::Garden)]).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).momentum, Momentum::Active);
    assert_eq!(subplots(&bench, garden.id).await, [Some(0)]);
    bench.say(others()).await;
    bench.consolidate().await;
    let garden = story(&bench, "The garden").await;
    assert_eq!(told(&garden).momentum, Momentum::Inactive);
}

#[tokio::test]
async fn nothing_is_put_together_where_that_is_asked_for() {
    let mut bench = Bench::new().await;
    bench.consolidate_by(Mode::None);
    bench.say(garden_and_others()).await;
    bench.consolidate().await;
    let all = bench.of(Kind::Narrative).await;
    assert!(all.iter().all(|it| it.version == 1));
}
