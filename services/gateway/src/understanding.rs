//! A query in its conversation (AMA section 3.2, u′): what its pronouns stand for is looked for in the last turns of the session that it
//! is asked in.

use chrono_tz::Tz;
use memfleet_agents::facts::Utterance;
use memfleet_agents::reading::{Reading, read};
use memfleet_domain::Fault;
use memfleet_domain::turn::Turn;
use memfleet_language::Language;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Query;

use crate::Gateway;

/// Turns of a session that a query is read with.
const RECENT: u32 = 8;

/// The last turns of a conversation, oldest first, and how they are read.
pub struct Recent {
    pub turns: Vec<Turn>,
    pub language: Language,
    pub zone: Tz,
}

impl Gateway {
    /// The conversation of a query, as far as the query may see it.
    pub(crate) async fn recent(&self, context: &Context, query: &Query) -> Result<Recent, Fault> {
        let Some(space) = query.spaces.first() else {
            return Err(Fault::invalid("spaces", "names no space"));
        };
        let scope = context.scope(space);
        let mut turns = match &query.session {
            Some(session) => self.ledger.latest(&scope, session, RECENT).await?,
            None => Vec::new(),
        };
        if let Some(until) = query.filter.as_of.happened_by {
            turns.retain(|turn| turn.accepted.effective_time() <= until);
        }
        let locale = self.spaces.locale(&scope).await?.unwrap_or_default();
        Ok(Recent {
            turns,
            language: Language::tagged(locale.language.as_deref()),
            zone: locale.time_zone.0,
        })
    }

    /// How the rules read a query.
    pub(crate) async fn read(&self, context: &Context, query: &Query) -> Result<Reading, Fault> {
        let Recent {
            turns,
            language,
            zone,
        } = self.recent(context, query).await?;
        let texts: Vec<String> = turns
            .iter()
            .map(|turn| turn.accepted.content.searchable_text())
            .collect();
        let recent: Vec<Utterance<'_>> = turns
            .iter()
            .zip(&texts)
            .map(|(turn, text)| Utterance {
                id: turn.accepted.id,
                speaker: turn.accepted.speaker.as_str(),
                text,
                said_at: turn.accepted.effective_time(),
            })
            .collect();
        let now = query.now.unwrap_or_else(|| self.clock.now());
        Ok(read(&query.text, &recent, now, zone, language))
    }

    /// The query as its conversation makes it, where it names one. Without an answer of the store it is searched as it stands.
    pub(crate) async fn understood(&self, context: &Context, query: &Query) -> Option<String> {
        query.session.as_ref()?;
        let read = context.within("the session of the query", self.read(context, query));
        match read.await {
            Ok(reading) => Some(reading.rewritten).filter(|text| *text != query.text),
            Err(fault) => {
                tracing::warn!(reason = %fault.reason, "a query is searched as it stands: {fault}");
                None
            }
        }
    }
}
