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
use memfleet_domain::turn::{AcceptedTurn, ECHOES, Echo, Role};
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

impl Gateway {
    /// Marks echoes in a batch that is about to be accepted. It is kept without the marks where that fails: words weigh more than what is
    /// known of them.
    pub(super) async fn mark_echoes(&self, context: &Context, batch: &mut Batch) {
        if !batch.turns.iter().any(is_of_a_model) {
            return;
        }
        match self.echoes(context, batch).await {
            Ok(found) => {
                let found: Vec<_> = found.into_iter().filter(|(_, it)| !it.is_empty()).collect();
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

    /// The echoes of turns, by their places in the batch.
    async fn echoes(
        &self,
        context: &Context,
        batch: &Batch,
    ) -> Result<Vec<(usize, Vec<Echo>)>, Fault> {
        let spaces = [batch.scope.space.clone()];
        let basis = self.basis(context, &spaces, Policy::default()).await?;
        if !basis.settings.capture.echoes {
            return Ok(Vec::new());
        }
        let given = self.given_lately(context, batch).await?;
        if given.is_empty() {
            return Ok(Vec::new());
        }
        let locale = self.locale(context, &spaces).await?;
        let language = Language::tagged(locale.language.as_deref());
        let turns = batch.turns.iter().enumerate();
        let said = turns.filter(|(_, turn)| is_of_a_model(turn));
        let said: Vec<_> = said
            .map(|(at, turn)| (at, turn.content.text.clone()))
            .collect();
        apart(move || {
            let sources = Sources::of(given.iter().map(|(_, text)| text.as_str()), language);
            let echoes = |text: &str| {
                let found = sources.echoes(text).into_iter().take(ECHOES);
                let echo = found.map(|it| Echo {
                    start: it.span.start as u32,
                    end: it.span.end as u32,
                    of: given[it.source].0,
                });
                echo.collect()
            };
            said.iter().map(|(at, text)| (*at, echoes(text))).collect()
        })
        .await
    }

    /// The turns that models of these sessions, or of this space a while ago, were given, as far as the caller may know of them.
    async fn given_lately(
        &self,
        context: &Context,
        batch: &Batch,
    ) -> Result<Vec<(TurnId, String)>, Fault> {
        let own: HashSet<_> = batch.turns.iter().map(|turn| turn.id).collect();
        let mut wanted: BTreeMap<SpaceId, Vec<TurnId>> = BTreeMap::new();
        let mut seen = HashSet::new();
        for (filter, limit) in self.lately(batch) {
            let injections = &self.injections;
            let page = injections
                .list(&context.tenant, &filter, limit, None)
                .await?;
            for (space, turn) in page.items.into_iter().flat_map(|it| it.turns) {
                let is_known = space == batch.scope.space || reaches(context, &space);
                let is_wanted = is_known && !own.contains(&turn) && seen.len() < TURNS;
                if is_wanted && seen.insert((space.clone(), turn)) {
                    wanted.entry(space).or_default().push(turn);
                }
            }
        }
        let mut given = Vec::with_capacity(seen.len());
        for (space, ids) in wanted {
            let turns = self.ledger.turns(&context.scope(&space), &ids).await?;
            given.extend(
                turns
                    .into_iter()
                    .map(|it| (it.accepted.id, it.accepted.content.text)),
            );
        }
        Ok(given)
    }

    /// Which injections, and how many of each.
    fn lately(&self, batch: &Batch) -> Vec<(InjectionFilter, u32)> {
        let turns = batch.turns.iter().filter(|turn| is_of_a_model(turn));
        let sessions: BTreeSet<SessionId> = turns.map(|turn| turn.session.clone()).collect();
        let of_session = |session| InjectionFilter {
            session: Some(session),
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
            filters.extend(sessions.into_iter().map(|it| (of_session(it), OF_SESSION)));
        }
        filters.push((of_space, OF_SPACE));
        filters
    }
}

/// Users say what they say, again or not; what a model or a tool says may be memory's.
fn is_of_a_model(turn: &AcceptedTurn) -> bool {
    matches!(turn.role, Role::Assistant | Role::Tool) && !turn.content.text.is_empty()
}
