//! What is told of a call: a span, and metrics. Words of prompts and replies only where they are asked for.

use memfleet_ports::language_model::{Call, ModelFault, Usage};
use tokio::time::Instant;
use tracing::Span;
use tracing::field::Empty;

use crate::names;

/// One call, while it lasts.
#[derive(Debug)]
pub struct Trace {
    span: Span,
    agent: &'static str,
    begun: Instant,
    with_payloads: bool,
    is_over: bool,
}

impl Trace {
    /// A call begins.
    pub fn begin(call: &Call, model: &str, with_payloads: bool) -> Self {
        let agent = call.agent.as_str();
        let span = tracing::info_span!(
            "model",
            agent,
            prompt = %call.prompt,
            model,
            outcome = Empty,
            tokens_in = Empty,
            tokens_out = Empty,
            micros = Empty,
        );
        if with_payloads {
            for message in &call.messages {
                span.in_scope(
                    || tracing::info!(voice = ?message.voice, text = message.text, "prompt"),
                );
            }
        }
        Self {
            span,
            agent,
            begun: Instant::now(),
            with_payloads,
            is_over: false,
        }
    }

    /// The span of the call.
    pub fn span(&self) -> Span {
        self.span.clone()
    }

    /// What a model said.
    pub fn said(&self, text: &str) {
        if self.with_payloads {
            self.span.in_scope(|| tracing::info!(text, "reply"));
        }
    }

    /// The reply was there already.
    pub fn cached(mut self) {
        self.count("cached");
    }

    /// The call is over.
    pub fn end(mut self, outcome: Result<Usage, &ModelFault>) {
        metrics::histogram!(names::SECONDS, "agent" => self.agent)
            .record(self.begun.elapsed().as_secs_f64());
        match outcome {
            Ok(usage) => self.spent(usage),
            Err(fault) => {
                self.span.in_scope(|| tracing::debug!(%fault, "no reply"));
                self.count(fault.cause());
            }
        }
    }

    fn spent(&mut self, usage: Usage) {
        for (direction, tokens) in [("in", usage.tokens_in), ("out", usage.tokens_out)] {
            metrics::counter!(names::TOKENS, "agent" => self.agent, "direction" => direction)
                .increment(tokens);
        }
        metrics::counter!(names::COST, "agent" => self.agent).increment(usage.micros);
        self.span.record("tokens_in", usage.tokens_in);
        self.span.record("tokens_out", usage.tokens_out);
        self.span.record("micros", usage.micros);
        self.count("ok");
    }

    fn count(&mut self, outcome: &'static str) {
        self.is_over = true;
        self.span.record("outcome", outcome);
        metrics::counter!(names::CALLS, "agent" => self.agent, "outcome" => outcome).increment(1);
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if !self.is_over {
            self.count("left");
        }
    }
}
