//! The embedding model changes while memory is searched: every answer is wholly of one model.

use std::cell::Cell;
use std::collections::HashSet;
use std::time::Duration;

use memfleet_constructor::SwitchSchedule;
use memfleet_domain::ids::TurnId;
use memfleet_domain::quality::SearchQuality;
use memfleet_ports::access::{Caller, Proof};
use memfleet_ports::admin::{Admin, ModelChange, ModelChangeStatus};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::memory::Memory;
use memfleet_ports::model_switch::SwitchGoal;
use memfleet_ports::testing::caller;

use crate::administering::{administrator, call_by, with_operator};
use crate::auditing::log;
use crate::roles::{Node, acme, recall, said};

const TURNS: usize = 60;

/// Words that each search asks for.
const QUERIES: [&str; 3] = ["garden door", "number 7 of the letters", "blue bicycle"];

fn operator() -> Context {
    let caller = Caller {
        is_operator: true,
        proof: Proof::Configured,
        ..caller("acme")
    };
    call_by(caller)
}

/// The hits of a search, to the last bit of each score.
type Answer = Vec<(TurnId, u32)>;

async fn answer(node: &Node, query: &str) -> Answer {
    let found = node.gateway.recall(&acme(), recall("a", query, &[])).await;
    let found = found.unwrap();
    assert_eq!(found.degraded, Vec::<String>::new());
    let hits = found.hits.iter();
    hits.map(|hit| (hit.turn.accepted.id, hit.score.to_bits()))
        .collect()
}

async fn answers(node: &Node) -> Vec<Answer> {
    let mut answers = Vec::new();
    for query in QUERIES {
        answers.push(answer(node, query).await);
    }
    answers
}

async fn filled() -> Node {
    let node = Node::new().await;
    node.embedder.pull_second();
    let words = ["the garden", "a door", "letters", "a blue bicycle", "rain"];
    let turns = (0..TURNS).map(|number| {
        let (one, other) = (words[number % 5], words[number / 5 % 5]);
        said(&format!("number {number} is of {one} and {other}"))
    });
    node.told("a", turns.collect()).await;
    node.settle().await;
    node
}

async fn change(node: &Node, change: ModelChange) -> ModelChangeStatus {
    let status = node.gateway.switch_model(&operator(), Some(change)).await;
    status.unwrap().unwrap()
}

