//! The service Knowledge over a socket, and the refresher's part of it inside a fleet.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::derivation::{
    Body, Change, ChangeKind, Conflict, Contradiction, Derivation, Origin, Status,
};
use memfleet_domain::episode::{Episode, Trigger};
use memfleet_domain::graph::{Entity, Identity, Triplet};
use memfleet_domain::ids::{ChangeId, ConflictId, DerivationId, SessionId, SpaceId, Speaker};
use memfleet_domain::narrative::{Momentum, Narrative, Subplot};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_ports::conformance::graph::says;
use memfleet_ports::conformance::knowledge::{fact, fragment};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::{
    Correction, Disagreement, Edge, EntityName, EntityQuery, EntityRequest, EpisodeQuery, Evidence,
    FactQuery, KnowledgeService, MergeRequest, Merged, NamedEntity, NarrativeQuery, Neighbourhood,
    Paths, PathsQuery, ProfileLine, ProfileQuery, Split, SplitRequest, Story, TimelineOf,
    TimelineQuery, Told, UpdateRequest,
};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::PageRequest;

use crate::node::{Node, batch, graph_check, instant, missing, rebuilding, space, turn, turn_id};
use crate::{connected, context};

/// A fact that somebody corrected, and that something took the place of.
fn corrected() -> Derivation {
    let mut derivation = fact(&turn("I live in Rome.").accepted, "Ada", "Rome", instant());
    derivation.valid.end = derivation.valid.start;
    derivation.origin = Origin::Corrected;
    derivation.succeeded_by = Some(DerivationId::from_bytes([4; 16]));
    as_sent(derivation)
}

/// The wire has one interval of a fact.
fn as_sent(mut derivation: Derivation) -> Derivation {
    if let Body::Fact(draft) = &mut derivation.body {
        draft.valid = derivation.valid;
    }
    derivation
}

pub fn stated() -> Derivation {
    as_sent(fact(
        &turn("I live in Rome.").accepted,
        "Ada",
        "Rome",
        instant(),
    ))
}

fn episode() -> Derivation {
    let span = TimeRange {
        start: Some(instant()),
        end: Some(instant()),
    };
    let episode = Episode {
        session: SessionId::new("s1").unwrap(),
        title: "Moving".into(),
        summary: "Ada moved.".into(),
        participants: vec![Speaker::new("Ada").unwrap()],
        span,
        trigger: Some(Trigger::Pause),
        extractor: "rules-1".into(),
    };
    Derivation {
        id: DerivationId::of_episode(turn_id()),
        body: Body::Episode(Box::new(episode)),
        valid: TimeRange::default(),
        origin: Origin::Extracted("rules-1".into()),
        ..stated()
    }
}

fn narrative() -> Derivation {
    let ada = Speaker::new("Ada").unwrap();
    let narrative = Narrative {
        headline: "Moving to Rome".into(),
        owner: ada.clone(),
        characters: vec![ada, Speaker::new("Ben").unwrap()],
        subplots: vec![Subplot {
            headline: "The flat".into(),
            author: "rules-1".into(),
        }],
        momentum: Momentum::Inactive,
        author: "rules-1".into(),
    };
    Derivation {
        id: DerivationId::of_narrative(turn_id()),
        body: Body::Narrative(Box::new(narrative)),
        valid: TimeRange::default(),
        origin: Origin::Extracted("rules-1".into()),
        ..stated()
    }
}

fn story() -> Story {
    let mut told = fragment(&turn("I live in Rome.").accepted, narrative().id);
    if let Body::Fragment(fragment) = &mut told.body {
        fragment.subplot = Some(0);
    }
    Story {
        narrative: narrative(),
        fragments: page(told),
    }
}

fn edge() -> Edge {
    let (ada, rome) = (Entity::new("ada", "Ada"), Entity::new("rome", "Rome"));
    let triplet = Triplet {
        valid: stated().valid,
        ..says(7, &ada, "residence", &rome)
    };
    Edge {
        subject: ada,
        object: rome,
        triplet,
    }
}

fn neighbourhood() -> Neighbourhood {
    Neighbourhood {
        entity: edge().subject,
        edges: page(edge()),
    }
}

fn ada() -> NamedEntity {
    NamedEntity {
        entity: edge().subject,
        names: vec![EntityName {
            entity: Entity::new("addie", "Addie"),
            because: vec![stated().id, identity().id],
        }],
    }
}

pub fn identity() -> Derivation {
    let (entity, other) = (edge().subject, Entity::new("addie", "Addie"));
    Derivation {
        id: DerivationId::of_identity(entity.id, other.id),
        body: Body::Identity(Box::new(Identity {
            entity,
            other,
            same: false,
        })),
        valid: TimeRange::default(),
        origin: Origin::Corrected,
        ..stated()
    }
}

