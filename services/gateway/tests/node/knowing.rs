//! What is derived, read on both time axes, corrected and undone. Facts are written as the agents write them.

use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, ExchangeName};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::assembly::Assembly;
use memfleet_ports::conformance::knowledge::{closing, conflict, deriving, fact};
use memfleet_ports::conformance::samples::{instant, session};
use memfleet_ports::exchanges::Exchanges;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::Audit;
use memfleet_ports::knowledge::{Applied, Knowledge, Work};
use memfleet_ports::knowledge_api::{
    Correction, FactQuery, KnowledgeService, ProfileLine, ProfileQuery, TimelineOf, TimelineQuery,
    UpdateRequest,
};
use memfleet_ports::ledger::Ledger;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::tools::Tools;

use crate::assembling::assemble;
use crate::roles::{Node, acme, brief, recall, said, space};
use crate::tools::search;

/// Ada lived in Rome from second 10 on and in Oslo from second 20 on; the conflict was settled at second 30, and it is second 1,000.
pub struct Moved {
    pub node: Node,
    pub rome: Derivation,
    pub oslo: Derivation,
    pub settling: ChangeId,
}

pub async fn moved() -> Moved {
    let node = Node::new().await;
    let scope = acme().scope(&space("ada"));
    let told = vec![said("I live in Rome."), said("I moved to Oslo.")];
    let receipt = node.told("ada", told).await;
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let rome = fact(&turns[0].accepted, "Ada", "Rome", instant(10));
    let oslo = fact(&turns[1].accepted, "Ada", "Oslo", instant(20));
    let settle = closing(&rome, &oslo, 30);
    let settling = settle.change.id;
    let found = conflict(&rome, &oslo);
    for work in [
        Work {
            rewrites: vec![deriving(&[&rome]), deriving(&[&oslo])],
            found: vec![found.clone()],
            ..Work::default()
        },
        Work {
            rewrites: vec![settle],
            settled: vec![(found.id, Status::Settled)],
            ..Work::default()
        },
    ] {
        let applied = node.store.apply(&scope, work).await.unwrap();
        assert_ne!(applied, Applied::Stale);
    }
    node.clock.set(1_000);
    Moved {
        node,
        rome,
        oslo,
        settling,
    }
}

fn query() -> FactQuery {
    FactQuery {
        space: space("ada"),
        about: None,
        attribute: None,
        turns: Vec::new(),
        as_of: AsOf::default(),
        ended: false,
        wait_for: Vec::new(),
    }
}

pub fn correction(id: DerivationId, correction: Correction) -> UpdateRequest {
    UpdateRequest {
        space: space("ada"),
        id,
        version: None,
        correction,
    }
}

pub fn says(text: &str, value: &str) -> Correction {
    Correction::Says {
        text: Some(text.to_owned()),
        value: Some(value.to_owned()),
        valid: None,
    }
}

impl Moved {
    /// The texts of the facts that match.
    async fn facts(&self, query: FactQuery) -> Vec<String> {
        let call = acme();
        let facts = self
            .node
            .gateway
            .facts(&call, &query, PageRequest::default());
        let facts = facts.await.unwrap().items;
        facts
            .iter()
            .map(|fact| fact.fact().unwrap().text.clone())
            .collect()
    }

    async fn update(&self, request: UpdateRequest) -> Result<Derivation, Fault> {
        self.node.gateway.update(&acme(), request).await
    }

    /// A fact as a caller corrected it.
    pub async fn corrected(&self, id: DerivationId) -> Derivation {
        let correction = correction(id, says("Ada lives in Bergen.", "Bergen"));
        self.update(correction).await.unwrap()
    }

    async fn revert(&self, change: ChangeId) -> Result<ChangeId, Fault> {
        let (call, ada) = (acme(), space("ada"));
        let reverted = self.node.gateway.revert(&call, &ada, change);
        reverted.await.map(|recorded| recorded.change.id)
    }

    async fn status(&self) -> Status {
        let (call, ada, page) = (acme(), space("ada"), PageRequest::default());
        let conflicts = self.node.gateway.conflicts(&call, &ada, &[], page);
        conflicts.await.unwrap().items[0].conflict.status
    }
}

