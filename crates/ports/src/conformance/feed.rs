//! What every index feed does.

use memfleet_domain::embedding::HeldEmbeddings;
use memfleet_domain::space::Locale;
use memfleet_domain::turn::{AcceptedTurn, Role};

use super::samples::{
    batch, batch_in, edit, embedding_space, home, indexed, instant, passages, scope, session,
    speaker, turn, turn_in, vectors, without_vectors,
};
use crate::feed::{Change, IndexFeed, IndexedPassage, IndexedTurn};
use crate::ledger::{IndexedBatch, Ledger, Passage, TextVectors};
use crate::spaces::SpaceCatalog;

/// Runs every case on a store that is ledger and feed.
#[macro_export]
macro_rules! feed_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            feed,
            [
                the_head_is_0_without_turns_and_moves_with_every_commit,
                a_stored_turn_comes_with_its_passages,
                counts_up_to_the_limit_of_their_type_survive,
                pages_of_changes_bring_every_turn_once_in_order,
                a_turn_that_changed_twice_comes_once_in_its_last_state,
                turns_are_read_by_their_ids_as_changes_bring_them,
                a_replaced_turn_comes_again_with_the_instant,
                passage_numbers_follow_each_other_in_a_space,
                token_vectors_come_in_the_order_asked,
                token_vectors_of_another_space_are_not_found,
                vectors_come_for_their_own_embedding_space_alone,
                metadata_finds_turns_with_all_the_labels,
            ]
        );
    };
}

async fn commit(store: &impl Ledger, batch: IndexedBatch) -> u64 {
    let committed = store.commit(vec![batch]).await.expect("commit");
    committed[0].change
}

async fn stored(store: &impl IndexFeed, after: u64) -> Vec<IndexedTurn> {
    let changes = store
        .changes_after(&home(), after, 1_000)
        .await
        .expect("changes");
    assert!(!changes.more);
    changes
        .changes
        .into_iter()
        .map(|change| match change {
            Change::Stored(turn) => *turn,
            other => panic!("{other:?} was not expected"),
        })
        .collect()
}

/// A read that waits for a write waits for this number.
pub async fn the_head_is_0_without_turns_and_moves_with_every_commit(
    store: &(impl Ledger + IndexFeed),
) {
    assert_eq!(store.head(&home()).await, Ok(0));
    let nothing = store.changes_after(&home(), 0, 10).await.expect("changes");
    assert_eq!(
        (nothing.changes, nothing.reached, nothing.more),
        (vec![], 0, false)
    );
    let first = commit(store, indexed(batch("k1", vec![turn("a", "one")]), 1)).await;
    assert_eq!(store.head(&home()).await, Ok(first));
    assert!(first > 0);
    let second = commit(store, indexed(batch("k2", vec![turn("b", "two")]), 2)).await;
    assert!(second > first);
    assert_eq!(store.head(&home()).await, Ok(second));
    let nothing = store
        .changes_after(&home(), second, 10)
        .await
        .expect("changes");
    assert_eq!(
        (nothing.changes, nothing.reached, nothing.more),
        (vec![], second, false)
    );
    assert_eq!(store.head(&scope("acme", "bob")).await, Ok(0));
}

/// Every field.
pub async fn a_stored_turn_comes_with_its_passages(store: &(impl Ledger + IndexFeed)) {
    let told = AcceptedTurn {
        speaker: speaker("Zoë"),
        role: Role::Assistant,
        event_time: Some(instant(-5)),
        recorded_at: instant(7),
        ..turn_in(&home(), "s9", "a", "a text of more than twenty bytes")
    };
    commit(
        store,
        indexed(batch("k", vec![turn("z", "first"), told.clone()]), 42),
    )
    .await;
    let turns = stored(store, 0).await;
    let found = &turns[1];
    assert_eq!(found.id, told.id);
    assert_eq!(found.session, session("s9"));
    assert_eq!(found.order, (42, 1));
    assert_eq!((&found.speaker, found.role), (&told.speaker, told.role));
    assert_eq!(
        (found.event_time, found.recorded_at, found.replaced_at),
        (Some(instant(-5)), instant(7), None)
    );
    let given = passages(&told.content.text);
    assert_eq!(found.passages.len(), given.len());
    for (found, given) in found.passages.iter().zip(given) {
        let vectors = given.vectors.unwrap_or_default();
        let mut pieces = vectors.tokens.pieces;
        pieces.sort_unstable();
        pieces.dedup();
        let mut found_pieces = found.pieces.clone();
        found_pieces.sort_unstable();
        assert_eq!(found.length, given.end - given.start);
        assert_eq!(
            (&found.terms, &found.features),
            (&given.terms, &given.features)
        );
        assert_eq!(
            (found.sentence.as_ref(), found_pieces),
            (Some(&vectors.sentence), pieces)
        );
    }
}

