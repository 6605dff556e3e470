//! The `Knowledge` service: what the agents derived, read on both time axes; corrections and reverts are the refresher's.

mod lines;
mod profile;
mod timeline;

use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::derivation::{Conflict, Derivation, Kind, Status};
use memfleet_domain::graph::Entity;
use memfleet_domain::ids::{BatchId, ChangeId, DerivationId, SpaceId};
use memfleet_domain::time::AsOf;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::events::Event;
use memfleet_ports::knowledge::{ChangeFilter, Question, Recorded, Stage};
use memfleet_ports::knowledge_api::{
    Disagreement, EntityQuery, EntityRequest, EpisodeQuery, FactQuery, KnowledgeService,
    MergeRequest, Merged, NamedEntity, NarrativeQuery, Neighbourhood, Paths, PathsQuery,
    ProfileLine, ProfileQuery, Split, SplitRequest, Story, TimelineQuery, Told, UpdateRequest,
};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use tokio::time::Instant;
use tracing::instrument;

use crate::Gateway;

/// Events are best effort; the store is asked again after this long without one.
const POLL: Duration = Duration::from_millis(250);

/// Part of the time that a call has left that it may wait for facts: one in so many.
const SHARE: u32 = 2;

/// What is derived of a write passes these in turn: facts …
const FACTS: [Stage; 3] = [Stage::Derive, Stage::Judge, Stage::Settle];

/// … episodes …
const EPISODES: [Stage; 1] = [Stage::Episodes];

/// Statuses of conflicts that a caller gets who names none.
const CERTAIN_STATUSES: [Status; 4] = [
    Status::Found,
    Status::Settled,
    Status::Open,
    Status::Dismissed,
];

/// … and narratives.
pub(crate) const NARRATIVES: [Stage; 3] = [Stage::Episodes, Stage::Bind, Stage::Consolidate];

