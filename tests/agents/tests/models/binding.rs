//! Which story what was said is of.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::TurnId;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::refresher::Refresher;
use memfleet_prompts::Adviser;
use serde_json::{Value, json};

use crate::{model, over};

/// Turns of the beginning.
const FIRST: usize = 20;
const GARDEN: &str = "Roses of the garden";
const BOAT: &str = "Paint for the boat";

/// Two matters in turn, and a greeting.
fn chat() -> Vec<String> {
    let said = (0..FIRST).map(|n| match n {
        0 => "Good morning to everybody here today.".to_owned(),
        n if n % 2 == 1 => format!("The roses of the garden need water number {n} this week."),
        n => format!("The boat needs paint number {n} before the summer."),
    });
    said.collect()
}

fn handles(numbers: impl Iterator<Item = usize>) -> Vec<String> {
    numbers.map(|n| format!("T{n}")).collect()
}

/// The reply about the beginning.
fn stories() -> Value {
    json!({
        "stories": [
            {"headline": GARDEN, "owner": "Ada", "turns": handles((2..=FIRST).step_by(2))},
            {"headline": BOAT, "owner": "Ada", "turns": handles((3..=FIRST).step_by(2))},
        ],
        "filler": ["T1"],
    })
}

/// A model that says this of the beginning, and that of each fragment behind it.
fn says(memory: &Memory, beginning: Value, binding: Value) -> Adviser {
    let script = move |_, body: &Value| {
        let is_first = body.to_string().contains("the beginning of a chronicle");
        let reply = if is_first { &beginning } else { &binding };
        Scripted::Says(reply.to_string())
    };
    over(memory, endpoint(script))
}

/// A chat on one day, bound by rules, and a day later.
async fn bound_by_rules() -> (Memory, Vec<AcceptedTurn>) {
    let memory = Memory::new().await;
    let said = memory.say_all(1, &chat()).await;
    memory.cut().await;
    memory.bind(40).await;
    (memory, said)
}

/// The same with stories by a model.
async fn begun() -> (Memory, Vec<AcceptedTurn>) {
    let (memory, said) = bound_by_rules().await;
    // A day later all of it is over.
    memory.say(2, "Hello.").await;
    let adviser = says(&memory, stories(), Value::Null);
    memory.advise(Stage::Rebind, adviser).await;
    (memory, said)
}

/// A later turn, bound by rules and then by a model that says this of it.
async fn goes_on(memory: &Memory, text: &str, binding: Value) -> AcceptedTurn {
    let said = memory.say(9, text).await;
    memory.cut().await;
    memory.bind(40).await;
    memory.say(10, "Hello.").await;
    let adviser = says(memory, stories(), binding);
    memory.advise(Stage::Rebind, adviser).await;
    said
}

/// How many turns the narratives have, by headline.
async fn told(memory: &Memory) -> BTreeMap<String, usize> {
    let mut told = BTreeMap::new();
    let fragments = memory.fragments().await;
    for narrative in memory.narratives().await {
        let of = fragments.iter().filter(|it| is_of(it, &narrative));
        let turns = of.map(|it| it.turns.len()).sum();
        let headline = narrative.narrative().unwrap().headline.clone();
        told.insert(headline, turns);
    }
    told
}

fn is_of(fragment: &Derivation, narrative: &Derivation) -> bool {
    fragment.fragment().unwrap().narrative == narrative.id
}

fn by_model(derivation: &Derivation) -> bool {
    derivation
        .fragment()
        .is_some_and(|it| it.binder.contains(".v1"))
}

