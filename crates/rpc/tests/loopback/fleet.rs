//! Roles over a real socket: what one is asked and answers, whom it believes, and what becomes of a call whose replica is gone.

use std::sync::Arc;
use std::time::Duration;

use memfleet_domain::FaultKind;
use memfleet_domain::ids::ChangeId;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::knowledge_api::Correction;
use memfleet_ports::refresher::{ForgetRequest, Naming, Refresher};
use memfleet_ports::retriever::{Embedded, Query, Retriever};
use memfleet_ports::testing::WordEmbedder;
use memfleet_rpc::fleet::server::{Roles, routes};
use memfleet_rpc::fleet::{
    Credential, Options as PeerOptions, Peers, RemoteEmbedder, RemoteRefresher, RemoteRetriever,
};
use memfleet_rpc::proto::internal::DESCRIPTORS;
use memfleet_rpc::server::{Bounds, Host};
use memfleet_runtime::server::{Deadline, Entrance, Options, Server};
use tokio_util::sync::CancellationToken;

use crate::node::{Node, missing, space};
use crate::turn_reader::LengthReader;
use crate::{context, tenant};

const SECRET: &str = "a secret of the fleet";

/// A process with every role; it stops when the token is cancelled.
pub struct FleetReplica {
    node: Arc<Node>,
    url: String,
    stop: CancellationToken,
}

pub async fn replica() -> FleetReplica {
    replica_believing(SECRET).await
}