fn paths() -> Paths {
    Paths {
        paths: vec![vec![edge(), edge()], vec![edge()]],
        truncated: true,
    }
}

fn line() -> ProfileLine {
    let said = turn("I live in Rome.").accepted;
    ProfileLine {
        fact: stated(),
        evidence: Evidence {
            turn: said.id,
            session: said.session,
            speaker: said.speaker,
            quote: "I live in Rome".into(),
        },
        conflicts: vec![disagreement().conflict.id],
    }
}

fn disagreement() -> Disagreement {
    let (older, newer) = (stated().id, DerivationId::from_bytes([4; 16]));
    Disagreement {
        conflict: Conflict {
            id: ConflictId::of(older, newer),
            older,
            newer,
            contradiction: Contradiction::Functional,
            ends: Some(instant()),
            found_at: instant(),
            status: Status::Open,
            judge: "rules-1".into(),
            probability: Some(0.75),
        },
        older: Some(stated()),
        newer: None,
    }
}

fn recorded() -> Recorded {
    Recorded {
        change: Change {
            id: ChangeId::from_bytes([5; 16]),
            kind: ChangeKind::Reverted,
            at: instant(),
            reason: "a caller undid it".into(),
            conflict: Some(disagreement().conflict.id),
            reverts: Some(ChangeId::from_bytes([6; 16])),
        },
        wrote: vec![corrected(), episode()],
        reverted_by: Some(ChangeId::from_bytes([7; 16])),
    }
}

fn page<T>(item: T) -> Page<T> {
    Page {
        items: vec![item],
        next: Some(PageToken("next".into())),
    }
}

fn told<T>(item: T) -> Told<T> {
    Told {
        page: page(item),
        degraded: vec!["graph: away".into()],
    }
}

#[async_trait]
impl KnowledgeService for Node {
    async fn facts(
        &self,
        context: &Context,
        query: &FactQuery,
        asked: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {asked:?}"),
            page(stated()),
        )
    }

    async fn episodes(
        &self,
        context: &Context,
        query: &EpisodeQuery,
        asked: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {asked:?}"),
            page(episode()),
        )
    }

    async fn narratives(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        asked: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {asked:?}"),
            page(narrative()),
        )
    }

    async fn narrative(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        id: DerivationId,
        asked: PageRequest,
    ) -> Result<Story, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {id:?} {asked:?}"),
            story(),
        )
    }

    async fn profile(
        &self,
        context: &Context,
        query: &ProfileQuery,
        asked: PageRequest,
    ) -> Result<Told<ProfileLine>, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {asked:?}"),
            told(line()),
        )
    }

    async fn timeline(
        &self,
        context: &Context,
        query: &TimelineQuery,
        asked: PageRequest,
    ) -> Result<Told<Derivation>, Fault> {
        self.answer(
            context,
            &query.space,
            format!("{query:?} {asked:?}"),
            told(episode()),
        )
    }

    async fn entities(
        &self,
        context: &Context,
        query: &EntityQuery,
        asked: PageRequest,
    ) -> Result<Page<Entity>, Fault> {
        let found = page(edge().subject);
        self.answer(context, &query.space, format!("{query:?} {asked:?}"), found)
    }

    async fn neighbours(
        &self,
        context: &Context,
        request: &EntityRequest,
        asked: PageRequest,
    ) -> Result<Neighbourhood, Fault> {
        let called = format!("{request:?} {asked:?}");
        self.answer(context, &request.space, called, neighbourhood())
    }

    async fn paths(&self, context: &Context, query: &PathsQuery) -> Result<Paths, Fault> {
        self.answer(context, &query.from.space, format!("{query:?}"), paths())
    }

    async fn entity(
        &self,
        context: &Context,
        request: &EntityRequest,
    ) -> Result<NamedEntity, Fault> {
        self.answer(context, &request.space, format!("{request:?}"), ada())
    }

    async fn merge(&self, context: &Context, request: &MergeRequest) -> Result<Merged, Fault> {
        let merged = Merged {
            entity: ada(),
            change: Some(ChangeId::from_bytes([6; 16])),
        };
        self.answer(context, &request.space, format!("{request:?}"), merged)
    }

    async fn split(&self, context: &Context, request: &SplitRequest) -> Result<Split, Fault> {
        let split = Split {
            entity: ada().entity,
            parted: vec![edge().object],
            change: None,
        };
        self.answer(context, &request.space, format!("{request:?}"), split)
    }

    async fn versions(
        &self,
        context: &Context,
        space: &SpaceId,
        id: DerivationId,
    ) -> Result<Vec<Derivation>, Fault> {
        self.answer(
            context,
            space,
            format!("{id:?}"),
            vec![stated(), corrected(), identity()],
        )
    }

    async fn conflicts(
        &self,
        context: &Context,
        space: &SpaceId,
        statuses: &[Status],
        asked: PageRequest,
    ) -> Result<Page<Disagreement>, Fault> {
        self.answer(
            context,
            space,
            format!("{statuses:?} {asked:?}"),
            page(disagreement()),
        )
    }

    async fn changes(
        &self,
        context: &Context,
        space: &SpaceId,
        of: Option<DerivationId>,
        asked: PageRequest,
    ) -> Result<Page<Recorded>, Fault> {
        self.answer(
            context,
            space,
            format!("{of:?} {asked:?}"),
            page(recorded()),
        )
    }

    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        self.answer(context, space, format!("{change:?}"), recorded())
    }

    async fn update(&self, context: &Context, request: UpdateRequest) -> Result<Derivation, Fault> {
        self.answer(context, &request.space, format!("{request:?}"), corrected())
    }
}

