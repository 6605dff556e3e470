//! The gates before the search, in a whole assembly and alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{Gate, GateMode, GateOutcome, Reason};
use memfleet_domain::policy::Policy;
use memfleet_domain::turn::Role;
use memfleet_gateway::Gateway;
use memfleet_ports::assembly::{AssembleRequest, Assembly, GateRequest, Prompt};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Query, Retriever};
use memfleet_ports::testing::WordEmbedder;

use super::{kettle, message, prompted, user};
use crate::roles::{Node, acme, space};

/// Counts searches.
struct Counting {
    retriever: Arc<dyn Retriever>,
    asked: AtomicU32,
}

#[async_trait]
impl Retriever for Counting {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.retriever.search(context, query).await
    }
}

struct Counted {
    gateway: Gateway,
    searches: Arc<Counting>,
    embedder: Arc<WordEmbedder>,
    _node: Node,
}

async fn counted() -> Counted {
    let node = kettle().await;
    let searches = Arc::new(Counting {
        retriever: node.gateway.retriever.clone(),
        asked: AtomicU32::new(0),
    });
    let embedder = node.embedder.clone();
    let gateway = Gateway {
        retriever: searches.clone(),
        ..node.gateway.clone()
    };
    Counted {
        gateway,
        searches,
        embedder,
        _node: node,
    }
}

fn gated(text: &str) -> AssembleRequest {
    let mut request = prompted(vec![user(text)]);
    request.policy.gating.mode = None;
    request
}

#[tokio::test]
async fn amp_042_amp_050_what_rules_skip_is_neither_embedded_nor_searched_for() {
    let counted = counted().await;
    let embedded = counted.embedder.texts();
    for (text, reason) in [
        ("hey there!", Reason::Pleasantry),
        ("谢谢", Reason::Pleasantry),
        ("/clear", Reason::Command),
        (" \u{200b}\n", Reason::Empty),
    ] {
        let mut request = gated(text);
        // A prompt without visible text has no query; the words are given beside it.
        request.query.text = text.to_owned();
        let answer = counted.gateway.assemble(&acme(), request).await.unwrap();
        assert_eq!(answer.reason, Some(reason), "{text:?}");
        let gate = answer.gates.last().unwrap();
        assert_eq!((gate.gate, gate.outcome), (Gate::Rules, GateOutcome::Skip));
        assert!(!gate.version.is_empty() && !gate.rule.is_empty());
    }
    assert_eq!(counted.searches.asked.load(Ordering::SeqCst), 0);
    assert_eq!(counted.embedder.texts(), embedded);
}

#[tokio::test]
async fn amp_044_amp_051_amp_061_what_asks_for_memory_is_forced_by_a_named_rule_and_still_has_to_be_relevant()
 {
    let counted = counted().await;
    let mut request = gated("Do you remember what happened to my kettle?");
    request.policy.gating.relevance = Some(1.0);
    let answer = counted.gateway.assemble(&acme(), request).await.unwrap();
    let gate = &answer.gates[0];
    assert_eq!(gate.outcome, GateOutcome::Force);
    assert_eq!(gate.reason, Reason::MemoryReference);
    assert!(
        !gate.rule.is_empty() && !gate.pattern.is_empty(),
        "{gate:?}"
    );
    assert_eq!(answer.reason, Some(Reason::BelowThreshold));
    assert_eq!(answer.gates.last().unwrap().gate, Gate::Relevance);
}