async fn replica_believing(secrets: &str) -> FleetReplica {
    let node = Arc::new(Node::default());
    let roles = Roles {
        embedder: Some(Arc::new(WordEmbedder::default())),
        turn_reader: Some(Arc::new(LengthReader)),
        retriever: Some(node.clone()),
        refresher: Some(node.clone()),
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let options = Options {
        address,
        ..Options::default()
    };
    let server = Server::bind(&options).await.unwrap();
    let url = format!("http://{}", server.address());
    let host = Host {
        due: Deadline::of,
        enter: Entrance::of,
    };
    let credential = Credential::new(secrets).unwrap();
    let routes = routes(roles, credential, Bounds::default(), host);
    let stop = CancellationToken::new();
    tokio::spawn(server.serve(routes, &[DESCRIPTORS], stop.clone()));
    FleetReplica { node, url, stop }
}

/// The replicas, once they are found.
pub async fn peers(replicas: &[&FleetReplica]) -> Peers {
    let urls: Vec<_> = replicas
        .iter()
        .map(|replica| replica.url.as_str())
        .collect();
    let peers = Peers::watch(&PeerOptions {
        watch_interval: Duration::from_millis(50),
        ..PeerOptions::new(urls.join(","))
    });
    let peers = peers.unwrap();
    peers.found().await;
    peers
}

pub fn credential() -> Credential {
    Credential::new(SECRET).unwrap()
}

async fn retriever(replicas: &[&FleetReplica]) -> RemoteRetriever {
    RemoteRetriever {
        peers: peers(replicas).await,
        credential: credential(),
    }
}

pub fn query(name: &str) -> Query {
    crate::calls::recall(name).query
}

#[tokio::test]
async fn a_search_arrives_with_its_tenant_and_comes_back_as_it_was_answered() {
    let replica = replica().await;
    let retriever = retriever(&[&replica]).await;
    let context = Context::new(tenant("Ünïcode tenant"), Duration::from_secs(5));
    let found = retriever.search(&context, &query("ada")).await.unwrap();
    assert_eq!(found, crate::node::found());
    assert_eq!(replica.node.last().0, "Ünïcode tenant");
    let fault = retriever.search(&context, &query("missing")).await;
    assert_eq!(fault, Err(missing()));
}

#[tokio::test]
async fn the_vectors_of_a_query_arrive_with_it() {
    let replica = replica().await;
    let retriever = retriever(&[&replica]).await;
    let query = embedded("ada").await;
    let found = retriever.search(&context(), &query).await.unwrap();
    assert_eq!(found, crate::node::found());
    let (_, arrived) = replica.node.last();
    assert!(arrived.contains(&format!("{:?}", query.vectors)));
}

#[tokio::test]
async fn a_retriever_that_takes_no_vectors_is_asked_without() {
    let replica = replica().await;
    let retriever = retriever(&[&replica]).await;
    let query = embedded("before").await;
    let found = retriever.search(&context(), &query).await.unwrap();
    assert_eq!(found, crate::node::found());
    let (_, arrived) = replica.node.last();
    assert!(arrived.contains("vectors: None"), "{arrived}");
}

/// A query that brings its vectors.
async fn embedded(space: &str) -> Query {
    let embedder = WordEmbedder::default();
    let embedded = Embedded::by(&embedder, "a cat".to_owned()).await.unwrap();
    Query {
        vectors: Some(Arc::new(embedded)),
        ..query(space)
    }
}

#[tokio::test]
async fn a_forget_arrives_and_is_made_once() {
    let replica = replica().await;
    let refresher = RemoteRefresher {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let request = ForgetRequest {
        space: space("ada"),
        filter: memfleet_ports::filter::TurnFilter::default(),
        everything: true,
        dry_run: true,
    };
    let receipt = refresher.forget(&context(), &request).await.unwrap();
    assert_eq!(receipt.erased, crate::node::erased());
    assert_eq!(replica.node.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn corrections_and_reverts_reach_the_refresher() {
    let replica = replica().await;
    let refresher = RemoteRefresher {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let request = crate::knowledge::update(Correction::Withdrawn);
    let corrected = refresher.correct(&context(), &request).await.unwrap();
    assert!(corrected.is_withdrawn());
    assert_eq!(replica.node.last().1, format!("{request:?}"));
    let change = corrected.change;
    let reverted = refresher.revert(&context(), &space("ada"), change).await;
    assert_eq!(reverted.unwrap().wrote[0], corrected);
    assert_eq!(replica.node.last().1, format!("{change:?}"));
}

#[tokio::test]
async fn what_is_said_of_names_reaches_the_refresher() {
    let replica = replica().await;
    let refresher = RemoteRefresher {
        peers: peers(&[&replica]).await,
        credential: credential(),
    };
    let said = crate::knowledge::identity();
    let namings = [Naming {
        identity: said.identity().unwrap().clone(),
        turns: said.turns,
    }];
    let ada = space("ada");
    let change = refresher.identify(&context(), &ada, &namings).await;
    assert_eq!(change, Ok(ChangeId::from_bytes([8; 16])));
    assert_eq!(replica.node.last().1, format!("{:?}", &namings[..]));
    let fault = refresher.identify(&context(), &ada, &[]).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::InvalidArgument);
}

#[tokio::test]
async fn vectors_come_back_as_they_were_made() {
    let replica = replica().await;
    let local = WordEmbedder::default();
    let remote = RemoteEmbedder::new(peers(&[&replica]).await, credential());
    assert_eq!(remote.space().await, local.space().await);
    let texts: Vec<String> = (0..300).map(|n| format!("text {n} of many")).collect();
    let vectors = remote.embed_passages(texts.clone()).await.unwrap();
    assert_eq!(vectors, local.embed_passages(texts).await.unwrap());
    let query = remote.embed_query("a query".into()).await.unwrap();
    assert_eq!(query, local.embed_query("a query".into()).await.unwrap());
    assert_eq!(remote.embed_passages(Vec::new()).await, Ok(Vec::new()));
}

#[tokio::test]
async fn whoever_lacks_the_secret_is_refused() {
    let replica = replica().await;
    for stranger in [
        Credential::default(),
        Credential::new("another secret of 16").unwrap(),
    ] {
        let retriever = RemoteRetriever {
            peers: peers(&[&replica]).await,
            credential: stranger,
        };
        let fault = retriever
            .search(&context(), &query("ada"))
            .await
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unauthenticated);
    }
    assert!(replica.node.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_secret_takes_the_place_of_another_without_a_refusal() {
    const NEXT: &str = "the next one of the fleet";
    let (before, both, turned) = (
        SECRET.to_owned(),
        format!("{SECRET}\n{NEXT}\n"),
        format!("{NEXT}\n{SECRET}"),
    );
    // Roles are replaced one after another, so those of a step meet those of the step before.
    let steps = [&before, &both, &turned, &NEXT.to_owned()].map(String::clone);
    for pair in steps.windows(2) {
        for (asked, asker) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let replica = replica_believing(asked).await;
            let retriever = RemoteRetriever {
                peers: peers(&[&replica]).await,
                credential: Credential::new(asker).unwrap(),
            };
            retriever.search(&context(), &query("ada")).await.unwrap();
        }
    }
    assert!(Credential::new(&format!("{SECRET}\nshort")).is_err());
    assert!(Credential::new("\n").is_err());
}

#[tokio::test]
async fn a_space_is_searched_at_one_replica_and_at_another_when_that_one_stops() {
    let replicas = [replica().await, replica().await];
    let retriever = retriever(&[&replicas[0], &replicas[1]]).await;
    for _ in 0..4 {
        retriever.search(&context(), &query("ada")).await.unwrap();
    }
    let asked = |replica: &FleetReplica| replica.node.asked.lock().unwrap().len();
    let (home, other) = match asked(&replicas[0]) {
        4 => (&replicas[0], &replicas[1]),
        _ => (&replicas[1], &replicas[0]),
    };
    assert_eq!((asked(home), asked(other)), (4, 0));
    home.stop.cancel();
    for _ in 0..4 {
        retriever.search(&context(), &query("ada")).await.unwrap();
    }
    assert!(asked(other) > 0);
}

#[tokio::test]
async fn a_replica_that_hangs_leaves_time_for_another() {
    let hanging = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}", hanging.local_addr().unwrap());
    let replica = replica().await;
    let peers = Peers::watch(&PeerOptions::new(format!("{silent},{}", replica.url))).unwrap();
    peers.found().await;
    let retriever = RemoteRetriever {
        peers,
        credential: credential(),
    };
    // Whichever replica each space prefers.
    for name in ["ada", "bob", "eve", "dan"] {
        let brief = Context::new(tenant("default"), Duration::from_secs(4));
        let mut query = query("ada");
        query.spaces = vec![space(name)];
        retriever.search(&brief, &query).await.unwrap();
    }
}
