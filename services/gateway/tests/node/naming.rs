//! Which names are of one entity.

use std::collections::{BTreeMap, HashSet};
use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_consolidator::{LocalConsolidator, Relater};
use memfleet_domain::derivation::{Body, Derivation};
use memfleet_domain::graph::{Entity, Triplet};
use memfleet_domain::ids::EntityId;
use memfleet_domain::time::AsOf;
use memfleet_domain::{FaultKind, Scope};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::conformance::samples::instant;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::graph::{Graph, GraphWrite, TripletQuery};
use memfleet_ports::knowledge::{Knowledge, Stage};
use memfleet_ports::knowledge_api::{
    KnowledgeService, MergeRequest, Merged, ProfileQuery, Split, SplitRequest, TimelineOf,
    TimelineQuery,
};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::refresher::ForgetRequest;
use memfleet_ports::store::Result;
use memfleet_sqlite::SqliteStore;
use memfleet_workers::Agent;

use crate::auditing::log;
use crate::relating::{asked, relate, stating, told};
use crate::roles::{Node, acme, call_of, space};

/// Robert is called Bob, who lives in Rome; Robert knows Cleo. Rob lives in Oslo.
const STATED: [(&str, &str, &str); 4] = [
    ("Robert", "nickname", "Bob"),
    ("Bob", "residence", "Rome"),
    ("Robert", "know", "Cleo"),
    ("Rob", "residence", "Oslo"),
];

struct Town {
    node: Node,
    facts: Vec<Derivation>,
}

impl Town {
    async fn of(stated: &[(&str, &str, &str)]) -> Self {
        let (node, facts, triplets) = stating(stated).await;
        relate(&node, stated, &triplets).await;
        node.clock.set(100);
        Self { node, facts }
    }

    /// An entity with its names, the one that it goes by first.
    async fn names(&self, name: &str) -> Vec<String> {
        let request = asked(name, None);
        let found = self.node.gateway.entity(&acme(), &request).await.unwrap();
        let names = found.names.into_iter().map(|it| it.entity.name);
        std::iter::once(found.entity.name).chain(names).collect()
    }

    async fn homes(&self, name: &str) -> HashSet<String> {
        let (call, request) = (acme(), asked(name, None));
        let page = PageRequest::default();
        let found = self.node.gateway.neighbours(&call, &request, page);
        let edges = found.await.unwrap().edges.items;
        let homes = edges
            .iter()
            .filter(|it| it.triplet.predicate == "residence");
        homes.map(told).collect()
    }

