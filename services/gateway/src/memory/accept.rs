//! `Remember`: names the turns, refuses what contradicts what is there, and has the batch durable before it answers.

use std::collections::HashMap;

use memfleet_domain::ids::{BatchId, TurnId};
use memfleet_domain::ingestion::{Batch, Receipt, TurnReceipt, TurnState};
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::{AcceptedTurn, CAPTURED, ContentHash};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::context::Context;
use memfleet_ports::memory::{NewTurn, RememberRequest};
use memfleet_ports::queue::{Bounds, Published};
use memfleet_ports::store::StoreError;
use uuid::Uuid;

use crate::Gateway;
use crate::capture::Reach;

/// Spaces with waiting batches that are looked at where a tenant may have a limited number of spaces.
const MAX_WAITING_SPACES: usize = 1_000;

impl Gateway {
    pub(crate) async fn accept(
        &self,
        context: &Context,
        request: RememberRequest,
    ) -> Result<Receipt, Fault> {
        refuse_reserved(&request.turns)?;
        let mut batch = name(context.scope(&request.space), request, self.clock.now())?;
        if let Some(receipt) = self.seen(&batch).await? {
            return Ok(receipt);
        }
        self.mark_echoes(context, &mut batch).await;
        self.accept_new(&batch).await
    }

    /// The same of turns whose ids follow from what they say: the ledger, which has the last word when they are applied, takes each once. So
    /// they are accepted while it is away, without marks of echoes.
    pub(crate) async fn accept_captured(
        &self,
        context: &Context,
        request: RememberRequest,
        mut store: Reach,
    ) -> Result<Receipt, Fault> {
        let mut batch = name(context.scope(&request.space), request, self.clock.now())?;
        if let Some(Some(receipt)) = store.ask(self.seen(&batch)).await? {
            return Ok(receipt);
        }
        if store.is_there() {
            self.mark_echoes(context, &mut batch).await;
        }
        self.enqueue(&batch).await
    }

    /// Publishes a named batch, or gives the receipt of the first time.
    pub(super) async fn accept_batch(&self, batch: &Batch) -> Result<Receipt, Fault> {
        if let Some(receipt) = self.seen(batch).await? {
            return Ok(receipt);
        }
        self.accept_new(batch).await
    }

    /// Publishes a named batch that the ledger does not know.
    async fn accept_new(&self, batch: &Batch) -> Result<Receipt, Fault> {
        self.refuse_conflicts(batch).await?;
        self.enqueue(batch).await
    }

    /// Publishes a batch, if the tenant may have it: a quota that is not known is no leave.
    async fn enqueue(&self, batch: &Batch) -> Result<Receipt, Fault> {
        self.refuse_beyond_quota(batch).await?;
        self.refuse_another_space(&batch.scope).await?;
        let published = self.publish(batch).await?;
        metrics::counter!("memfleet_turns_accepted_total").increment(batch.turns.len() as u64);
        Ok(queued(batch, published.duplicate))
    }

    /// What is stored was counted some seconds ago, so a tenant may get a little beyond.
    async fn refuse_beyond_quota(&self, batch: &Batch) -> Result<(), Fault> {
        let tenant = &batch.scope.tenant;
        let Some(limit) = self.access.quota(tenant).await?.turns else {
            return Ok(());
        };
        let stored = self.access.stored_turns(tenant).await?;
        let waiting = self.queue.waiting_depth(tenant).await?.turns;
        let new = batch.turns.len() as u64;
        if stored + waiting + new <= limit {
            return Ok(());
        }
        let mut fault = Fault::invalid(
            "turns",
            format!(
                "{new} more would be too many: the tenant has {}, stored or on their way, and may have {limit}; forget some, or have the quota raised",
                stored + waiting
            ),
        );
        (fault.kind, fault.reason) = (FaultKind::ResourceExhausted, "STORAGE_QUOTA".into());
        Err(fault.with("limit_turns", limit.to_string()))
    }

