//! Who is connected to what.

use std::collections::HashSet;

use memfleet_domain::FaultKind;
use memfleet_domain::derivation::{Body, Derivation};
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{ChangeId, DerivationId};
use memfleet_domain::time::TimeRange;
use memfleet_ports::conformance::graph::{named, says, writing};
use memfleet_ports::conformance::knowledge::{deriving, fact};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::graph::Graph;
use memfleet_ports::knowledge::{Knowledge, Revision, Work};
use memfleet_ports::knowledge_api::{
    Edge, EntityQuery, EntityRequest, KnowledgeService, Paths, PathsQuery,
};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::memory::PageRequest;

use crate::roles::{Node, acme, said, space};

/// Ada knows Ben, who knows Cleo, who lives in Rome; Ada lived in Rome from second 10 to 20; Dora knows nobody that they know. Each is a fact
/// of a turn of its own.
async fn town() -> (Node, Vec<Derivation>) {
    let stated = [
        ("Ada", "know", "Ben"),
        ("Ben", "know", "Cleo"),
        ("Cleo", "residence", "Rome"),
        ("Ada", "residence", "Rome"),
        ("Dora", "residence", "Oslo"),
        ("Ben", "residence", "Rome"),
    ];
    let (node, facts, mut triplets) = stating(&stated).await;
    triplets[3].valid = TimeRange {
        start: Some(instant(10)),
        end: Some(instant(20)),
    };
    triplets[5].confidence = 0.1;
    relate(&node, &stated, &triplets).await;
    (node, facts)
}

/// A node with these facts, each of a turn of its own, and what they say as triplets that the graph does not have yet.
pub async fn stating(stated: &[(&str, &str, &str)]) -> (Node, Vec<Derivation>, Vec<Triplet>) {
    let node = Node::new().await;
    let told = (1..=stated.len()).map(|number| said(&format!("Statement {number}.")));
    let receipt = node.told("ada", told.collect()).await;
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let scope = acme().scope(&space("ada"));
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let (mut facts, mut triplets) = (Vec::new(), Vec::new());
    for (turn, (subject, predicate, object)) in turns.iter().zip(stated) {
        let mut fact = fact(&turn.accepted, subject, object, instant(1));
        if let Body::Fact(draft) = &mut fact.body {
            (*predicate).clone_into(&mut draft.claim.attribute);
        }
        triplets.push(Triplet {
            fact: fact.id,
            turns: fact.turns.clone(),
            ..says(1, &named(subject), predicate, &named(object))
        });
        let work = Work {
            rewrites: vec![deriving(&[&fact])],
            ..Work::default()
        };
        node.store.apply(&scope, work).await.unwrap();
        facts.push(fact);
    }
    (node, facts, triplets)
}

/// Writes triplets to the graph.
pub async fn relate(node: &Node, stated: &[(&str, &str, &str)], triplets: &[Triplet]) {
    let ends = stated.iter().flat_map(|(one, _, other)| [*one, *other]);
    let entities: Vec<Entity> = ends.map(named).collect();
    let write = writing(&entities.iter().collect::<Vec<_>>(), triplets);
    let scope = acme().scope(&space("ada"));
    Graph::write(node.store.as_ref(), &scope, write)
        .await
        .unwrap();
}

pub fn asked(entity: &str, at: Option<i64>) -> EntityRequest {
    EntityRequest {
        space: space("ada"),
        entity: entity.into(),
        at: at.map(instant),
        wait_for: Vec::new(),
    }
}

pub fn told(edge: &Edge) -> String {
    let (subject, object): (&Entity, &Entity) = (&edge.subject, &edge.object);
    format!(
        "{} {} {}",
        subject.name, edge.triplet.predicate, object.name
    )
}

async fn between(
    node: &Node,
    from: &str,
    to: &str,
    (hops, at): (u32, Option<i64>),
) -> Vec<Vec<String>> {
    let query = PathsQuery {
        from: asked(from, at),
        to: to.into(),
        hops,
        limit: 10,
    };
    let found = node.gateway.paths(&acme(), &query).await.unwrap();
    assert!(!found.truncated);
    let paths = found.paths.iter();
    paths.map(|path| path.iter().map(told).collect()).collect()
}