    /// Lets the graph follow by itself.
    async fn follow(&self) -> ! {
        let store = &self.node.store;
        let relater = Relater {
            consolidator: Arc::new(LocalConsolidator {
                ledger: store.clone(),
                feed: store.clone(),
                knowledge: store.clone(),
                indexer: self.node.refresher.indexer.clone(),
                events: self.node.refresher.events.clone(),
                clock: self.node.clock.clone(),
                shelf: Arc::default(),
            }),
            graph: store.clone(),
        };
        let scope = acme().scope(&space("ada"));
        loop {
            // Whoever is dropped in the middle of it holds nothing.
            let (now, until) = (instant(100), instant(100));
            let claimed = store.claim(&scope, Stage::Relate, now, until).await;
            relater
                .work(&scope, claimed.unwrap().unwrap())
                .await
                .unwrap();
            store.release(&scope, Stage::Relate, until).await.unwrap();
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    async fn merge(&self, entity: &str, other: &str) -> Merged {
        let request = merging(entity, other);
        let call = acme();
        tokio::select! {
            merged = self.node.gateway.merge(&call, &request) => merged.unwrap(),
            never = self.follow() => never,
        }
    }

    async fn split(&self, entity: &str) -> Split {
        let request = SplitRequest {
            space: space("ada"),
            entity: entity.into(),
        };
        let call = acme();
        tokio::select! {
            split = self.node.gateway.split(&call, &request) => split.unwrap(),
            never = self.follow() => never,
        }
    }

    /// Lets the graph follow for as long as there is something.
    async fn catch_up(&self) {
        let scope = acme().scope(&space("ada"));
        let done = async {
            loop {
                let at = self.node.store.position(&scope, Stage::Relate).await;
                let at = at.unwrap().unwrap();
                if at.reached >= at.head {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = done => {}
            never = self.follow() => never,
        }
    }
}

fn merging(entity: &str, other: &str) -> MergeRequest {
    MergeRequest {
        space: space("ada"),
        entity: entity.into(),
        other: other.into(),
    }
}

#[tokio::test]
async fn a_name_that_a_fact_tells_is_read_with_the_others() {
    let town = Town::of(&STATED).await;
    for name in ["Bob", "robert"] {
        assert_eq!(town.names(name).await, ["Robert", "Bob"]);
        assert_eq!(
            town.homes(name).await,
            HashSet::from(["Bob residence Rome".into()])
        );
    }
    let query = ProfileQuery {
        space: space("ada"),
        about: "Robert".into(),
        as_of: AsOf::default(),
        wait_for: Vec::new(),
    };
    let page = PageRequest::default();
    let gateway = &town.node.gateway;
    let lines = gateway.profile(&acme(), &query, page.clone()).await;
    let facts: HashSet<_> = lines
        .unwrap()
        .page
        .items
        .iter()
        .map(|it| it.fact.id)
        .collect();
    let expected = town.facts[..3].iter().map(|fact| fact.id);
    assert_eq!(facts, expected.collect());
    let query = TimelineQuery {
        space: space("ada"),
        of: TimelineOf::About("Bob".into()),
        begins: memfleet_domain::time::TimeRange::default(),
        known_at: None,
        wait_for: Vec::new(),
    };
    let entries = gateway.timeline(&acme(), &query, page).await.unwrap();
    assert_eq!(entries.page.items.len(), 3);
}

#[tokio::test]
async fn a_name_that_two_have_is_of_neither() {
    let town = Town::of(&[
        ("Robert", "nickname", "Bob"),
        ("Roberta", "nickname", "Bob"),
        ("Roberta", "full name", "Roberta Rossi"),
    ])
    .await;
    assert_eq!(town.names("Bob").await, ["Bob"]);
    assert_eq!(town.names("Robert").await, ["Robert"]);
    let both = ["Roberta", "Roberta Rossi"];
    assert_eq!(town.names("Roberta Rossi").await, both);
}

#[tokio::test]
async fn what_is_merged_is_one_until_it_is_undone() {
    let town = Town::of(&STATED).await;
    let merged = town.merge("Bob", "Rob").await;
    assert_eq!(merged.entity.entity.name, "Robert");
    assert_eq!(town.names("Rob").await, ["Robert", "Bob", "Rob"]);
    let homes = ["Bob residence Rome", "Rob residence Oslo"];
    let homes = HashSet::from(homes.map(String::from));
    assert_eq!(town.homes("Robert").await, homes);
    // Said again, it changes nothing.
    assert_eq!(town.merge("Rob", "Robert").await.change, None);
    let change = merged.change.unwrap();
    let gateway = &town.node.gateway;
    gateway
        .revert(&acme(), &space("ada"), change)
        .await
        .unwrap();
    town.catch_up().await;
    assert_eq!(town.names("Rob").await, ["Rob"]);
    assert_eq!(town.names("Bob").await, ["Robert", "Bob"]);
}

#[tokio::test]
async fn a_name_that_is_split_off_stands_alone_whatever_a_fact_tells() {
    let town = Town::of(&STATED).await;
    let split = town.split("Bob").await;
    let parted: Vec<_> = split.parted.iter().map(|it| &*it.name).collect();
    assert_eq!(parted, ["Robert"]);
    assert_eq!(town.names("Bob").await, ["Bob"]);
    assert_eq!(town.names("Robert").await, ["Robert"]);
    let again = town.split("Bob").await;
    assert_eq!((again.parted.len(), again.change), (0, None));
    // And is merged again, as another version of the same word.
    assert!(town.merge("Robert", "Bob").await.change.is_some());
    assert_eq!(town.names("Bob").await, ["Robert", "Bob"]);
    let scope = acme().scope(&space("ada"));
    let id = memfleet_domain::ids::DerivationId::of_identity(
        memfleet_domain::ids::EntityId::of_key("bob"),
        memfleet_domain::ids::EntityId::of_key("robert"),
    );
    let versions = town.node.store.versions(&scope, id).await.unwrap();
    let said = versions.iter().map(|version| match &version.body {
        Body::Identity(identity) => identity.same,
        _ => panic!("an identity"),
    });
    assert_eq!(said.collect::<Vec<_>>(), [false, true]);
}

/// An entity's id is a digest of its name: whoever guesses that finds it again.
#[tokio::test]
async fn the_log_of_a_merge_and_a_split_has_nothing_of_the_names() {
    let town = Town::of(&STATED).await;
    town.merge("Bob", "Rob").await;
    town.split("Bob").await;
    let records = log(&town.node, &acme()).await;
    let begun = records.iter();
    let begun = begun.filter(|record| record.kind == AuditKind::CorrectionBegun);
    let details: Vec<_> = begun.map(|record| &record.detail).collect();
    let of = |names: &str| BTreeMap::from([("names".to_owned(), names.to_owned())]);
    assert_eq!(details, [&of("merged"), &of("split")]);
}

/// A graph that tells of an entity as often as it is asked for.
struct Repeating(Arc<SqliteStore>);

#[async_trait]
impl Graph for Repeating {
    async fn write(&self, scope: &Scope, write: GraphWrite) -> Result<()> {
        Graph::write(&*self.0, scope, write).await
    }

    async fn clear(&self, scope: &Scope) -> Result<()> {
        self.0.clear(scope).await
    }

    async fn check(&self) -> Result<()> {
        Graph::check(&*self.0).await
    }

    async fn entities(
        &self,
        scope: &Scope,
        prefix: &str,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        self.0.entities(scope, prefix, limit, after).await
    }

    async fn named(&self, scope: &Scope, ids: &[EntityId]) -> Result<Vec<Entity>> {
        let mut named = Vec::new();
        for id in ids {
            named.extend(self.0.named(scope, &[*id]).await?);
        }
        Ok(named)
    }

    async fn triplets(
        &self,
        scope: &Scope,
        query: TripletQuery<'_>,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        self.0.triplets(scope, query, limit, after).await
    }
}

#[tokio::test]
async fn names_that_several_triplets_join_are_split_once_whatever_the_graph_repeats() {
    let mut town = Town::of(&STATED).await;
    town.node.gateway.graph = Some(Arc::new(Repeating(town.node.store.clone())));
    // A fact joins them; after the merge a caller's word does too.
    for merges in [true, false] {
        let split = town.split("Bob").await;
        let parted: Vec<_> = split.parted.iter().map(|it| &*it.name).collect();
        assert_eq!(parted, ["Robert"]);
        assert_eq!(town.names("Bob").await, ["Bob"]);
        if merges {
            assert!(town.merge("Robert", "Bob").await.change.is_some());
            assert_eq!(town.names("Bob").await, ["Robert", "Bob"]);
        }
    }
}

#[tokio::test]
async fn a_merge_goes_with_the_turns_that_it_draws_on() {
    let town = Town::of(&STATED).await;
    town.merge("Robert", "Rob").await;
    let forget = ForgetRequest {
        space: space("ada"),
        filter: TurnFilter {
            turns: vec![town.facts[3].turns[0]],
            ..TurnFilter::default()
        },
        everything: false,
        dry_run: false,
    };
    town.node.gateway.forget(&acme(), forget).await.unwrap();
    town.catch_up().await;
    assert_eq!(town.names("Robert").await, ["Robert", "Bob"]);
    let scope = acme().scope(&space("ada"));
    let page = town.node.store.entities(&scope, "rob", 9, None).await;
    let keys: Vec<_> = page.unwrap().items.into_iter().map(|it| it.key).collect();
    assert_eq!(keys, ["robert"]);
}

/// A graph whose server takes questions and answers none.
struct Hung;

#[async_trait]
impl Graph for Hung {
    async fn write(&self, _: &Scope, _: GraphWrite) -> Result<()> {
        pending().await
    }

    async fn clear(&self, _: &Scope) -> Result<()> {
        pending().await
    }

    async fn check(&self) -> Result<()> {
        pending().await
    }

    async fn entities(
        &self,
        _: &Scope,
        _: &str,
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Entity>> {
        pending().await
    }

    async fn named(&self, _: &Scope, _: &[EntityId]) -> Result<Vec<Entity>> {
        pending().await
    }

    async fn triplets(
        &self,
        _: &Scope,
        _: TripletQuery<'_>,
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Triplet>> {
        pending().await
    }
}

#[tokio::test]
async fn a_graph_that_hangs_costs_a_profile_the_other_names_and_no_more() {
    let mut town = Town::of(&STATED).await;
    town.node.gateway.graph = Some(Arc::new(Hung));
    town.node.gateway.options.names_within = std::time::Duration::from_millis(10);
    let query = ProfileQuery {
        space: space("ada"),
        about: "Bob".into(),
        as_of: AsOf::default(),
        wait_for: Vec::new(),
    };
    let (call, page) = (acme(), PageRequest::default());
    let lines = town.node.gateway.profile(&call, &query, page).await;
    let lines = lines.unwrap();
    let facts: Vec<_> = lines.page.items.iter().map(|it| it.fact.id).collect();
    assert_eq!(facts, [town.facts[1].id]);
    assert_eq!(lines.degraded.len(), 1);
    assert!(lines.degraded[0].starts_with("graph: "), "{lines:?}");
}

#[tokio::test]
async fn what_cannot_be_merged_is_said() {
    let town = Town::of(&STATED).await;
    let gateway = &town.node.gateway;
    let fault = gateway.merge(&acme(), &merging("Robert", "ROBERT")).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::InvalidArgument);
    let fault = gateway.merge(&acme(), &merging("Robert", "Eve")).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
    let other = call_of("umbrella", std::time::Duration::from_secs(1));
    let fault = gateway.merge(&other, &merging("Robert", "Bob")).await;
    assert_eq!(fault.unwrap_err().kind, FaultKind::NotFound);
}