    /// Refuses a space that is not there yet, where its tenant has as many as it may, those that wait in
    /// the queue counted. First writes at the same instant may pass together.
    pub(crate) async fn refuse_another_space(&self, scope: &Scope) -> Result<(), Fault> {
        let tenant = &scope.tenant;
        let Some(limit) = self.access.quota(tenant).await?.spaces else {
            return Ok(());
        };
        if self.spaces.get(scope).await?.is_some() {
            return Ok(());
        }
        let waiting = self
            .queue
            .waiting_spaces(tenant, MAX_WAITING_SPACES)
            .await?;
        if waiting.contains(&scope.space) {
            return Ok(());
        }
        let mut spaces = self.access.spaces(tenant).await?;
        for space in waiting {
            let scope = Scope {
                tenant: tenant.clone(),
                space,
            };
            spaces += u64::from(self.spaces.get(&scope).await?.is_none());
        }
        if spaces < limit {
            return Ok(());
        }
        let message = format!(
            "would be another: the tenant has {spaces} spaces and may have {limit}; write to one of them, forget one, or have the quota raised"
        );
        let mut fault = Fault::invalid("space", message);
        (fault.kind, fault.reason) = (FaultKind::ResourceExhausted, "STORAGE_QUOTA".into());
        Err(fault.with("limit_spaces", limit.to_string()))
    }

    async fn publish(&self, batch: &Batch) -> Result<Published, Fault> {
        let bounds = Bounds {
            turns: self.options.max_queued_turns,
            bytes: self.options.max_queued_bytes,
        };
        match self.queue.publish(batch, self.clock.now(), bounds).await {
            Err(StoreError::Conflict { stored, given, .. }) => Err(conflict(batch, stored, given)),
            Err(full @ StoreError::QueueFull { .. }) => {
                metrics::counter!("memfleet_turns_shed_total").increment(batch.turns.len() as u64);
                Err(full.into())
            }
            other => Ok(other?),
        }
    }

    /// The receipt of a batch that the ledger knows already.
    async fn seen(&self, batch: &Batch) -> Result<Option<Receipt>, Fault> {
        let Some(known) = self.ledger.batch(&batch.scope, batch.id).await? else {
            return Ok(None);
        };
        let given = batch.payload_hash();
        match known.payload_hash {
            Some(stored) if stored != given.0 => {
                self.refuse_conflicts(batch).await?;
                let stored = ContentHash(stored).to_string();
                Err(conflict(batch, stored, given.to_string()))
            }
            _ => Ok(Some(Receipt {
                batch: batch.id,
                turns: known.turns,
                duplicate: true,
            })),
        }
    }

    /// An external id that is taken by other content is the caller's mistake: say so before accepting anything. What is
    /// still queued is compared at commit, the last word.
    async fn refuse_conflicts(&self, batch: &Batch) -> Result<(), Fault> {
        let named = batch
            .turns
            .iter()
            .enumerate()
            .filter(|(_, turn)| turn.external_id.is_some());
        let named = named
            .map(|(index, turn)| (turn.id, index))
            .collect::<HashMap<_, _>>();
        let ids = named.keys().copied().collect::<Vec<_>>();
        if ids.is_empty() {
            return Ok(());
        }
        for stored in self.ledger.turns(&batch.scope, &ids).await? {
            let index = named[&stored.accepted.id];
            let (stored, given) = (
                stored.accepted.content_hash(),
                batch.turns[index].content_hash(),
            );
            if stored != given {
                let mut fault = Fault::invalid(
                    format!("turns[{index}].external_id"),
                    "is taken by a turn with other content: turns are append-only, send an edit under a new id with `replaces`",
                );
                fault.kind = FaultKind::AlreadyExists;
                fault.reason = "EXTERNAL_ID_CONFLICT".into();
                return Err(fault
                    .with("stored_hash", stored.to_string())
                    .with("given_hash", given.to_string()));
            }
        }
        Ok(())
    }
}

