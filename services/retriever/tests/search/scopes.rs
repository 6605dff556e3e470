//! Several spaces as one, and tenants who know nothing of each other.

use memfleet_domain::FaultKind;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::conformance::samples::{instant, scope, turn_in};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::Query;
use memfleet_ports::spaces::SpaceCatalog;

use crate::memory::{Memory, acme};
use crate::told::query;

#[tokio::test]
async fn several_spaces_are_ranked_as_one() {
    let memory = Memory::new().await;
    for (space, words) in [
        ("ada", "The violin stands in the cellar"),
        ("team", "Who tuned the violin of the orchestra?"),
        ("other", "A violin that nobody asked for"),
    ] {
        let scope = acme(space);
        let filler = turn_in(&scope, "s1", "filler", "Nothing of note happened");
        let turn = turn_in(&scope, "s1", "violin", words);
        memory.tell(&scope, &[filler, turn]).await;
    }
    let two = Query {
        k: 2,
        ..query("violin", &["team", "ada", "team"])
    };
    let found = memory.search(&two).await.unwrap();
    assert_eq!(found.searched, 4);
    let mut spaces: Vec<_> = found.hits.iter().map(|hit| hit.space.as_str()).collect();
    spaces.sort_unstable();
    assert_eq!(spaces, ["ada", "team"]);
    assert!(found.hits[0].score >= found.hits[1].score);
    for hit in &found.hits {
        assert!(hit.turn.accepted.content.text.contains("violin"), "{hit:?}");
    }
}

#[tokio::test]
async fn a_query_is_read_in_the_language_of_the_space_that_it_names_first() {
    let memory = Memory::new().await;
    let german = SpaceSettings {
        language: Some("de".to_owned()),
        ..SpaceSettings::default()
    };
    let put = memory.store.put(&acme("ada"), &german, instant(0)).await;
    put.unwrap();
    for (space, words) in [("team", "He runs"), ("team", "Tea"), ("ada", "Kaffee")] {
        let turn = turn_in(&acme(space), "s1", words, words);
        memory.tell(&acme(space), &[turn]).await;
    }
    // Only English takes `running` and `runs` for one word.
    let by_words = async |spaces: &[&str]| {
        let asked = Query {
            explain: true,
            ..query("running", spaces)
        };
        let found = memory.search(&asked).await.unwrap();
        let hits = found.hits.into_iter();
        let mut runs = hits.filter(|hit| hit.turn.accepted.content.text == "He runs");
        let signals = runs.next().unwrap().signals.into_iter();
        let values = signals.map(|signal| (signal.signal, signal.value));
        values.collect::<std::collections::HashMap<_, _>>()["bm25_window"]
    };
    assert!(by_words(&["team", "ada"]).await > by_words(&["ada", "team"]).await);
}

#[tokio::test]
async fn the_space_of_another_tenant_does_not_exist() {
    let memory = Memory::new().await;
    let theirs = scope("globex", "secret");
    let turn = turn_in(&theirs, "s1", "a", "The code is 4711");
    memory.tell(&theirs, std::slice::from_ref(&turn)).await;
    let own = turn_in(&acme("own"), "s1", "a", "The code is 1234");
    memory.tell(&acme("own"), &[own]).await;
    let asked = query("code", &["own", "secret"]);
    let fault = memory.search(&asked).await.unwrap_err();
    let nowhere = memory
        .search(&query("code", &["nowhere"]))
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotFound);
    assert_eq!(
        fault.message.replace("secret", "nowhere"),
        nowhere.message,
        "what others have looks like what nobody has"
    );
    assert_eq!(
        memory
            .search_as("globex", &query("code", &["secret"]))
            .await
            .unwrap()
            .hits
            .len(),
        1
    );
}

#[tokio::test]
async fn spaces_of_the_same_name_do_not_meet() {
    let memory = Memory::new().await;
    let scopes = [acme("ada"), scope("globex", "ada")];
    let mut ids = Vec::new();
    for scope in &scopes {
        let words = format!("The dog of {}", scope.tenant);
        let turn = turn_in(scope, "s1", "a", &words);
        ids.push(turn.id);
        memory.tell(scope, &[turn]).await;
    }
    let dog = query("dog", &["ada"]);
    assert_eq!(memory.found(&dog).await, ["The dog of acme"]);
    let guessed = Query {
        filter: TurnFilter {
            turns: vec![ids[1]],
            ..TurnFilter::default()
        },
        ..dog
    };
    assert_eq!(memory.found(&guessed).await, [""; 0]);
}