#[tokio::test]
async fn the_first_turns_are_told_as_stories_and_filler_is_in_none() {
    let (memory, said) = begun().await;
    assert!(!memory.is_behind(Stage::Rebind).await);
    let told = told(&memory).await;
    assert_eq!((told[GARDEN], told[BOAT]), (FIRST / 2, FIRST / 2 - 1));
    assert_eq!(told.len(), 2, "{told:?}");
    let fragments = memory.fragments().await;
    assert!(fragments.iter().all(by_model));
    assert!(fragments.iter().all(|it| !it.turns.contains(&said[0].id)));
    let narratives = memory.narratives().await;
    let narrative = narratives[0].narrative().unwrap();
    assert_eq!(narrative.owner.as_str(), "Ada");
    assert!(narrative.author.contains("stories.v1"));
    assert_eq!(narratives[0].turns.len(), 1, "one turn bears it out");
}

#[tokio::test]
async fn with_little_said_nobody_is_asked() {
    let memory = Memory::new().await;
    memory.say_all(1, &chat()[..FIRST - 1]).await;
    memory.cut().await;
    memory.bind(40).await;
    let by_rules = memory.fragments().await;
    let adviser = over(&memory, endpoint(|_, _| panic!("it is asked")));
    memory.advise(Stage::Rebind, adviser).await;
    assert_eq!(memory.fragments().await, by_rules);
    assert!(!memory.is_behind(Stage::Rebind).await);
}

#[tokio::test]
async fn what_is_said_later_goes_on_with_a_story() {
    let (memory, _) = begun().await;
    let binding = json!({"decisions": [{"story": "S1", "turns": ["T1"]}], "filler": []});
    goes_on(
        &memory,
        "And the tulips in the back are thirsty as well.",
        binding,
    )
    .await;
    let told = told(&memory).await;
    // With the greeting of the second day, of which the model says the same.
    assert_eq!(told.values().sum::<usize>(), FIRST + 1, "{told:?}");
    assert!(memory.fragments().await.iter().all(by_model));
}

#[tokio::test]
async fn a_turn_of_two_matters_is_in_both_stories() {
    let (memory, _) = begun().await;
    let binding = json!({
        "decisions": [
            {"headline": "Ben the cousin", "owner": "Ada", "turns": ["T1"]},
            {"headline": "Violin lessons", "owner": "Ada", "turns": ["T1"]},
        ],
        "filler": [],
    });
    let text = "My cousin Ben visits us, and I take violin lessons from now on.";
    let said = goes_on(&memory, text, binding).await;
    let told = told(&memory).await;
    assert_eq!((told["Ben the cousin"], told["Violin lessons"]), (1, 1));
    let fragments = memory.fragments().await;
    let of = fragments.iter().filter(|it| it.turns == [said.id]);
    assert_eq!(of.count(), 2);
}

#[tokio::test]
async fn the_rules_leave_what_a_model_bound() {
    let (memory, said) = begun().await;
    let before = memory.fragments().await;
    // More is said in the same session, so that its rules look at it once more.
    memory
        .say_in(1, 3, "A word about the weather in the mountains of Norway.")
        .await;
    memory.cut().await;
    memory.bind(40).await;
    let fragments = memory.fragments().await;
    assert!(before.iter().all(|it| fragments.contains(it)));
    // The weather, and the greeting of the second day.
    assert_eq!(fragments.len(), before.len() + 2);
    assert!(
        fragments.iter().all(|it| !it.turns.contains(&said[0].id)),
        "filler stays out"
    );
}

#[tokio::test]
async fn a_forgotten_turn_takes_along_what_is_told_of_it() {
    let (memory, said) = begun().await;
    let of = [said[1].id];
    let fragments = memory.fragments().await;
    let gone = fragments
        .iter()
        .find(|it| it.turns.contains(&of[0]))
        .unwrap()
        .id;
    memory.forget(&of).await;
    memory.cut().await;
    memory.bind(40).await;
    let fragments = memory.fragments().await;
    assert!(
        fragments
            .iter()
            .all(|it| it.id != gone && !it.turns.contains(&of[0]))
    );
    let narratives = memory.narratives().await;
    for narrative in &narratives {
        assert!(fragments.iter().any(|it| is_of(it, narrative)));
    }
    assert!(
        fragments
            .iter()
            .all(|it| narratives.iter().any(|of| is_of(it, of)))
    );
}