impl Node {
    fn answer<T>(
        &self,
        context: &Context,
        space: &SpaceId,
        what: String,
        answer: T,
    ) -> Result<T, Fault> {
        self.note(context, what);
        match space.as_str() {
            "missing" => Err(missing()),
            _ => Ok(answer),
        }
    }
}

fn facts(name: &str) -> FactQuery {
    FactQuery {
        space: space(name),
        about: Some("Ada".into()),
        attribute: Some("residence".into()),
        turns: vec![turn_id()],
        as_of: AsOf {
            known_at: Some(instant()),
            happened_by: Some(instant()),
        },
        ended: false,
        wait_for: vec![batch()],
    }
}

pub fn update(correction: Correction) -> UpdateRequest {
    UpdateRequest {
        space: space("ada"),
        id: stated().id,
        version: Some(3),
        correction,
    }
}

#[tokio::test]
async fn queries_of_derived_memory_arrive_and_are_answered() {
    let (node, client) = connected().await;
    let (context, ada) = (context(), space("ada"));
    let asked = PageRequest {
        limit: 7,
        after: Some(PageToken("next".into())),
    };
    let found = client.facts(&context, &facts("ada"), asked.clone()).await;
    assert_eq!(found, Ok(page(stated())));
    assert_eq!(node.last().1, format!("{:?} {asked:?}", facts("ada")));
    let query = EpisodeQuery {
        space: ada.clone(),
        turns: vec![turn_id()],
        as_of: AsOf::default(),
        wait_for: vec![batch()],
    };
    let found = client.episodes(&context, &query, asked.clone()).await;
    assert_eq!(found, Ok(page(episode())));
    assert_eq!(node.last().1, format!("{query:?} {asked:?}"));
    let query = NarrativeQuery {
        space: ada.clone(),
        as_of: AsOf::default(),
        wait_for: vec![batch()],
    };
    let found = client.narratives(&context, &query, asked.clone()).await;
    assert_eq!(found, Ok(page(narrative())));
    assert_eq!(node.last().1, format!("{query:?} {asked:?}"));
    let id = narrative().id;
    let found = client.narrative(&context, &query, id, asked.clone()).await;
    assert_eq!(found, Ok(story()));
    assert_eq!(node.last().1, format!("{query:?} {id:?} {asked:?}"));
    let query = ProfileQuery {
        space: ada.clone(),
        about: "Ada".into(),
        as_of: AsOf::default(),
        wait_for: vec![batch()],
    };
    let found = client.profile(&context, &query, asked.clone()).await;
    assert_eq!(found, Ok(told(line())));
    assert_eq!(node.last().1, format!("{query:?} {asked:?}"));
    for of in [
        TimelineOf::Space,
        TimelineOf::About("Ada".into()),
        TimelineOf::Topic("the flat".into()),
    ] {
        let query = TimelineQuery {
            space: ada.clone(),
            of,
            begins: TimeRange {
                start: None,
                end: Some(instant()),
            },
            known_at: Some(instant()),
            wait_for: vec![batch()],
        };
        let found = client.timeline(&context, &query, asked.clone()).await;
        assert_eq!(found, Ok(told(episode())));
        assert_eq!(node.last().1, format!("{query:?} {asked:?}"));
    }
    let query = EntityQuery {
        space: ada.clone(),
        prefix: "a".into(),
        wait_for: vec![batch()],
    };
    let found = client.entities(&context, &query, asked.clone()).await;
    assert_eq!(found, Ok(page(edge().subject)));
    assert_eq!(node.last().1, format!("{query:?} {asked:?}"));
    let request = EntityRequest {
        space: ada.clone(),
        entity: "Ada".into(),
        at: Some(instant()),
        wait_for: vec![batch()],
    };
    let found = client.neighbours(&context, &request, asked.clone()).await;
    assert_eq!(found, Ok(neighbourhood()));
    assert_eq!(node.last().1, format!("{request:?} {asked:?}"));
    let query = PathsQuery {
        from: request,
        to: "Rome".into(),
        hops: 2,
        limit: 5,
    };
    assert_eq!(client.paths(&context, &query).await, Ok(paths()));
    assert_eq!(node.last().1, format!("{query:?}"));
    let versions = client.versions(&context, &ada, stated().id).await;
    assert_eq!(versions, Ok(vec![stated(), corrected(), identity()]));
    let statuses = [Status::Found, Status::Open];
    let conflicts = client
        .conflicts(&context, &ada, &statuses, asked.clone())
        .await;
    assert_eq!(conflicts, Ok(page(disagreement())));
    assert_eq!(node.last().1, format!("{statuses:?} {asked:?}"));
    let of = Some(stated().id);
    let changes = client.changes(&context, &ada, of, asked.clone()).await;
    assert_eq!(changes, Ok(page(recorded())));
    assert_eq!(node.last().1, format!("{of:?} {asked:?}"));
    let fault = client.facts(&context, &facts("missing"), asked).await;
    assert_eq!(fault, Err(missing()));
}

