//! Memories from somewhere else are chosen and rendered by the same rules.

use memfleet_domain::assembly::{DropReason, Granularity, Reason};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{Role, Trust};
use memfleet_ports::assembly::{Assembly, Candidate, Prompt, RenderRequest};
use memfleet_ports::conformance::samples::instant;

use super::session;
use crate::roles::{Node, acme};

fn candidate(id: &str, text: &str) -> Candidate {
    Candidate {
        id: id.to_owned(),
        text: text.to_owned(),
        score: 1.0,
        relevance: None,
        source: "elsewhere".to_owned(),
        session: "s".to_owned(),
        speaker: "Ada".to_owned(),
        role: Role::User,
        event_time: None,
        recorded_at: None,
        granularity: Granularity::Verbatim,
        trust: Trust::User,
        valid: TimeRange::default(),
        lineage: Vec::new(),
        lineage_sessions: Vec::new(),
    }
}

fn render(candidates: Vec<Candidate>) -> RenderRequest {
    let mut policy = Policy::default();
    policy.format.template = Some("cited".to_owned());
    RenderRequest {
        candidates,
        query: "kettle".to_owned(),
        prompt: Prompt::Unknown,
        tokenizer: None,
        session: Some(session("now")),
        aliases: vec![session("before")],
        model: ModelProfile::default(),
        policy,
        patch: false,
        now: Some(instant(0)),
        nonce: Some("abcd1234".to_owned()),
    }
}

#[tokio::test]
async fn amp_087_amp_130_equal_requests_have_equal_bytes_in_any_order_of_candidates() {
    let node = Node::new().await;
    let texts = ["The kettle is red", "The kettle broke", "Bob has a kettle"];
    let all: Vec<_> = texts
        .iter()
        .zip(["a", "b", "c"])
        .map(|(text, id)| candidate(id, text))
        .collect();
    let first = node
        .gateway
        .render(&acme(), render(all.clone()))
        .await
        .unwrap();
    assert!(
        first.block.contains("[m1]") && first.block.contains("abcd1234"),
        "{}",
        first.block
    );
    let keys: Vec<_> = first
        .items
        .iter()
        .map(|item| item.citation_key.as_str())
        .collect();
    assert_eq!(keys, ["m1", "m2", "m3"]);
    let turned: Vec<_> = all.into_iter().rev().collect();
    let second = node.gateway.render(&acme(), render(turned)).await.unwrap();
    assert_eq!(first.block, second.block);
}

#[tokio::test]
async fn amp_099_what_was_derived_from_excluded_sessions_alone_is_left_out_and_mixed_lineage_says_so()
 {
    let node = Node::new().await;
    let derived = |id: &str, sessions: &[&str]| Candidate {
        session: String::new(),
        lineage_sessions: sessions.iter().map(|it| (*it).to_owned()).collect(),
        ..candidate(id, &format!("The {id} of the kettle"))
    };
    let own = Candidate {
        session: "now".to_owned(),
        ..candidate("own", "The kettle of now")
    };
    let all = vec![
        own,
        derived("alone", &["now", "before"]),
        derived("mixed", &["now", "old"]),
    ];
    let answer = node.gateway.render(&acme(), render(all)).await.unwrap();
    let ids: Vec<_> = answer
        .items
        .iter()
        .map(|item| (item.id.as_str(), item.mixed_lineage))
        .collect();
    assert_eq!(ids, [("mixed", true)]);
    let reasons: Vec<_> = answer.dropped.iter().map(|it| it.reason).collect();
    assert!(reasons.contains(&DropReason::CurrentSession), "{reasons:?}");
    assert!(
        reasons.contains(&DropReason::DerivedFromCurrent),
        "{reasons:?}"
    );
}

