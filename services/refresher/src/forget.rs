//! Forgetting on request: dry run, drain, removal, scrub, receipt.

use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::derivation::{DecidedMemory, Derivation};
use memfleet_domain::ids::{ChangeId, SpaceId};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::erasure::Erased;
use memfleet_ports::events::Event;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::knowledge::Recorded;
use memfleet_ports::knowledge_api::UpdateRequest;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest, Naming, Refresher};
use tracing::Instrument;

use crate::LocalRefresher;

/// First pause between two questions whether writes accepted before a forget are applied; each is twice the one before …
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// … up to this one.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

#[async_trait]
impl Refresher for LocalRefresher {
    async fn forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<ForgetReceipt, Fault> {
        check(request)?;
        let scope = context.scope(&request.space);
        context
            .within(
                "writes that were accepted before the forget",
                self.drain(&scope),
            )
            .await?;
        // Only now: the first write of a space may be among those that were waited for.
        let is_known = self.spaces.locale(&scope).await?.is_some();
        let erased = if request.dry_run {
            self.erasure.plan(&scope, &request.filter).await?
        } else {
            self.erase(&scope, request).await?
        };
        // Dead letters may lie where no space came to be, or is no more.
        if !is_known && erased == Erased::default() {
            return Err(Fault::not_found(format_args!("space `{}`", request.space)));
        }
        Ok(ForgetReceipt::of(erased, request.dry_run))
    }

    async fn correct(
        &self,
        context: &Context,
        request: &UpdateRequest,
    ) -> Result<Derivation, Fault> {
        context
            .within("the correction", self.correct_fact(context, request))
            .await
    }

    async fn identify(
        &self,
        context: &Context,
        space: &SpaceId,
        namings: &[Naming],
    ) -> Result<ChangeId, Fault> {
        let scope = context.scope(space);
        context
            .within(
                "what is said of names",
                self.identify_names(&scope, namings),
            )
            .await
    }

    async fn restore(
        &self,
        context: &Context,
        space: &SpaceId,
        memory: &DecidedMemory,
    ) -> Result<bool, Fault> {
        let scope = context.scope(space);
        context
            .within("what callers decided", self.restore_memory(&scope, memory))
            .await
    }

    async fn revert(
        &self,
        context: &Context,
        space: &SpaceId,
        change: ChangeId,
    ) -> Result<Recorded, Fault> {
        context
            .within(
                "the change to be undone",
                self.revert_change(context, space, change),
            )
            .await
    }
}

impl LocalRefresher {
    /// Goes on when the caller's deadline passes: caches must hear of what is gone, and the text must leave the file.
    async fn erase(&self, scope: &Scope, request: &ForgetRequest) -> Result<Erased, Fault> {
        let (refresher, scope, filter) = (self.clone(), scope.clone(), request.filter.clone());
        let erasing = async move { refresher.erase_to_the_end(&scope, &filter).await };
        tokio::spawn(erasing.in_current_span())
            .await
            .unwrap_or_else(|error| Err(Fault::internal(format!("forgetting stopped: {error}"))))
    }

    async fn erase_to_the_end(&self, scope: &Scope, filter: &TurnFilter) -> Result<Erased, Fault> {
        let erased = self.erasure.remove(scope, filter).await?;
        // Before the scrub, which takes long and may fail.
        self.events.announce(Event::Forgotten {
            scope: scope.clone(),
        });
        metrics::counter!("memfleet_turns_forgotten_total").increment(erased.turns.len() as u64);
        tracing::info!(%scope, turns = erased.turns.len(), "forgotten");
        // Also when nothing matched: a forget that was cut short by a crash is tried again by its caller.
        self.erasure.scrub().await?;
        Ok(erased)
    }

    /// Returns when what was accepted until now has left the queue: a worker that holds a turn would store it again after
    /// the erasure.
    async fn drain(&self, scope: &Scope) -> Result<(), Fault> {
        let Some((_, youngest)) = self.queue.waiting_span(scope).await? else {
            return Ok(());
        };
        let mut pause = FIRST_PAUSE;
        while self
            .queue
            .waiting_span(scope)
            .await?
            .is_some_and(|(oldest, _)| oldest <= youngest)
        {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(())
    }
}

fn check(request: &ForgetRequest) -> Result<(), Fault> {
    match (request.filter.is_everything(), request.everything) {
        (true, false) => Err(Fault::invalid(
            "filter",
            "has no condition, which would forget the whole space: add one, or set `everything`",
        )),
        (false, true) => Err(Fault::invalid(
            "everything",
            "contradicts the filter: set one of the two",
        )),
        _ => Ok(()),
    }
}
