//! Reading one's own writes: tokens are waited for, and what cannot be waited for is said.

use std::time::Duration;

use futures::TryStreamExt;
use memfleet_domain::FaultKind;
use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::TurnState;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest};

use crate::assembling::assemble;
use crate::roles::{Node, acme, brief, named, recall, said, space};

#[tokio::test]
async fn every_read_given_a_token_sees_the_write() {
    let node = Node::new().await;
    let token = async |text: &str| {
        let receipt = node.remember("ada", vec![said(text)]).await.unwrap();
        (receipt.batch, receipt.turns[0].id)
    };
    let (batch, _) = token("I keep bees").await;
    let _constructor = node.start_constructor();
    let gateway = &node.gateway;
    let found = gateway
        .recall(&acme(), recall("ada", "bees", &[batch]))
        .await;
    assert_eq!(found.unwrap().hits.len(), 1);

    let (batch, id) = token("I sold the bees").await;
    let turns = gateway.get(&acme(), &space("ada"), &[id], &[batch]).await;
    assert_eq!(turns.unwrap().len(), 1);

    let (batch, _) = token("I miss the bees").await;
    let all = TurnFilter::default();
    let page = PageRequest::default();
    let listed = gateway
        .list(&acme(), &space("ada"), &all, page, &[batch])
        .await;
    assert_eq!(listed.unwrap().items.len(), 3);

    let (batch, _) = token("I bought new bees").await;
    let mut request = assemble("ada", "bees", 200);
    request.wait_for = vec![batch];
    // No agent runs on this node.
    let call = acme().at_most(Duration::from_secs(2));
    let assembled = gateway.assemble(&call, request).await.unwrap();
    assert!(assembled.block.contains("new bees"), "{}", assembled.block);
}

#[tokio::test]
async fn the_first_write_of_a_space_is_waited_for_without_its_token() {
    let node = Node::new().await;
    node.remember("ada", vec![said("I keep bees")])
        .await
        .unwrap();
    let ask = async |call: Context, name| {
        let found = node.gateway.recall(&call, recall(name, "bees", &[])).await;
        found
            .map(|found| found.hits.len())
            .map_err(|fault| fault.kind)
    };
    assert_eq!(ask(brief(), "ada").await, Err(FaultKind::DeadlineExceeded));
    let _constructor = node.start_constructor();
    assert_eq!(ask(acme(), "ada").await, Ok(1));
    assert_eq!(ask(acme(), "nobody").await, Err(FaultKind::NotFound));
}

