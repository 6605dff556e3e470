//! The `Assembly` service (AMP): whether a prompt needs memory, which, and where it goes.
//!
//! `work` is one assembly from start to end; its parts: `prompt` reads what memory is put
//! into, `basis` is the policy in force, `models` the model, `bounds` the budget, `gating` the
//! gates before the search, `finding` what must not be found, `needs` which of it a reply
//! needs, `profile` who the speaker is, `choosing` the block, `placing` its place, `nonce` what encloses a block, `sticky`
//! what the requests of one exchange share, `record` what is written down, `settling` how.
//! `rendering` does the same for memories that the caller brings.

pub(crate) mod basis;
pub(crate) mod bounds;
pub(crate) mod choosing;
mod draft;
mod exemplars;
pub(crate) mod finding;
mod gating;
pub(crate) mod models;
mod needs;
pub(crate) mod nonce;
mod placing;
mod profile;
pub(crate) mod prompt;
mod record;
pub(crate) mod redaction;
mod rendering;
mod routing;
mod settling;
pub(crate) mod sticky;
mod story;
pub(crate) mod work;

use std::time::Duration;

use async_trait::async_trait;
use memfleet_assembly::Tokenizer;
use memfleet_background::BackgroundLane;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{Decision, FailurePolicy, Reason};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::{Failure, Gating};
use memfleet_domain::space::Locale;
use memfleet_gates::rules::Before;
use memfleet_ports::assembly::{
    AssembleRequest, Assembled, Assembly, Counted, GateRequest, Gated, RenderRequest, TokenizerInfo,
};
use memfleet_ports::context::{CallPriority, Context};
use memfleet_ports::store::StoreError;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Span, instrument};

use crate::Gateway;
use crate::memory::names;
pub(crate) use basis::{is_shipped_template, template};
pub use exemplars::{Examples, Routing};
pub(crate) use redaction::Redactions;
use work::Work;

#[async_trait]
impl Assembly for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&request.query.spaces), k = request.query.k, tokens = Empty, decision = Empty, reason = Empty, injection = Empty))]
    async fn assemble(
        &self,
        context: &Context,
        mut request: AssembleRequest,
    ) -> Result<Assembled, Fault> {
        let policy = std::mem::take(&mut request.policy);
        let failure = policy.failure.policy.unwrap_or(Failure::default().policy);
        let within = policy.failure.deadline_ms;
        let within = within.unwrap_or(Failure::default().deadline_ms);
        let began = Instant::now();
        let brief = context.at_most(Duration::from_millis(within.into()));
        let basis = self.basis(&brief, &request.query.spaces, policy);
        let basis = match brief.within("settings", basis).await {
            Ok(basis) => basis,
            // Whether it may fail is not known either: as the call says.
            Err(fault) => return without_memory(fault, failure),
        };
        let failure = basis.settings.failure.policy;
        if !basis.is_present {
            // Nothing could be found, kept or written down.
            return without_memory(away(), failure);
        }
        let mut work = Work::begin(self, context, request, basis, began).await?;
        let end = work.run().await;
        finish(&mut work, end, failure)?;
        self.settle(&mut work).await;
        work.patch().await?;
        let answer = work.draft.answer;
        self.note_injected(context, &answer);
        tell(&answer);
        Ok(answer)
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, spaces = %names(&request.spaces)))]
    async fn gate(&self, context: &Context, request: GateRequest) -> Result<Gated, Fault> {
        self.gate_alone(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, candidates = request.candidates.len()))]
    async fn render(&self, context: &Context, request: RenderRequest) -> Result<Assembled, Fault> {
        self.render_candidates(context, request).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, texts = texts.len()))]
    async fn count_tokens(
        &self,
        context: &Context,
        name: &str,
        texts: &[String],
    ) -> Result<Counted, Fault> {
        let (name, texts) = (name.to_owned(), texts.to_vec());
        let tokenizers = self.tokenizers.clone();
        let late = too_late(context);
        let count = move || {
            let tokenizer = tokenizers
                .get(&name)
                .map_err(|error| Fault::invalid("tokenizer", error.to_string()))?
                .until(late);
            let info = |name: &str, approximate| TokenizerInfo {
                name: name.to_owned(),
                approximate,
            };
            let all = tokenizers.names().into_iter();
            Ok(Counted {
                counts: texts
                    .iter()
                    .map(|text| tokenizer.count(text) as u32)
                    .collect(),
                tokenizer: info(tokenizer.name(), tokenizer.is_approximate()),
                tokenizers: all
                    .map(|name| info(name, Tokenizer::is_bound(name)))
                    .collect(),
            })
        };
        let computing = async {
            let place = self.shares.take(&context.tenant).await;
            match place.priority() {
                CallPriority::Normal => apart(count).await?,
                CallPriority::Low => apart_from_calls(count).await?,
            }
        };
        context.within("a count of tokens", computing).await
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn model_profiles(&self, context: &Context) -> Result<Vec<ModelProfile>, Fault> {
        Ok(models::all(&*self.settings.of(&context.tenant).await?))
    }

    #[instrument(skip_all, fields(tenant = %context.tenant, model = %profile.name))]
    async fn put_model_profile(
        &self,
        context: &Context,
        profile: ModelProfile,
    ) -> Result<(ModelProfile, u32), Fault> {
        let version = self.put_profile(context, &profile).await?;
        Ok((profile, version))
    }
}