/// Every session that a memory may have, with every set of sessions that it may be derived from.
#[tokio::test]
async fn amp_099_every_lineage_within_the_excluded_sessions_is_left_out_and_every_mixed_one_says_so()
 {
    const EXCLUDED: [&str; 2] = ["now", "before"];
    const SESSIONS: [&str; 4] = ["now", "before", "old", "older"];
    let node = Node::new().await;
    let owns = SESSIONS.into_iter().chain([""]);
    let all = owns.flat_map(|own| (0..1 << SESSIONS.len()).map(move |set| (own, set)));
    let all: Vec<(&str, usize)> = all.collect();
    let derived_from = |set: usize| {
        let chosen = SESSIONS.into_iter().enumerate();
        chosen.filter_map(move |(at, session)| (set >> at & 1 == 1).then_some(session))
    };
    let candidates = all.iter().enumerate().map(|(at, (own, set))| Candidate {
        session: (*own).to_owned(),
        lineage_sessions: derived_from(*set).map(str::to_owned).collect(),
        ..candidate(&at.to_string(), &format!("Kettle number {at}"))
    });
    let mut request = render(candidates.collect());
    request.policy.budget.max_items = Some(0);
    request.policy.budget.max_items_per_session = Some(0);
    let answer = node.gateway.render(&acme(), request).await.unwrap();
    for (at, (own, set)) in all.into_iter().enumerate() {
        let id = at.to_string();
        let kept = answer.items.iter().find(|item| item.id == id);
        let dropped = answer.dropped.iter().find(|it| it.id == id);
        let outcome = (
            kept.map(|item| item.mixed_lineage),
            dropped.map(|it| it.reason),
        );
        let is_excluded = |session: &str| EXCLUDED.contains(&session);
        let mut whole = derived_from(set).chain(Some(own).filter(|own| !own.is_empty()));
        let expected = if is_excluded(own) {
            (None, Some(DropReason::CurrentSession))
        } else if own.is_empty() && set != 0 && whole.all(is_excluded) {
            (None, Some(DropReason::DerivedFromCurrent))
        } else {
            (Some(derived_from(set).any(is_excluded)), None)
        };
        assert_eq!(outcome, expected, "{own:?} {set:b}");
    }
}

#[tokio::test]
async fn amp_059_amp_060_the_threshold_is_for_what_has_a_calibrated_score() {
    let node = Node::new().await;
    let scored = |id: &str, relevance| Candidate {
        relevance: Some(relevance),
        score: 9.0,
        ..candidate(id, &format!("The {id} kettle"))
    };
    let mut request = render(vec![
        scored("low", 0.1),
        scored("edge", 0.5),
        scored("nan", f32::NAN),
    ]);
    request.policy.gating.relevance = Some(0.5);
    let answer = node.gateway.render(&acme(), request).await.unwrap();
    let ids: Vec<_> = answer.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids, ["edge"]);
    let gate = answer.gates.last().unwrap();
    assert_eq!((gate.best_score, gate.threshold), (Some(0.5), Some(0.5)));
    let mut none = render(vec![scored("low", 0.1)]);
    none.policy.gating.relevance = Some(0.5);
    let answer = node.gateway.render(&acme(), none).await.unwrap();
    assert_eq!(answer.reason, Some(Reason::BelowThreshold));
    assert_eq!(answer.gates.last().unwrap().best_score, Some(0.1));
}

#[tokio::test]
async fn amp_125_a_block_as_it_is_rendered_is_told_apart_when_it_comes_back() {
    let node = Node::new().await;
    let answer = node
        .gateway
        .render(&acme(), render(vec![candidate("a", "The kettle is red")]))
        .await
        .unwrap();
    let sent = format!("Where is it?\n\n{}", answer.block);
    assert_eq!(
        memfleet_provider::query::without_blocks(&sent),
        "Where is it?"
    );
}

#[tokio::test]
async fn amp_108_a_nonce_of_another_form_is_refused_and_never_means_no_delimiters() {
    let node = Node::new().await;
    for nonce in ["ab!", "ab", "018f2b6c-7a35-8d6e", "é1234", &"a".repeat(65)] {
        let request = RenderRequest {
            nonce: Some(nonce.to_owned()),
            ..render(vec![candidate("1", "A kettle")])
        };
        let fault = node.gateway.render(&acme(), request).await.unwrap_err();
        assert_eq!(fault.fields[0].field, "nonce", "{nonce}");
    }
}

#[tokio::test]
async fn amp_108_equal_candidates_get_equal_bytes_without_a_nonce_of_the_caller() {
    let node = Node::new().await;
    let rendered = |texts: [&'static str; 2]| {
        let node = &node;
        async move {
            let mut request = render(vec![candidate("a", texts[0]), candidate("b", texts[1])]);
            request.nonce = None;
            node.gateway.render(&acme(), request).await.unwrap()
        }
    };
    let one = rendered(["The kettle is red", "The kettle broke"]).await;
    let same = rendered(["The kettle is red", "The kettle broke"]).await;
    let other = rendered(["The kettle is red", "The kettle works"]).await;
    assert_eq!(one.block, same.block);
    assert_ne!(one.nonce, other.nonce);
}
