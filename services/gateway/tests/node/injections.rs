//! What entered which prompt: kept as it was, for who may see it, until something in it is forgotten.

use memfleet_domain::access::{Grant, Right, SpacePattern};
use memfleet_domain::assembly::{AuditMode, Decision, GateMode, Reason};
use memfleet_domain::ids::{InjectionId, SessionId, TurnId};
use memfleet_domain::time::TimeRange;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::assembly::{AssembleRequest, Assembled, Assembly};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::{Audit, PastInjection};
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::testing::caller;

use crate::administering::call_by;
use crate::policies::audit;
use crate::roles::{Node, acme, call_of, recall, said, space};

async fn told(node: &Node, names: &[&str]) -> Vec<TurnId> {
    let mut turns = Vec::new();
    for name in names {
        let receipt = node.told(name, vec![said("Biscuit is a greyhound")]).await;
        turns.push(receipt.turns[0].id);
    }
    turns
}

fn asking(name: &str) -> AssembleRequest {
    AssembleRequest::ungated(recall(name, "greyhound", &[]).query, 1_000)
}

async fn assembled(node: &Node, request: AssembleRequest) -> (Assembled, InjectionId) {
    let answer = node.gateway.assemble(&acme(), request).await.unwrap();
    let id = answer.injection.unwrap();
    (answer, id)
}

async fn kept(node: &Node, id: InjectionId) -> PastInjection {
    node.gateway.injection(&acme(), id).await.unwrap()
}

async fn listed(
    node: &Node,
    context: &Context,
    filter: InjectionFilter,
) -> Result<Vec<InjectionId>, Fault> {
    let page = PageRequest::default();
    let listed = node.gateway.injections(context, filter, page).await?;
    assert!(listed.items.iter().all(|it| it.block.is_none()));
    Ok(listed.items.into_iter().map(|it| it.id).collect())
}

fn reader(spaces: &[&str]) -> Context {
    let mut reader = caller("acme");
    let spaces = spaces.iter().map(|it| SpacePattern::new(*it).unwrap());
    reader.grant = Grant {
        rights: [Right::Read].into_iter().collect(),
        spaces: spaces.collect(),
    };
    call_by(reader)
}

#[tokio::test]
async fn amp_094_what_entered_a_prompt_comes_back_exactly() {
    let node = Node::new().await;
    let turns = told(&node, &["ada"]).await;
    let mut request = asking("ada");
    request.query.session = Some(SessionId::new("now").unwrap());
    let mut context = acme();
    context.request_id = "call-7".into();
    let answer = node.gateway.assemble(&context, request).await.unwrap();
    let kept = kept(&node, answer.injection.unwrap()).await;
    assert!(answer.block.contains("greyhound"));
    assert_eq!(kept.block.as_ref(), Some(&answer.block));
    let hash = kept.block_hash.unwrap();
    assert_eq!(hash, *blake3::hash(answer.block.as_bytes()).as_bytes());
    assert_eq!(kept.request_id, "call-7");
    assert_eq!(kept.spaces, [space("ada")]);
    assert_eq!(kept.session, answer.session);
    assert!(!kept.forgotten);
    let told = &kept.answer;
    assert_eq!(told.items[0].turn(), Some(turns[0]));
    assert_eq!(
        (told.tokens, told.decision),
        (answer.tokens, answer.decision)
    );
    assert_eq!((&told.gates, &told.budget), (&answer.gates, &answer.budget));
    assert_eq!(
        (&told.dropped, &told.versions),
        (&answer.dropped, &answer.versions)
    );
    assert!(!format!("{told:?}").contains("greyhound"));
}

#[tokio::test]
async fn amp_095_what_injected_nothing_is_there_too() {
    let node = Node::new().await;
    told(&node, &["ada"]).await;
    let mut request = asking("ada");
    request.policy.gating.mode = Some(GateMode::Never);
    let (answer, id) = assembled(&node, request).await;
    let kept = kept(&node, id).await;
    assert_eq!(kept.answer.decision, Decision::Skipped);
    assert_eq!(kept.answer.reason, Some(Reason::GateNever));
    assert_eq!(kept.answer.gates, answer.gates);
    assert!(kept.answer.items.is_empty());
    assert_eq!((kept.block, kept.block_hash), (None, None));
}

#[tokio::test]
async fn amp_128_a_forget_takes_the_block_and_leaves_the_tombstone() {
    let acme = &acme();
    let node = Node::new().await;
    let turns = told(&node, &["ada"]).await;
    let (_, id) = assembled(&node, asking("ada")).await;
    let forget = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            turns: turns.clone(),
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    node.gateway.forget(acme, forget).await.unwrap();
    let kept = kept(&node, id).await;
    assert!(kept.forgotten);
    assert_eq!((kept.block, kept.block_hash), (None, None));
    assert_eq!(kept.answer.items[0].turn(), Some(turns[0]));
    assert!(kept.answer.tokens > 0);
}