/// 65,535 times the same word, a term of 65,536 bytes, 65,535 terms.
pub async fn counts_up_to_the_limit_of_their_type_survive(store: &(impl Ledger + IndexFeed)) {
    let mut terms: Vec<_> = (0..u16::MAX).map(|n| (format!("t{n:05}"), n)).collect();
    terms.push(("x".repeat(65_536), u16::MAX));
    let mut large = indexed(
        batch("k", vec![turn("a", "one")]),
        u64::from(u32::MAX) * 1_000,
    );
    large.passages = vec![vec![Passage {
        terms: terms.clone(),
        features: vec![f32::MAX, f32::MIN, 0.0],
        start: 0,
        end: 65_536,
        vectors: None,
        embedding_space: None,
    }]];
    commit(store, large).await;
    let turns = stored(store, 0).await;
    assert_eq!(turns[0].order, (u64::from(u32::MAX) * 1_000, 0));
    let passage = &turns[0].passages[0];
    assert_eq!(passage.terms, terms);
    assert_eq!(passage.features, [f32::MAX, f32::MIN, 0.0]);
    assert_eq!((passage.sentence.as_ref(), passage.pieces.len()), (None, 0));
}

/// An index that stops and goes on misses nothing.
pub async fn pages_of_changes_bring_every_turn_once_in_order(store: &(impl Ledger + IndexFeed)) {
    for number in 0..10 {
        let turns = (0..5)
            .map(|n| turn(&format!("{number} {n}"), "x"))
            .collect();
        commit(store, indexed(batch(&number.to_string(), turns), number)).await;
    }
    let whole: Vec<_> = stored(store, 0)
        .await
        .into_iter()
        .map(|turn| turn.id)
        .collect();
    assert_eq!(whole.len(), 50);
    let (mut paged, mut reached, mut more) = (Vec::new(), 0, true);
    while more {
        let page = store
            .changes_after(&home(), reached, 7)
            .await
            .expect("changes");
        assert!(page.reached > reached, "every page gets further");
        for change in page.changes {
            match change {
                Change::Stored(turn) => paged.push(turn.id),
                other => panic!("{other:?} was not expected"),
            }
        }
        (reached, more) = (page.reached, page.more);
    }
    assert_eq!(paged, whole);
    assert_eq!(store.head(&home()).await, Ok(reached));
}

/// Unknown ids are left out.
pub async fn turns_are_read_by_their_ids_as_changes_bring_them(store: &(impl Ledger + IndexFeed)) {
    let turns = [turn("1", "one"), turn("2", "two"), turn("3", "three")];
    commit(store, indexed(batch("k", turns.to_vec()), 1)).await;
    let asked = [turns[2].id, turn("unknown", "four").id, turns[0].id];
    let mut found = store.indexed(&home(), &asked).await.expect("turns");
    found.sort_by_key(|turn| turn.order);
    let mut all = stored(store, 0).await;
    all.remove(1);
    assert_eq!(found, all);
    assert_eq!(
        store.indexed(&scope("acme", "nowhere"), &asked).await,
        Ok(Vec::new())
    );
}