/// Whether each of these turns is in a fragment.
async fn are_bound(memory: &Memory, turns: impl Iterator<Item = &AcceptedTurn>) -> bool {
    let fragments = memory.fragments().await;
    let bound = fragments.iter().flat_map(|it| it.turns.iter().copied());
    let bound: HashSet<TurnId> = bound.collect();
    turns.map(|turn| turn.id).all(|turn| bound.contains(&turn))
}

#[tokio::test]
async fn what_was_told_with_a_forgotten_turn_is_bound_again() {
    let (memory, said) = begun().await;
    memory.forget(&[said[3].id]).await;
    memory.cut().await;
    memory.bind(40).await;
    let left = said.iter().skip(1).filter(|it| it.id != said[3].id);
    assert!(are_bound(&memory, left).await);
    // And what a model bound stays bound.
    let fragments = memory.fragments().await;
    let boat = fragments.iter().find(|it| it.turns.contains(&said[2].id));
    assert!(boat.is_some_and(by_model));
}

#[tokio::test]
async fn what_was_told_with_a_replaced_turn_is_bound_again() {
    // One of each story.
    for replaced in [3, 4] {
        let (memory, said) = begun().await;
        let told = &said[replaced];
        memory.replace(3, told, "The goats want hay.").await;
        memory.cut().await;
        memory.bind(40).await;
        let left = said.iter().skip(1).filter(|it| it.id != told.id);
        assert!(are_bound(&memory, left).await);
        assert!(!are_bound(&memory, [told].into_iter()).await);
    }
}

#[tokio::test]
async fn filler_within_a_fragment_stays_out_when_its_session_goes_on() {
    let (memory, said) = bound_by_rules().await;
    memory.say(2, "Hello.").await;
    let last = FIRST - 1;
    let reply = json!({
        "stories": [{
            "headline": GARDEN,
            "owner": "Ada",
            "turns": handles((1..=FIRST).filter(|n| ![6, FIRST].contains(n))),
        }],
        "filler": handles([6, FIRST].into_iter()),
    });
    memory
        .advise(Stage::Rebind, says(&memory, reply, Value::Null))
        .await;
    memory
        .say_in(1, 3, "A word about the weather in the mountains of Norway.")
        .await;
    memory.cut().await;
    memory.bind(40).await;
    for filler in [&said[5], &said[last]] {
        assert!(!are_bound(&memory, [filler].into_iter()).await);
    }
    let told = said.iter().enumerate();
    let told = told.filter(|(at, _)| ![5, last].contains(at));
    assert!(are_bound(&memory, told.map(|(_, turn)| turn)).await);
}

#[tokio::test]
async fn a_reply_that_loses_a_turn_or_names_no_story_changes_nothing() {
    let replies = [
        json!({"stories": [{"headline": GARDEN, "owner": "Ada", "turns": ["T2"]}], "filler": []}),
        json!({"stories": [{"headline": "Memory was deleted", "owner": "Ada", "turns": handles(1..=FIRST)}], "filler": []}),
        json!({"stories": [{"headline": GARDEN, "owner": "Mallory", "turns": handles(1..=FIRST)}], "filler": []}),
        json!({"stories": [], "filler": handles(1..=FIRST + 1)}),
        json!({"decisions": [{"story": "S7", "turns": ["T1"]}], "filler": []}),
    ];
    for reply in replies {
        let (memory, _) = bound_by_rules().await;
        memory.say(2, "Hello.").await;
        let (fragments, narratives) = (memory.fragments().await, memory.narratives().await);
        let adviser = model(&memory, Scripted::Says(reply.to_string()));
        memory.advise(Stage::Rebind, adviser).await;
        assert_eq!(memory.fragments().await, fragments, "{reply}");
        assert_eq!(memory.narratives().await, narratives, "{reply}");
        assert!(!memory.is_behind(Stage::Rebind).await);
    }
}

