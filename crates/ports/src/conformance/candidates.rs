//! What every store does that finds candidates itself.

use super::samples::{
    batch, batch_in, embedding_space, home, indexed, scope, turn, turn_in, vectors, without_vectors,
};
use crate::candidates::{Among, Candidates, Extent};
use crate::erasure::Erasure;
use crate::feed::{Change, IndexFeed, IndexedPassage, IndexedTurn};
use crate::filter::TurnFilter;
use crate::ledger::{IndexedBatch, Ledger};

/// Runs every case on a store that is ledger, feed and erasure too.
#[macro_export]
macro_rules! candidates_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            candidates,
            [
                the_extent_counts_passages_and_turns_without_vectors,
                an_outline_is_the_feed_without_words_and_vectors,
                postings_name_the_passages_of_each_term_as_they_are_now,
                the_nearest_come_first_and_only_of_those_asked_for,
                passages_come_in_the_order_asked,
                nothing_is_found_of_another_space_or_tenant,
            ]
        );
    };
}

/// A store that all this can be asked of.
pub trait Store: Ledger + IndexFeed + Candidates + Erasure {}

impl<S: Ledger + IndexFeed + Candidates + Erasure> Store for S {}

async fn commit(store: &impl Store, batch: IndexedBatch) {
    store.commit(vec![batch]).await.expect("commit");
}

async fn stored(store: &impl Store) -> Vec<IndexedTurn> {
    let changes = store.changes_after(&home(), 0, 1_000).await;
    turns(changes.expect("changes").changes)
}

fn turns(changes: Vec<Change>) -> Vec<IndexedTurn> {
    let turn = |change| match change {
        Change::Stored(turn) => Some(*turn),
        _ => None,
    };
    changes.into_iter().filter_map(turn).collect()
}

/// The passages of all turns with their numbers.
async fn passages(store: &impl Store) -> Vec<(u32, IndexedPassage)> {
    let turns = stored(store).await.into_iter();
    let numbered = turns.flat_map(|turn| (turn.first_passage..).zip(turn.passages));
    numbered.collect()
}

async fn tell_some(store: &impl Store) {
    let said = [
        "the red door",
        "a red red rose that nobody has seen",
        "door",
    ];
    let turns = (0_u32..).zip(said);
    let turns = turns
        .map(|(n, words)| turn(&n.to_string(), words))
        .collect();
    commit(store, indexed(batch("k", turns), 1)).await;
}

/// Numbers are never given out again.
pub async fn the_extent_counts_passages_and_turns_without_vectors(store: &impl Store) {
    assert_eq!(store.extent(&home(), None).await, Ok(Extent::default()));
    tell_some(store).await;
    let bare = indexed(batch("k2", vec![turn("bare", "word")]), 2);
    commit(store, without_vectors(bare)).await;
    let extent = store.extent(&home(), None).await.expect("extent");
    assert_eq!(extent.without_vectors, 1);
    assert_eq!(extent.passages as usize, passages(store).await.len());
    let filter = TurnFilter {
        turns: vec![turn("bare", "word").id],
        ..TurnFilter::default()
    };
    store.erase(&home(), &filter).await.expect("erase");
    let after = store.extent(&home(), None).await.expect("extent");
    assert_eq!(
        (after.passages, after.without_vectors),
        (extent.passages, 0)
    );
}

/// Page by page, with what was forgotten.
pub async fn an_outline_is_the_feed_without_words_and_vectors(store: &impl Store) {
    tell_some(store).await;
    let filter = TurnFilter {
        turns: vec![turn("2", "door").id],
        ..TurnFilter::default()
    };
    store.erase(&home(), &filter).await.expect("erase");
    let whole = store.changes_after(&home(), 0, 1_000).await.expect("feed");
    let bare = |passage: IndexedPassage| IndexedPassage {
        terms: Vec::new(),
        features: Vec::new(),
        sentence: None,
        pieces: Vec::new(),
        ..passage
    };
    let outlined = |change| match change {
        Change::Stored(turn) => Change::Stored(Box::new(IndexedTurn {
            passages: turn.passages.into_iter().map(bare).collect(),
            ..*turn
        })),
        other => other,
    };
    let expected: Vec<_> = whole.changes.into_iter().map(outlined).collect();
    let (mut found, mut reached) = (Vec::new(), 0);
    loop {
        let page = store.outline_after(&home(), reached, 1).await;
        let page = page.expect("outline");
        (found, reached) = ([found, page.changes].concat(), page.reached);
        if !page.more {
            break;
        }
    }
    assert_eq!((found, reached), (expected, whole.reached));
}