/// Vectors came later.
pub async fn a_turn_that_changed_twice_comes_once_in_its_last_state(
    store: &(impl Ledger + IndexFeed),
) {
    let told = turn("a", "one");
    let turns = vec![told.clone(), turn("b", "two")];
    let before = commit(store, without_vectors(indexed(batch("k", turns), 1))).await;
    assert!(
        stored(store, 0)
            .await
            .iter()
            .all(|turn| turn.passages[0].sentence.is_none())
    );
    store
        .attach_vectors(
            &home(),
            &embedding_space("1"),
            &[TextVectors::of_turn(told.id, vec![vectors("one")])],
        )
        .await
        .expect("attach");
    let head = store.head(&home()).await.expect("head");
    assert!(head > before);
    let changed = stored(store, before).await;
    assert_eq!(changed.len(), 1);
    assert_eq!(
        changed[0].passages[0].sentence,
        Some(vectors("one").sentence)
    );
    let all: Vec<_> = stored(store, 0)
        .await
        .into_iter()
        .map(|turn| turn.id)
        .collect();
    assert_eq!(all, [turn("b", "two").id, told.id]);
}

/// So that an index answers for the past too.
pub async fn a_replaced_turn_comes_again_with_the_instant(store: &(impl Ledger + IndexFeed)) {
    let old = turn("a", "old");
    let before = commit(
        store,
        indexed(batch("k1", vec![old.clone(), turn("b", "x")]), 1),
    )
    .await;
    let new = AcceptedTurn {
        recorded_at: instant(30),
        ..edit(&old, "c", "new")
    };
    commit(store, indexed(batch("k2", vec![new.clone()]), 2)).await;
    let changed = stored(store, before).await;
    assert_eq!(changed.len(), 2);
    let again = changed
        .iter()
        .find(|turn| turn.id == old.id)
        .expect("the old turn comes again");
    assert_eq!(again.replaced_at, Some(instant(30)));
    assert_eq!(again.passages.len(), 1);
}

/// Each space counts for itself.
pub async fn passage_numbers_follow_each_other_in_a_space(store: &(impl Ledger + IndexFeed)) {
    let bob = scope("acme", "bob");
    commit(
        store,
        indexed(batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "one")]), 1),
    )
    .await;
    commit(
        store,
        indexed(
            batch(
                "k1",
                vec![
                    turn("a", "a text of more than twenty bytes"),
                    turn("b", "x"),
                ],
            ),
            2,
        ),
    )
    .await;
    commit(store, indexed(batch("k2", vec![turn("c", "y")]), 3)).await;
    let numbers: Vec<_> = stored(store, 0)
        .await
        .iter()
        .map(|turn| turn.first_passage)
        .collect();
    assert_eq!(numbers, [numbers[0], numbers[0] + 2, numbers[0] + 3]);
}

/// Twice where asked twice, nothing where there is nothing.
pub async fn token_vectors_come_in_the_order_asked(store: &(impl Ledger + IndexFeed)) {
    commit(
        store,
        indexed(
            batch("k1", vec![turn("a", "one two"), turn("b", "three")]),
            1,
        ),
    )
    .await;
    commit(
        store,
        without_vectors(indexed(batch("k2", vec![turn("c", "four")]), 2)),
    )
    .await;
    let turns = stored(store, 0).await;
    let [one, two, bare] = [0, 1, 2].map(|n: usize| turns[n].first_passage);
    let asked = [two, bare, one, u32::MAX, two];
    let found = store
        .token_vectors(&home(), None, &asked)
        .await
        .expect("token vectors");
    let expected = [Some("three"), None, Some("one two"), None, Some("three")];
    let found: Vec<_> = found
        .iter()
        .map(|found| found.as_deref().cloned())
        .collect();
    assert_eq!(
        found,
        expected.map(|text| text.map(|text| vectors(text).tokens))
    );
    assert_eq!(store.token_vectors(&home(), None, &[]).await, Ok(vec![]));
}