/// Texts of the facts of a profile of Ada, and the lines.
async fn profile(moved: &Moved, as_of: AsOf) -> (Vec<String>, Vec<ProfileLine>) {
    let query = ProfileQuery {
        space: space("ada"),
        about: "ADA".into(),
        as_of,
        wait_for: Vec::new(),
    };
    let call = acme();
    let page = PageRequest::default();
    let lines = moved.node.gateway.profile(&call, &query, page).await;
    let lines = lines.unwrap().page.items;
    let texts = lines.iter().map(|it| it.fact.fact().unwrap().text.clone());
    (texts.collect(), lines)
}

#[tokio::test]
async fn a_profile_is_what_holds_with_who_said_so() {
    let moved = moved().await;
    let (texts, lines) = profile(&moved, AsOf::default()).await;
    assert_eq!(texts, ["Ada lives in Oslo."]);
    // The sample's evidence is the first four bytes.
    assert_eq!(lines[0].evidence.quote, "I mo");
    assert_eq!(lines[0].evidence.turn, moved.oslo.turns[0]);
    assert_eq!(lines[0].conflicts, []);
    let then = AsOf {
        happened_by: Some(instant(15)),
        known_at: None,
    };
    assert_eq!(profile(&moved, then).await.0, ["Ada lives in Rome."]);
}

#[tokio::test]
async fn a_fact_in_doubt_says_so_in_a_profile() {
    let moved = moved().await;
    let (node, scope) = (&moved.node, acme().scope(&space("ada")));
    let receipt = node.told("ada", vec![said("I live in Bergen.")]).await;
    let turns = node.store.turns(&scope, &[receipt.turns[0].id]).await;
    let bergen = fact(&turns.unwrap()[0].accepted, "Ada", "Bergen", instant(25));
    let doubt = conflict(&moved.oslo, &bergen);
    let work = Work {
        rewrites: vec![deriving(&[&bergen])],
        found: vec![doubt.clone()],
        ..Work::default()
    };
    node.store.apply(&scope, work).await.unwrap();
    let (texts, lines) = profile(&moved, AsOf::default()).await;
    assert_eq!(texts, ["Ada lives in Oslo.", "Ada lives in Bergen."]);
    let in_doubt: Vec<_> = lines.iter().map(|line| line.conflicts.clone()).collect();
    assert_eq!(in_doubt, [[doubt.id], [doubt.id]]);
    let work = Work {
        settled: vec![(doubt.id, Status::Settled)],
        ..Work::default()
    };
    node.store.apply(&scope, work).await.unwrap();
    let (_, lines) = profile(&moved, AsOf::default()).await;
    assert!(lines.iter().all(|line| line.conflicts.is_empty()));
}