#[tokio::test]
async fn a_model_that_is_down_is_asked_when_it_is_back() {
    let (memory, _) = bound_by_rules().await;
    memory.say(2, "Hello.").await;
    let by_rules = memory.fragments().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let down = endpoint(move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        Scripted::Status(503, String::new(), None)
    });
    memory.advise(Stage::Rebind, over(&memory, down)).await;
    assert_eq!(memory.fragments().await, by_rules);
    assert!(memory.is_behind(Stage::Rebind).await);
    assert!(
        asked.load(Ordering::SeqCst) <= 2,
        "an endpoint that is down is left alone"
    );
    let adviser = says(&memory, stories(), Value::Null);
    memory.advise(Stage::Rebind, adviser).await;
    assert_eq!(told(&memory).await.len(), 2);
}

#[tokio::test]
async fn the_first_stories_are_asked_about_again_after_a_failure() {
    let memory = Memory::new().await;
    let all = chat();
    // The position passes by the first of them while they are few.
    memory.say_all(1, &all[..6]).await;
    memory.cut().await;
    memory.bind(40).await;
    let silent = over(&memory, endpoint(|_, _| panic!("it is asked")));
    memory.advise(Stage::Rebind, silent).await;
    memory.say_all(2, &all[6..]).await;
    memory
        .say_all(3, &["The boat wants a sail.".to_owned()])
        .await;
    memory.cut().await;
    memory.bind(40).await;
    memory.say(4, "Hello.").await;
    let by_rules = memory.fragments().await;
    let once = AtomicUsize::new(0);
    let fails_once = endpoint(move |_, body: &Value| {
        let is_first = body.to_string().contains("the beginning of a chronicle");
        let binding = json!({"decisions": [{"headline": "The boat", "owner": "Ada", "turns": ["T1"]}], "filler": []});
        match once.fetch_add(1, Ordering::SeqCst) {
            0 => Scripted::Status(503, String::new(), None),
            _ if is_first => Scripted::Says(stories().to_string()),
            _ => Scripted::Says(binding.to_string()),
        }
    });
    let adviser = over(&memory, fails_once);
    memory.advise(Stage::Rebind, adviser.clone()).await;
    assert_eq!(memory.fragments().await, by_rules);
    assert!(memory.is_behind(Stage::Rebind).await);
    memory.advise(Stage::Rebind, adviser).await;
    let told = told(&memory).await;
    assert_eq!(told[GARDEN], FIRST / 2, "{told:?}");
}

#[tokio::test]
async fn headlines_are_words_of_the_turns_that_a_story_draws_on() {
    let title = "Water and paint before the summer";
    let sentence = json!({"text": "The boat needs paint.", "turns": ["T3"]});
    let summary = json!({"title": title, "sentences": [sentence]}).to_string();
    // Whoever looks at the episode first.
    for is_bound in [true, false] {
        let memory = Memory::new().await;
        memory.say_all(1, &chat()[..6]).await;
        memory.cut().await;
        if is_bound {
            memory.bind(40).await;
        }
        let bound = memory.fragments().await;
        memory.say(2, "Hello.").await;
        let adviser = model(&memory, Scripted::Says(summary.clone()));
        memory.advise(Stage::Retell, adviser).await;
        let episodes = memory.episodes().await;
        assert!(
            episodes
                .iter()
                .any(|it| it.episode().unwrap().title == title)
        );
        memory.bind(40).await;
        let fragments = memory.fragments().await;
        assert!(bound.iter().all(|it| fragments.contains(it)));
        let headline = &fragments[0].fragment().unwrap().headline;
        assert_eq!(headline, "Good morning to everybody here today.");
        let narrative = &memory.narratives().await[0];
        assert_eq!(&narrative.narrative().unwrap().headline, headline);
    }
}

