//! A real Neo4j passes the suite of every graph, and says so where it does not answer.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conformance;

use std::time::{Duration, Instant};

use memfleet_neo4j::{Neo4jGraph, Options};
use memfleet_ports::conformance::graph::{named, says, writing};
use memfleet_ports::conformance::samples::home;
use memfleet_ports::graph::{Graph, TripletQuery};
use memfleet_ports::store::StoreError;
use memfleet_servers::Neo4j;

fn options(url: &str) -> Options {
    Options {
        url: url.to_owned(),
        user: "neo4j".into(),
        password: "password".into(),
        database: "neo4j".into(),
        ca: None,
        connections: 4,
        timeout: Duration::from_mins(1),
    }
}

#[tokio::test]
async fn a_server_that_dies_is_unavailable_and_used_again_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Neo4j::start(folder.path()).unwrap();
    let brief = Options {
        timeout: Duration::from_secs(20),
        ..options(&server.url())
    };
    let graph = Neo4jGraph::new(&brief).unwrap();
    let [ada, ben] = ["Ada", "Ben"].map(named);
    let write = writing(&[&ada, &ben], &[says(1, &ada, "know", &ben)]);
    graph.write(&home(), write.clone()).await.unwrap();
    server.kill().unwrap();
    let begun = Instant::now();
    let error = graph.write(&home(), write.clone()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
    assert!(begun.elapsed() < Duration::from_mins(1));
    assert!(graph.check().await.is_err());
    server.restart().unwrap();
    graph.check().await.unwrap();
    graph.write(&home(), write).await.unwrap();
    let ends = [ada.id];
    let query = TripletQuery::touching(&ends);
    let found = graph.triplets(&home(), query, 9, None).await;
    assert_eq!(found.unwrap().items.len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_no_reason_not_to_start() {
    let nobody = Options {
        timeout: Duration::from_secs(1),
        ..options("bolt://127.0.0.1:9")
    };
    let graph = Neo4jGraph::new(&nobody).unwrap();
    let error = graph.check().await.unwrap_err();
    assert!(error.to_string().contains("Neo4j"), "{error}");
}
