//! `Memory.Answer`: finds what memory holds of a question and has it answered, by a language model
//! where one is configured, else by quotations. `inquiry` finds what answers it, `stories` those
//! that it is about, `look` is what was found, `quoting` answers by quotations, `speaking` is a
//! model's answer on its way.

mod inquiry;
mod look;
mod quoting;
mod speaking;
mod stories;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::context::Context;
use memfleet_ports::memory::{AnswerMode, AnswerPart, AnswerRequest, Answers};
use memfleet_prompts::Adviser;

use crate::Gateway;
use inquiry::{Findings, Inquiry};
use look::Look;
use quoting::Quoter;
use speaking::Speaking;

/// Longest wait of an answer that names no write for the facts of what is stored: they mark and
/// order what is found.
const UNASKED: Duration = Duration::from_secs(1);

impl Gateway {
    /// Answers a question. The search comes before the stream: a space that does not exist is a
    /// fault of the call.
    pub(crate) async fn answer_question(
        &self,
        context: &Context,
        request: AnswerRequest,
    ) -> Result<Answers<AnswerPart>, Fault> {
        let author = self.author(request.mode)?;
        let query = request.query;
        self.wait_for(context, &query.spaces, &request.wait_for)
            .await?;
        let unread = match request.wait_for.as_slice() {
            [] => self.facts_read(context, &query.spaces, UNASKED).await,
            writes => {
                self.facts_of_writes_read(context, &query.spaces, writes)
                    .await
            }
        };
        let inquiry = Inquiry {
            gateway: self,
            context,
            adviser: author.as_ref(),
        };
        let Findings { mut found, retries } = inquiry.find(query.clone()).await?;
        found.degraded.extend(unread);
        tracing::Span::current().record("hits", found.hits.len());
        let locale = self.locale(context, &query.spaces).await?;
        let present = query.filter.as_of.happened_by;
        let present = present.unwrap_or_else(|| self.clock.now());
        let look = Arc::new(Look {
            zone: locale.time_zone.0,
            asked_at: query.now.unwrap_or(present),
            holds_at: present,
            question: found.understood.clone().unwrap_or(query.text),
            retries,
            quoter: Quoter {
                reader: self.reader.clone(),
                context: context.clone(),
            },
            found,
        });
        let Some(author) = author.filter(|_| !look.found.hits.is_empty()) else {
            let parts = look.by_quotations().await.into_iter().map(Ok);
            return Ok(futures::stream::iter(parts).boxed());
        };
        let shown = look.shown();
        self.note_shown(context, shown.iter().map(|place| &look.found.hits[*place]));
        let is_demanded = request.mode == AnswerMode::Model;
        let speaking = Speaking::new(author, context, look, shown, is_demanded);
        Ok(speaking.parts())
    }

    /// Language model that answers, where one is to.
    fn author(&self, mode: AnswerMode) -> Result<Option<Adviser>, Fault> {
        match (mode, &self.author) {
            (AnswerMode::Rules, _) => Ok(None),
            (AnswerMode::Model, None) => Err(Fault::new(
                FaultKind::FailedPrecondition,
                "MODEL_NOT_CONFIGURED",
                "no language model is configured: set `language_model.base_url` on the gateway, or ask with another `mode`",
            )),
            (_, author) => Ok(author.clone()),
        }
    }
}