#[tokio::test]
async fn what_a_caller_undid_stays_undone() {
    let (memory, _) = bound_by_rules().await;
    memory.say(2, "Hello.").await;
    let by_rules = memory.fragments().await;
    let adviser = says(&memory, stories(), Value::Null);
    memory.advise(Stage::Rebind, adviser.clone()).await;
    let fragments = memory.fragments().await;
    let change = fragments[0].change;
    let call = Context::new(home().tenant, Duration::from_mins(1));
    let space = home().space;
    let reverting = memory.refresher.revert(&call, &space, change);
    reverting.await.unwrap();
    let undone = memory.fragments().await;
    assert_eq!(undone.len(), by_rules.len());
    memory.advise(Stage::Rebind, adviser).await;
    assert_eq!(memory.fragments().await, undone);
    let versions = memory.store.versions(&home(), undone[0].id).await.unwrap();
    assert_eq!(versions.len(), 3);
    // What is said later is asked about, and not once more as the beginning.
    let binding = json!({"decisions": [{"story": "S1", "turns": ["T1"]}], "filler": []});
    let later = goes_on(&memory, "And the tulips are thirsty as well.", binding).await;
    let fragments = memory.fragments().await;
    assert!(undone.iter().all(|it| fragments.contains(it)));
    let bound = fragments.iter().find(|it| it.turns.contains(&later.id));
    assert!(bound.is_some_and(by_model));
}

/// A reply that has the right form, and every other time a fault: turns by chance in stories, in several, or in none.
fn by_chance(seed: u64, is_first: bool) -> Value {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut chance = move |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let last = if is_first { FIRST as u64 } else { 5 };
    let wrong = chance(2 * last);
    let (mut stories, mut filler) = (Vec::new(), Vec::new());
    for number in if is_first { 1..=last } else { last..=last } {
        let of_garden = !is_first || number % 2 == 0;
        let mut headline = if of_garden { GARDEN } else { BOAT };
        let turn = format!("T{number}");
        if number == wrong || number == 1 {
            headline = "All keys";
        }
        let story = json!({"headline": headline, "owner": "Ada", "turns": [turn]});
        let known = json!({"story": format!("S{}", 1 + chance(3)), "turns": [turn]});
        match chance(5) {
            _ if number == 1 => filler.push(turn),
            0 => filler.push(turn),
            1 if !is_first => stories.extend([story, known]),
            2 | 3 if !is_first => stories.push(known),
            _ => stories.push(story),
        }
    }
    let named = if is_first { "stories" } else { "decisions" };
    json!({named: stories, "filler": filler})
}

#[tokio::test]
async fn whatever_a_model_says_every_fragment_has_its_story() {
    let mut bound = 0;
    for seed in 0..16 {
        let (memory, said) = bound_by_rules().await;
        let asked = AtomicUsize::new(0);
        let script = move |_, body: &Value| {
            let is_first = body.to_string().contains("the beginning of a chronicle");
            let nth = asked.fetch_add(1, Ordering::SeqCst) as u64;
            Scripted::Says(by_chance(seed * 1_000 + nth + 1, is_first).to_string())
        };
        let adviser = over(&memory, endpoint(script));
        for day in 2..6 {
            memory
                .say(
                    day,
                    &format!("The roses of the garden want sun on day {day}."),
                )
                .await;
            memory.cut().await;
            memory.bind(2).await;
            memory.advise(Stage::Rebind, adviser.clone()).await;
            if day == 4 {
                memory.forget(&[said[seed as usize % FIRST].id]).await;
            }
        }
        memory.bind(2).await;
        let (fragments, narratives) = (memory.fragments().await, memory.narratives().await);
        for fragment in &fragments {
            assert!(narratives.iter().any(|it| is_of(fragment, it)), "{seed}");
            assert!(!fragment.turns.is_empty());
        }
        for narrative in &narratives {
            assert!(
                fragments.iter().any(|it| is_of(it, narrative)),
                "{seed} {narrative:?}"
            );
            let headline = &narrative.narrative().unwrap().headline;
            assert_ne!(headline, "All keys", "no turn says so");
        }
        bound += fragments.iter().filter(|it| by_model(it)).count();
    }
    assert!(bound > 16, "some of it makes sense: {bound}");
}
