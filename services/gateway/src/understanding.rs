//! A query in its conversation (AMA section 3.2, u′): what its pronouns stand for is looked for in the last turns of the session that it
//! is asked in.

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

impl Gateway {
    /// How the rules read a query.
    pub(crate) async fn read(&self, context: &Context, query: &Query) -> Result<Reading, Fault> {
        let Some(space) = query.spaces.first() else {
            return Err(Fault::invalid("spaces", "names no space"));
        };
        let scope = context.scope(space);
        let turns = match &query.session {
            Some(session) => self.ledger.latest(&scope, session, RECENT).await?,
            None => Vec::new(),
        };
        let until = query.filter.as_of.happened_by;
        let was_said =
            |turn: &Turn| until.is_none_or(|until| turn.accepted.effective_time() <= until);
        let texts: Vec<String> = turns
            .iter()
            .map(|turn| turn.accepted.content.searchable_text())
            .collect();
        let recent: Vec<Utterance<'_>> = turns
            .iter()
            .zip(&texts)
            .filter(|(turn, _)| was_said(turn))
            .map(|(turn, text)| Utterance {
                id: turn.accepted.id,
                speaker: turn.accepted.speaker.as_str(),
                role: turn.accepted.role,
                text,
                said_at: turn.accepted.effective_time(),
            })
            .collect();
        let locale = self.spaces.locale(&scope).await?.unwrap_or_default();
        let language = Language::tagged(locale.language.as_deref());
        let now = query.now.unwrap_or_else(|| self.clock.now());
        Ok(read(
            &query.text,
            &recent,
            now,
            locale.time_zone.0,
            language,
        ))
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