#[async_trait]
impl KnowledgeService for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn facts(
        &self,
        context: &Context,
        query: &FactQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let waiting = self.derived(context, &query.space, &query.wait_for, &FACTS);
        let scope = waiting.await?;
        let now = query.as_of.happened_by.unwrap_or_else(|| self.clock.now());
        let question = Question {
            kind: Some(Kind::Fact),
            subject: query.about.as_deref().map(key),
            attribute: query.attribute.as_deref().map(key),
            turns: query.turns.clone(),
            as_of: AsOf {
                happened_by: (!query.ended).then_some(now),
                ..query.as_of
            },
            withdrawn: query.ended,
            ..Question::default()
        };
        let facts = self
            .knowledge
            .derivations(&scope, &question, page.limit, page.after.as_ref());
        Ok(facts.await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn episodes(
        &self,
        context: &Context,
        query: &EpisodeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let waiting = self.derived(context, &query.space, &query.wait_for, &EPISODES);
        let scope = waiting.await?;
        let question = Question {
            kind: Some(Kind::Episode),
            turns: query.turns.clone(),
            as_of: query.as_of,
            ..Question::default()
        };
        let episodes =
            self.knowledge
                .derivations(&scope, &question, page.limit, page.after.as_ref());
        Ok(episodes.await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn narratives(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        page: PageRequest,
    ) -> Result<Page<Derivation>, Fault> {
        let waiting = self.derived(context, &query.space, &query.wait_for, &NARRATIVES);
        let scope = waiting.await?;
        let question = Question {
            kind: Some(Kind::Narrative),
            as_of: query.as_of,
            ..Question::default()
        };
        let narratives =
            self.knowledge
                .derivations(&scope, &question, page.limit, page.after.as_ref());
        Ok(narratives.await?)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, %id))]
    async fn narrative(
        &self,
        context: &Context,
        query: &NarrativeQuery,
        id: DerivationId,
        page: PageRequest,
    ) -> Result<Story, Fault> {
        let waiting = self.derived(context, &query.space, &query.wait_for, &NARRATIVES);
        let scope = waiting.await?;
        let question = Question {
            kind: Some(Kind::Narrative),
            ids: vec![id],
            as_of: query.as_of,
            ..Question::default()
        };
        let found = self.knowledge.derivations(&scope, &question, 1, None);
        let narrative = found.await?.items.pop();
        let narrative =
            narrative.ok_or_else(|| Fault::not_found(format_args!("narrative {id}")))?;
        let question = Question {
            narrative: Some(id),
            as_of: query.as_of,
            ..Question::default()
        };
        let fragments =
            self.knowledge
                .derivations(&scope, &question, page.limit, page.after.as_ref());
        Ok(Story {
            narrative,
            fragments: fragments.await?,
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn profile(
        &self,
        context: &Context,
        query: &ProfileQuery,
        page: PageRequest,
    ) -> Result<Told<ProfileLine>, Fault> {
        let waiting = self.derived(context, &query.space, &query.wait_for, &FACTS);
        let scope = waiting.await?;
        self.profile_of(&scope, query, page).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn timeline(
        &self,
        context: &Context,
        query: &TimelineQuery,
        page: PageRequest,
    ) -> Result<Told<Derivation>, Fault> {
        for stages in [&FACTS[..], &EPISODES[..]] {
            self.derived(context, &query.space, &query.wait_for, stages)
                .await?;
        }
        self.timeline_of(context, query, page).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.space, limit = page.limit))]
    async fn entities(
        &self,
        context: &Context,
        query: &EntityQuery,
        page: PageRequest,
    ) -> Result<Page<Entity>, Fault> {
        self.listed(context, query, page).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space, limit = page.limit))]
    async fn neighbours(
        &self,
        context: &Context,
        request: &EntityRequest,
        page: PageRequest,
    ) -> Result<Neighbourhood, Fault> {
        self.neighbourhood(context, request, page).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %query.from.space, hops = query.hops))]
    async fn paths(&self, context: &Context, query: &PathsQuery) -> Result<Paths, Fault> {
        self.connections(context, query).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space))]
    async fn entity(
        &self,
        context: &Context,
        request: &EntityRequest,
    ) -> Result<NamedEntity, Fault> {
        self.named(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space))]
    async fn merge(&self, context: &Context, request: &MergeRequest) -> Result<Merged, Fault> {
        self.merged(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space))]
    async fn split(&self, context: &Context, request: &SplitRequest) -> Result<Split, Fault> {
        self.parted(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, %id))]
    async fn versions(
        &self,
        context: &Context,
        space: &SpaceId,
        id: DerivationId,
    ) -> Result<Vec<Derivation>, Fault> {
        let scope = self.existing(context, space).await?;
        self.versions_of(&scope, id).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, limit = page.limit))]
    async fn conflicts(
        &self,
        context: &Context,
        space: &SpaceId,
        statuses: &[Status],
        page: PageRequest,
    ) -> Result<Page<Disagreement>, Fault> {
        let scope = self.existing(context, space).await?;
        let after = page.after.as_ref();
        let statuses = match statuses {
            [] => &CERTAIN_STATUSES,
            statuses => statuses,
        };
        let conflicts = self
            .knowledge
            .conflicts(&scope, statuses, page.limit, after)
            .await?;
        Ok(Page {
            items: self.disagreements(&scope, conflicts.items).await?,
            next: conflicts.next,
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, limit = page.limit))]
    async fn changes(
        &self,
        context: &Context,
        space: &SpaceId,
        of: Option<DerivationId>,
        page: PageRequest,
    ) -> Result<Page<Recorded>, Fault> {
        let scope = self.existing(context, space).await?;
        let filter = ChangeFilter {
            derivation: of,
            ..ChangeFilter::default()
        };
        let after = page.after.as_ref();
        let changes = self
            .knowledge
            .changes(&scope, &filter, page.limit, after)
            .await?;
        if let (Some(id), true) = (of, changes.items.is_empty()) {
            self.versions_of(&scope, id).await?;
        }
        Ok(changes)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %space, %change))]
    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        let detail = [("change", change.to_string())];
        self.note_in_space(context, AuditKind::RevertBegun, space, detail)
            .await?;
        self.existing(context, space).await?;
        self.refresher.revert(context, space, change).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space, id = %request.id))]
    async fn update(&self, context: &Context, request: UpdateRequest) -> Result<Derivation, Fault> {
        let detail = [("memory", request.id.to_string())];
        self.note_in_space(context, AuditKind::CorrectionBegun, &request.space, detail)
            .await?;
        self.existing(context, &request.space).await?;
        self.refresher.correct(context, &request).await
    }
}

