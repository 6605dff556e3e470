//! Thorough searches: where nothing found is likely relevant, a language model imagines answers,
//! and turns that are like them count too (hypothetical document embeddings; Gao et al., 2023).

use std::collections::HashMap;

use memfleet_domain::Fault;
use memfleet_domain::ids::{SpaceId, TurnId};
use memfleet_ports::context::Context;
use memfleet_ports::language_model::ModelFault;
use memfleet_ports::retriever::{Found, Hit, Query};
use memfleet_prompts::Adviser;
use memfleet_prompts::imagine::ImaginingQuery;
use tokio::time::Instant;

use crate::Gateway;

/// Relevance of the best hit from which on nothing is imagined.
const RELEVANT: f32 = 0.3;

/// Weight of the imagined answers' mean score beside the score of the query.
const WEIGHT: f32 = 0.5;

/// Hits of each search whose scores are added.
const DEPTH: u32 = 100;

/// Share of the time that is left which the model may take.
const TIME_SHARE: u32 = 2;

/// A turn of an answer.
type TurnKey = (SpaceId, TurnId);

impl Gateway {
    /// The search of a query, and where its best hit is hardly relevant those of imagined answers.
    /// Without a language model it is the search of the query alone, and `degraded` says so.
    pub(crate) async fn thorough(&self, context: &Context, query: &Query) -> Result<Found, Fault> {
        let deep = Query {
            k: query.k.max(DEPTH / (1 + 2 * query.neighbours)),
            ..query.clone()
        };
        let mut found = self.search_in_share(context, &deep).await?;
        if needs_imagination(&found) {
            match &self.author {
                None => found
                    .degraded
                    .push("quality: no language model is configured that imagines answers".into()),
                Some(author) => match self.imagined(context, author, query).await {
                    Ok(passages) => self.add(context, &deep, &mut found, passages).await,
                    Err(fault) => found.degraded.push(format!(
                        "language model: {fault}; searched without imagined answers"
                    )),
                },
            }
        }
        found.hits.truncate(query.k as usize);
        if let Some(explanation) = &mut found.explanation {
            explanation.settle(&found.hits);
        }
        Ok(found)
    }

    async fn imagined(
        &self,
        context: &Context,
        author: &Adviser,
        query: &Query,
    ) -> Result<Vec<String>, ModelFault> {
        let prompt = ImaginingQuery {
            query: &query.text,
            now: query.now.unwrap_or_else(|| self.clock.now()),
        };
        let now = Instant::now();
        let left = context.deadline.saturating_duration_since(now);
        let asked = author.ask_by(&context.tenant, &prompt, now + left / TIME_SHARE);
        Ok(asked.await?.meant)
    }

    /// Adds the scores of the searches of passages. One that fails is left out.
    async fn add(
        &self,
        context: &Context,
        query: &Query,
        found: &mut Found,
        passages: Vec<String>,
    ) {
        let mut answers = Vec::with_capacity(passages.len());
        for text in passages {
            let query = Query {
                text,
                explain: false,
                vectors: None,
                ..query.clone()
            };
            match self.search_in_share(context, &query).await {
                // Scores of another scorer lie on another scale.
                Ok(answer) if answer.scorer == found.scorer => answers.push(answer.hits),
                Ok(answer) => found.degraded.extend(answer.degraded),
                Err(fault) => found.degraded.push(format!("imagined answer: {fault}")),
            }
        }
        if !answers.is_empty() {
            found.hits = fused(std::mem::take(&mut found.hits), answers);
        }
    }
}

/// True where something was found and nothing of it is likely relevant. Where relevance is not
/// known nothing is imagined.
fn needs_imagination(found: &Found) -> bool {
    let mut hits = found.hits.iter();
    let is_low = |hit: &Hit| hit.relevance.is_some_and(|relevance| relevance < RELEVANT);
    !found.hits.is_empty() && hits.all(is_low)
}

/// Hits by the sum of their score and half of the mean score in the other answers. Where an answer
/// lacks a turn, its last score stands. A turn that the query alone did not find has the lowest
/// relevance of those that it found, behind which it ranks.
fn fused(hits: Vec<Hit>, others: Vec<Vec<Hit>>) -> Vec<Hit> {
    let floor = |hits: &[Hit]| hits.last().map_or(0.0, |hit| hit.score);
    let weight = WEIGHT / others.len() as f32;
    let base: f32 = others.iter().map(|hits| weight * floor(hits)).sum();
    let query_floor = floor(&hits);
    let lowest = hits.iter().filter_map(|hit| hit.relevance);
    let lowest = lowest.reduce(f32::min);
    let mut fused: HashMap<TurnKey, Hit> = HashMap::new();
    for mut hit in hits {
        hit.score += base;
        fused.insert(key(&hit), hit);
    }
    for hits in others {
        let floor = floor(&hits);
        for mut hit in hits {
            let gain = weight * (hit.score - floor);
            hit.relevance = lowest;
            hit.score = query_floor + base;
            fused.entry(key(&hit)).or_insert(hit).score += gain;
        }
    }
    let mut hits: Vec<Hit> = fused.into_values().collect();
    hits.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| key(a).cmp(&key(b)))
    });
    hits
}

fn key(hit: &Hit) -> TurnKey {
    (hit.space.clone(), hit.turn.accepted.id)
}

#[cfg(test)]
mod tests {
    use memfleet_domain::turn::Turn;
    use memfleet_ports::conformance::samples;

    use super::*;

    fn hit(number: u32, score: f32, relevance: Option<f32>) -> Hit {
        let accepted = samples::turn(&number.to_string(), "x");
        Hit {
            space: samples::home().space,
            turn: Turn {
                accepted,
                position: number,
                replaced: None,
            },
            score,
            relevance,
            passage: (0, 1),
            signals: Vec::new(),
            neighbours: Vec::new(),
            facts: Vec::new(),
            outdated: None,
        }
    }

    #[test]
    fn scores_of_imagined_answers_count_half_and_a_missing_turn_has_the_last_score() {
        let query = vec![hit(1, 4.0, Some(0.1)), hit(2, 3.0, Some(0.05))];
        let imagined = vec![
            vec![hit(3, 9.0, Some(0.9)), hit(2, 3.0, Some(0.2))],
            vec![hit(3, 7.0, Some(0.9)), hit(1, 1.0, None)],
        ];
        let fused = fused(query, imagined);
        let scores: Vec<_> = fused
            .iter()
            .map(|hit| (hit.turn.position, hit.score, hit.relevance))
            .collect();
        // 3 + (9 + 7) / 4, 4 + (3 + 1) / 4, 3 + (3 + 1) / 4.
        let expected = [
            (3, 7.0, Some(0.05)),
            (1, 5.0, Some(0.1)),
            (2, 4.0, Some(0.05)),
        ];
        assert_eq!(scores, expected);
    }

    #[test]
    fn nothing_is_imagined_where_a_hit_is_likely_relevant_or_relevance_is_unknown() {
        let of = |relevance| Found {
            hits: vec![hit(1, 1.0, Some(0.01)), hit(2, 0.5, relevance)],
            ..Found::default()
        };
        assert!(needs_imagination(&of(Some(0.29))));
        assert!(!needs_imagination(&of(Some(0.3))) && !needs_imagination(&of(None)));
        assert!(!needs_imagination(&Found::default()));
    }
}
