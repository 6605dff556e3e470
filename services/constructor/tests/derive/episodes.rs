//! Sessions are cut into episodes as they go on, on a real store.

use memfleet_domain::derivation::Derivation;
use memfleet_domain::episode::Trigger;
use memfleet_domain::turn::{AcceptedTurn, Role};
use memfleet_ports::conformance::samples::{edit, home, instant, turn};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::events::Event;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::{Knowledge, Question, Stage};

use crate::bench::Bench;

fn reply(external: &str, text: &str) -> AcceptedTurn {
    AcceptedTurn {
        role: Role::Assistant,
        ..turn(external, text)
    }
}

/// Two matters: the second one begins with turn 4.
fn chat() -> Vec<AcceptedTurn> {
    vec![
        turn("1", "How do I bake sourdough bread at home?"),
        reply("2", "Begin with a starter of flour and water."),
        turn("3", "Thanks, and how long does it take?"),
        turn("4", "Which trains go from Vienna to Venice?"),
        reply("5", "There is a night train at nine."),
    ]
}

fn turns(episodes: &[Derivation]) -> Vec<usize> {
    episodes.iter().map(|episode| episode.turns.len()).collect()
}

#[tokio::test]
async fn a_session_is_cut_into_its_matters() {
    let bench = Bench::new().await;
    let said = chat();
    bench.store(said.clone()).await;
    let episodes = bench.summarise().await;
    assert_eq!(turns(&episodes), [3, 2]);
    let first = episodes[0].episode().unwrap();
    assert_eq!(first.title, "How do I bake sourdough bread at home?");
    assert_eq!(first.trigger, Some(Trigger::TopicShift));
    assert!(first.summary.contains("sourdough"), "{}", first.summary);
    assert_eq!(episodes[0].turns, [said[0].id, said[1].id, said[2].id]);
    assert_eq!(episodes[1].episode().unwrap().trigger, None);
    assert_eq!(
        bench.knowledge().pending(Stage::Episodes, 9).await.unwrap(),
        []
    );
}

#[tokio::test]
async fn episodes_are_announced_to_those_who_follow_the_space() {
    let bench = Bench::new().await;
    bench.store(chat()).await;
    let mut heard = bench.listen();
    bench.summarise().await;
    let scope = home();
    assert_eq!(heard.try_recv(), Ok(Event::Derived { scope }));
    while heard.try_recv().is_ok() {}
    bench.summarise().await;
    assert!(heard.try_recv().is_err(), "nothing new was written");
}

#[tokio::test]
async fn turn_by_turn_comes_to_the_same_as_all_at_once() {
    let (at_once, slowly) = (Bench::new().await, Bench::new().await);
    at_once.store(chat()).await;
    let expected = at_once.summarise().await;
    for turn in chat() {
        slowly.store(vec![turn]).await;
        slowly.summarise().await;
    }
    let grown = slowly.summarise().await;
    let bodies = |episodes: &[Derivation]| {
        let bodies = episodes
            .iter()
            .map(|it| (it.turns.clone(), it.body.clone()));
        bodies.collect::<Vec<_>>()
    };
    assert_eq!(bodies(&grown), bodies(&expected));
    // The older versions are there still, and nothing is written twice.
    assert_eq!(
        slowly
            .store
            .versions(&home(), grown[0].id)
            .await
            .unwrap()
            .len(),
        4
    );
    assert_eq!(bodies(&slowly.summarise().await), bodies(&grown));
}

#[tokio::test]
async fn a_replaced_turn_is_in_no_episode() {
    let bench = Bench::new().await;
    let said = chat();
    bench.store(said.clone()).await;
    bench.summarise().await;
    let mut opening = edit(&said[3], "6", "Which trains go from Vienna to Rome?");
    opening.recorded_at = instant(10);
    bench.store(vec![opening.clone()]).await;
    let episodes = bench.summarise().await;
    let standing = episodes.iter().filter(|episode| !episode.is_withdrawn());
    let standing: Vec<_> = standing.flat_map(|episode| &episode.turns).collect();
    assert!(!standing.contains(&&said[3].id));
    assert!(standing.contains(&&opening.id) && standing.contains(&&said[4].id));
    assert_eq!(standing.len(), 5);
}

#[tokio::test]
async fn a_forgotten_turn_takes_its_episode_along_and_the_others_are_cut_again() {
    let bench = Bench::new().await;
    let said = chat();
    bench.store(said.clone()).await;
    bench.summarise().await;
    let filter = TurnFilter {
        turns: vec![said[0].id],
        ..TurnFilter::default()
    };
    bench.store.erase(&home(), &filter).await.unwrap();
    let left = bench.facts(&Question::default()).await;
    assert_eq!(turns(&left), [2]);
    let episodes = bench.summarise().await;
    assert!(episodes.iter().all(|it| !it.turns.contains(&said[0].id)));
    let text = format!("{episodes:?}");
    assert!(!text.contains("sourdough"), "{text}");
    let cut: usize = turns(&episodes).iter().sum();
    assert_eq!(cut, 4);
}

#[tokio::test]
async fn what_says_nothing_is_no_episode() {
    let bench = Bench::new().await;
    bench.store(vec![turn("1", "   ")]).await;
    assert_eq!(bench.summarise().await, []);
}
