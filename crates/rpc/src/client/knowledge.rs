//! The service Knowledge.

use async_trait::async_trait;
use futures::FutureExt;
use memfleet_domain::Fault;
use memfleet_domain::derivation::{Derivation, Status};
use memfleet_domain::graph::Entity;
use memfleet_domain::ids::{ChangeId, DerivationId, SpaceId};
use memfleet_ports::context::Context;
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::{
    Disagreement, EntityQuery, EntityRequest, EpisodeQuery, FactQuery, KnowledgeService,
    MergeRequest, Merged, NamedEntity, NarrativeQuery, Neighbourhood, Paths, PathsQuery,
    ProfileLine, ProfileQuery, Split, SplitRequest, Story, TimelineQuery, Told, UpdateRequest,
};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;

use super::calls::value;
use super::memory::page_token;
use super::wire::Wire;
use super::{Client, MAX_ANSWER_BYTES};
use crate::proto;
use crate::proto::knowledge_client::KnowledgeClient;

impl Client {
    fn knowledge(&self) -> KnowledgeClient<Wire> {
        KnowledgeClient::new(self.wire.clone()).max_decoding_message_size(MAX_ANSWER_BYTES)
    }
}

#[async_trait]
impl KnowledgeService for Client {
    async fn facts(
        &self,
        context: &Context,
        query: &FactQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().list_facts(request).boxed()).await
    }

    async fn episodes(
        &self,
        context: &Context,
        query: &EpisodeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().list_episodes(request).boxed()).await
    }

    async fn narratives(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().list_narratives(request).boxed()).await
    }

    async fn narrative(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        id: DerivationId,
        page: PageRequest,
    ) -> Result<Story, Fault> {
        let request = self.request(context, (query.clone(), id, page).into());
        value(context, self.knowledge().get_narrative(request).boxed()).await
    }

    async fn profile(
        &self,
        context: &Context,
        query: &ProfileQuery,
        page: PageRequest,
    ) -> Result<Told<ProfileLine>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().profile(request).boxed()).await
    }

    async fn timeline(
        &self,
        context: &Context,
        query: &TimelineQuery,
        page: PageRequest,
    ) -> Result<Told<Derivation>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().timeline(request).boxed()).await
    }

    async fn entities(
        &self,
        context: &Context,
        query: &EntityQuery,
        page: PageRequest,
    ) -> Result<Page<Entity>, Fault> {
        let request = self.request(context, (query.clone(), page).into());
        value(context, self.knowledge().list_entities(request).boxed()).await
    }

    async fn neighbours(
        &self,
        context: &Context,
        request: &EntityRequest,
        page: PageRequest,
    ) -> Result<Neighbourhood, Fault> {
        let request = self.request(context, (request.clone(), page).into());
        value(context, self.knowledge().neighbors(request).boxed()).await
    }

    async fn paths(&self, context: &Context, query: &PathsQuery) -> Result<Paths, Fault> {
        let request = self.request(context, query.clone().into());
        value(context, self.knowledge().paths(request).boxed()).await
    }

    async fn entity(
        &self,
        context: &Context,
        request: &EntityRequest,
    ) -> Result<NamedEntity, Fault> {
        let request = self.request(context, request.clone().into());
        value(context, self.knowledge().get_entity(request).boxed()).await
    }

    async fn merge(&self, context: &Context, request: &MergeRequest) -> Result<Merged, Fault> {
        let request = self.request(context, request.clone().into());
        value(context, self.knowledge().merge_entities(request).boxed()).await
    }

    async fn split(&self, context: &Context, request: &SplitRequest) -> Result<Split, Fault> {
        let request = self.request(context, request.clone().into());
        value(context, self.knowledge().split_entity(request).boxed()).await
    }

    async fn versions(
        &self,
        context: &Context,
        space: &SpaceId,
        id: DerivationId,
    ) -> Result<Vec<Derivation>, Fault> {
        let request = proto::GetVersionsRequest {
            space: space.to_string(),
            id: id.to_string(),
        };
        let request = self.request(context, request);
        value(context, self.knowledge().get_versions(request).boxed()).await
    }

    async fn conflicts(
        &self,
        context: &Context,
        space: &SpaceId,
        statuses: &[Status],
        page: PageRequest,
    ) -> Result<Page<Disagreement>, Fault> {
        let number = |status: &Status| proto::ConflictStatus::from(*status).into();
        let request = proto::ListConflictsRequest {
            space: space.to_string(),
            statuses: statuses.iter().map(number).collect(),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let request = self.request(context, request);
        value(context, self.knowledge().list_conflicts(request).boxed()).await
    }

    async fn changes(
        &self,
        context: &Context,
        space: &SpaceId,
        of: Option<DerivationId>,
        page: PageRequest,
    ) -> Result<Page<Recorded>, Fault> {
        let request = proto::ListChangesRequest {
            space: space.to_string(),
            id: of.map(|id| id.to_string()).unwrap_or_default(),
            page_size: page.limit,
            page_token: page_token(page.after),
        };
        let request = self.request(context, request);
        value(context, self.knowledge().list_changes(request).boxed()).await
    }

    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        let request = proto::RevertRequest {
            space: space.to_string(),
            change_id: change.to_string(),
        };
        let request = self.request(context, request);
        value(context, self.knowledge().revert(request).boxed()).await
    }

    async fn update(&self, context: &Context, request: UpdateRequest) -> Result<Derivation, Fault> {
        let request = self.request(context, request.into());
        value(context, self.knowledge().update(request).boxed()).await
    }
}