#[tokio::test]
async fn corrections_and_reverts_arrive_and_are_answered() {
    let (node, client) = connected().await;
    let context = context();
    let says = Correction::Says {
        text: Some("Ada lives in Oslo.".into()),
        value: Some("Oslo".into()),
        valid: Some(TimeRange {
            start: Some(instant()),
            end: None,
        }),
    };
    for correction in [says, Correction::Withdrawn] {
        let request = update(correction);
        let answer = client.update(&context, request.clone()).await;
        assert_eq!(answer, Ok(corrected()));
        assert_eq!(node.last().1, format!("{request:?}"));
    }
    let change = ChangeId::from_bytes([6; 16]);
    let reverted = client.revert(&context, &space("ada"), change).await;
    assert_eq!(reverted, Ok(recorded()));
    assert_eq!(node.last().1, format!("{change:?}"));
}

#[tokio::test]
async fn names_are_read_merged_and_split() {
    let (node, client) = connected().await;
    let (context, space) = (context(), space("ada"));
    let request = EntityRequest {
        space: space.clone(),
        entity: "Addie".into(),
        at: None,
        wait_for: vec![batch()],
    };
    assert_eq!(client.entity(&context, &request).await, Ok(ada()));
    assert_eq!(node.last().1, format!("{request:?}"));
    let request = MergeRequest {
        space: space.clone(),
        entity: "Ada".into(),
        other: "Addie".into(),
    };
    let merged = client.merge(&context, &request).await.unwrap();
    let expected = (ada(), Some(ChangeId::from_bytes([6; 16])));
    assert_eq!((merged.entity, merged.change), expected);
    assert_eq!(node.last().1, format!("{request:?}"));
    let request = SplitRequest {
        space,
        entity: "Addie".into(),
    };
    let split = client.split(&context, &request).await.unwrap();
    assert_eq!((split.parted, split.change), (vec![edge().object], None));
    assert_eq!(node.last().1, format!("{request:?}"));
}

#[tokio::test]
async fn a_graph_is_verified_and_rebuilt_page_by_page() {
    let (node, client) = connected().await;
    let after = Some(PageToken("before".into()));
    let (call, ada) = (context(), space("ada"));
    let found = client.verify_graph(&call, &ada, None).await;
    assert_eq!(found, Ok(graph_check()));
    assert_eq!(node.last().1, "verify None");
    let found = client.rebuild_graph(&call, &ada, after.as_ref()).await;
    assert_eq!(found, Ok(graph_check()));
    assert_eq!(node.last().1, format!("rebuild {after:?}"));
}

#[tokio::test]
async fn a_rebuild_tells_how_far_it_is() {
    let (_, client) = connected().await;
    let begun = client.rebuild(&context(), &space("ada")).await;
    assert_eq!(begun, Ok(rebuilding()));
    let going = client.rebuilding(&context(), &space("ada")).await;
    assert_eq!(going, Ok(Some(rebuilding())));
    let idle = client.rebuilding(&context(), &space("idle")).await;
    assert_eq!(idle, Ok(None));
}