#[tokio::test]
async fn nobody_of_whom_nothing_is_known_has_a_profile_and_no_space_is_made_up() {
    let moved = moved().await;
    let query = |space_| ProfileQuery {
        space: space(space_),
        about: "Ben".into(),
        as_of: AsOf::default(),
        wait_for: Vec::new(),
    };
    let (call, page) = (acme(), PageRequest::default());
    let gateway = &moved.node.gateway;
    let found = gateway.profile(&call, &query("ada"), page.clone()).await;
    assert_eq!(found.unwrap().page.items, []);
    let fault = gateway.profile(&call, &query("eve"), page).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_timeline_is_what_began_when() {
    let moved = moved().await;
    let read = async |of, begins| {
        let query = TimelineQuery {
            space: space("ada"),
            of,
            begins,
            known_at: None,
            wait_for: Vec::new(),
        };
        let (call, page) = (acme(), PageRequest::default());
        let told = moved.node.gateway.timeline(&call, &query, page).await;
        let told = told.unwrap().page.items;
        let texts = told.iter().map(|it| it.fact().unwrap().text.clone());
        texts.collect::<Vec<_>>()
    };
    let both = ["Ada lives in Rome.", "Ada lives in Oslo."];
    let always = TimeRange::default();
    assert_eq!(read(TimelineOf::Space, always).await, both);
    assert_eq!(read(TimelineOf::About("Ada".into()), always).await, both);
    let nobody = TimelineOf::About("Ben".into());
    assert_eq!(read(nobody, always).await, [""; 0]);
    assert_eq!(read(TimelineOf::Topic("Oslo".into()), always).await, both);
    let later = TimeRange {
        start: Some(instant(11)),
        end: None,
    };
    assert_eq!(read(TimelineOf::Space, later).await, both[1..]);
}

#[tokio::test]
async fn facts_are_those_of_now_unless_another_time_is_asked_for() {
    let moved = moved().await;
    assert_eq!(moved.facts(query()).await, ["Ada lives in Oslo."]);
    let ended = FactQuery {
        ended: true,
        ..query()
    };
    assert_eq!(moved.facts(ended).await.len(), 2);
    let then = |known_at, happened_by: Option<i64>| FactQuery {
        as_of: AsOf {
            known_at,
            happened_by: happened_by.map(instant),
        },
        ..query()
    };
    assert_eq!(
        moved.facts(then(None, Some(15))).await,
        ["Ada lives in Rome."]
    );
    // Before the conflict was settled both were held for true.
    assert_eq!(
        moved.facts(then(Some(instant(25)), Some(50))).await.len(),
        2
    );
}

#[tokio::test]
async fn facts_are_found_by_a_name_however_it_is_written() {
    let moved = moved().await;
    let about = |name: &str| FactQuery {
        about: Some(name.to_owned()),
        attribute: Some("Residence".to_owned()),
        ..query()
    };
    assert_eq!(moved.facts(about("  ADA ")).await.len(), 1);
    assert!(moved.facts(about("Ben")).await.is_empty());
    let of_turn = FactQuery {
        turns: vec![moved.rome.turns[0]],
        ended: true,
        ..query()
    };
    assert_eq!(moved.facts(of_turn).await, ["Ada lives in Rome."]);
}

#[tokio::test]
async fn what_does_not_exist_is_not_found() {
    let moved = moved().await;
    let gateway = &moved.node.gateway;
    let nothing = DerivationId::from_bytes([3; 16]);
    let page = PageRequest::default;
    let elsewhere = FactQuery {
        space: space("nowhere"),
        ..query()
    };
    let faults = [
        gateway.facts(&acme(), &elsewhere, page()).await.err(),
        gateway
            .versions(&acme(), &space("ada"), nothing)
            .await
            .err(),
        gateway
            .changes(&acme(), &space("ada"), Some(nothing), page())
            .await
            .err(),
        gateway
            .update(&acme(), correction(nothing, Correction::Withdrawn))
            .await
            .err(),
        gateway
            .revert(&acme(), &space("ada"), ChangeId::from_bytes([3; 16]))
            .await
            .err(),
        gateway.rebuild(&acme(), &space("nowhere")).await.err(),
    ];
    for fault in faults {
        assert_eq!(fault.unwrap().kind, FaultKind::NotFound);
    }
}

#[tokio::test]
async fn conflicts_come_with_their_facts() {
    let moved = moved().await;
    let settled = moved
        .node
        .gateway
        .conflicts(
            &acme(),
            &space("ada"),
            &[Status::Settled],
            PageRequest::default(),
        )
        .await
        .unwrap()
        .items;
    assert_eq!(
        settled[0].conflict.id,
        ConflictId::of(moved.rome.id, moved.oslo.id)
    );
    assert_eq!(settled[0].older.as_ref().unwrap().version, 2);
    assert_eq!(settled[0].newer.as_ref().unwrap().id, moved.oslo.id);
}

#[tokio::test]
async fn a_correction_is_a_new_version_and_an_old_one_is_refused() {
    let moved = moved().await;
    let request = correction(moved.oslo.id, says("Ada lives in Bergen.", "Bergen"));
    let seen = UpdateRequest {
        version: Some(1),
        ..request
    };
    let corrected = moved.update(seen.clone()).await.unwrap();
    assert_eq!(corrected.version, 2);
    assert_eq!(corrected.fact().unwrap().claim.value, "bergen");
    assert_eq!(moved.facts(query()).await, ["Ada lives in Bergen."]);
    let fault = moved.update(seen).await.unwrap_err();
    assert_eq!(
        (fault.kind, fault.reason.as_ref()),
        (FaultKind::FailedPrecondition, "VERSION_CHANGED")
    );
    assert_eq!(fault.metadata["version"], "2");
    let (call, ada) = (acme(), space("ada"));
    let versions = moved.node.gateway.versions(&call, &ada, moved.oslo.id);
    assert_eq!(versions.await.unwrap().len(), 2);
}

#[tokio::test]
async fn an_end_that_is_corrected_leaves_the_start() {
    let moved = moved().await;
    let until = |end| {
        let valid = Some(TimeRange {
            start: None,
            end: Some(instant(end)),
        });
        correction(
            moved.oslo.id,
            Correction::Says {
                text: None,
                value: None,
                valid,
            },
        )
    };
    let fault = moved.update(until(20)).await.unwrap_err();
    assert_eq!(fault.fields[0].field, "valid.end");
    let corrected = moved.update(until(500)).await.unwrap();
    assert_eq!(corrected.valid.start, Some(instant(20)));
    assert!(moved.facts(query()).await.is_empty());
}

#[tokio::test]
async fn what_was_never_true_holds_at_no_instant() {
    let moved = moved().await;
    let withdrawn = correction(moved.oslo.id, Correction::Withdrawn);
    assert!(moved.update(withdrawn).await.unwrap().is_withdrawn());
    assert!(moved.facts(query()).await.is_empty());
}

#[tokio::test]
async fn undoing_what_settled_a_conflict_dismisses_it_once() {
    let moved = moved().await;
    let undone = moved.revert(moved.settling).await.unwrap();
    assert_eq!(moved.revert(moved.settling).await.unwrap(), undone);
    assert_eq!(moved.facts(query()).await.len(), 2);
    assert_eq!(moved.status().await, Status::Dismissed);
}

#[tokio::test]
async fn a_revert_can_be_undone() {
    let moved = moved().await;
    let undone = moved.revert(moved.settling).await.unwrap();
    moved.node.clock.set(2_000);
    moved.revert(undone).await.unwrap();
    assert_eq!(moved.facts(query()).await, ["Ada lives in Oslo."]);
}

#[tokio::test]
async fn a_change_on_which_another_stands_is_not_undone() {
    let moved = moved().await;
    let request = correction(moved.oslo.id, says("Ada lives in Bergen.", "Bergen"));
    moved.update(request).await.unwrap();
    let fault = moved.revert(moved.oslo.change).await.unwrap_err();
    assert_eq!(fault.reason, "CHANGED_SINCE");
}

#[tokio::test]
async fn a_read_waits_until_the_agents_have_seen_the_write() {
    let moved = moved().await;
    let receipt = moved.node.told("ada", vec![said("I like figs.")]).await;
    let waiting = FactQuery {
        wait_for: vec![receipt.batch],
        ..query()
    };
    // No agent runs on this node.
    let (call, page) = (brief(), PageRequest::default());
    let fault = moved.node.gateway.facts(&call, &waiting, page);
    assert_eq!(fault.await.unwrap_err().kind, FaultKind::DeadlineExceeded);
}

#[tokio::test]
async fn a_rebuild_goes_on_until_it_is_done() {
    let moved = moved().await;
    let gateway = &moved.node.gateway;
    assert_eq!(
        gateway.rebuilding(&acme(), &space("ada")).await.unwrap(),
        None
    );
    let begun = gateway.rebuild(&acme(), &space("ada")).await.unwrap();
    assert!(begun.goal > 0);
    assert_eq!(
        gateway.rebuilding(&acme(), &space("ada")).await.unwrap(),
        Some(begun)
    );
}

#[tokio::test]
async fn a_fact_that_is_no_statement_marks_and_moves_nothing() {
    let moved = moved().await;
    let request = recall("ada", "Where does Ada live? Ada lives in Rome", &[]);
    let found = moved.node.gateway.recall(&acme(), request).await.unwrap();
    let hits = &found.hits;
    assert_eq!(hits[0].turn.accepted.id, moved.rome.turns[0]);
    assert!(hits.iter().all(|hit| hit.outdated.is_none()));
    assert!(hits.iter().all(|hit| hit.facts.len() == 1));
}

#[tokio::test]
async fn a_block_says_what_a_caller_corrected() {
    let moved = moved().await;
    moved.corrected(moved.oslo.id).await;
    let block = async || {
        let assembled = assemble("ada", "Where does Ada live?", 400);
        let assembled = moved.node.gateway.assemble(&acme(), assembled).await;
        assembled.unwrap().block
    };
    let corrected = block().await;
    assert!(
        corrected.contains("(corrected: Ada lives in Bergen.): I moved to Oslo."),
        "{corrected}"
    );
    let withdrawn = correction(moved.oslo.id, Correction::Withdrawn);
    moved.update(withdrawn).await.unwrap();
    let wrong = block().await;
    assert!(
        wrong.contains("(this was wrong): I moved to Oslo."),
        "{wrong}"
    );
}

#[tokio::test]
async fn a_correction_is_shown_whatever_the_query_asks_for() {
    let moved = moved().await;
    moved.corrected(moved.oslo.id).await;
    for query in ["What has Ada done?", "Tell me about Oslo.", "moved"] {
        let request = assemble("ada", query, 400);
        let assembled = moved.node.gateway.assemble(&acme(), request).await;
        let block = assembled.unwrap().block;
        assert!(
            block.contains("(corrected: Ada lives in Bergen.): I moved to Oslo."),
            "{query}: {block}"
        );
    }
}

#[tokio::test]
async fn a_correction_that_was_shown_goes_with_any_turn_of_its_fact() {
    let node = Node::new().await;
    let scope = acme().scope(&space("ada"));
    let told = [
        "My sister Zebulonia moved to Lisbon.",
        "Her house is in Porto.",
    ];
    let receipt = node.told("ada", told.map(said).to_vec()).await;
    let ids: Vec<_> = receipt.turns.iter().map(|turn| turn.id).collect();
    let turns = node.store.turns(&scope, &ids).await.unwrap();
    let mut home = fact(&turns[1].accepted, "Zebulonia", "Porto", instant(10));
    home.turns.push(ids[0]);
    let work = Work {
        rewrites: vec![deriving(&[&home])],
        ..Work::default()
    };
    assert_ne!(
        node.store.apply(&scope, work).await.unwrap(),
        Applied::Stale
    );
    let correction = correction(home.id, says("Zebulonia lives in Faro.", "Faro"));
    node.gateway.update(&acme(), correction).await.unwrap();

    let only = |id| TurnFilter {
        turns: vec![id],
        ..TurnFilter::default()
    };
    let asked = "Where does Zebulonia live?";
    let mut request = assemble("ada", asked, 400);
    request.query.filter = only(ids[1]);
    request.query.session = Some(session("later"));
    request.exchange = ExchangeName::new("e1").ok();
    let given = node.gateway.assemble(&acme(), request).await.unwrap();
    let mut call = search("c1", asked);
    (call.session, call.filter) = (session("later"), only(ids[1]));
    call.exchange = ExchangeName::new("e2").unwrap();
    let result = node.gateway.execute_tool(&acme(), call).await.unwrap();
    for shown in [&given.block, &result.text] {
        let correction = "(corrected: Zebulonia lives in Faro.)";
        assert!(shown.contains(correction), "{shown}");
    }
    let forget = ForgetRequest {
        space: space("ada"),
        filter: only(ids[0]),
        everything: false,
        dry_run: false,
    };
    node.gateway.forget(&acme(), forget).await.unwrap();

    let (tenant, later) = (acme().tenant, session("later"));
    for name in ["e1", "e2"] {
        let name = ExchangeName::new(name).unwrap();
        let kept = Exchanges::get(&*node.store, &tenant, &later, &name, instant(0));
        let kept = kept.await.unwrap().unwrap();
        assert!(kept.forgotten, "{name}: {}", kept.exchange.state);
    }
    let (filter, page) = (InjectionFilter::default(), PageRequest::default());
    let listed = node
        .gateway
        .injections(&acme(), filter, page)
        .await
        .unwrap();
    let forgotten: Vec<_> = listed.items.iter().map(|it| it.forgotten).collect();
    assert_eq!(forgotten, [true, true]);
}

#[tokio::test]
async fn a_corrected_sentence_is_a_statement_in_its_own_words() {
    let moved = moved().await;
    let says = Correction::Says {
        text: Some("Bergen, mostly.".to_owned()),
        value: None,
        valid: None,
    };
    let request = correction(moved.oslo.id, says);
    let corrected = moved.update(request).await.unwrap();
    let fact = corrected.fact().unwrap();
    assert_eq!(
        (&*fact.text, &*fact.claim.value),
        ("Bergen, mostly.", "bergen mostly")
    );
    assert!(fact.is_statement() && fact.clause.is_none());
}