impl Gateway {
    /// The scope of a space, once these writes and what is derived from them are there.
    pub(crate) async fn derived(
        &self,
        context: &Context,
        space: &SpaceId,
        batches: &[BatchId],
        stages: &[Stage],
    ) -> Result<Scope, Fault> {
        self.wait_for(context, std::slice::from_ref(space), batches)
            .await?;
        let scope = self.awaited(context, space).await?;
        if !batches.is_empty() {
            let agents = async {
                for stage in stages {
                    self.worked_through(&scope, *stage).await?;
                }
                Ok(())
            };
            let what = "what is derived from the write that `wait_for` names";
            context.within(what, agents).await?;
        }
        Ok(scope)
    }

    /// Gives the agents time to read what these spaces hold now for facts; in words, what of it they have not read by then.
    pub(crate) async fn facts_read(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        patience: Duration,
    ) -> Vec<String> {
        let left = context.deadline.saturating_duration_since(Instant::now());
        let call = context.at_most(patience.min(left / SHARE));
        let mut unread = Vec::new();
        for space in spaces {
            let reading = async {
                let scope = self.awaited(&call, space).await?;
                for stage in FACTS {
                    self.worked_through(&scope, stage).await?;
                }
                Ok(())
            };
            // What does not work otherwise the search meets too.
            if let Err(fault) = call.within("facts", reading).await
                && fault.kind == FaultKind::DeadlineExceeded
            {
                unread.extend(self.unread(&context.scope(space)).await);
            }
        }
        unread
    }

    /// The same for writes that the caller names.
    pub(crate) async fn facts_of_writes_read(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        writes: &[BatchId],
    ) -> Vec<String> {
        match writes {
            [] => Vec::new(),
            _ => {
                self.facts_read(context, spaces, self.options.facts_within)
                    .await
            }
        }
    }

    /// How far the agents are behind with the facts of a space; nothing where they are not, or where the store does not say.
    async fn unread(&self, scope: &Scope) -> Option<String> {
        for stage in FACTS {
            let position = self.knowledge.position(scope, stage).await.ok()??;
            let behind = position.head.saturating_sub(position.reached);
            if behind > 0 {
                let changes = match behind {
                    1 => "1 change is".to_owned(),
                    _ => format!("{behind} changes are"),
                };
                let done = match stage {
                    Stage::Derive => "read",
                    _ => "compared",
                };
                let space = &scope.space;
                return Some(format!("facts: {changes} not {done} yet in {space}"));
            }
        }
        None
    }

    /// Returns when an agent has worked through what a space holds now. What comes meanwhile it need not have.
    pub(crate) async fn worked_through(&self, scope: &Scope, stage: Stage) -> Result<(), Fault> {
        let mut events = self.events.listen();
        let mut goal = None;
        loop {
            let Some(position) = self.knowledge.position(scope, stage).await? else {
                return Ok(());
            };
            if position.reached >= *goal.get_or_insert(position.head) {
                return Ok(());
            }
            let heard = async {
                while let Ok(event) = events.recv().await {
                    if matches!(&event, Event::Derived { scope: of } if of == scope) {
                        return;
                    }
                }
            };
            let _in_time = tokio::time::timeout(POLL, heard).await;
        }
    }

    async fn versions_of(&self, scope: &Scope, id: DerivationId) -> Result<Vec<Derivation>, Fault> {
        let versions = self.knowledge.versions(scope, id).await?;
        if versions.is_empty() {
            return Err(Fault::not_found(format_args!("memory {id}")));
        }
        Ok(versions)
    }

    /// Conflicts with their facts.
    async fn disagreements(
        &self,
        scope: &Scope,
        conflicts: Vec<Conflict>,
    ) -> Result<Vec<Disagreement>, Fault> {
        let mut ids: Vec<_> = conflicts
            .iter()
            .flat_map(|conflict| [conflict.older, conflict.newer])
            .collect();
        ids.sort_unstable();
        ids.dedup();
        // No condition on ids would be every fact.
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let limit = ids.len() as u32;
        let question = Question {
            ids,
            withdrawn: true,
            ..Question::default()
        };
        let facts = self
            .knowledge
            .derivations(scope, &question, limit, None)
            .await?
            .items;
        let fact = |id| facts.iter().find(|fact| fact.id == id).cloned();
        let with_facts = |conflict: Conflict| Disagreement {
            older: fact(conflict.older),
            newer: fact(conflict.newer),
            conflict,
        };
        Ok(conflicts.into_iter().map(with_facts).collect())
    }
}

/// What a name or a word is compared by: the same as where facts are extracted.
pub(crate) fn key(text: &str) -> String {
    memfleet_agents::facts::key(text)
}
