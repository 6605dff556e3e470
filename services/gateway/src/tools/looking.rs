//! What a call of a memory tool finds: the same search and the same block as those of an assembly, without what was given before.

use std::collections::HashSet;
use std::sync::Arc;

use memfleet_domain::Fault;
use memfleet_domain::assembly::Reason;
use memfleet_domain::ids::{SessionId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::{Found, Hit, Query};
use memfleet_ports::tools::ToolCall;
use memfleet_provider::tools::{Ask, Get, Granularity, Search};

use super::wording;
use crate::Gateway;
use crate::assemble::basis::Basis;
use crate::assemble::finding;

/// Candidates of a search.
const CANDIDATES: u32 = 100;

/// Turns before and after each, where what was said around it is wanted.
const AROUND: u32 = 2;

/// What a call came to.
#[derive(Clone)]
pub enum Look {
    /// These, and words about what is not there.
    Found(Found, Option<&'static str>),
    /// It may not look there; what the model is told.
    Refused(&'static str),
    /// Memory did not answer; why.
    Unreachable(String),
}

impl Gateway {
    /// What a call finds by `deadline`.
    pub(super) async fn look(
        &self,
        context: &Context,
        call: &ToolCall,
        ask: &Ask,
        basis: &Basis,
        now: Timestamp,
    ) -> Result<Look, Fault> {
        let mut filter = call.filter.clone();
        let (exclusion, session) = (&basis.settings.exclusion, Some(&call.session));
        finding::exclude(&mut filter, exclusion, session, &call.aliases, now);
        let looked = match ask {
            Ask::Search(search) => match narrowed(filter, search) {
                Ok(filter) => self.search_for(context, call, search, filter).await,
                Err(why) => return Ok(Look::Refused(why)),
            },
            Ask::Get(get) => self.read_turns(context, call, get, filter).await,
        };
        looked.or_else(|fault| match finding::without(fault)? {
            (Reason::NoMemory, why) => {
                let degraded = vec![why];
                let nothing = Found {
                    degraded,
                    ..Found::default()
                };
                Ok(Look::Found(nothing, None))
            }
            (_, why) => Ok(Look::Unreachable(why)),
        })
    }

    async fn search_for(
        &self,
        context: &Context,
        call: &ToolCall,
        search: &Search,
        filter: TurnFilter,
    ) -> Result<Look, Fault> {
        let query = Query {
            text: search.query.clone(),
            spaces: call.spaces.clone(),
            filter,
            k: CANDIDATES,
            neighbours: match search.granularity.unwrap_or_default() {
                Granularity::Episode => AROUND,
                Granularity::Raw => 0,
            },
            now: call.now,
            session: Some(call.session.clone()),
            intent: None,
            explain: false,
            quality: None,
            vectors: None,
        };
        let found = context
            .within("memory", self.search(context, &query))
            .await?;
        Ok(Look::Found(found, None))
    }

    /// Turns by their ids, in the spaces of the call, as far as its filter lets them pass.
    async fn read_turns(
        &self,
        context: &Context,
        call: &ToolCall,
        get: &Get,
        mut filter: TurnFilter,
    ) -> Result<Look, Fault> {
        let asked: Vec<TurnId> = get.ids.iter().filter_map(|id| id.parse().ok()).collect();
        let allowed: HashSet<_> = std::mem::take(&mut filter.turns).into_iter().collect();
        let may = |id: &TurnId| allowed.is_empty() || allowed.contains(id);
        filter.turns = asked.iter().copied().filter(may).collect();
        filter.include_replaced = true;
        let mut found = Found::default();
        for space in &call.spaces {
            if filter.turns.is_empty() {
                break;
            }
            let scope = self.awaited(context, space).await?;
            let most = filter.turns.len() as u32;
            let page = self.ledger.list(&scope, &filter, most, None).await?;
            found.hits.extend(page.items.into_iter().map(|turn| Hit {
                space: space.clone(),
                turn,
                score: 1.0,
                relevance: None,
                passage: (0, 0),
                signals: Vec::new(),
                neighbours: Vec::new(),
                facts: Vec::new(),
                outdated: None,
            }));
        }
        let ids: HashSet<&str> = get.ids.iter().map(String::as_str).collect();
        let is_short = found.hits.len() < ids.len();
        if found.hits.is_empty() {
            return Ok(Look::Refused(wording::NOT_READABLE));
        }
        Ok(Look::Found(
            found,
            is_short.then_some(wording::NOT_READABLE),
        ))
    }
}

/// A filter, narrowed by what the model asks for; it never becomes wider (AMP item 120).
fn narrowed(mut filter: TurnFilter, search: &Search) -> Result<TurnFilter, &'static str> {
    if let Some(session) = &search.session {
        let session = SessionId::new(session.as_str()).map_err(|_| wording::NOT_SEARCHABLE)?;
        let is_beyond = !filter.sessions.is_empty() && !filter.sessions.contains(&session);
        if is_beyond || filter.excluded_sessions.contains(&session) {
            return Err(wording::NOT_SEARCHABLE);
        }
        filter.sessions = vec![session];
    }
    let later = |one: Option<Timestamp>, other: Option<Timestamp>| one.max(other);
    let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    filter.time = TimeRange {
        start: later(filter.time.start, search.time_from),
        end: earlier(filter.time.end, search.time_to),
    };
    let is_empty =
        matches!((filter.time.start, filter.time.end), (Some(from), Some(to)) if from >= to);
    if is_empty {
        return Err(wording::NO_SUCH_TIME);
    }
    Ok(filter)
}

/// The settings that the block of a call is made by.
pub fn basis_of(ask: &Ask, basis: &Basis) -> Arc<Basis> {
    let mut basis = basis.clone();
    let (budget, settings) = (&mut basis.settings.budget, &mut basis.settings.selection);
    match ask {
        Ask::Search(search) => {
            let most = budget.max_items;
            budget.max_items = match (search.limit, most) {
                (Some(limit), 0) => limit,
                (Some(limit), most) => limit.min(most),
                (None, most) => most,
            };
        }
        // What is read by its id is wanted whole, whatever a search would say of it.
        Ask::Get(_) => {
            (budget.max_item_tokens, budget.max_items_per_session) = (0, 0);
            settings.excerpts = false;
            (basis.said.relevance, basis.said.best_relevance) = (Some(0.0), None);
        }
    }
    Arc::new(basis)
}
