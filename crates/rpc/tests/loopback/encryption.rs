//! Encrypted connections between roles and from commands: who believes whom, and certificates that change under calls.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::context::Context;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::retriever::Retriever;
use memfleet_rpc::Client;
use memfleet_rpc::fleet::server::{Roles, routes as fleet_routes};
use memfleet_rpc::fleet::{Credential, Options as PeerOptions, Peers, RemoteRetriever};
use memfleet_rpc::proto::internal::DESCRIPTORS;
use memfleet_rpc::server::{Bounds, Host};
use memfleet_runtime::server::{Deadline, Entrance, Options, Server};
use memfleet_tls::testing::Authority;
use memfleet_tls::{Callers, Files, Tls};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::fleet::query;
use crate::node::Node;
use crate::{context, serve_with, tenant};

const HOST: &str = "127.0.0.1";

/// A process of a fleet that an authority vouches for.
struct Member {
    folder: TempDir,
    tls: Tls,
}

fn member(authority: &Authority) -> Member {
    named(authority, HOST)
}

fn named(authority: &Authority, name: &str) -> Member {
    let folder = tempfile::tempdir().unwrap();
    let files = authority.files(folder.path(), &[name]);
    let tls = Tls::load(files).unwrap();
    Member { folder, tls }
}

/// A retriever that answers callers with a certificate, and where.
async fn retriever(server: &Tls) -> String {
    let node = Arc::new(Node::default());
    let roles = Roles {
        retriever: Some(node),
        ..Roles::default()
    };
    let address = "127.0.0.1:0".parse().unwrap();
    let options = Options {
        address,
        ..Options::default()
    };
    let bound = Server::bind(&options).await.unwrap();
    let url = format!("https://{}", bound.address());
    let host = Host {
        due: Deadline::of,
        enter: Entrance::of,
    };
    let routes = fleet_routes(roles, Credential::default(), Bounds::default(), host);
    let bound = bound.encrypted(server.acceptor(Callers::Certified));
    tokio::spawn(bound.serve(routes, &[DESCRIPTORS], CancellationToken::new()));
    url
}

/// Asks retrievers at these URLs on these terms.
async fn asking(url: String, tls: &Tls) -> RemoteRetriever {
    let peers = Peers::watch(&PeerOptions {
        tls: Some(tls.clone()),
        watch_interval: Duration::from_millis(50),
        ..PeerOptions::new(url)
    });
    let peers = peers.unwrap();
    peers.found().await;
    RemoteRetriever {
        peers,
        credential: Credential::default(),
    }
}

async fn searched(url: String, tls: &Tls) -> Result<(), Fault> {
    let brief = Context::new(tenant("default"), Duration::from_secs(5));
    let found = asking(url, tls).await.search(&brief, &query("ada")).await;
    found.map(|_| ())
}

fn only(authority: &Authority, folder: &Path) -> Tls {
    let files = Files {
        own: None,
        authority: Some(authority.write(folder)),
    };
    Tls::load(files).unwrap()
}

#[tokio::test]
async fn roles_of_one_authority_believe_each_other() {
    let authority = Authority::new();
    let (asked, asker) = (member(&authority), member(&authority));
    searched(retriever(&asked.tls).await, &asker.tls)
        .await
        .unwrap();
}

#[tokio::test]
async fn whoever_is_not_believed_is_told_why() {
    let (authority, foreign) = (Authority::new(), Authority::new());
    let (asked, asker) = (member(&authority), member(&authority));
    let url = retriever(&asked.tls).await;
    let elsewhere = retriever(&named(&authority, "elsewhere").tls).await;
    let folder = tempfile::tempdir().unwrap();
    for (url, tls, cause) in [
        (
            url.clone(),
            &member(&foreign).tls,
            "an authority that is not believed",
        ),
        (elsewhere, &asker.tls, "is for another name"),
        // Its alert may be lost when the connection breaks.
        (url, &only(&authority, folder.path()), ""),
    ] {
        let fault = searched(url, tls).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unavailable, "{fault}");
        assert!(fault.message.contains(cause), "{cause}: {fault}");
    }
}

#[tokio::test]
async fn a_caller_in_the_clear_gets_nowhere() {
    let authority = Authority::new();
    let asked = member(&authority);
    let url = retriever(&asked.tls).await.replace("https", "http");
    let fault = searched(url, &asked.tls).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::Unavailable);
}

#[tokio::test]
async fn certificates_change_under_calls_and_none_fails() {
    let authority = Authority::new();
    let (asked, asker) = (member(&authority), member(&authority));
    let url = retriever(&asked.tls).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, remote) = (stop.clone(), asking(url.clone(), &asker.tls).await);
    let calls = tokio::spawn(async move {
        let mut made = 0;
        while !stopped.load(Ordering::Relaxed) {
            remote.search(&context(), &query("ada")).await.unwrap();
            made += 1;
        }
        made
    });
    for _ in 0..5 {
        for member in [&asked, &asker] {
            authority.issue(member.folder.path(), &[HOST]);
            assert!(member.tls.reload().unwrap());
            // A connection of its own, on the new certificates.
            searched(url.clone(), &asker.tls).await.unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(calls.await.unwrap() > 0);
}

#[tokio::test]
async fn a_new_authority_is_believed_without_a_restart() {
    let (before, after) = (Authority::new(), Authority::new());
    let (asked, asker) = (member(&before), member(&after));
    let url = retriever(&asked.tls).await;
    assert!(searched(url.clone(), &asker.tls).await.is_err());
    after.files(asked.folder.path(), &[HOST]);
    assert!(asked.tls.reload().unwrap());
    searched(url, &asker.tls).await.unwrap();
}

#[tokio::test]
async fn a_command_believes_the_authority_that_it_is_given() {
    let authority = Authority::new();
    let node = member(&authority);
    let acceptor = node.tls.acceptor(Callers::Anyone);
    let (_, url) = serve_with(
        memfleet_ports::testing::Callers::default().into(),
        Bounds::default(),
        Options::default(),
        acceptor,
    )
    .await;
    let url = url.replace("http", "https");
    let file = node.folder.path().join("authority.pem");
    let client = Client::connect_believing(&url, None, Some(file))
        .await
        .unwrap();
    client.status(&context()).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let foreign = Authority::new().write(folder.path());
    let fault = Client::connect_believing(&url, None, Some(foreign))
        .await
        .unwrap_err();
    assert!(
        fault.message.contains("an authority that is not believed"),
        "{fault}"
    );
    let missing = Some(folder.path().join("none.pem"));
    let fault = Client::connect_believing(&url, None, missing)
        .await
        .unwrap_err();
    assert_eq!(fault.fields[0].field, "ca");
}