/// Takes all steps that are due, each by a process that has just begun.
async fn carry_on(node: &Node) {
    loop {
        let mut schedule = SwitchSchedule::default();
        let embedded = node.backfill().await;
        let steps = node.switcher().round(&mut schedule).await.unwrap();
        if embedded == 0 && steps == 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Searches as long as the other goes on; the answers to each query.
async fn searching_during(node: &Node, work: impl Future<Output = ()>) -> Vec<HashSet<Answer>> {
    let is_over = Cell::new(false);
    let work = async {
        work.await;
        is_over.set(true);
    };
    let searching = async {
        let mut seen = vec![HashSet::new(); QUERIES.len()];
        while !is_over.get() {
            for (place, query) in QUERIES.into_iter().enumerate() {
                seen[place].insert(answer(node, query).await);
            }
        }
        seen
    };
    tokio::join!(work, searching).1
}

fn assert_of_one_model(seen: &[HashSet<Answer>], models: [&[Answer]; 2]) {
    for (place, answers) in seen.iter().enumerate() {
        for answer in answers {
            let mut models = models.iter();
            assert!(
                models.any(|model| model[place] == *answer),
                "{}",
                QUERIES[place]
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_of_one_model_at_every_step_of_a_change() {
    let node = filled().await;
    let second = node.embedder.second().model.clone();
    let old = answers(&node).await;
    let there = searching_during(&node, async {
        change(&node, ModelChange::Serve(Some(second))).await;
        carry_on(&node).await;
    });
    let there = there.await;
    let status = node
        .gateway
        .switch_model(&operator(), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (status.progress.serving, status.progress.done),
        (1, TURNS as u64)
    );
    assert!(status.progress.comparison.queries > 0);
    // The new index takes the place of the old one behind a search.
    let mut new = answers(&node).await;
    while new.iter().zip(&old).any(|(new, old)| new == old) {
        tokio::task::yield_now().await;
        new = answers(&node).await;
    }
    assert_of_one_model(&there, [&old, &new]);
    let back = searching_during(&node, async {
        change(&node, ModelChange::RollBack).await;
        carry_on(&node).await;
    });
    assert_of_one_model(&back.await, [&old, &new]);
    let forth = searching_during(&node, async {
        change(&node, ModelChange::Serve(None)).await;
        carry_on(&node).await;
        change(&node, ModelChange::Drop).await;
        carry_on(&node).await;
    });
    assert_of_one_model(&forth.await, [&old, &new]);
    assert_eq!(answers(&node).await, new);
    let status = node
        .gateway
        .switch_model(&operator(), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (status.order.goal, status.progress.beside),
        (SwitchGoal::Serve, 0)
    );
}

#[tokio::test]
async fn what_is_told_during_a_change_is_found_in_both_models() {
    let node = filled().await;
    let second = node.embedder.second().model.clone();
    change(&node, ModelChange::Compare(Some(second))).await;
    carry_on(&node).await;
    node.told("a", vec![said("a cello was bought")]).await;
    node.settle().await;
    carry_on(&node).await;
    for action in [ModelChange::Serve(None), ModelChange::RollBack] {
        change(&node, action).await;
        carry_on(&node).await;
        node.told("a", vec![said("the cello was tuned")]).await;
        node.settle().await;
        carry_on(&node).await;
        let found = node.found("a", "cello").await.unwrap();
        assert!(found[0].contains("cello"), "{found:?}");
        // Nothing is left without vectors of either.
        for space in [
            node.embedder.space().await.unwrap(),
            node.embedder.second().clone(),
        ] {
            use memfleet_ports::ledger::Ledger;
            assert_eq!(node.store.without_vectors(&space, 10).await, Ok(vec![]));
        }
    }
}

#[tokio::test]
async fn a_model_that_is_not_here_is_refused_and_nothing_changes() {
    let node = Node::new().await;
    let change = Some(ModelChange::Serve(Some("second sample".into())));
    let refused = node.gateway.switch_model(&operator(), change).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.reason, "MODEL_MISSING");
    assert!(
        refused
            .message
            .contains("memfleet model pull second sample")
    );
    let status = node.gateway.switch_model(&operator(), None).await;
    assert_eq!(status, Ok(None));
    for change in [ModelChange::RollBack, ModelChange::Drop] {
        let refused = node.gateway.switch_model(&operator(), Some(change)).await;
        assert_eq!(refused.unwrap_err().reason, "NO_MODEL_CHANGE");
    }
}

#[tokio::test]
async fn another_model_is_taken_once_a_half_built_one_is_given_up() {
    let node = filled().await;
    let first = node.embedder.space().await.unwrap().model;
    let second = node.embedder.second().model.clone();
    change(&node, ModelChange::Serve(Some(second))).await;
    let built = node.switcher().round(&mut SwitchSchedule::default()).await;
    assert_eq!(built, Ok(1));
    for wanted in [ModelChange::Serve(Some(first.clone())), ModelChange::Drop] {
        let refused = node.gateway.switch_model(&operator(), Some(wanted)).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.reason, "MODEL_CHANGE_UNDER_WAY");
        assert!(refused.message.contains("--roll-back"), "{refused}");
    }
    change(&node, ModelChange::RollBack).await;
    carry_on(&node).await;
    let status = change(&node, ModelChange::Serve(Some(first))).await;
    assert_eq!((status.progress.serving, status.progress.beside), (1, 0));
}

/// A space that served the second model from its first turn on has nothing to go back to.
#[tokio::test]
async fn vectors_for_balanced_searches_are_given_up_where_some_spaces_serve_the_second_model() {
    let node = filled().await;
    let second = node.embedder.second().clone();
    node.told("b", vec![said("Привет"), said("мир")]).await;
    node.settle().await;
    let status = change(&node, ModelChange::Compare(Some(second.model.clone()))).await;
    assert_eq!(status.progress.serving, 1);
    carry_on(&node).await;
    let mut asked = recall("a", QUERIES[0], &[]);
    asked.query.quality = Some(SearchQuality::Balanced);
    let found = node.gateway.recall(&acme(), asked).await.unwrap();
    assert_eq!(found.degraded, Vec::<String>::new());
    assert!(found.scorer.starts_with("fused-1("), "{}", found.scorer);
    change(&node, ModelChange::RollBack).await;
    carry_on(&node).await;
    let status = change(&node, ModelChange::Drop).await;
    assert_eq!((status.progress.beside, status.progress.serving), (1, 1));
    // Searches that began with these vectors have time to end.
    let mut schedule = SwitchSchedule::default();
    let switcher = node.switcher();
    assert_eq!(switcher.round(&mut schedule).await, Ok(0));
    tokio::time::pause();
    tokio::time::advance(Duration::from_mins(2)).await;
    tokio::time::resume();
    while switcher.round(&mut schedule).await.unwrap() > 0 {}
    let status = node.gateway.switch_model(&operator(), None).await;
    assert_eq!(status.unwrap().unwrap().progress.beside, 0);
}

/// And no record of those who only look.
#[tokio::test]
async fn an_order_is_in_the_audit_log_with_who_gave_it() {
    let (node, _, operator) = with_operator().await;
    let acme = administrator(&node, &operator, "acme").await;
    node.embedder.pull_second();
    let second = node.embedder.second().model.clone();
    let serve = Some(ModelChange::Serve(Some(second.clone())));
    let refused = node.gateway.switch_model(&acme, serve.clone()).await;
    assert_eq!(refused.unwrap_err().reason, "RIGHT_OPERATOR_MISSING");
    let back = Some(ModelChange::RollBack);
    for change in [serve, None, Some(ModelChange::Serve(None)), back] {
        let ordered = node.gateway.switch_model(&operator, change).await;
        ordered.unwrap();
    }
    let mut records = log(&node, &operator).await;
    records.retain(|record| record.kind == AuditKind::ModelSwitchBegun);
    let orders = [
        ("serve", "false"),
        ("serve", "true"),
        ("roll_back", "false"),
    ];
    assert_eq!(records.len(), orders.len());
    for (record, (goal, forced)) in records.iter().zip(orders) {
        assert_eq!(record.caller, operator.caller.as_ref().unwrap().name);
        let detail = [
            ("model", second.as_str()),
            ("goal", goal),
            ("drops", "false"),
            ("forced", forced),
            ("every_language", "false"),
        ];
        let detail = detail.map(|(name, it)| (name.to_owned(), it.to_owned()));
        assert_eq!(record.detail, detail.into());
    }
    let refused = log(&node, &acme).await;
    assert_eq!(
        refused.last().unwrap().detail["method"],
        "Admin.SwitchModel"
    );
}
