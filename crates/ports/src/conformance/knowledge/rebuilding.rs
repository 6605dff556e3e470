//! Deriving once more.

use memfleet_domain::derivation::{ChangeKind, Derivation, Origin};
use memfleet_domain::ids::ChangeId;

use super::{all, change, deriving, fact, home, moved};
use crate::conformance::samples::instant;
use crate::erasure::Erasure;
use crate::filter::TurnFilter;
use crate::knowledge::{
    Applied, ChangeFilter, Knowledge, Progress, Question, Rebuilding, Stage, Staging, Work,
};
use crate::ledger::Ledger;

/// What a rebuild found in some turns.
fn staging(new: &Derivation, confirmed: &Derivation) -> Staging {
    Staging {
        new: deriving(&[new]).revisions,
        confirmed: vec![confirmed.id],
    }
}

/// A rebuild that found that Ada lives in Pisa, where she was thought to live in Rome, and in Oslo as before.
async fn rebuilt<S: Ledger + Knowledge>(store: &S) -> (Derivation, Derivation, Derivation) {
    let (rome, _, first, second) = moved(store).await;
    let begun = store.begin_rebuild(&home()).await.expect("a rebuild");
    let goal = begun.expect("the space is there").goal;
    let mut pisa = fact(&rome, "Ada", "Pisa", instant(10));
    pisa.origin = Origin::Extracted("sample-2".into());
    let home = home();
    let claim = store.claim(&home, Stage::Rebuild, instant(0), instant(9));
    assert_eq!(claim.await.expect("a claim"), Some(0));
    let progress = Some(Progress {
        stage: Stage::Rebuild,
        from: 0,
        to: goal,
    });
    let work = Work {
        staging: staging(&pisa, &second),
        progress,
        ..Work::default()
    };
    for expected in [false, true] {
        let applied = store.apply(&home, work.clone()).await.expect("an answer");
        assert_eq!(applied == Applied::Stale, expected, "it is done once");
    }
    (first, second, pisa)
}

/// Until then the present ones stay.
pub async fn what_a_rebuild_found_is_in_use_when_all_of_it_is_there<S: Ledger + Knowledge>(
    store: &S,
) {
    let (first, second, pisa) = rebuilt(store).await;
    let everything = Question::default();
    assert_eq!(
        all(store, &everything).await,
        [first.clone(), second.clone()]
    );
    let under_way = store
        .rebuilding(&home())
        .await
        .expect("an answer")
        .expect("it is under way");
    assert_eq!((under_way.reached, under_way.staged), (under_way.goal, 1));
    assert_eq!(
        store.pending(Stage::Rebuild, 9).await.expect("an answer"),
        [home()]
    );
    let id = ChangeId::of("rebuilt", &[b"1"]);
    let publish = Some(change(id, ChangeKind::Rebuilt, 50));
    let work = Work {
        publish,
        ..Work::default()
    };
    assert_ne!(
        store.apply(&home(), work).await.expect("an answer"),
        Applied::Stale
    );
    let facts = all(store, &everything).await;
    assert_eq!(facts.len(), 3);
    assert_eq!(
        (facts[2].id, facts[2].known.start),
        (pisa.id, Some(instant(50)))
    );
    assert_eq!(facts[2].change, id);
    let changes = store
        .changes(&home(), &ChangeFilter::default(), 1, None)
        .await;
    assert_eq!(changes.expect("an answer").items[0].wrote, facts[2..]);
    assert_eq!(store.rebuilding(&home()).await, Ok(None));
    assert_eq!(store.pending(Stage::Rebuild, 9).await, Ok(vec![]));
}

/// That is what the newer extractor does not say any more.
pub async fn a_rebuild_tells_what_it_did_not_derive_again<S: Ledger + Knowledge>(store: &S) {
    let (first, ..) = rebuilt(store).await;
    assert_eq!(store.unconfirmed(&home(), 9).await, Ok(vec![first]));
}

/// The first goes on.
pub async fn a_rebuild_that_is_begun_twice_is_one<S: Ledger + Knowledge>(store: &S) {
    rebuilt(store).await;
    let again = store.begin_rebuild(&home()).await.expect("an answer");
    assert_eq!(again, store.rebuilding(&home()).await.expect("an answer"));
    assert_eq!(again.map(|rebuilding| rebuilding.staged), Some(1));
    let nowhere = crate::conformance::samples::scope("acme", "nowhere");
    assert_eq!(store.begin_rebuild(&nowhere).await, Ok(None::<Rebuilding>));
}

/// Before it is in use.
pub async fn a_rebuild_forgets_what_is_forgotten<S: Ledger + Knowledge + Erasure>(store: &S) {
    let (_, second, pisa) = rebuilt(store).await;
    let filter = TurnFilter {
        turns: pisa.turns.clone(),
        ..TurnFilter::default()
    };
    store.erase(&home(), &filter).await.expect("a forget");
    let publish = Some(change(
        ChangeId::of("rebuilt", &[b"1"]),
        ChangeKind::Rebuilt,
        50,
    ));
    store
        .apply(
            &home(),
            Work {
                publish,
                ..Work::default()
            },
        )
        .await
        .expect("an answer");
    assert_eq!(all(store, &Question::default()).await, [second]);
}
