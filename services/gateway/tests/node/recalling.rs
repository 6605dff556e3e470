//! Searches over turns that say the same.

use memfleet_domain::ids::{SessionId, Speaker};
use memfleet_ports::memory::{Memory, NewTurn};
use memfleet_ports::retriever::SHOWN_BEHIND_HITS;

use crate::roles::{Node, acme, recall, said};

fn said_in(session: usize, speaker: &str, text: &str) -> NewTurn {
    NewTurn {
        session: SessionId::new(session.to_string()).unwrap(),
        speaker: Speaker::new(speaker).unwrap(),
        ..said(text)
    }
}

async fn shown(node: &Node, k: u32) -> Vec<String> {
    let mut request = recall("ada", "passport", &[]);
    request.query.k = k;
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    let texts = found
        .hits
        .into_iter()
        .map(|hit| hit.turn.accepted.content.text);
    texts.collect()
}

#[tokio::test]
async fn copies_of_a_turn_do_not_take_the_places_of_others() {
    let node = Node::new().await;
    let copies = [
        "My passport is X123.",
        "my passport  is X123",
        "My passport is X123!",
    ];
    let mut turns: Vec<NewTurn> = (0..36)
        .map(|session| said_in(session, "Ada", copies[session % copies.len()]))
        .collect();
    turns.push(said_in(
        40,
        "Ada",
        "The passport of my brother, which he keeps at home, expires in June",
    ));
    turns.push(said_in(41, "Bob", "My passport is X123."));
    node.told("ada", turns).await;
    for k in [3, 5, 100] {
        let texts = shown(&node, k).await;
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(
            texts.iter().any(|text| text.contains("expires")),
            "{texts:?}"
        );
    }
    assert_eq!(shown(&node, 1).await.len(), 1);
}

#[tokio::test]
async fn explanation_names_copies_and_the_places_of_the_hits() {
    let node = Node::new().await;
    let mut turns: Vec<NewTurn> = (0..12)
        .map(|session| said_in(session, "Ada", "My passport is X123."))
        .collect();
    let other = "The passport of my brother expires in June";
    turns.push(said_in(40, "Ada", other));
    for n in 0..150 {
        turns.push(said_in(50, "Ada", &format!("We talked about {n} boats")));
    }
    node.told("ada", turns).await;
    let mut request = recall("ada", "passport", &[]);
    request.query.k = 3;
    let plain = node.gateway.recall(&acme(), request.clone()).await.unwrap();
    assert_eq!(plain.explanation, None);
    request.query.explain = true;
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    let explanation = found.explanation.unwrap();
    assert_eq!(explanation.candidates, 163);
    for (hit, place) in found.hits.iter().zip(1..) {
        let id = hit.turn.accepted.id;
        let candidate = explanation.shown.iter().find(|it| it.turn == id).unwrap();
        assert_eq!((candidate.hit, candidate.is_copy), (Some(place), false));
    }
    let copies = explanation.shown.iter().filter(|it| it.is_copy);
    assert_eq!(copies.count(), 11);
    let hits = explanation.shown.iter().filter(|it| it.hit.is_some());
    assert_eq!(hits.count(), found.hits.len());
    assert_eq!(
        explanation.shown.len(),
        found.hits.len() + SHOWN_BEHIND_HITS
    );
}

#[tokio::test]
async fn hits_below_the_least_relevance_are_left_out() {
    let node = Node::new().await;
    let texts = [
        "My passport is X123.",
        "The passport of my brother expires in June",
        "We talked about boats",
        "Lunch was fine",
    ];
    node.told("ada", texts.map(said).to_vec()).await;
    let request = async |least| {
        let mut request = recall("ada", "passport", &[]);
        request.min_relevance = least;
        node.gateway.recall(&acme(), request).await
    };
    let all = request(None).await.unwrap().hits;
    assert_eq!(all.len(), texts.len());
    for least in all.iter().filter_map(|hit| hit.relevance) {
        let expected = all
            .iter()
            .filter(|hit| hit.relevance.is_some_and(|it| it >= least));
        let expected: Vec<_> = expected.map(|hit| hit.turn.accepted.id).collect();
        let found = request(Some(least)).await.unwrap().hits;
        let found: Vec<_> = found.iter().map(|hit| hit.turn.accepted.id).collect();
        assert_eq!(found, expected, "{least}");
    }
    let most = request(Some(1.0)).await.unwrap();
    assert!(most.hits.is_empty() && most.searched == 4);
}