#[tokio::test]
async fn an_entity_is_found_by_name_and_by_id_with_what_it_is_connected_to() {
    let (node, _) = town().await;
    let call = acme();
    let id = named("Ada").id.to_string();
    for name in ["Ada", "ADA", "the Ada", &id] {
        let request = asked(name, None);
        let page = PageRequest::default();
        let found = node
            .gateway
            .neighbours(&call, &request, page)
            .await
            .unwrap();
        assert_eq!(found.entity.name, "Ada");
        let edges: Vec<_> = found.edges.items.iter().map(told).collect();
        // In the order of their ids.
        let edges: HashSet<&str> = edges.iter().map(String::as_str).collect();
        assert_eq!(edges, HashSet::from(["Ada know Ben", "Ada residence Rome"]));
    }
    let request = asked("Ada", Some(20));
    let found = node
        .gateway
        .neighbours(&call, &request, PageRequest::default());
    assert_eq!(found.await.unwrap().edges.items.len(), 1);
    let nobody = asked("Eve", None);
    let fault = node
        .gateway
        .neighbours(&call, &nobody, PageRequest::default());
    assert_eq!(fault.await.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn entities_are_listed_by_how_they_begin() {
    let (node, _) = town().await;
    let query = EntityQuery {
        space: space("ada"),
        prefix: "C".into(),
        wait_for: Vec::new(),
    };
    let page = PageRequest::default();
    let found = node.gateway.entities(&acme(), &query, page).await.unwrap();
    assert_eq!(found.items, [named("Cleo")]);
}

#[tokio::test]
async fn paths_are_the_shortest_first_and_of_equal_length_the_surer() {
    let (node, _) = town().await;
    let direct = ["Ada residence Rome"];
    let unsure = ["Ada know Ben", "Ben residence Rome"];
    let around = ["Ada know Ben", "Ben know Cleo", "Cleo residence Rome"];
    let all: [&[&str]; 3] = [&direct, &unsure, &around];
    for hops in 1..=3 {
        let found = between(&node, "Ada", "Rome", (hops, None)).await;
        assert_eq!(found, all[..hops as usize], "{hops} hops");
    }
    assert_eq!(between(&node, "Ada", "Rome", (3, Some(30))).await, all[1..]);
    // Backwards they are the same facts.
    let back = between(&node, "Rome", "Ada", (3, None)).await;
    assert_eq!(back.len(), 3);
    assert_eq!(back[2][0], "Cleo residence Rome");
}

#[tokio::test]
async fn who_is_not_connected_has_no_paths() {
    let (node, _) = town().await;
    assert!(between(&node, "Ada", "Dora", (3, None)).await.is_empty());
    assert!(between(&node, "Ada", "ada", (3, None)).await.is_empty());
}

#[tokio::test]
async fn what_the_store_has_no_more_is_not_told_by_a_graph_that_has_not_heard() {
    let (node, facts) = town().await;
    let scope = acme().scope(&space("ada"));
    let revisions = [0, 3].map(|place: usize| {
        let mut derivation = facts[place].next(facts[place].change).withdrawn();
        derivation.known.start = Some(instant(2));
        Revision {
            derivation,
            passage: None,
        }
    });
    let mut rewrite = deriving(&[&facts[0]]);
    rewrite.change.id = ChangeId::of("withdrawn", &[]);
    rewrite.revisions = revisions.to_vec();
    for revision in &mut rewrite.revisions {
        revision.derivation.change = rewrite.change.id;
    }
    let work = Work {
        rewrites: vec![rewrite],
        ..Work::default()
    };
    node.store.apply(&scope, work).await.unwrap();
    assert!(between(&node, "Ada", "Rome", (3, None)).await.is_empty());
    let call = acme();
    let page = PageRequest::default();
    let fault = node
        .gateway
        .neighbours(&call, &asked("Ada", None), page)
        .await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_path_that_stands_is_found_behind_any_number_that_do_not() {
    let (node, _) = town().await;
    let (ada, rome) = (named("Ada"), named("Rome"));
    let gone = (1..1_000_u128).map(|number| Triplet {
        fact: DerivationId::from_bytes((number << 64).to_be_bytes()),
        confidence: 1.0,
        ..says(1, &ada, "like", &rome)
    });
    let write = writing(&[&ada, &rome], &gone.collect::<Vec<_>>());
    let scope = acme().scope(&space("ada"));
    let written = Graph::write(node.store.as_ref(), &scope, write);
    written.await.unwrap();
    let found = between(&node, "Ada", "Rome", (1, None)).await;
    assert_eq!(found, [["Ada residence Rome"]]);
}

#[tokio::test]
async fn without_a_graph_that_is_said() {
    let (mut node, _) = town().await;
    node.gateway.graph = None;
    let call = acme();
    let fault = node
        .gateway
        .neighbours(&call, &asked("Ada", None), PageRequest::default())
        .await
        .unwrap_err();
    let expected = (FaultKind::FailedPrecondition, "GRAPH_MISSING");
    assert_eq!((fault.kind, &*fault.reason), expected);
}

#[tokio::test]
async fn another_tenant_sees_nothing_of_it() {
    let (node, _) = town().await;
    let other = crate::roles::call_of("umbrella", std::time::Duration::from_secs(1));
    let query = PathsQuery {
        from: asked("Ada", None),
        to: "Rome".into(),
        hops: 3,
        limit: 1,
    };
    let fault: Result<Paths, _> = node.gateway.paths(&other, &query).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
}