/// After a forget too.
pub async fn postings_name_the_passages_of_each_term_as_they_are_now(store: &impl Store) {
    tell_some(store).await;
    let terms = ["red", "nowhere", "door"].map(str::to_owned);
    let expected = async || {
        let passages = passages(store).await;
        let of = |term: &String| {
            let count = |(number, passage): &(u32, IndexedPassage)| {
                let found = passage.terms.iter().find(|(other, _)| other == term);
                found.map(|&(_, count)| (*number, count))
            };
            passages.iter().filter_map(count).collect::<Vec<_>>()
        };
        terms.iter().map(of).collect::<Vec<_>>()
    };
    let found = store.postings(&home(), &terms).await.expect("postings");
    assert_eq!(found, expected().await);
    assert_eq!(found[0].iter().map(|&(_, count)| count).sum::<u16>(), 3);
    let filter = TurnFilter {
        turns: vec![turn("1", "").id],
        ..TurnFilter::default()
    };
    store.erase(&home(), &filter).await.expect("erase");
    let more = indexed(batch("k2", vec![turn("again", "red door")]), 2);
    commit(store, more).await;
    let found = store.postings(&home(), &terms).await.expect("postings");
    assert_eq!(found, expected().await);
    assert_eq!(found[0].len(), 2);
    assert_eq!(store.postings(&home(), &[]).await, Ok(vec![]));
}

/// By inner product; passages without a vector, or asked for by one of another length, are not found.
pub async fn the_nearest_come_first_and_only_of_those_asked_for(store: &impl Store) {
    tell_some(store).await;
    let bare = indexed(batch("k2", vec![turn("bare", "word")]), 2);
    commit(store, without_vectors(bare)).await;
    let query = vectors("the red door").sentence;
    let product = |other: &Vec<i8>| -> f32 {
        let pairs = other.iter().zip(&query);
        pairs.map(|(&a, &b)| f32::from(a) * f32::from(b)).sum()
    };
    let mut expected: Vec<_> = passages(store)
        .await
        .iter()
        .filter_map(|(number, passage)| Some((*number, product(passage.sentence.as_ref()?))))
        .collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let nearest = async |among: Among, limit| {
        let found = store
            .nearest(&home(), Some(&embedding_space("1")), &query, &among, limit)
            .await;
        found.expect("nearest")
    };
    assert_eq!(nearest((0..100).collect(), 100).await, expected);
    assert_eq!(nearest((0..100).collect(), 2).await, expected[..2]);
    let (best, rest) = (expected[0].0, &expected[1..]);
    let others = (0..100).filter(|&number| number != best).collect();
    assert_eq!(nearest(others, 100).await, rest);
    assert_eq!(nearest(Among::default(), 100).await, []);
    let other_length = store
        .nearest(
            &home(),
            Some(&embedding_space("1")),
            &[1; 7],
            &(0..9).collect(),
            9,
        )
        .await;
    assert_eq!(other_length, Ok(vec![]));
}

/// Nothing where there is nothing.
pub async fn passages_come_in_the_order_asked(store: &impl Store) {
    tell_some(store).await;
    let all = passages(store).await;
    let asked = [all[2].0, u32::MAX, all[0].0];
    let found = store
        .passages(&home(), None, &asked)
        .await
        .expect("passages");
    assert_eq!(
        found,
        [Some(all[2].1.clone()), None, Some(all[0].1.clone())]
    );
}

/// Though terms and numbers are the same there.
pub async fn nothing_is_found_of_another_space_or_tenant(store: &impl Store) {
    tell_some(store).await;
    let numbers: Vec<u32> = passages(store)
        .await
        .iter()
        .map(|(number, _)| *number)
        .collect();
    let others = [
        scope("acme", "bob"),
        scope("globex", "ada"),
        scope("globex", "new"),
    ];
    for other in &others[..2] {
        let told = vec![turn_in(other, "s", "a", "blue")];
        commit(store, indexed(batch_in(other, "k", told), 2)).await;
    }
    for other in &others {
        let found = store.postings(other, &["red".to_owned()]).await;
        assert_eq!(found, Ok(vec![vec![]]), "{other:?}");
        let red = vectors("the red door").sentence;
        let among: Among = numbers.iter().copied().collect();
        let near = store
            .nearest(other, Some(&embedding_space("1")), &red, &among, 10)
            .await;
        assert!(near.expect("nearest").len() <= 1, "its own alone");
        let found = store
            .passages(other, None, &numbers)
            .await
            .expect("passages");
        let terms = found.into_iter().flatten().flat_map(|one| one.terms);
        assert!(terms.into_iter().all(|(term, _)| term == "blue"));
        let outline = store.outline_after(other, 0, 10).await.expect("outline");
        assert!(outline.changes.len() <= 1);
    }
}
