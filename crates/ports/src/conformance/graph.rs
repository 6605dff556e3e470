//! What every graph does.

use memfleet_domain::Scope;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};

use super::samples::{batch_in, home, indexed, instant, scope, turn_in};
use crate::graph::{Graph, GraphWrite, TripletQuery};
use crate::ledger::{Ledger, PageToken};
use crate::store::StoreError;

/// Runs every case on a store.
#[macro_export]
macro_rules! graph_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            graph,
            [
                triplets_are_found_from_both_ends,
                triplets_are_found_by_their_facts,
                triplets_are_those_that_hold_at_an_instant,
                what_is_written_twice_is_there_once,
                a_fact_that_is_written_anew_replaces_its_triplets,
                what_comes_from_a_forgotten_turn_is_gone_and_who_it_named,
                pages_bring_every_triplet_once,
                entities_are_listed_by_how_their_keys_begin,
                a_token_that_no_listing_gave_is_refused,
                what_is_asked_for_twice_is_told_once,
                names_in_any_script_read_back_as_they_were,
                another_space_has_a_graph_of_its_own,
                a_space_that_is_cleared_has_nothing_and_is_written_to_again,
            ]
        );
    };
}

/// What a sample fact says: the number tells facts apart, and is the turn that it comes from.
pub fn says(number: u8, subject: &Entity, predicate: &str, object: &Entity) -> Triplet {
    Triplet {
        fact: DerivationId::from_bytes([number; 16]),
        subject: subject.id,
        predicate: predicate.into(),
        object: object.id,
        negated: false,
        valid: TimeRange::default(),
        confidence: 0.75,
        turns: vec![TurnId::from_bytes([number; 16])],
    }
}

/// A write of triplets between entities.
pub fn writing(entities: &[&Entity], triplets: &[Triplet]) -> GraphWrite {
    GraphWrite {
        replaced: triplets.iter().map(|triplet| triplet.fact).collect(),
        entities: entities.iter().copied().cloned().collect(),
        triplets: triplets.to_vec(),
        ..GraphWrite::default()
    }
}

/// The entity of a name.
pub fn named(name: &str) -> Entity {
    Entity::new(&name.to_lowercase(), name)
}

/// The spaces that the cases write to.
pub fn spaces() -> [Scope; 3] {
    [home(), scope("acme", "ben"), scope("umbrella", "ada")]
}

/// A graph in a store of record has the spaces in which something was said.
pub async fn said_something(ledger: &impl Ledger, scope: &Scope) {
    let said = turn_in(scope, "s1", "1", "Hello.");
    let begun = batch_in(scope, "begun", vec![said]);
    ledger
        .commit(vec![indexed(begun, 1)])
        .await
        .expect("an answer");
}

async fn write(graph: &impl Graph, entities: &[&Entity], triplets: &[Triplet]) {
    let written = graph.write(&home(), writing(entities, triplets)).await;
    written.expect("an answer");
}

async fn all(graph: &impl Graph, of: &Entity, at: Option<Timestamp>) -> Vec<Triplet> {
    let ends = [of.id];
    let query = TripletQuery {
        at,
        ..TripletQuery::touching(&ends)
    };
    told(graph, query).await
}

async fn told(graph: &impl Graph, query: TripletQuery<'_>) -> Vec<Triplet> {
    let page = graph.triplets(&home(), query, 100, None).await;
    page.expect("an answer").items
}

/// Ada lives in Rome and knows Ben, who lives in Rome too.
async fn town<S: Graph>(store: &S) -> ([Entity; 3], [Triplet; 3]) {
    let people = ["Ada", "Ben", "Rome"].map(named);
    let [ada, ben, rome] = &people;
    let triplets = [
        says(1, ada, "residence", rome),
        says(2, ada, "know", ben),
        says(3, ben, "residence", rome),
    ];
    write(store, &[ada, ben, rome], &triplets).await;
    (people, triplets)
}

/// With all that they say.
pub async fn triplets_are_found_from_both_ends<S: Graph>(store: &S) {
    let ([ada, ben, rome], [lives, knows, lives_too]) = town(store).await;
    assert_eq!(all(store, &ada, None).await, [lives.clone(), knows.clone()]);
    assert_eq!(
        all(store, &rome, None).await,
        [lives.clone(), lives_too.clone()]
    );
    let both = told(store, TripletQuery::touching(&[ada.id, ben.id])).await;
    assert_eq!(both, [lives, knows, lives_too]);
}

/// Or by what they say, or as all there are.
pub async fn triplets_are_found_by_their_facts<S: Graph>(store: &S) {
    let ([ada, ..], [lives, knows, lives_too]) = town(store).await;
    let facts = [lives_too.fact, lives.fact];
    let query = TripletQuery {
        facts: &facts,
        ..TripletQuery::default()
    };
    let expected = [lives.clone(), lives_too.clone()];
    assert_eq!(told(store, query).await, expected);
    let ends = [ada.id];
    let query = TripletQuery {
        predicates: &["know", "call"],
        ..TripletQuery::touching(&ends)
    };
    assert_eq!(told(store, query).await, std::slice::from_ref(&knows));
    let all = told(store, TripletQuery::default()).await;
    assert_eq!(all, [lives, knows, lives_too]);
}

