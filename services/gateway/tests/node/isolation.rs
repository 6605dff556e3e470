//! One tenant cannot tell what another has from what nobody has, whatever ids it guesses.

use std::time::Duration;

use memfleet_domain::FaultKind;
use memfleet_domain::ids::TurnId;
use memfleet_domain::ingestion::Receipt;
use memfleet_domain::space::SpaceSettings;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::conformance::samples::filters_for;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest};
use memfleet_ports::refresher::ForgetRequest;

use crate::answering::question;
use crate::assembling::assemble;
use crate::roles::{Node, acme, call_of, named, recall, request, said, space};

async fn two_tenants() -> (Node, Receipt) {
    let node = Node::new().await;
    let code = NewTurn {
        metadata: [("kind".to_owned(), "code".to_owned())].into(),
        ..named("m-1", "The code is 4711")
    };
    let secret = node.told("secret", vec![code]).await;
    let globex = call_of("globex", Duration::from_mins(1));
    let own = request("own", vec![said("Nothing special")]);
    node.gateway.remember(&globex, own).await.unwrap();
    node.settle().await;
    (node, secret)
}

#[tokio::test]
async fn a_space_of_another_tenant_does_not_exist_for_any_call() {
    let (node, secret) = two_tenants().await;
    let gateway = &node.gateway;
    let call = call_of("globex", Duration::from_mins(1));
    let (theirs, turn) = (space("secret"), secret.turns[0].id);
    let page = PageRequest::default;
    let mut faults = vec![
        gateway.get(&call, &theirs, &[turn], &[]).await.err(),
        gateway.history(&call, &theirs, turn).await.err(),
        gateway.sessions(&call, &theirs, page()).await.err(),
        gateway.watch(&call, &theirs, secret.batch).await.err(),
        gateway
            .dead_letters(&call, Some(&theirs), page())
            .await
            .err(),
        gateway.replay(&call, &theirs, &[]).await.err(),
    ];
    let turns = gateway.get(&acme(), &theirs, &[turn], &[]).await.unwrap();
    for filter in filters_for(&turns[0].accepted) {
        let mut recall = recall("secret", "code", &[]);
        recall.query.filter = filter.clone();
        let mut question = question("secret", "What is the code?");
        question.query.filter = filter.clone();
        let mut assemble = assemble("secret", "code", 100);
        assemble.query.filter = filter.clone();
        let forget = ForgetRequest {
            space: theirs.clone(),
            everything: filter.is_everything(),
            filter: filter.clone(),
            dry_run: false,
        };
        let listed = gateway.list(&call, &theirs, &filter, page(), &[]).await;
        faults.extend([
            gateway.recall(&call, recall).await.err(),
            gateway.answer(&call, question).await.err(),
            gateway.assemble(&call, assemble).await.err(),
            listed.err(),
            gateway.export(&call, &theirs, &filter).await.err(),
            gateway.forget(&call, forget).await.err(),
        ]);
    }
    for fault in faults.into_iter().map(Option::unwrap) {
        assert_eq!(fault.kind, FaultKind::NotFound, "{fault}");
    }
    assert_eq!(node.found("secret", "code").await.unwrap().len(), 1);
}

#[tokio::test]
async fn ids_and_tokens_of_another_tenant_mean_nothing_in_ones_own_space() {
    let (node, secret) = two_tenants().await;
    let gateway = &node.gateway;
    let call = call_of("globex", Duration::from_mins(1));
    let (own, turn) = (space("own"), secret.turns[0].id);
    let got = gateway.get(&call, &own, &[turn], &[]).await.unwrap();
    assert_eq!(got, []);
    let waiting = recall("own", "code", &[secret.batch]);
    let fault = gateway.recall(&call, waiting).await.unwrap_err();
    let unknown = TurnId::from_bytes([1; 16]);
    let of_history = async |turn| gateway.history(&call, &own, turn).await.unwrap_err();
    let (theirs, nobodys) = (of_history(turn).await, of_history(unknown).await);
    assert_eq!(fault.kind, FaultKind::NotFound);
    assert_eq!(
        theirs
            .message
            .replace(&turn.to_string(), &unknown.to_string()),
        nobodys.message
    );
    let forget = ForgetRequest {
        space: own,
        filter: TurnFilter {
            turns: vec![turn],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    let forgotten = gateway.forget(&call, forget).await.unwrap();
    assert_eq!(forgotten.erased.turns, []);
    assert_eq!(node.found("secret", "code").await.unwrap().len(), 1);
}

#[tokio::test]
async fn tenants_list_their_own_spaces_and_may_use_the_same_names() {
    let (node, secret) = two_tenants().await;
    let gateway = &node.gateway;
    let call = call_of("globex", Duration::from_mins(1));
    let same = request("secret", vec![named("m-1", "Another code")]);
    let receipt = gateway.remember(&call, same).await.unwrap();
    node.settle().await;
    assert_ne!(receipt.turns[0].id, secret.turns[0].id);
    let settings = SpaceSettings {
        retention_days: Some(3),
        ..SpaceSettings::default()
    };
    gateway
        .put_space(&call, &space("secret"), settings)
        .await
        .unwrap();
    let listed = gateway.spaces(&call, PageRequest::default()).await.unwrap();
    let names: Vec<_> = listed.items.iter().map(|space| space.id.as_str()).collect();
    assert_eq!(names, ["own", "secret"]);
    let listed = gateway
        .spaces(&acme(), PageRequest::default())
        .await
        .unwrap();
    assert_eq!(listed.items.len(), 1);
    assert_eq!(listed.items[0].settings, SpaceSettings::default());
    assert_eq!(
        node.found("secret", "code").await.unwrap(),
        ["The code is 4711"]
    );
}
