//! The shipped cases and the corpus of injected instructions against a node in this process, over gRPC.
#![allow(clippy::unwrap_used, reason = "tests")]

mod injections;
#[path = "../../../../services/gateway/tests/node/roles.rs"]
#[expect(dead_code, reason = "the gateway's own tests ask for more of it")]
mod roles;

use std::sync::Arc;
use std::time::Duration;

use memfleet_amp::{Case, Server, run, run_in};
use memfleet_gateway::Gateway;
use memfleet_ports::access::Authority;
use memfleet_ports::testing::Callers;
use memfleet_rpc::proto::DESCRIPTORS;
use memfleet_rpc::server::{Bounds, Host, Services, routes};
use memfleet_runtime::server::{Deadline, Entrance, Options, Server as Shell};
use roles::Node;
use tokio_util::sync::CancellationToken;

/// Node without agents that derive facts: its answers do not wait for them.
async fn without_agents() -> Node {
    let options = memfleet_gateway::Options {
        facts_within: Duration::ZERO,
        ..memfleet_gateway::Options::default()
    };
    Node::with(options).await
}

#[tokio::test]
async fn amp_130_every_shipped_case_holds_over_grpc() {
    let node = without_agents().await;
    let _working = node.start_constructor();
    let url = serve(node.gateway.clone()).await;
    let server = Server::connect(&url, None, None).await.unwrap();
    let mut wrong = Vec::new();
    for case in Case::shipped().unwrap() {
        if let Err(error) = run(&server, &case).await {
            wrong.push(format!("{}: {error:#}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn a_case_that_expects_something_else_fails_and_says_where() {
    let node = Node::new().await;
    let url = serve(node.gateway.clone()).await;
    let server = Server::connect(&url, None, None).await.unwrap();
    let told = async |step: &str| {
        let case = format!(r#"[{{"name": "a", "items": [7], "steps": [{step}]}}]"#);
        let case = Case::read(&case).unwrap().remove(0);
        format!("{:#}", run(&server, &case).await.unwrap_err())
    };
    let wrong =
        r#"{"call": "render", "request": {}, "expected": {"decision": "DECISION_INJECTED"}}"#;
    let error = told(wrong).await;
    assert!(error.contains("step 0: .decision: expected"), "{error}");
    let unknown = r#"{"call": "render", "request": {"bugdet": 1}, "expected": {}}"#;
    assert!(told(unknown).await.contains("bugdet"));
}

#[tokio::test]
async fn a_space_is_forgotten_and_one_that_does_not_exist_is_nothing_to_forget() {
    let node = without_agents().await;
    let _working = node.start_constructor();
    let url = serve(node.gateway.clone()).await;
    let server = Server::connect(&url, None, None).await.unwrap();
    let asked = |remember: &str, expected: &str| {
        let request =
            r#"{"query": "Where is my boat?", "policy": {"failure": {"deadline_ms": 60000}}}"#;
        let step = format!(
            r#"{{"remember": [{remember}], "call": "assemble", "request": {request}, "expected": {{"decision": "{expected}"}}}}"#
        );
        let case = format!(r#"[{{"name": "a", "items": [57], "steps": [{step}]}}]"#);
        Case::read(&case).unwrap().remove(0)
    };
    let turn = r#"{"session": "s", "speaker": "Ada", "role": "ROLE_USER", "text": "My boat is at the pier."}"#;
    server.forget("amp-one").await.unwrap();
    let written = asked(turn, "DECISION_INJECTED");
    run_in("amp-one", &server, &written).await.unwrap();
    server.forget("amp-one").await.unwrap();
    let nothing = asked("", "DECISION_SKIPPED");
    run_in("amp-one", &server, &nothing).await.unwrap();
}

/// Serves a gateway; the server ends with the test's runtime.
async fn serve(gateway: Gateway) -> String {
    let services = Services::by(&Arc::new(gateway));
    let address = "127.0.0.1:0".parse().unwrap();
    let options = Options {
        address,
        ..Options::default()
    };
    let shell = Shell::bind(&options).await.unwrap();
    let url = format!("http://{}", shell.address());
    let host = Host {
        due: Deadline::of,
        enter: Entrance::of,
    };
    let callers: Arc<dyn Authority> = Arc::new(Callers::default());
    let routes = routes(services, &callers, Bounds::default(), host);
    tokio::spawn(shell.serve(routes, &[DESCRIPTORS], CancellationToken::new()));
    url
}