/// A caller that took the id of a message before it is captured would keep that from being stored.
fn refuse_reserved(turns: &[NewTurn]) -> Result<(), Fault> {
    let is_reserved = |turn: &NewTurn| {
        let id = turn.external_id.as_ref();
        id.is_some_and(|id| id.as_str().starts_with(CAPTURED))
    };
    match turns.iter().position(is_reserved) {
        None => Ok(()),
        Some(place) => Err(Fault::invalid(
            format!("turns[{place}].external_id"),
            format!(
                "must not begin with `{CAPTURED}`: such ids are given to what `Capture` stores; name the turn otherwise"
            ),
        )),
    }
}

/// The same identity with other content: the caller's key, or its external ids where it gave no key.
fn conflict(batch: &Batch, stored: String, given: String) -> Fault {
    let ids = batch.turns.iter().map(|turn| turn.id).collect::<Vec<_>>();
    let (reason, message) = if batch.id == BatchId::of_turns(&ids) {
        (
            "EXTERNAL_ID_CONFLICT",
            "these external ids were used before with other content: turns are append-only, send an edit under a new id with `replaces`",
        )
    } else {
        (
            "IDEMPOTENCY_CONFLICT",
            "this idempotency key was used before with other turns: use a new key for new turns",
        )
    };
    Fault::new(FaultKind::AlreadyExists, reason, message)
        .with("stored_hash", stored)
        .with("given_hash", given)
}

fn queued(batch: &Batch, duplicate: bool) -> Receipt {
    let turns = batch.turns.iter().map(|turn| TurnReceipt {
        id: turn.id,
        state: TurnState::Queued,
        reason: None,
    });
    Receipt {
        batch: batch.id,
        turns: turns.collect(),
        duplicate,
    }
}

/// Gives the batch and its turns their ids, the same on every retry.
fn name(scope: Scope, request: RememberRequest, now: Timestamp) -> Result<Batch, Fault> {
    let id = batch_id(&scope, &request);
    let mut seen = HashMap::new();
    let mut turns = Vec::with_capacity(request.turns.len());
    for (index, turn) in request.turns.into_iter().enumerate() {
        let turn = accepted(&scope, id, index as u32, turn, now);
        if let Some(first) = seen.insert(turn.id, index) {
            return Err(Fault::invalid(
                format!("turns[{index}].external_id"),
                format!("is the same as that of turns[{first}] in the same session"),
            ));
        }
        turns.push(turn);
    }
    Ok(Batch { id, scope, turns })
}

/// From the idempotency key; else from the external ids, if every turn has one; else new.
fn batch_id(scope: &Scope, request: &RememberRequest) -> BatchId {
    if let Some(key) = &request.idempotency_key {
        return BatchId::of_key(scope, key);
    }
    let ids = request
        .turns
        .iter()
        .map(|turn| {
            Some(TurnId::of_external(
                scope,
                &turn.session,
                turn.external_id.as_ref()?,
            ))
        })
        .collect::<Option<Vec<_>>>();
    match ids {
        Some(ids) => BatchId::of_turns(&ids),
        None => BatchId::from_bytes(Uuid::now_v7().into_bytes()),
    }
}

fn accepted(
    scope: &Scope,
    batch: BatchId,
    ordinal: u32,
    turn: NewTurn,
    now: Timestamp,
) -> AcceptedTurn {
    let id = match &turn.external_id {
        Some(external) => TurnId::of_external(scope, &turn.session, external),
        None => TurnId::of_batch(batch, &turn.session, ordinal),
    };
    AcceptedTurn {
        id,
        session: turn.session,
        external_id: turn.external_id,
        speaker: turn.speaker,
        role: turn.role,
        content: turn.content,
        event_time: turn.event_time,
        recorded_at: now,
        metadata: turn.metadata,
        trust: turn.trust,
        replaces: turn.replaces,
        echoes: Vec::new(),
        place: None,
    }
}
