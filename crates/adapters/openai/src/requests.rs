//! Requests, sent until one is served or it is not worth another: the endpoint may have had a bad moment, or take less of the
//! protocol than we thought. Every one passes breaker and budget.

use std::time::Duration;

use async_openai::error::OpenAIError;
use backon::{BackoffBuilder, ExponentialBuilder};
use futures::stream::BoxStream;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::Call;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use crate::budget::{self, Reserved};
use crate::cache::Key;
use crate::dialect::Dialect;
use crate::failure::Failure;
use crate::model::OpenAi;
use crate::names;
use crate::suspects::Standing;
use crate::wire::Request;

/// Shortest and longest pause before a request is sent again; jitter adds up to as much.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);
/// An endpoint that says nothing for so long is slow, whatever the caller's deadline was.
const SLOW: Duration = Duration::from_secs(2);

/// What a request brought.
pub enum Sent {
    /// A body.
    Whole(Value),
    /// The beginning of one.
    Stream(Chunks),
}

/// Pieces of a body.
pub type Chunks = BoxStream<'static, Result<Value, OpenAIError>>;

impl OpenAi {
    /// Sends until it is served. What is reserved for it is the caller's to settle.
    pub(crate) async fn persist(
        &self,
        tenant: &TenantId,
        call: &Call,
        deadline: Instant,
        stream: bool,
    ) -> Result<(Sent, Reserved), Failure> {
        let input = self.key(tenant, call);
        if self.0.suspects.standing(&input) == Standing::AtFault {
            return Err(Failure::Refused("the endpoint fails on it every time"));
        }
        // A deadline that is shorter than a call may take says nothing of its input.
        let is_patient = call.deadline - Instant::now() >= self.agent(call).timeout;
        let sent = self.insist(tenant, call, &input, deadline, stream).await;
        if is_patient || !matches!(sent, Err(Failure::TimedOut { .. })) {
            self.0.suspects.record(input, &sent);
        }
        sent
    }

    async fn insist(
        &self,
        tenant: &TenantId,
        call: &Call,
        input: &Key,
        deadline: Instant,
        stream: bool,
    ) -> Result<(Sent, Reserved), Failure> {
        let model = &self.agent(call).model;
        let mut dialect = self.0.dialects.of(model);
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(SHORTEST)
            .with_max_delay(LONGEST)
            .with_max_times(self.0.options.retries)
            .with_jitter()
            .build();
        loop {
            let attempt = self.attempt(tenant, call, input, dialect, deadline, stream);
            let failure = match attempt.await {
                Ok(sent) => {
                    self.0.dialects.learn(model, dialect);
                    return Ok(sent);
                }
                Err(failure) => failure,
            };
            if let Some(simpler) = dialect.simpler(&failure, call, stream) {
                dialect = simpler;
                continue;
            }
            let pause = pauses.next().filter(|_| failure.is_transient());
            let pause = pause.map(|pause| pause.max(failure.retry_after().unwrap_or_default()));
            let again = pause.filter(|pause| Instant::now() + *pause < deadline);
            sleep(again.ok_or(failure)?).await;
            metrics::counter!(names::RETRIES, "agent" => call.agent.as_str()).increment(1);
        }
    }

    /// One request. Of one that failed without a status nobody knows what it cost: its reserve stays.
    async fn attempt(
        &self,
        tenant: &TenantId,
        call: &Call,
        input: &Key,
        dialect: Dialect,
        deadline: Instant,
        stream: bool,
    ) -> Result<(Sent, Reserved), Failure> {
        let options = self.agent(call);
        let standing = self.0.suspects.standing(input);
        let pass = self.0.breaker.pass(*input, standing)?;
        let most = budget::most(call, options);
        let reserving = self.0.budget.reserve(tenant, most);
        let reserved = timeout_at(deadline, reserving).await;
        let reserved = reserved.unwrap_or(Err(Failure::TimedOut { slow: false }))?;
        let request = Request::new(call, options, dialect, stream);
        let begun = Instant::now();
        let sending = timeout_at(deadline, self.send(request, stream)).await;
        let sent = sending.unwrap_or_else(|_| {
            let slow = begun.elapsed() >= SLOW;
            Err(Failure::TimedOut { slow })
        });
        pass.record(&sent);
        if sent.as_ref().is_err_and(Failure::is_free) {
            self.0.budget.release(&reserved).await;
        }
        Ok((sent?, reserved))
    }

    async fn send(&self, request: Request<'_>, stream: bool) -> Result<Sent, Failure> {
        let chat = self.0.client.chat();
        Ok(match stream {
            false => Sent::Whole(chat.create_byot(request).await?),
            true => Sent::Stream(chat.create_stream_byot(request).await?),
        })
    }
}
