//! Every single call.

use memfleet_domain::ids::DerivationId;
use memfleet_domain::ids::{ExternalId, IdempotencyKey, SessionId, Speaker};
use memfleet_domain::policy::Policy;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::{Content, Role, Trust};
use memfleet_ports::assembly::{AssembleRequest, Assembly, GateRequest, Prompt};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::PageToken;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest, RecallRequest, RememberRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::retriever::Query;

use crate::node::{self, space};
use crate::{connected, context};

pub fn remember(name: &str) -> RememberRequest {
    let turn = NewTurn {
        session: SessionId::new("s1").unwrap(),
        external_id: Some(ExternalId::new("m-1").unwrap()),
        speaker: Speaker::new("Ada").unwrap(),
        role: Role::Tool,
        content: Content {
            text: "I adopted a dog.\u{0}".into(),
            media: vec![],
        },
        event_time: Some(node::instant()),
        metadata: [("k".to_owned(), "v".to_owned())].into(),
        trust: Trust::Web,
        replaces: Some(node::turn_id()),
    };
    let idempotency_key = Some(IdempotencyKey::new("key").unwrap());
    RememberRequest {
        space: space(name),
        turns: vec![turn.clone(), turn],
        idempotency_key,
    }
}

pub fn recall(name: &str) -> RecallRequest {
    let query = Query {
        text: "pets".into(),
        spaces: vec![space(name), space("team")],
        filter: filter(),
        k: 7,
        neighbours: 2,
        now: Some(node::instant()),
        session: Some(SessionId::new("s1").unwrap()),
        intent: None,
        explain: true,
        quality: None,
        vectors: None,
    };
    RecallRequest {
        wait_for: vec![node::batch()],
        ..RecallRequest::from(query)
    }
}

fn filter() -> TurnFilter {
    TurnFilter {
        sessions: vec![SessionId::new("s1").unwrap()],
        include_replaced: true,
        ..Default::default()
    }
}

fn second_page() -> PageRequest {
    PageRequest {
        limit: 50,
        after: Some(PageToken("next".into())),
    }
}

#[tokio::test]
async fn remember_and_recall() {
    let (node, client) = connected().await;
    let request = remember("ada");
    assert_eq!(
        client.remember(&context(), request.clone()).await,
        Ok(node::receipt(2))
    );
    assert_eq!(node.last().1, format!("{request:?}"));
    let request = recall("ada");
    assert_eq!(
        client.recall(&context(), request.clone()).await,
        Ok(node::found())
    );
    assert_eq!(node.last().1, format!("{request:?}"));
}

#[tokio::test]
async fn get_list_and_history() {
    let (node, client) = connected().await;
    let (ids, tokens) = ([node::turn_id()], [node::batch()]);
    assert_eq!(
        client.get(&context(), &space("ada"), &ids, &tokens).await,
        Ok(vec![node::turn("got")])
    );
    assert_eq!(node.last().1, format!("{ids:?} {tokens:?}"));
    let listed = client
        .list(&context(), &space("ada"), &filter(), second_page(), &tokens)
        .await;
    assert_eq!(listed, Ok(node::page(node::turn("listed"))));
    assert_eq!(
        node.last().1,
        format!("{:?} {:?} {tokens:?}", filter(), second_page())
    );
    let versions = client
        .history(&context(), &space("ada"), node::turn_id())
        .await;
    assert_eq!(versions, Ok(vec![node::turn("old"), node::turn("new")]));
}

#[tokio::test]
async fn forget() {
    let (node, client) = connected().await;
    let request = ForgetRequest {
        space: space("ada"),
        filter: filter(),
        everything: false,
        dry_run: true,
    };
    let receipt = client.forget(&context(), request.clone()).await.unwrap();
    assert_eq!((receipt.erased, receipt.dry_run), (node::erased(), true));
    assert_eq!(node.last().1, format!("{request:?}"));
}