#[tokio::test]
async fn amp_045_amp_046_amp_047_amp_048_content_passes_in_any_script_and_length() {
    let counted = counted().await;
    for text in [
        "update me on the kettle",
        "kettle",
        "水壶呢？",
        "والغلاية؟",
        "and the second one?",
    ] {
        let answer = counted
            .gateway
            .assemble(&acme(), gated(text))
            .await
            .unwrap();
        let skipped = answer
            .gates
            .iter()
            .any(|gate| gate.outcome == GateOutcome::Skip && gate.gate == Gate::Rules);
        assert!(!skipped, "{text}: {:?}", answer.gates);
    }
    assert_eq!(counted.searches.asked.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn gates_alone_say_what_they_would_say_before_a_search() {
    let counted = counted().await;
    let gate = |text: &str, prompt, mode| {
        let mut policy = Policy::default();
        policy.gating.mode = mode;
        let request = GateRequest {
            text: text.to_owned(),
            prompt,
            spaces: vec![space("ada")],
            policy,
        };
        let gateway = counted.gateway.clone();
        async move { gateway.gate(&acme(), request).await.unwrap() }
    };
    let thanks = gate("thanks a lot", Prompt::Unknown, None).await;
    assert_eq!((thanks.pass, thanks.reason), (false, Reason::Pleasantry));
    let messages = vec![message(Role::Assistant, "It broke."), user("and my dog?")];
    let asked = gate("", Prompt::Messages(messages), None).await;
    assert!(asked.pass, "{asked:?}");
    let after = |reply, answer| {
        let told = [
            user("mend it"),
            message(Role::Assistant, reply),
            user(answer),
        ];
        gate("", Prompt::Messages(told.to_vec()), None)
    };
    assert!(after("Shall I paint it?", "thanks").await.pass);
    assert!(after("I can paint it.", "lgtm").await.pass);
    assert!(!after("The handle is on.", "thanks").await.pass);
    let never = gate("where is it?", Prompt::Unknown, Some(GateMode::Never)).await;
    assert_eq!((never.pass, never.reason), (false, Reason::GateNever));
    let nothing = gate("", Prompt::Messages(vec![message(Role::System, "x")]), None).await;
    assert_eq!((nothing.pass, nothing.reason), (false, Reason::NoQueryText));
    assert_eq!(counted.searches.asked.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_is_pasted_around_a_question_is_not_searched_for() {
    let counted = counted().await;
    let log = "2025-03-01T12:00:01Z ERROR worker-3 the weather is fine 10.0.0.7:5432\n";
    for text in [
        format!("What happened to my kettle?\n{}", log.repeat(500)),
        format!("{}\nWhat happened to my kettle?", log.repeat(10)),
    ] {
        let mut request = gated(&text);
        request.query.k = 1;
        let answer = counted.gateway.assemble(&acme(), request).await.unwrap();
        assert!(answer.block.contains("kettle"), "{answer:?}");
        assert!(!answer.block.contains("weather"), "{answer:?}");
    }
}

#[tokio::test]
async fn amp_053_amp_055_the_query_is_embedded_once_for_gate_and_search_and_without_vectors_the_gate_abstains()
 {
    let counted = counted().await;
    let asked = || async {
        let before = counted.embedder.texts();
        let request = gated("What happened to my kettle?");
        let answer = counted.gateway.assemble(&acme(), request).await.unwrap();
        (answer, counted.embedder.texts() - before)
    };
    // The examples of the gate are embedded behind the first query; until they are, it abstains.
    let (first, _) = asked().await;
    let routing = first
        .gates
        .iter()
        .find(|gate| gate.gate == Gate::Routing)
        .unwrap();
    assert_eq!(
        (routing.outcome, routing.reason),
        (GateOutcome::Abstain, Reason::NoVectors)
    );
    while !counted.gateway.routing.is_idle() {
        tokio::task::yield_now().await;
    }
    let (second, embedded) = asked().await;
    assert_eq!(embedded, 1);
    let routing = second
        .gates
        .iter()
        .find(|gate| gate.gate == Gate::Routing)
        .unwrap();
    assert!(
        routing.margin.is_some() && !routing.version.is_empty(),
        "{routing:?}"
    );
    assert!(second.block.contains("broke"), "{}", second.block);
    counted.embedder.set_down(true);
    let (down, _) = asked().await;
    let routing = down
        .gates
        .iter()
        .find(|gate| gate.gate == Gate::Routing)
        .unwrap();
    assert_eq!(
        (routing.outcome, routing.reason),
        (GateOutcome::Abstain, Reason::NoVectors)
    );
}
