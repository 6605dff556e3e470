//! The graph against the facts that it follows.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::{DerivationId, EntityId};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::conformance::graph::{named, says, writing};
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery};
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::{GraphCheck, Maintenance};
use memfleet_sqlite::SqliteStore;
use tokio::sync::Notify;

use crate::relating::stating;
use crate::roles::{Node, acme, brief, call_of, space};

const STATED: [(&str, &str, &str); 3] = [
    ("Ada", "know", "Ben"),
    ("Ada", "residence", "Rome"),
    ("Ben", "residence", "Rome"),
];

/// Looks at all pages.
async fn checked(node: &Node, repair: bool) -> GraphCheck {
    let (mut all, mut after) = (GraphCheck::default(), None);
    loop {
        let (call, ada) = (acme(), space("ada"));
        let page = if repair {
            node.gateway.rebuild_graph(&call, &ada, after.as_ref())
        } else {
            node.gateway.verify_graph(&call, &ada, after.as_ref())
        };
        let page = page.await.unwrap();
        all.compared += page.compared;
        all.missing += page.missing;
        all.different += page.different;
        all.surplus += page.surplus;
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}

fn sound() -> GraphCheck {
    GraphCheck {
        compared: 3,
        ..GraphCheck::default()
    }
}

#[tokio::test]
async fn a_graph_that_was_lost_is_there_again() {
    let (node, ..) = stating(&STATED).await;
    let lost = GraphCheck {
        missing: 3,
        ..sound()
    };
    // Who only looks changes nothing.
    for repair in [false, true] {
        assert_eq!(checked(&node, repair).await, lost);
    }
    assert_eq!(checked(&node, false).await, sound());
}

#[tokio::test]
async fn what_nobody_says_goes_and_what_is_different_is_put_right() {
    let (node, facts, _) = stating(&STATED).await;
    checked(&node, true).await;
    let scope = acme().scope(&space("ada"));
    let [ada, ben, oslo] = ["Ada", "Ben", "Oslo"].map(named);
    let mut other = says(1, &ada, "dislike", &ben);
    other.fact = facts[0].id;
    let mut surplus = says(1, &ada, "know", &oslo);
    surplus.fact = facts[0].id;
    let nobody = says(9, &ben, "residence", &oslo);
    let wrong = writing(&[&ada, &ben, &oslo], &[other, surplus, nobody]);
    Graph::write(node.store.as_ref(), &scope, wrong)
        .await
        .unwrap();
    let found = GraphCheck {
        different: 1,
        surplus: 2,
        ..sound()
    };
    for repair in [false, true] {
        assert_eq!(checked(&node, repair).await, found);
    }
    assert_eq!(checked(&node, false).await, sound());
    let left = node.store.named(&scope, &[oslo.id]).await.unwrap();
    assert_eq!(left, []);
}

#[tokio::test]
async fn a_repair_waits_for_who_writes_the_graph_and_lets_it_go_on() {
    let (node, ..) = stating(&STATED).await;
    let scope = acme().scope(&space("ada"));
    let (now, until) = (instant(0), instant(100));
    let claim = async || node.store.claim(&scope, Stage::Relate, now, until).await;
    assert!(claim().await.unwrap().is_some());
    let ada = space("ada");
    let call = brief();
    let waited = node.gateway.rebuild_graph(&call, &ada, None);
    let waited: Result<_, Fault> = call.within("the graph", waited).await;
    assert_eq!(waited.unwrap_err().kind, FaultKind::DeadlineExceeded);
    let released = node.store.release(&scope, Stage::Relate, until).await;
    released.unwrap();
    checked(&node, true).await;
    assert!(claim().await.unwrap().is_some());
}

#[tokio::test]
async fn a_repair_of_a_space_that_is_forgotten_meanwhile_ends() {
    let (node, ..) = stating(&STATED).await;
    let scope = acme().scope(&space("ada"));
    let (now, until) = (instant(0), instant(100));
    let claimed = node.store.claim(&scope, Stage::Relate, now, until).await;
    assert!(claimed.unwrap().is_some());
    let (call, ada) = (acme(), space("ada"));
    let repairing = node.gateway.rebuild_graph(&call, &ada, None);
    let forgetting = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let everything = TurnFilter::default();
        node.erasure.erase(&scope, &everything).await.unwrap();
    };
    let (repaired, ()) = tokio::join!(repairing, forgetting);
    assert_eq!(repaired.unwrap_err().kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_repair_whose_caller_leaves_keeps_nobody_out() {
    let (mut node, ..) = stating(&STATED).await;
    let graph = Arc::new(Waiting {
        store: node.store.clone(),
        is_asked: Notify::new(),
        may_answer: Notify::new(),
    });
    node.gateway.graph = Some(graph.clone());
    let (call, ada) = (acme(), space("ada"));
    tokio::select! {
        _ = node.gateway.rebuild_graph(&call, &ada, None) => panic!("the graph answers nothing"),
        () = graph.is_asked.notified() => {}
    }
    graph.may_answer.notify_one();
    // The clock stands: no lease ends by itself.
    let scope = acme().scope(&ada);
    let claim = async || {
        node.store
            .claim(&scope, Stage::Relate, instant(0), instant(9))
            .await
    };
    while claim().await.unwrap().is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A graph that tells of triplets when it may.
struct Waiting {
    store: Arc<SqliteStore>,
    is_asked: Notify,
    may_answer: Notify,
}

#[async_trait]
impl Graph for Waiting {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> memfleet_ports::store::Result<()> {
        Graph::write(&*self.store, scope, write).await
    }

    async fn clear(&self, scope: &Scope) -> memfleet_ports::store::Result<()> {
        self.store.clear(scope).await
    }

    async fn check(&self) -> memfleet_ports::store::Result<()> {
        Ok(())
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> memfleet_ports::store::Result<Page<Entity>> {
        self.store.entities(scope, prefix, limit, after).await
    }

    async fn named(
        &self,
        scope: &Scope,
        ids: &[EntityId],
    ) -> memfleet_ports::store::Result<Vec<Entity>> {
        self.store.named(scope, ids).await
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> memfleet_ports::store::Result<Page<Triplet>> {
        self.is_asked.notify_one();
        self.may_answer.notified().await;
        self.store.triplets(scope, query, limit, after).await
    }
}

#[tokio::test]
async fn many_pages_are_one_graph() {
    let (node, facts, _) = stating(&STATED).await;
    let scope = acme().scope(&space("ada"));
    let [ada, ben] = ["Ada", "Ben"].map(named);
    let nobody = (0..2_500_u128).map(|number| {
        let mut triplet = says(1, &ada, "know", &ben);
        triplet.fact = DerivationId::from_bytes((number << 64).to_be_bytes());
        triplet
    });
    let nobody: Vec<_> = nobody.collect();
    let write = GraphWrite {
        entities: vec![ada, ben],
        triplets: nobody,
        ..GraphWrite::default()
    };
    Graph::write(node.store.as_ref(), &scope, write)
        .await
        .unwrap();
    let found = checked(&node, true).await;
    assert_eq!((found.missing, found.surplus), (3, 2_500));
    let query = TripletQuery::default();
    let left = Graph::triplets(node.store.as_ref(), &scope, query, 100, None);
    assert_eq!(left.await.unwrap().items.len(), facts.len());
}

#[tokio::test]
async fn a_token_of_another_call_and_another_tenants_space_are_refused() {
    let (node, ..) = stating(&STATED).await;
    let token = PageToken("else".into());
    let fault = node
        .gateway
        .verify_graph(&acme(), &space("ada"), Some(&token))
        .await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::InvalidArgument);
    let other = call_of("umbrella", std::time::Duration::from_secs(1));
    let fault = node
        .gateway
        .rebuild_graph(&other, &space("ada"), None)
        .await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
}