#[tokio::test]
async fn spaces_and_sessions() {
    let (node, client) = connected().await;
    let settings = SpaceSettings {
        language: Some("de".into()),
        time_zone: "Europe/Zurich".parse().unwrap(),
        retention_days: Some(9),
        retention_turns: Some(1_000),
        retention_superseded_days: Some(7),
    };
    let put = client
        .put_space(&context(), &space("ada"), settings.clone())
        .await
        .unwrap();
    assert_eq!(put.settings, settings);
    assert_eq!(
        client.spaces(&context(), second_page()).await,
        Ok(node::page(node::listed()))
    );
    assert_eq!(node.last().1, format!("{:?}", second_page()));
    for held in [true, false] {
        let (call, ada) = (context(), space("ada"));
        let set = client.set_legal_hold(&call, &ada, held, "case 7".into());
        let hold = set.await.unwrap().hold.map(|hold| hold.reason);
        assert_eq!(hold, held.then(|| "case 7".to_owned()));
        assert_eq!(node.last().1, format!("{held} case 7"));
    }
    let sessions = client
        .sessions(&context(), &space("ada"), PageRequest::default())
        .await;
    assert_eq!(sessions, Ok(node::page(node::session())));
}

#[tokio::test]
async fn assemble_and_count_tokens() {
    let (node, client) = connected().await;
    let request = AssembleRequest {
        tokenizer: Some("cl100k_base".into()),
        wait_for: vec![node::batch()],
        narratives: vec![DerivationId::from_bytes([4; 16])],
        ..AssembleRequest::ungated(recall("ada").query, 500)
    };
    assert_eq!(
        client.assemble(&context(), request.clone()).await,
        Ok(node::assembled())
    );
    assert_eq!(node.last().1, format!("{request:?}"));
    let counts = client
        .count_tokens(&context(), "o200k_base", &["ab".into(), String::new()])
        .await;
    assert_eq!(counts.unwrap().counts, [2, 0]);
    let gate = GateRequest {
        text: "hi".into(),
        prompt: Prompt::Unknown,
        spaces: vec![space("ada")],
        policy: Policy::default(),
    };
    let gated = client.gate(&context(), gate.clone()).await;
    assert_eq!(
        (gated, node.last().1),
        (Ok(node::gated()), format!("{gate:?}"))
    );
    let profiles = client.model_profiles(&context()).await;
    assert_eq!(profiles, Ok(vec![node::profile()]));
    let put = client.put_model_profile(&context(), node::profile()).await;
    assert_eq!(put, Ok((node::profile(), 2)));
    let fault = client
        .count_tokens(&context(), "unknown", &["ab".into()])
        .await
        .unwrap_err();
    assert_eq!(fault.reason, "TOKENIZER_UNKNOWN");
}

#[tokio::test]
async fn status_and_dead_letters() {
    let (node, client) = connected().await;
    assert_eq!(client.status(&context()).await, Ok(node::status()));
    let letters = client
        .dead_letters(&context(), Some(&space("ada")), second_page())
        .await;
    assert_eq!(letters, Ok(node::page(node::letter(&context()))));
    assert_eq!(
        client.replay(&context(), &space("ada"), &[3, 4]).await,
        Ok(2)
    );
    assert_eq!(node.last().1, "[3, 4]");
}

#[tokio::test]
async fn a_fault_comes_back_as_it_was_raised() {
    let (_, client) = connected().await;
    assert_eq!(
        client.recall(&context(), recall("missing")).await,
        Err(node::missing())
    );
    assert_eq!(
        client.remember(&context(), remember("missing")).await,
        Err(node::missing())
    );
}

#[tokio::test]
async fn a_wrong_request_is_refused_before_it_reaches_the_node() {
    let (node, client) = connected().await;
    let mut request = remember("ada");
    request.turns[1].content.text = String::new();
    let fault = client.remember(&context(), request).await.unwrap_err();
    assert_eq!(fault.fields[0].field, "turns[1].text");
    assert!(node.asked.lock().unwrap().is_empty());
}
