//! What a model says again of memory is no news (`Policy.capture.echoes`): of what it and other agents were given lately, the words that it
//! copied are marked in its turns, each with the turn that said them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::TimeDelta;
use memfleet_assembly::Sources;
use memfleet_domain::Fault;
use memfleet_domain::ids::{SessionId, SpaceId, TurnId};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::policy::Policy;
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::{ECHOES, Echo, Role};
use memfleet_language::Language;
use memfleet_ports::context::Context;
use memfleet_ports::injections::InjectionFilter;

use crate::Gateway;
use crate::access::reaches;
use crate::assemble::apart;

/// Sessions of a batch whose injections are looked at; a batch of more is no conversation that goes on.
const SESSIONS: usize = 8;
/// Injections of a session that are looked at, the newest first …
const OF_SESSION: u32 = 16;
/// … and of a space, whatever the session: what one agent was given another may say.
const OF_SPACE: u32 = 32;
/// How long after it was given memory is looked for in another session.
const ELSEWHERE: TimeDelta = TimeDelta::hours(1);
/// Turns that are compared.
const TURNS: usize = 512;

/// A turn that may be memory's: its place in the batch, its session, its text.
type Said<'b> = (usize, &'b SessionId, &'b str);

impl Gateway {
    /// Marks echoes in a batch that is about to be accepted. It is kept without the marks where that fails: words weigh more than what is
    /// known of them.
    pub(super) async fn mark_echoes(&self, context: &Context, batch: &mut Batch) {
        match self.echoes(context, batch).await {
            Ok(found) => {
                metrics::counter!("memfleet_echoes_total").increment(found.len() as u64);
                for (at, echoes) in found {
                    batch.turns[at].echoes = echoes;
                }
            }
            Err(fault) => {
                metrics::counter!("memfleet_echoes_failed_total").increment(1);
                tracing::warn!(%fault, "echoes of memory were not looked for");
            }
        }
    }

    /// The turns that have echoes, by their places in the batch.
    async fn echoes(
        &self,
        context: &Context,
        batch: &Batch,
    ) -> Result<Vec<(usize, Vec<Echo>)>, Fault> {
        let said = by_models(batch);
        if said.is_empty() {
            return Ok(Vec::new());
        }
        let spaces = [batch.scope.space.clone()];
        let basis = self.basis(context, &spaces, Policy::default()).await?;
        if !basis.settings.capture.echoes {
            return Ok(Vec::new());
        }
        let given = self.given_lately(context, batch, &said).await?;
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let locale = self.locale(context, &spaces).await?;
        let language = Language::tagged(locale.language.as_deref());
        let said = said.into_iter();
        let said: Vec<_> = said.map(|(at, _, text)| (at, text.to_owned())).collect();
        apart(move || {
            let sources = Sources::of(given.iter().map(|(_, text)| text.as_str()), language);
            let echo = |found: memfleet_assembly::Echo| Echo {
                start: found.span.start as u32,
                end: found.span.end as u32,
                of: given[found.source].0,
            };
            let echoes = |text: &str| -> Vec<Echo> {
                let found = sources.echoes(text).into_iter();
                found.take(ECHOES).map(echo).collect()
            };
            let all = said.iter().map(|(at, text)| (*at, echoes(text)));
            all.filter(|(_, echoes)| !echoes.is_empty()).collect()
        })
        .await
    }

    /// The turns that models of these sessions, or of this space a while ago, were given, as far as the caller may know of them.
    async fn given_lately(
        &self,
        context: &Context,
        batch: &Batch,
        said: &[Said<'_>],
    ) -> Result<Vec<(TurnId, String)>, Fault> {
        let own: HashSet<_> = batch.turns.iter().map(|turn| turn.id).collect();
        let mut wanted: BTreeMap<SpaceId, Vec<TurnId>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (filter, limit) in self.lately(batch, said) {
            let injections = &self.injections;
            let named = injections.turns_given(&context.tenant, &filter, limit);
            for (space, turn) in named.await? {
                let is_known = space == batch.scope.space || reaches(context, &space);
                let is_wanted = is_known && !own.contains(&turn) && seen.len() < TURNS;
                if is_wanted && seen.insert(turn) {
                    wanted.entry(space).or_default().push(turn);
                }
            }
        }
        let mut given = Vec::with_capacity(seen.len());
        for (space, ids) in wanted {
            let turns = self.ledger.turns(&context.scope(&space), &ids).await?;
            let turns = turns.into_iter().map(|turn| turn.accepted);
            given.extend(turns.map(|turn| (turn.id, turn.content.text)));
        }
        Ok(given)
    }

    /// Which injections, and how many of each.
    fn lately(&self, batch: &Batch, said: &[Said<'_>]) -> Vec<(InjectionFilter, u32)> {
        let sessions: BTreeSet<_> = said.iter().map(|(_, session, _)| *session).collect();
        let of_session = |session: &SessionId| InjectionFilter {
            session: Some(session.clone()),
            ..InjectionFilter::default()
        };
        let of_space = InjectionFilter {
            space: Some(batch.scope.space.clone()),
            time: TimeRange {
                start: Some(self.clock.now() - ELSEWHERE),
                end: None,
            },
            ..InjectionFilter::default()
        };
        let mut filters = Vec::new();
        if sessions.len() <= SESSIONS {
            let sessions = sessions.into_iter();
            filters.extend(sessions.map(|session| (of_session(session), OF_SESSION)));
        }
        filters.push((of_space, OF_SPACE));
        filters
    }
}

/// Users say what they say, again or not; what a model or a tool says may be memory's.
fn by_models(batch: &Batch) -> Vec<Said<'_>> {
    let turns = batch.turns.iter().enumerate();
    let turns = turns.filter(|(_, turn)| matches!(turn.role, Role::Assistant | Role::Tool));
    let said = turns.map(|(at, turn)| (at, &turn.session, turn.content.text.as_str()));
    said.filter(|(_, _, text)| !text.is_empty()).collect()
}
