//! The service Knowledge.

use std::sync::Arc;

use memfleet_ports::knowledge_api::KnowledgeService;
use tonic::{Request, Response, Status};

use super::calls::Calls;
use crate::proto::{self, knowledge_server};

pub(super) struct Service {
    pub knowledge: Arc<dyn KnowledgeService>,
    pub calls: Calls,
}

#[tonic::async_trait]
impl knowledge_server::Knowledge for Service {
    async fn list_facts(
        &self,
        request: Request<proto::ListFactsRequest>,
    ) -> Result<Response<proto::ListFactsResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let facts = self.knowledge.facts(&context, &query, page);
            context.within("the facts", facts)
        };
        self.calls.answer_page(page, read).await
    }

    async fn list_episodes(
        &self,
        request: Request<proto::ListEpisodesRequest>,
    ) -> Result<Response<proto::ListEpisodesResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let episodes = self.knowledge.episodes(&context, &query, page);
            context.within("the episodes", episodes)
        };
        self.calls.answer_page(page, read).await
    }

    async fn list_narratives(
        &self,
        request: Request<proto::ListNarrativesRequest>,
    ) -> Result<Response<proto::ListNarrativesResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let narratives = self.knowledge.narratives(&context, &query, page);
            context.within("the narratives", narratives)
        };
        self.calls.answer_page(page, read).await
    }

    async fn get_narrative(
        &self,
        request: Request<proto::GetNarrativeRequest>,
    ) -> Result<Response<proto::GetNarrativeResponse>, Status> {
        let (context, (query, id, page)) = self.calls.open(request)?;
        let story = self.knowledge.narrative(&context, &query, id, page);
        self.calls
            .answer(context.within("the narrative", story).await)
    }

    async fn profile(
        &self,
        request: Request<proto::ProfileRequest>,
    ) -> Result<Response<proto::ProfileResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let profile = self.knowledge.profile(&context, &query, page);
            context.within("the profile", profile)
        };
        self.calls.answer_page(page, read).await
    }

    async fn timeline(
        &self,
        request: Request<proto::TimelineRequest>,
    ) -> Result<Response<proto::TimelineResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let timeline = self.knowledge.timeline(&context, &query, page);
            context.within("the timeline", timeline)
        };
        self.calls.answer_page(page, read).await
    }

    async fn list_entities(
        &self,
        request: Request<proto::ListEntitiesRequest>,
    ) -> Result<Response<proto::ListEntitiesResponse>, Status> {
        let (context, (query, page)) = self.calls.open(request)?;
        let read = |page| {
            let entities = self.knowledge.entities(&context, &query, page);
            context.within("the entities", entities)
        };
        self.calls.answer_page(page, read).await
    }

    async fn neighbors(
        &self,
        request: Request<proto::NeighborsRequest>,
    ) -> Result<Response<proto::NeighborsResponse>, Status> {
        let (context, (request, page)) = self.calls.open(request)?;
        let neighbours = self.knowledge.neighbours(&context, &request, page);
        self.calls
            .answer(context.within("the neighbours", neighbours).await)
    }

    async fn paths(
        &self,
        request: Request<proto::PathsRequest>,
    ) -> Result<Response<proto::PathsResponse>, Status> {
        let (context, query) = self.calls.open(request)?;
        let paths = self.knowledge.paths(&context, &query);
        self.calls.answer(context.within("the paths", paths).await)
    }

    async fn get_entity(
        &self,
        request: Request<proto::GetEntityRequest>,
    ) -> Result<Response<proto::GetEntityResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let entity = self.knowledge.entity(&context, &request);
        self.calls
            .answer(context.within("the entity", entity).await)
    }

    async fn merge_entities(
        &self,
        request: Request<proto::MergeEntitiesRequest>,
    ) -> Result<Response<proto::MergeEntitiesResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let merged = self.knowledge.merge(&context, &request);
        self.calls.answer(context.within("the merge", merged).await)
    }

    async fn split_entity(
        &self,
        request: Request<proto::SplitEntityRequest>,
    ) -> Result<Response<proto::SplitEntityResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let split = self.knowledge.split(&context, &request);
        self.calls.answer(context.within("the split", split).await)
    }

    async fn get_versions(
        &self,
        request: Request<proto::GetVersionsRequest>,
    ) -> Result<Response<proto::GetVersionsResponse>, Status> {
        let (context, (space, id)) = self.calls.open(request)?;
        let versions = self.knowledge.versions(&context, &space, id);
        self.calls
            .answer(context.within("the versions", versions).await)
    }

    async fn list_conflicts(
        &self,
        request: Request<proto::ListConflictsRequest>,
    ) -> Result<Response<proto::ListConflictsResponse>, Status> {
        let (context, (space, statuses, page)) = self.calls.open(request)?;
        let read = |page| {
            let conflicts = self.knowledge.conflicts(&context, &space, &statuses, page);
            context.within("the conflicts", conflicts)
        };
        self.calls.answer_page(page, read).await
    }

    async fn list_changes(
        &self,
        request: Request<proto::ListChangesRequest>,
    ) -> Result<Response<proto::ListChangesResponse>, Status> {
        let (context, (space, of, page)) = self.calls.open(request)?;
        let read = |page| {
            let changes = self.knowledge.changes(&context, &space, of, page);
            context.within("the changes", changes)
        };
        self.calls.answer_page(page, read).await
    }

    async fn revert(
        &self,
        request: Request<proto::RevertRequest>,
    ) -> Result<Response<proto::RevertResponse>, Status> {
        let (context, (space, change)) = self.calls.open(request)?;
        let reverted = self.knowledge.revert(&context, &space, change);
        self.calls
            .answer(context.within("the revert", reverted).await)
    }

    async fn update(
        &self,
        request: Request<proto::UpdateRequest>,
    ) -> Result<Response<proto::UpdateResponse>, Status> {
        let (context, request) = self.calls.open(request)?;
        let corrected = self.knowledge.update(&context, request);
        self.calls
            .answer(context.within("the correction", corrected).await)
    }
}