#[tokio::test]
async fn listings_and_exports_wait_for_the_first_write_of_a_space_too() {
    let node = Node::new().await;
    for name in ["sessions", "export"] {
        node.remember(name, vec![said("I keep bees")])
            .await
            .unwrap();
    }
    let receipt = node.remember("versions", vec![said("I keep bees")]).await;
    let turn = receipt.unwrap().turns[0].id;
    let (gateway, page) = (&node.gateway, PageRequest::default);
    let early = gateway.sessions(&brief(), &space("sessions"), page()).await;
    assert_eq!(early.unwrap_err().kind, FaultKind::DeadlineExceeded);
    let reading = async {
        let sessions = gateway.sessions(&acme(), &space("sessions"), page()).await;
        assert_eq!(sessions.unwrap().items.len(), 1);
        let all = TurnFilter::default();
        let records = gateway.export(&acme(), &space("export"), &all).await;
        let records: Vec<_> = records.unwrap().try_collect().await.unwrap();
        assert_eq!(records.len(), 2, "the space and its turn");
        let versions = gateway.history(&acme(), &space("versions"), turn).await;
        assert_eq!(versions.unwrap().len(), 1);
    };
    let working = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        node.start_constructor()
    };
    let _constructor = tokio::join!(reading, working).1;
    let nobody = gateway.sessions(&acme(), &space("nobody"), page()).await;
    assert_eq!(nobody.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_listing_of_spaces_waits_for_first_writes_and_goes_on_without_those_that_take_long() {
    let node = Node::new().await;
    let receipt = node.remember("ada", vec![said("I keep bees")]).await;
    receipt.unwrap();
    let listed = async |call: Context| {
        let page = PageRequest::default();
        let spaces = node.gateway.spaces(&call, page).await.unwrap().items;
        let names = spaces.into_iter().map(|space| space.id.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(listed(brief()).await, [""; 0]);
    let working = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        node.start_constructor()
    };
    let (names, _constructor) = tokio::join!(listed(acme()), working);
    assert_eq!(names, ["ada"]);
}

#[tokio::test]
async fn a_write_that_is_not_applied_in_time_is_a_clear_error() {
    let node = Node::new().await;
    node.told("ada", vec![said("Settled")]).await;
    let receipt = node.remember("ada", vec![said("Stuck")]).await.unwrap();
    let waiting = [receipt.batch];
    let gateway = &node.gateway;
    let all = TurnFilter::default();
    let mut request = assemble("ada", "x", 100);
    request.wait_for = waiting.to_vec();
    let faults = [
        gateway
            .recall(&brief(), recall("ada", "x", &waiting))
            .await
            .err(),
        gateway
            .get(&brief(), &space("ada"), &[], &waiting)
            .await
            .err(),
        gateway
            .list(
                &brief(),
                &space("ada"),
                &all,
                PageRequest::default(),
                &waiting,
            )
            .await
            .err(),
        gateway.assemble(&brief(), request).await.err(),
    ];
    for fault in faults.map(Option::unwrap) {
        assert_eq!(fault.kind, FaultKind::DeadlineExceeded);
        assert_eq!(fault.reason, "DEADLINE_EXCEEDED");
        assert!(
            fault.message.contains("the write that `wait_for` names"),
            "{fault}"
        );
    }
    node.settle().await;
    let found = node.found("ada", "stuck").await.unwrap();
    assert!(found.contains(&"Stuck".to_owned()), "it was only late");
}

#[tokio::test]
async fn a_token_holds_in_whichever_of_the_spaces_it_was_given() {
    let node = Node::new().await;
    node.told("team", vec![said("The team met")]).await;
    let receipt = node.told("ada", vec![said("Ada met the team")]).await;
    let mut request = recall("team", "met", &[receipt.batch]);
    let fault = node.gateway.recall(&acme(), request.clone()).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
    request.query.spaces.push(space("ada"));
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    assert_eq!(found.hits.len(), 2);
}

#[tokio::test]
async fn an_unknown_token_is_not_waited_for() {
    let node = Node::new().await;
    node.told("ada", vec![said("Hello")]).await;
    let unknown = BatchId::from_bytes([7; 16]);
    let request = recall("ada", "hello", &[unknown]);
    let fault = node.gateway.recall(&acme(), request).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotFound);
    assert!(fault.message.contains(&unknown.to_string()), "{fault}");
}

#[tokio::test]
async fn a_write_that_became_a_dead_letter_is_not_waited_for_either() {
    let node = Node::new().await;
    node.told("ada", vec![said("Hello")]).await;
    let orphan = NewTurn {
        replaces: Some(TurnId::from_bytes([9; 16])),
        ..said("Replaces nothing")
    };
    let receipt = node.told("ada", vec![orphan]).await;
    let request = recall("ada", "hello", &[receipt.batch]);
    let found = node.gateway.recall(&acme(), request).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    let states = node
        .gateway
        .watch(&acme(), &space("ada"), receipt.batch)
        .await;
    let states: Vec<_> = states.unwrap().try_collect().await.unwrap();
    assert_eq!(states[0].state, TurnState::DeadLettered);
    let reason = states[0].reason.as_deref().unwrap();
    assert!(reason.starts_with("REPLACED_TURN_UNKNOWN"), "{reason}");
}

#[tokio::test]
async fn a_write_whose_whole_space_is_forgotten_meanwhile_ends_as_forgotten() {
    let node = Node::new().await;
    let receipt = node.remember("ada", vec![said("Hello")]).await.unwrap();
    let states = node
        .gateway
        .watch(&acme(), &space("ada"), receipt.batch)
        .await;
    // Not through `Forget`, which would wait for the queue: this is a write that was accepted while it waited.
    let (ada, everything) = (acme().scope(&space("ada")), TurnFilter::default());
    let erased = node.erasure.erase(&ada, &everything);
    assert_eq!(erased.await.unwrap().undelivered, 1);
    let states: Vec<_> = states.unwrap().try_collect().await.unwrap();
    let states = states.iter().map(|turn| turn.state);
    assert!(states.eq([TurnState::Queued, TurnState::Forgotten]));
}

#[tokio::test]
async fn a_write_is_watched_from_the_queue_to_the_ledger() {
    let node = Node::new().await;
    let turns = vec![named("1", "One"), named("2", "Two")];
    let receipt = node.remember("ada", turns).await.unwrap();
    let states = node
        .gateway
        .watch(&acme(), &space("ada"), receipt.batch)
        .await;
    let _constructor = node.start_constructor();
    let states: Vec<_> = states.unwrap().try_collect().await.unwrap();
    let ids = receipt.turns.iter().map(|turn| turn.id);
    let expected = [TurnState::Queued, TurnState::Stored]
        .into_iter()
        .flat_map(|state| ids.clone().map(move |id| (id, state)));
    assert!(
        states
            .into_iter()
            .map(|turn| (turn.id, turn.state))
            .eq(expected)
    );
}
