//! Reading your own write: a read that is given a receipt's token waits until that batch has left the queue.

use std::time::Duration;

use futures::StreamExt;
use memfleet_domain::ids::{BatchId, SpaceId};
use memfleet_domain::ingestion::{TurnReceipt, TurnState};
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::events::Event;
use memfleet_ports::memory::Answers;
use memfleet_ports::queue::{DeadLetter, Place};
use memfleet_ports::retriever::{Found, Query};
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use crate::Gateway;
use crate::access::reaches;

/// Events are best effort; the store is asked again after this long without one.
const POLL: Duration = Duration::from_millis(250);

/// Longest wait of a listing of spaces for first writes.
const FIRST_WRITES: Duration = Duration::from_secs(5);

/// Spaces whose first write a listing waits for, at most: those that were written to last.
const MAX_FIRST_WRITES: usize = 64;

/// Where a batch stands.
enum Standing {
    Waiting,
    Settled(Vec<TurnReceipt>),
    Unknown,
}

impl Gateway {
    /// Returns when every batch has settled, in whichever of the spaces it was accepted.
    pub(crate) async fn wait_for(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        batches: &[BatchId],
    ) -> Result<(), Fault> {
        let scopes = spaces.iter().map(|space| context.scope(space));
        let scopes = scopes.collect::<Vec<_>>();
        for batch in batches {
            let settled = self.settled(&scopes, *batch);
            context
                .within("the write that `wait_for` names", settled)
                .await?;
        }
        Ok(())
    }

    /// The turns that a query means. Whoever was told that the first write of a space is accepted expects the space to be there,
    /// so what is not found is looked for again once that write is stored.
    pub(crate) async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let understood = self.understood(context, query).await;
        self.search_understood(context, query, understood).await
    }

    /// The same, of a query as its conversation makes it.
    pub(crate) async fn search_understood(
        &self,
        context: &Context,
        query: &Query,
        understood: Option<String>,
    ) -> Result<Found, Fault> {
        let query = &Query {
            text: understood.clone().unwrap_or_else(|| query.text.clone()),
            ..query.clone()
        };
        let search = || context.within("the search", self.found(context, query));
        let found = match search().await {
            Err(fault) if fault.kind == FaultKind::NotFound => {
                for space in &query.spaces {
                    self.first_write(context, &context.scope(space)).await?;
                }
                search().await
            }
            found => found,
        }?;
        Ok(Found {
            understood,
            ..found
        })
    }

    /// What the retriever finds, with its facts, in the tenant's share of what may compute.
    async fn found(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let quality = query.quality.unwrap_or(self.options.quality);
        let query = &Query {
            quality: Some(quality),
            ..query.clone()
        };
        // A language model writes for seconds: the place is for what computes here.
        let imagined = match quality {
            SearchQuality::Thorough => Some(self.thorough(context, query).await?),
            SearchQuality::Fast | SearchQuality::Balanced => None,
        };
        let place = self.shares.take(&context.tenant).await;
        let context = &context.with_priority(place.priority());
        let found = match imagined {
            Some(found) => found,
            None => self.retriever.search(context, query).await?,
        };
        Ok(self.with_facts(context, query, found).await)
    }

    /// One search of the retriever, in the tenant's share of what may compute.
    pub(crate) async fn search_in_share(
        &self,
        context: &Context,
        query: &Query,
    ) -> Result<Found, Fault> {
        let place = self.shares.take(&context.tenant).await;
        let context = &context.with_priority(place.priority());
        self.retriever.search(context, query).await
    }

    /// [`Self::existing`], where the first write of the space may still wait.
    pub(crate) async fn awaited(&self, context: &Context, space: &SpaceId) -> Result<Scope, Fault> {
        match self.existing(context, space).await {
            Err(fault) if fault.kind == FaultKind::NotFound => {
                self.first_write(context, &context.scope(space)).await?;
                self.existing(context, space).await
            }
            scope => scope,
        }
    }

    /// Returns when a space exists, or when nothing waits that could make it.
    async fn first_write(&self, context: &Context, scope: &Scope) -> Result<(), Fault> {
        let mut events = self.events.listen();
        let settled = async {
            while self.spaces.locale(scope).await?.is_none()
                && self.queue.waiting_span(scope).await?.is_some()
            {
                let is_of_space = |event: &Event| matches!(event, Event::Settled { scope: of, .. } if of == scope);
                next_event(&mut events, is_of_space).await;
            }
            Ok(())
        };
        context
            .within("the first write of the space", settled)
            .await
    }

    /// Returns when the spaces that were first written to before this call exist. A listing is of use without them: it goes on
    /// after [`FIRST_WRITES`] or half of the call's time, and while the queue cannot be asked.
    pub(crate) async fn first_writes(&self, context: &Context) {
        let left = context.deadline.saturating_duration_since(Instant::now());
        let brief = context.at_most(FIRST_WRITES.min(left / 2));
        let waiting = self.queue.waiting_spaces(&context.tenant, MAX_FIRST_WRITES);
        let waiting = brief.within("the queue", async { Ok(waiting.await?) });
        let mut waiting = waiting.await.unwrap_or_default();
        waiting.retain(|space| reaches(context, space));
        for space in waiting {
            let waited = self.first_write(&brief, &context.scope(&space)).await;
            if waited.is_err() {
                return;
            }
        }
    }

    /// Returns when all turns of a space that were accepted before are stored.
    pub(super) async fn stored(&self, context: &Context, scope: &Scope) -> Result<(), Fault> {
        let mut events = self.events.listen();
        let stored = async {
            let Some((_, youngest)) = self.queue.waiting_span(scope).await? else {
                return Ok(());
            };
            let waits =
                |span: Option<(u64, u64)>| span.is_some_and(|(oldest, _)| oldest <= youngest);
            while waits(self.queue.waiting_span(scope).await?) {
                let is_of_space = |event: &Event| matches!(event, Event::Settled { scope: of, .. } if of == scope);
                next_event(&mut events, is_of_space).await;
            }
            Ok(())
        };
        context.within("the turns of the space", stored).await
    }

    async fn settled(&self, scopes: &[Scope], batch: BatchId) -> Result<(), Fault> {
        let mut events = self.events.listen();
        loop {
            let mut known = false;
            for scope in scopes {
                match self.standing(scope, batch).await? {
                    Standing::Settled(_) => return Ok(()),
                    Standing::Waiting => known = true,
                    Standing::Unknown => {}
                }
            }
            if !known {
                return Err(unknown(batch));
            }
            next_event(&mut events, is_of(batch)).await;
        }
    }

    /// The present states of a batch's turns, then the final ones.
    pub(super) async fn watch_batch(
        &self,
        scope: Scope,
        batch: BatchId,
    ) -> Result<Answers<TurnReceipt>, Fault> {
        let mut events = self.events.listen();
        let first = match self.standing(&scope, batch).await? {
            Standing::Unknown => return Err(unknown(batch)),
            Standing::Settled(turns) => return Ok(answers(turns)),
            Standing::Waiting => self.queued(&scope, batch).await?,
        };
        // What waited and left no trace went with its whole space.
        let gone = with_state(&first, TurnState::Forgotten);
        let gateway = self.clone();
        let rest = async move {
            loop {
                next_event(&mut events, is_of(batch)).await;
                match gateway.standing(&scope, batch).await {
                    Ok(Standing::Waiting) => {}
                    Ok(Standing::Settled(turns)) => return answers(turns),
                    Ok(Standing::Unknown) => return answers(gone),
                    Err(fault) => return failed(fault),
                }
            }
        };
        Ok(answers(first)
            .chain(futures::stream::once(rest).flatten())
            .boxed())
    }

    /// Asked again and again, so no queued payload is read for it.
    async fn standing(&self, scope: &Scope, batch: BatchId) -> Result<Standing, Fault> {
        // The queue is asked first: a batch that leaves it between the two questions is then found in the ledger.
        let place = self.queue.place(scope, batch).await?;
        if let Some(status) = self.ledger.batch(scope, batch).await? {
            return Ok(Standing::Settled(status.turns));
        }
        Ok(match place {
            None => Standing::Unknown,
            Some(Place::Waiting) => Standing::Waiting,
            Some(Place::Buried) => match self.queue.buried(scope, batch).await? {
                Some(letter) => Standing::Settled(dead_lettered(&letter)),
                // Replayed between the questions, or forgotten, which the next one tells.
                None => Standing::Waiting,
            },
        })
    }

    /// The turns of a batch that waits; none when it has left the queue meanwhile.
    async fn queued(&self, scope: &Scope, batch: BatchId) -> Result<Vec<TurnReceipt>, Fault> {
        let waiting = self.queue.waiting(scope, batch).await?;
        let turns = waiting.into_iter().flat_map(|batch| batch.turns);
        Ok(turns
            .map(|turn| TurnReceipt {
                id: turn.id,
                state: TurnState::Queued,
                reason: None,
            })
            .collect())
    }
}