/// The same numbers mean other passages there.
pub async fn token_vectors_of_another_space_are_not_found(store: &(impl Ledger + IndexFeed)) {
    let bob = scope("acme", "bob");
    commit(store, indexed(batch("k", vec![turn("a", "ours")]), 1)).await;
    let number = stored(store, 0).await[0].first_passage;
    assert_eq!(
        store.token_vectors(&bob, None, &[number]).await,
        Ok(vec![None])
    );
    commit(
        store,
        indexed(
            batch_in(&bob, "k", vec![turn_in(&bob, "s", "a", "theirs")]),
            1,
        ),
    )
    .await;
    let found = store
        .token_vectors(&home(), None, &[number])
        .await
        .expect("token vectors");
    assert_eq!(found[0].as_deref(), Some(&vectors("ours").tokens));
}

/// Keys and values do not run together.
pub async fn metadata_finds_turns_with_all_the_labels(store: &(impl Ledger + IndexFeed)) {
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let tell = |name: &str, labels: &[(&str, &str)]| AcceptedTurn {
        metadata: labels.iter().copied().map(pair).collect(),
        ..turn(name, name)
    };
    let both = tell("a", &[("k", "v"), ("l", "w")]);
    let turns = vec![
        both.clone(),
        tell("b", &[("k", "v")]),
        tell("c", &[("kv", "")]),
        tell("d", &[]),
    ];
    commit(store, indexed(batch("k", turns), 1)).await;
    let find = async |labels: &[(&str, &str)]| {
        let labels: Vec<_> = labels.iter().copied().map(pair).collect();
        store
            .with_metadata(&home(), &labels)
            .await
            .expect("with metadata")
    };
    assert_eq!(find(&[("k", "v"), ("l", "w")]).await, [both.id]);
    assert_eq!(find(&[("k", "v")]).await.len(), 2);
    assert_eq!(find(&[("kv", "")]).await, [turn("c", "c").id]);
    assert_eq!(find(&[("k", "w")]).await, []);
    let bob = store
        .with_metadata(&scope("acme", "bob"), &[pair(("k", "v"))])
        .await;
    assert_eq!(bob, Ok(vec![]));
}

/// Whatever another model made of the same turn is not there for it.
pub async fn vectors_come_for_their_own_embedding_space_alone(
    store: &(impl Ledger + IndexFeed + SpaceCatalog),
) {
    assert_eq!(
        store.embeddings(&home()).await,
        Ok(HeldEmbeddings::default())
    );
    commit(
        store,
        without_vectors(indexed(batch("k", vec![turn("a", "one")]), 1)),
    )
    .await;
    commit(store, indexed(batch("k2", vec![turn("b", "two")]), 2)).await;
    let (old, new) = (embedding_space("1"), embedding_space("2"));
    let held = HeldEmbeddings {
        served: Some(old.clone()),
        other: None,
    };
    assert_eq!(store.embeddings(&home()).await, Ok(held.clone()));
    let both = Some((Locale::default(), held));
    assert_eq!(store.locale_and_embeddings(&home()).await, Ok(both));
    for (embedding, expected) in [
        (None, [false, true]),
        (Some(&old), [false, true]),
        (Some(&new), [false, false]),
    ] {
        let changes = store.changes_in(&home(), embedding, 0, 10).await;
        let changes = changes.expect("changes").changes;
        let turns = changes.iter().map(|change| match change {
            Change::Stored(turn) => turn,
            other => panic!("{other:?} was not expected"),
        });
        let turns: Vec<_> = turns.collect();
        let passages = turns.iter().map(|turn| &turn.passages[0]);
        let has_vectors = |passage: &IndexedPassage| {
            assert_eq!(passage.sentence.is_none(), passage.pieces.is_empty());
            passage.sentence.is_some()
        };
        assert_eq!(passages.map(has_vectors).collect::<Vec<_>>(), expected);
        let numbers: Vec<_> = turns.iter().map(|turn| turn.first_passage).collect();
        let tokens = store.token_vectors(&home(), embedding, &numbers).await;
        let tokens = tokens.expect("token vectors");
        let has_tokens = tokens.iter().map(Option::is_some);
        assert_eq!(has_tokens.collect::<Vec<_>>(), expected);
    }
}