/// The end is not part of an interval.
pub async fn triplets_are_those_that_hold_at_an_instant<S: Graph>(store: &S) {
    let [ada, rome, oslo] = ["Ada", "Rome", "Oslo"].map(named);
    let during = |triplet, start, end| Triplet {
        valid: TimeRange { start, end },
        ..triplet
    };
    let (then, now) = (Some(instant(10)), Some(instant(20)));
    let first = during(says(1, &ada, "residence", &rome), then, now);
    let second = during(says(2, &ada, "residence", &oslo), now, None);
    write(
        store,
        &[&ada, &rome, &oslo],
        &[first.clone(), second.clone()],
    )
    .await;
    assert_eq!(all(store, &ada, Some(instant(9))).await, []);
    assert_eq!(
        all(store, &ada, Some(instant(19))).await,
        std::slice::from_ref(&first)
    );
    assert_eq!(
        all(store, &ada, Some(instant(20))).await,
        std::slice::from_ref(&second)
    );
    assert_eq!(all(store, &ada, None).await, [first, second]);
}

/// As when the answer was lost.
pub async fn what_is_written_twice_is_there_once<S: Graph>(store: &S) {
    let ([ada, ben, rome], triplets) = town(store).await;
    let renamed = Entity {
        name: "ADA".into(),
        ..ada.clone()
    };
    write(store, &[&renamed, &ben, &rome], &triplets).await;
    assert_eq!(all(store, &ada, None).await.len(), 2);
    let named = store.named(&home(), &[ada.id]).await.expect("an answer");
    assert_eq!(named, [ada]);
    let page = store
        .entities(&home(), "", 9, None)
        .await
        .expect("an answer");
    assert_eq!(page.items.len(), 3);
}

/// And who they alone named is gone.
pub async fn a_fact_that_is_written_anew_replaces_its_triplets<S: Graph>(store: &S) {
    let ([ada, ben, rome], [lives, _, lives_too]) = town(store).await;
    let cleo = named("Cleo");
    let anew = says(2, &ada, "know", &cleo);
    write(store, &[&ada, &cleo], std::slice::from_ref(&anew)).await;
    assert_eq!(all(store, &ada, None).await, [lives.clone(), anew]);
    assert_eq!(
        all(store, &ben, None).await,
        std::slice::from_ref(&lives_too)
    );
    let withdrawn = GraphWrite {
        replaced: vec![lives_too.fact],
        ..GraphWrite::default()
    };
    store.write(&home(), withdrawn).await.expect("an answer");
    let gone = store.named(&home(), &[ben.id]).await.expect("an answer");
    assert_eq!(gone, []);
    assert_eq!(all(store, &rome, None).await, [lives]);
}

/// Others that are still spoken of stay.
pub async fn what_comes_from_a_forgotten_turn_is_gone_and_who_it_named<S: Graph>(store: &S) {
    let ([ada, ben, rome], [lives, knows, lives_too]) = town(store).await;
    let forgotten = [&knows, &lives_too].map(|it| it.turns[0]).to_vec();
    let write = GraphWrite {
        forgotten,
        ..GraphWrite::default()
    };
    store.write(&home(), write).await.expect("an answer");
    assert_eq!(all(store, &ada, None).await, [lives]);
    let ids = [ada.id, ben.id, rome.id];
    let mut left = store.named(&home(), &ids).await.expect("an answer");
    left.sort_by(|one, other| one.key.cmp(&other.key));
    assert_eq!(left, [ada, rome]);
}

