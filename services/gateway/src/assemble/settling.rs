//! What an assembly leaves: its exchange, its conversation and its record, all of it or nothing. It is written even where the answer cannot wait for
//! it any longer, or nobody waits for the answer: what enters a prompt is written down.

use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::SpaceId;
use memfleet_ports::assembly::Assembled;
use memfleet_ports::context::Context;
use memfleet_ports::conversations::Conversation;
use memfleet_ports::exchanges::{Entry, Written};
use memfleet_ports::injections::Injection;
use memfleet_ports::store::StoreError;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use super::sticky::Held;
use super::work::Work;
use crate::Gateway;

/// How long a write may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often an exchange is written where others write to it meanwhile.
const ATTEMPTS: usize = 8;

/// What is left to be written.
struct Left {
    held: Option<Held>,
    conversation: Option<Conversation>,
    injection: Option<Injection>,
    spaces: Vec<SpaceId>,
    conditions: String,
    answer: Assembled,
}

impl Gateway {
    /// Writes what an assembly leaves. Where its exchange has another answer by now, that is the one; where writing fails, the answer stands
    /// without a record.
    pub(super) async fn settle(&self, work: &mut Work<'_>) {
        let is_given_again = work.draft.answer.injection.is_some();
        if is_given_again {
            return;
        }
        let left = work.left();
        if left.held.is_none() && left.conversation.is_none() && left.injection.is_none() {
            return;
        }
        let context = Context {
            deadline: Instant::now() + PATIENCE,
            ..work.context.clone()
        };
        let gateway = self.clone();
        let is_kept = left.held.is_some();
        let write = async move {
            let write = gateway.leave(&context, left);
            context.within("the record", write).await
        };
        let write = tokio::spawn(write.in_current_span());
        match timeout_at(work.due, write).await {
            Ok(Ok(Ok(other))) => work.stand_back(other),
            Ok(Ok(Err(fault))) => work.stand_unwritten(&fault, is_kept),
            Ok(Err(error)) => work.stand_unwritten(&Fault::internal(error.to_string()), is_kept),
            Err(_) => {
                let degraded = &mut work.draft.answer.degraded;
                degraded.push("audit: is still being written".to_owned());
            }
        }
        work.draft.timed("record");
    }

    /// Writes it. Another answer, where that is the one that counts: that of who was faster, and one without memory where a turn in it was
    /// forgotten meanwhile.
    async fn leave(&self, context: &Context, mut left: Left) -> Result<Option<Assembled>, Fault> {
        for _ in 0..ATTEMPTS {
            match self.write_left(context, &left).await? {
                Ok(written) => {
                    let is_empty = written.forgotten;
                    return Ok(is_empty.then(|| Assembled::skipped(Reason::NothingFound)));
                }
                Err(StoreError::Stale { .. }) => {}
                // What is too large to be given again is written down all the same.
                Err(error @ StoreError::Oversized { .. }) if left.held.is_some() => {
                    tracing::warn!("an exchange is not kept: {error}");
                    left.held = None;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let Some(late) = left.held.take() else { break };
            let mut held = self.held(context, &late.session, &late.name).await?;
            if let Some(faster) = held.state.given_of(&left.spaces, &left.conditions) {
                if let Some(conversation) = &left.conversation {
                    self.hear(context, conversation).await?;
                }
                return Ok(Some(faster));
            }
            // Somebody else's write, or a forget: not an answer to this.
            held.give(&left.spaces, &left.conditions, &left.answer);
            left.held = Some(held);
        }
        Err(crate::tools::busy())
    }

    async fn write_left(
        &self,
        context: &Context,
        left: &Left,
    ) -> Result<Result<Written, StoreError>, Fault> {
        let now = self.clock.now();
        let exchange = left.held.as_ref().map(|held| held.exchange(now));
        let exchange = exchange.transpose()?;
        let version = left.held.as_ref().and_then(|held| held.version);
        let entry = Entry {
            exchange: exchange.as_ref().map(|exchange| (exchange, version)),
            conversation: left.conversation.as_ref(),
            injection: left.injection.as_ref(),
        };
        Ok(self.keep_entry(&context.tenant, entry).await)
    }
}

impl Work<'_> {
    fn left(&mut self) -> Left {
        let spaces = self.request.query.spaces.clone();
        let answer = &mut self.draft.answer;
        let audit = &self.basis.settings.audit;
        let injection = self.gateway.injection(self.context, &spaces, audit, answer);
        let injection = injection.unwrap_or_else(|fault| {
            self.stand_unwritten(&fault, false);
            None
        });
        let answer = &self.draft.answer;
        // What failed may work for the next request of the exchange, and what is empty may have something in it.
        let is_passing = [
            Reason::RetrievalUnavailable,
            Reason::NoMemory,
            Reason::UnknownSpace,
        ];
        let ended = self.rest_ended.or(answer.reason);
        let is_lasting = ended.is_none_or(|it| !is_passing.contains(&it));
        let mut held = self.held.take().filter(|_| is_lasting);
        let conditions = self.conditions();
        if let Some(held) = &mut held {
            held.give(&spaces, &conditions, answer);
        }
        Left {
            held,
            conversation: self.conversation.take(),
            injection,
            spaces,
            conditions,
            answer: answer.clone(),
        }
    }

    /// Gives way to the answer that the exchange has, if there is another and this prompt can have it.
    fn stand_back(&mut self, other: Option<Assembled>) {
        let Some(mut other) = other else { return };
        if self.takes_place_of(&other) {
            other.edits = self.edits(&other);
            self.draft.answer = other;
        } else {
            let fault = Fault::internal("another request of the exchange goes by another strategy");
            self.stand_unwritten(&fault, true);
        }
    }

    fn stand_unwritten(&mut self, fault: &Fault, is_kept: bool) {
        tracing::warn!(reason = %fault.reason, "an assembly is not written down: {fault}");
        let answer = &mut self.draft.answer;
        if answer.injection.take().is_some() {
            answer.degraded.push(format!("audit: {}", fault.message));
        }
        if is_kept {
            answer.degraded.push(format!("exchange: {}", fault.message));
        }
    }
}
