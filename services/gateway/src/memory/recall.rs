//! `Recall`: what the search finds, copies once. A client that repeats itself would fill an answer
//! with one sentence.

use std::collections::HashSet;

use memfleet_assembly::Said;
use memfleet_domain::Fault;
use memfleet_ports::context::Context;
use memfleet_ports::memory::{HitGranularity, RecallRequest};
use memfleet_ports::retriever::{Found, Hit, Query};

use crate::Gateway;

/// How much wider a search becomes when copies took the places of others.
const WIDER: u32 = 4;
/// Turns that a search gives at most, neighbours among them.
const MOST: u32 = 5_000;
/// Hits of a search at most.
const MOST_HITS: u32 = 1_000;

impl Gateway {
    /// The best turns of a query. Where one speaker says the same words in several turns of a
    /// space, the best of them stands for all; what comes behind takes the places of the others.
    /// Hits below the least relevance that the call names are left out of these.
    pub(super) async fn recalled(
        &self,
        context: &Context,
        request: &RecallRequest,
    ) -> Result<Found, Fault> {
        let mut found = self.best(context, &request.query).await?;
        if request.granularity == HitGranularity::Statement {
            let query = found.understood.as_deref().unwrap_or(&request.query.text);
            let (query, k) = (query.to_owned(), request.query.k);
            self.split_into_statements(context, &query, k, &mut found)
                .await;
        }
        if let Some(least) = request.min_relevance {
            let is_relevant = |hit: &Hit| hit.relevance.is_some_and(|it| it >= least);
            found.hits.retain(is_relevant);
        }
        if let Some(explanation) = &mut found.explanation {
            explanation.settle(&found.hits);
        }
        Ok(found)
    }

    async fn best(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let understood = self.understood(context, query).await;
        let most = MOST_HITS.min(MOST / (1 + 2 * query.neighbours));
        let mut wider = query.clone();
        loop {
            let mut found = self
                .search_understood(context, &wider, understood.clone())
                .await?;
            let is_all = found.searched <= u64::from(wider.k) || wider.k >= most;
            let copies = without_copies(&mut found);
            if is_all || copies == 0 || found.hits.len() >= query.k as usize {
                found.hits.truncate(query.k as usize);
                return Ok(found);
            }
            wider.k = wider.k.saturating_mul(WIDER).min(most);
        }
    }
}

/// Keeps the first of copies; how many others there were.
fn without_copies(found: &mut Found) -> usize {
    let before = found.hits.len();
    let (mut seen, mut copies) = (HashSet::new(), HashSet::new());
    found.hits.retain(|hit| {
        let accepted = &hit.turn.accepted;
        let text = accepted.content.searchable_text();
        let said = Said::of(accepted.speaker.as_str(), &text);
        let is_new = seen.insert((hit.space.clone(), said));
        if !is_new {
            copies.insert((hit.space.clone(), accepted.id));
        }
        is_new
    });
    if let Some(explanation) = &mut found.explanation {
        for candidate in &mut explanation.shown {
            candidate.is_copy = copies.contains(&(candidate.space.clone(), candidate.turn));
        }
    }
    before - found.hits.len()
}