impl Gateway {
    /// Reads what is read once a process, so that the first calls do not wait for it.
    pub fn warm_up(&self) {
        let words = "What did she say?";
        if let Ok(tokenizer) = self.tokenizers.get(models::DEFAULT_TOKENIZER) {
            tokenizer.count(words);
        }
        gating::rules(&Gating::default(), words, Before::Nothing);
        Examples::shipped();
    }

    /// That of the first space of a query: its zone and its language are those of the answer.
    pub(crate) async fn locale(
        &self,
        context: &Context,
        spaces: &[SpaceId],
    ) -> Result<Locale, Fault> {
        let locale = match spaces.first() {
            Some(space) => self.spaces.locale(&context.scope(space)).await?,
            None => None,
        };
        Ok(locale.unwrap_or_default())
    }
}

/// What an assembly came to.
fn finish(work: &mut Work<'_>, end: work::Step<()>, failure: FailurePolicy) -> Result<(), Fault> {
    let answer = &mut work.draft.answer;
    match end {
        Ok(Ok(())) => Ok(()),
        Ok(Err(reason)) => {
            answer.reason = Some(reason);
            Ok(())
        }
        Err(fault) if failure == FailurePolicy::Closed => Err(fault),
        Err(fault) => {
            let (reason, why) = finding::without(fault)?;
            answer.reason = Some(reason);
            answer.degraded.push(why);
            Ok(())
        }
    }
}

/// The store did not answer just now.
fn away() -> Fault {
    StoreError::Unavailable("it was asked a moment ago".to_owned()).into()
}

/// An answer before anything is known, where the call may go on without memory.
fn without_memory(fault: Fault, failure: FailurePolicy) -> Result<Assembled, Fault> {
    if failure == FailurePolicy::Closed {
        return Err(fault);
    }
    let (reason, why) = finding::without(fault)?;
    let mut answer = Assembled::skipped(reason);
    answer.degraded.push(why);
    Ok(answer)
}

/// Puts what became of an assembly into its span and the metrics.
fn tell(answer: &Assembled) {
    let span = Span::current();
    span.record("tokens", answer.tokens);
    span.record("decision", answer.decision.name());
    let reason = answer.reason.map_or("", Reason::name);
    span.record("reason", reason);
    if let Some(injection) = answer.injection {
        span.record("injection", injection.to_string());
    }
    metrics::counter!("memfleet_assemblies_total", "decision" => answer.decision.name(), "reason" => reason)
        .increment(1);
    if answer.decision != Decision::Skipped {
        metrics::counter!("memfleet_injected_tokens_total")
            .increment(answer.budget.added_tokens.into());
    }
}

/// When counting for a call stops: a moment after its deadline, when its answer is surely given up.
pub(crate) fn too_late(context: &Context) -> std::time::Instant {
    (context.deadline + Duration::from_millis(100)).into_std()
}

/// Work that stands behind that of other calls.
async fn apart_from_calls<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let done = memfleet_background::compute_in(BackgroundLane::Calls, work).await;
    done.ok_or_else(|| Fault::internal("assembling stopped"))
}

/// Work that would hold up the threads that answer calls.
pub(crate) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Fault::internal(format!("assembling stopped: {error}")))
}