/// One by one, however they were asked for.
pub async fn pages_bring_every_triplet_once<S: Graph>(store: &S) {
    let ([ada, ben, rome], triplets) = town(store).await;
    let facts = triplets.each_ref().map(|it| it.fact);
    let of_facts = TripletQuery {
        facts: &facts,
        ..TripletQuery::default()
    };
    let ends = [ada.id, ben.id, rome.id];
    for query in [
        TripletQuery::touching(&ends),
        of_facts,
        TripletQuery::default(),
    ] {
        let (mut read, mut after): (Vec<Triplet>, Option<PageToken>) = (Vec::new(), None);
        loop {
            let page = store.triplets(&home(), query, 1, after.as_ref()).await;
            let page = page.expect("an answer");
            read.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(read, triplets);
    }
}

/// Page by page, and nothing is a pattern.
pub async fn entities_are_listed_by_how_their_keys_begin<S: Graph>(store: &S) {
    let [ada, adele, percent, ben] = ["Ada", "Adele", "a%", "Ben"].map(named);
    let triplets = [
        says(1, &ada, "know", &ben),
        says(2, &adele, "know", &ben),
        says(3, &percent, "be", &ben),
    ];
    write(store, &[&ada, &adele, &percent, &ben], &triplets).await;
    let list = async |prefix: &str, limit, after: Option<PageToken>| {
        let page = store.entities(&home(), prefix, limit, after.as_ref()).await;
        let page = page.expect("an answer");
        (page.items, page.next)
    };
    let (first, next) = list("ad", 1, None).await;
    assert_eq!(first, std::slice::from_ref(&ada));
    assert_eq!(list("ad", 1, next).await, (vec![adele.clone()], None));
    assert_eq!(list("a%", 9, None).await.0, std::slice::from_ref(&percent));
    assert_eq!(list("", 9, None).await.0, [percent, ada, adele, ben]);
    assert_eq!(list("z", 9, None).await.0, []);
}

/// Whoever asks may have an id from several triplets.
pub async fn a_token_that_no_listing_gave_is_refused<S: Graph>(store: &S) {
    town(store).await;
    for text in ["garbage", "ada", "☃☃☃"] {
        let token = PageToken(text.to_owned());
        let entities = store.entities(&home(), "", 10, Some(&token)).await;
        assert_eq!(entities, Err(StoreError::PageToken), "{text}");
        let asked = TripletQuery::default();
        let triplets = store.triplets(&home(), asked, 10, Some(&token)).await;
        assert_eq!(triplets, Err(StoreError::PageToken), "{text}");
    }
}

/// As a caller may ask.
pub async fn what_is_asked_for_twice_is_told_once<S: Graph>(store: &S) {
    let ([ada, ..], [lives, knows, lives_too]) = town(store).await;
    let ids = [ada.id, ada.id];
    let named = store.named(&home(), &ids).await.expect("an answer");
    assert_eq!(named, [ada]);
    let touching = told(store, TripletQuery::touching(&ids)).await;
    assert_eq!(touching, [lives, knows]);
    let facts = [lives_too.fact, lives_too.fact];
    let query = TripletQuery {
        facts: &facts,
        ..TripletQuery::default()
    };
    assert_eq!(told(store, query).await, [lives_too]);
}

/// Also such as mean something to a database.
pub async fn names_in_any_script_read_back_as_they_were<S: Graph>(store: &S) {
    let hostile = named("x' OR 1=1 }) DETACH DELETE n // \\ \"`");
    let names = [named("東京"), named("Zoë 👩‍👩‍👧"), named("القاهرة"), hostile];
    let predicate = "be`]->() DELETE";
    let triplets: Vec<Triplet> = (1..)
        .zip(names.windows(2))
        .map(|(number, pair)| says(number, &pair[0], predicate, &pair[1]))
        .collect();
    write(store, &names.each_ref(), &triplets).await;
    let ids = names.each_ref().map(|entity| entity.id);
    assert_eq!(told(store, TripletQuery::touching(&ids)).await, triplets);
    for name in names {
        let found = store.named(&home(), &[name.id]).await.expect("an answer");
        assert_eq!(found, [name]);
    }
}

/// Also under the same names.
pub async fn another_space_has_a_graph_of_its_own<S: Graph>(store: &S) {
    let ([ada, ..], triplets) = town(store).await;
    for other in spaces().into_iter().skip(1) {
        for ends in [&[ada.id][..], &[]] {
            let query = TripletQuery::touching(ends);
            let page = store.triplets(&other, query, 9, None).await;
            assert_eq!(page.expect("an answer").items, []);
        }
        assert_eq!(store.named(&other, &[ada.id]).await.expect("an answer"), []);
        let page = store.entities(&other, "", 9, None).await;
        assert_eq!(page.expect("an answer").items, []);
        let write = GraphWrite {
            forgotten: triplets.iter().map(|it| it.turns[0]).collect(),
            replaced: triplets.iter().map(|it| it.fact).collect(),
            ..GraphWrite::default()
        };
        store.write(&other, write).await.expect("an answer");
    }
    assert_eq!(all(store, &ada, None).await.len(), 2);
}

/// Cleared twice, it is the same; others keep theirs.
pub async fn a_space_that_is_cleared_has_nothing_and_is_written_to_again<S: Graph>(store: &S) {
    let ([ada, ben, rome], [lives, knows, lives_too]) = town(store).await;
    for other in spaces().into_iter().skip(1) {
        store.clear(&other).await.expect("an answer");
    }
    assert_eq!(all(store, &ada, None).await.len(), 2);
    for _ in 0..2 {
        store.clear(&home()).await.expect("an answer");
        assert_eq!(told(store, TripletQuery::default()).await, []);
        let page = store.entities(&home(), "", 9, None).await;
        assert_eq!(page.expect("an answer").items, []);
    }
    write(store, &[&ada, &rome], std::slice::from_ref(&lives)).await;
    assert_eq!(all(store, &ada, None).await, [lives]);
    let ids = [ada.id, ben.id, rome.id];
    let named = store.named(&home(), &ids).await.expect("an answer");
    assert_eq!(named.len(), 2);
    let gone = [knows.fact, lives_too.fact];
    let query = TripletQuery {
        facts: &gone,
        ..TripletQuery::default()
    };
    assert_eq!(told(store, query).await, []);
}