#[tokio::test]
async fn policy_says_what_is_kept() {
    let acme = &acme();
    let node = Node::new().await;
    told(&node, &["ada"]).await;
    let request = asking("ada");
    audit(&node.gateway, None, AuditMode::Redacted).await;
    let (_, id) = assembled(&node, request.clone()).await;
    let kept = kept(&node, id).await;
    assert!(kept.block.is_none() && kept.block_hash.is_some());
    audit(&node.gateway, None, AuditMode::Off).await;
    let answer = node.gateway.assemble(acme, request).await.unwrap();
    assert!(!answer.block.is_empty() && answer.injection.is_none());
}

#[tokio::test]
async fn injections_are_found_by_space_session_turn_and_time_page_by_page() {
    let acme = &acme();
    let node = Node::new().await;
    let turns = told(&node, &["ada", "bea"]).await;
    let mut ids = Vec::new();
    for (second, name) in [(100, "ada"), (200, "ada"), (300, "bea")] {
        node.clock.set(second);
        let mut request = asking(name);
        request.query.session = Some(SessionId::new(format!("s{second}")).unwrap());
        ids.push(assembled(&node, request).await.1);
    }
    let all = InjectionFilter::default();
    let found = async |filter| listed(&node, acme, filter).await.unwrap();
    assert_eq!(found(all.clone()).await, [ids[2], ids[1], ids[0]]);
    let of_space = InjectionFilter {
        space: Some(space("ada")),
        ..all.clone()
    };
    assert_eq!(found(of_space).await, [ids[1], ids[0]]);
    let of_session = InjectionFilter {
        session: Some(SessionId::new("s200").unwrap()),
        ..all.clone()
    };
    assert_eq!(found(of_session).await, [ids[1]]);
    let of_turn = InjectionFilter {
        space: Some(space("bea")),
        turn: Some((space("bea"), turns[1])),
        ..all.clone()
    };
    assert_eq!(found(of_turn).await, [ids[2]]);
    let of_time = InjectionFilter {
        time: TimeRange {
            start: Some(instant(100)),
            end: Some(instant(200)),
        },
        ..all.clone()
    };
    assert_eq!(found(of_time).await, [ids[0]]);
    let mut page = PageRequest {
        limit: 2,
        after: None,
    };
    let first = node.gateway.injections(acme, all.clone(), page.clone());
    let first = first.await.unwrap();
    page.after = first.next;
    let second = node.gateway.injections(acme, all, page).await.unwrap();
    assert_eq!((first.items.len(), second.items.len()), (2, 1));
    assert_eq!((second.items[0].id, second.next), (ids[0], None));
}

#[tokio::test]
async fn what_a_credential_does_not_reach_is_not_there() {
    let node = Node::new().await;
    told(&node, &["ada", "bea"]).await;
    let (_, of_ada) = assembled(&node, asking("ada")).await;
    let mut both = asking("ada");
    both.query.spaces.push(space("bea"));
    let (_, of_both) = assembled(&node, both).await;
    let narrow = reader(&["ada"]);
    node.gateway.injection(&narrow, of_ada).await.unwrap();
    let refused = node.gateway.injection(&narrow, of_both).await.unwrap_err();
    assert_eq!(refused.kind, FaultKind::NotFound);
    let unknown = InjectionId::from_bytes([9; 16]);
    let missing = node.gateway.injection(&narrow, unknown).await.unwrap_err();
    let text = |fault: &Fault, id: InjectionId| fault.message.replace(&id.to_string(), "ID");
    assert_eq!(text(&refused, of_both), text(&missing, unknown));
    let elsewhere = call_of("other", std::time::Duration::from_mins(1));
    let refused = node
        .gateway
        .injection(&elsewhere, of_ada)
        .await
        .unwrap_err();
    assert_eq!(refused.kind, FaultKind::NotFound);

    let of_space = InjectionFilter {
        space: Some(space("ada")),
        ..InjectionFilter::default()
    };
    assert_eq!(
        listed(&node, &narrow, of_space.clone()).await,
        Ok(vec![of_ada])
    );
    let wide = reader(&["ada", "b*"]);
    assert_eq!(
        listed(&node, &wide, of_space).await.unwrap(),
        [of_both, of_ada]
    );
    let any = listed(&node, &wide, InjectionFilter::default()).await;
    assert_eq!(any.unwrap_err().reason, "SPACE_NOT_GRANTED");
    let all = listed(&node, &reader(&[]), InjectionFilter::default()).await;
    assert_eq!(all.unwrap(), [of_both, of_ada]);
}
