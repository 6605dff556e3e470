//! A reply in pieces: each in time, the whole within its deadline, and complete, or a fault at its end. Its place and its reserve
//! are held until then.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::try_unfold;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::{Call, LanguageModel, ModelFault, Piece, Pieces, Usage};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};

use crate::budget::Reserved;
use crate::failure::Failure;
use crate::model::{OpenAi, cost};
use crate::options::AgentOptions;
use crate::requests::{Chunks, Sent};
use crate::trace::Trace;
use crate::wire::{Counted, End, Response};

/// A reply on its way.
pub struct Streaming {
    model: OpenAi,
    name: Arc<str>,
    options: AgentOptions,
    chunks: Chunks,
    reserved: Reserved,
    deadline: Instant,
    idle: Duration,
    counted: Option<Counted>,
    end: Option<End>,
    _place: OwnedSemaphorePermit,
}

impl OpenAi {
    /// Waits for the reply to begin.
    pub(crate) async fn open(&self, tenant: &TenantId, call: &Call) -> Result<Streaming, Failure> {
        let deadline = self.deadline(call);
        let place = self.0.places.take(deadline).await?;
        let (sent, reserved) = self.persist(tenant, call, deadline, true).await?;
        let Sent::Stream(chunks) = sent else {
            return Err(Failure::Garbage("it is no stream"));
        };
        Ok(Streaming {
            model: self.clone(),
            name: self.name(call.agent),
            options: self.agent(call).clone(),
            chunks,
            reserved,
            deadline,
            idle: self.0.options.idle_timeout,
            counted: None,
            end: None,
            _place: place,
        })
    }
}

impl Streaming {
    /// The pieces; the trace ends with them.
    pub fn pieces(self, trace: Trace) -> Pieces {
        let state = Some((self, trace));
        try_unfold(state, |state| async {
            let Some((mut streaming, trace)) = state else {
                return Ok(None);
            };
            match streaming.next().await {
                Ok(Some(text)) => {
                    trace.said(&text);
                    Ok(Some((Piece::Text(text), Some((streaming, trace)))))
                }
                Ok(None) => {
                    let model = streaming.name.clone();
                    let usage = streaming.settle().await;
                    trace.end(Ok(usage));
                    Ok(Some((Piece::End { usage, model }, None)))
                }
                Err(failure) => {
                    let fault = ModelFault::from(failure);
                    trace.end(Err(&fault));
                    Err(fault)
                }
            }
        })
        .boxed()
    }

    /// More words; nothing when the reply is complete.
    async fn next(&mut self) -> Result<Option<String>, Failure> {
        loop {
            let until = self.deadline.min(Instant::now() + self.idle);
            let chunk = timeout_at(until, self.chunks.next())
                .await
                .map_err(|_| Failure::TimedOut { slow: true })?;
            let Some(chunk) = chunk else {
                return match self.end {
                    Some(End::Done) => Ok(None),
                    Some(End::CutOff) => {
                        Err(Failure::Garbage("the reply is longer than `max_tokens`"))
                    }
                    None => Err(Failure::Garbage("the reply was cut off")),
                };
            };
            let response = Response::of(chunk?)?;
            self.counted = response.counted().or(self.counted);
            let (text, end) = response.into_piece()?;
            self.end = end.or(self.end);
            if !text.is_empty() {
                return Ok(Some(text));
            }
        }
    }

    async fn settle(self) -> Usage {
        let usage = cost(self.counted, self.reserved.most, &self.options);
        let budget = &self.model.0.budget;
        budget.settle(&self.reserved, usage).await;
        usage
    }
}
