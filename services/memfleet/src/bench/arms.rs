//! The usual methods on the same turns, through the same path: BM25 alone, one dense vector alone, and reciprocal rank fusion
//! of the two (Cormack et al., 2009, with its constant 60).

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_gateway::Gateway;
use memfleet_ports::context::Context;
use memfleet_ports::retriever::{Found, Hit, Query, Retriever};
use memfleet_retrieval::{Signal, Weights};

use crate::node::Node;

/// Flattens the difference between the first ranks.
const RANK_CONSTANT: f32 = 60.0;

/// A gateway for each method, by name.
pub fn arms(node: &Node) -> Vec<(&'static str, Gateway)> {
    let only = |signal| {
        node.retriever(Weights {
            signals: [(signal, 1.0)].into(),
            ..Weights::shipped()
        })
    };
    let (lexical, dense) = (only(Signal::Bm25), only(Signal::Cosine));
    let fused = Arc::new(ReciprocalRankFusion {
        first: lexical.clone(),
        second: dense.clone(),
    });
    let with = |retriever: Arc<dyn Retriever>| Gateway {
        retriever,
        ..(*node.gateway).clone()
    };
    vec![
        ("bm25", with(lexical)),
        ("dense", with(dense)),
        ("rrf", with(fused)),
    ]
}

/// Two retrievers fused by rank.
struct ReciprocalRankFusion {
    first: Arc<dyn Retriever>,
    second: Arc<dyn Retriever>,
}

#[async_trait]
impl Retriever for ReciprocalRankFusion {
    async fn search(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let first = self.first.search(context, query).await?;
        let second = self.second.search(context, query).await?;
        let hits = fuse([first.hits, second.hits], query.k as usize);
        Ok(Found { hits, ..first })
    }
}

fn fuse(lists: [Vec<Hit>; 2], k: usize) -> Vec<Hit> {
    let mut fused = HashMap::new();
    for hits in lists {
        for (rank, hit) in hits.into_iter().enumerate() {
            let gain = 1.0 / (RANK_CONSTANT + rank as f32 + 1.0);
            fused
                .entry(hit.turn.accepted.id)
                .and_modify(|seen: &mut Hit| seen.score += gain)
                .or_insert(Hit { score: gain, ..hit });
        }
    }
    let mut hits = fused.into_values().collect::<Vec<_>>();
    hits.sort_by(|one, other| {
        other
            .score
            .total_cmp(&one.score)
            .then_with(|| one.turn.accepted.id.cmp(&other.turn.accepted.id))
    });
    hits.truncate(k);
    hits
}