fn dead_lettered(letter: &DeadLetter) -> Vec<TurnReceipt> {
    let receipt = |turn: &AcceptedTurn| TurnReceipt {
        id: turn.id,
        state: TurnState::DeadLettered,
        reason: Some(letter.reason.clone()),
    };
    letter.batch.turns.iter().map(receipt).collect()
}

fn unknown(batch: BatchId) -> Fault {
    Fault::not_found(format_args!("write {batch} (of this space)"))
}

fn answers(turns: Vec<TurnReceipt>) -> Answers<TurnReceipt> {
    futures::stream::iter(turns.into_iter().map(Ok)).boxed()
}

fn with_state(turns: &[TurnReceipt], state: TurnState) -> Vec<TurnReceipt> {
    let receipt = |turn: &TurnReceipt| TurnReceipt {
        id: turn.id,
        state,
        reason: None,
    };
    turns.iter().map(receipt).collect()
}

fn failed(fault: Fault) -> Answers<TurnReceipt> {
    futures::stream::iter([Err(fault)]).boxed()
}

/// Returns when what is awaited was heard, or when it is time to look.
async fn next_event(events: &mut Receiver<Event>, is_awaited: impl Fn(&Event) -> bool) {
    let heard = async {
        while let Ok(event) = events.recv().await {
            if is_awaited(&event) {
                return;
            }
        }
    };
    let _in_time = tokio::time::timeout(POLL, heard).await;
}

fn is_of(batch: BatchId) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::Settled { batch: settled, .. } if *settled == batch)
}
