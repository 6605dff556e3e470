//! Full inference (AMA sections 3.2 and 3.3): a language model reads the question in its conversation, judges what was found, and names what
//! is missing, which is looked for too. Rules read and search where it does not; each of its calls has a share of the caller's time.

use std::collections::HashSet;

use memfleet_agents::facts::{dates, is_borne_out};
use memfleet_agents::reading::effective_k;
use memfleet_domain::Fault;
use memfleet_domain::ids::TurnId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::context::Context;
use memfleet_ports::language_model::{Agent, ModelFault};
use memfleet_ports::retriever::{Found, Hit, Query};
use memfleet_prompts::handles::Turn;
use memfleet_prompts::query::{Asking, Understood};
use memfleet_prompts::relevance::{Candidate, Judging, Verdict};
use memfleet_prompts::{Adviser, Prompt};
use tokio::time::Instant;

use crate::Gateway;

/// `K_r`: how often the search goes on for what is missing.
const RETRIES: u32 = 2;
/// The part of the time left that one call may take.
const SHARE: u32 = 4;
/// Hits of a search for what is missing, at most.
const DEEPEST: u32 = 200;
/// Candidates that a judge is shown, and characters of each.
const SHOWN: usize = 50;
const LENGTH: usize = 600;

/// A question on its way to what answers it.
pub struct Inquiry<'g> {
    pub gateway: &'g Gateway,
    pub context: &'g Context,
    /// Language model that reads and judges besides the rules.
    pub adviser: Option<&'g Adviser>,
}

/// What an inquiry came to.
pub struct Findings {
    /// Best first; with a judge what serves the question first.
    pub found: Found,
    /// How many searches followed the first.
    pub retries: u32,
}

impl Inquiry<'_> {
    /// Finds what memory holds of a question.
    pub async fn find(&self, mut query: Query) -> Result<Findings, Fault> {
        let mut degraded = Vec::new();
        let understood = self.understood(&mut query, &mut degraded).await;
        let mut found = self.gateway.search(self.context, &query).await?;
        found.understood = understood.or(found.understood);
        let retries = match self.adviser {
            Some(adviser) if !found.hits.is_empty() => {
                self.gather(adviser, &query, &mut found, &mut degraded)
                    .await;
                self.judge(adviser, &query, &mut found, &mut degraded).await
            }
            _ => 0,
        };
        found.degraded.extend(degraded);
        Ok(Findings { found, retries })
    }

    /// u′, B and K = max(`K_dyn`, `K_m`): "all the places that …" takes more than one. A model is asked where a conversation tells more
    /// than the words of the question; u′ is returned where it is the model's.
    async fn understood(&self, query: &mut Query, degraded: &mut Vec<String>) -> Option<String> {
        if let (Some(adviser), Some(_)) = (self.adviser, &query.session) {
            match self.asked(adviser, query).await {
                Ok(Some(understood)) => {
                    query.k = effective_k(understood.count, query.k);
                    query.intent = Some(understood.intent);
                    // It stands alone now.
                    query.session = None;
                    let before = std::mem::replace(&mut query.text, understood.query);
                    return (before != query.text).then(|| query.text.clone());
                }
                Ok(None) => {}
                Err(fault) => degraded.push(format!("language model: {fault}; read by rules")),
            }
        }
        if let Ok(reading) = self.gateway.read(self.context, query).await {
            query.k = effective_k(reading.k_dyn, query.k);
        }
        None
    }

    /// How a model reads a question; nothing where its words are neither those of the question nor of its conversation.
    async fn asked(
        &self,
        adviser: &Adviser,
        query: &Query,
    ) -> Result<Option<Understood>, ModelFault> {
        let Ok(recent) = self.gateway.recent(self.context, query).await else {
            return Ok(None);
        };
        let (turns, zone): (Vec<Turn>, _) =
            (recent.turns.iter().map(Turn::from).collect(), recent.zone);
        let now = self.now(query);
        let prompt = Asking {
            query: &query.text,
            now,
            turns: &turns,
        };
        let understood = self.ask(adviser, &prompt).await?;
        let told = turns.iter().map(|turn| {
            let dates = dates(&turn.text, turn.said_at, zone);
            format!("{}: {} {dates}", turn.speaker, turn.text)
        });
        let told = told.chain([format!("{} {}", query.text, dates(&query.text, now, zone))]);
        let told: Vec<String> = told.collect();
        let is_told = is_borne_out(&understood.query, told.iter().map(String::as_str));
        Ok(is_told.then_some(understood))
    }

    /// Brings what serves the question to the front, and more of it where it is not enough; how often it looked again.
    async fn judge(
        &self,
        adviser: &Adviser,
        query: &Query,
        found: &mut Found,
        degraded: &mut Vec<String>,
    ) -> u32 {
        for round in 0..=RETRIES {
            let verdict = match self.verdict(adviser, query, &found.hits).await {
                Ok(verdict) => verdict,
                Err(fault) => {
                    degraded.push(format!("language model: {fault}; judged by rules"));
                    return round;
                }
            };
            let is_enough = verdict.is_sufficient || verdict.missing.is_empty();
            found.hits = to_front(std::mem::take(&mut found.hits), &verdict.relevant);
            if is_enough || round == RETRIES {
                return round;
            }
            let more = self.missing(query, &verdict.missing, &found.hits).await;
            if more.is_empty() {
                return round + 1;
            }
            // After what serves the question, before what does not.
            let place = verdict.relevant.len();
            found.hits.splice(place..place, more);
        }
        RETRIES
    }

    async fn verdict(
        &self,
        adviser: &Adviser,
        query: &Query,
        hits: &[Hit],
    ) -> Result<Verdict, ModelFault> {
        let candidates: Vec<Candidate> = hits.iter().take(SHOWN).map(candidate).collect();
        let prompt = Judging {
            query: &query.text,
            now: self.now(query),
            candidates: &candidates,
        };
        let verdict = self.ask(adviser, &prompt).await?;
        verdict.dropped.report(Agent::Judge);
        Ok(verdict)
    }

    /// What the search finds of these and is not there yet, the best of each in turn.
    async fn missing(&self, query: &Query, missing: &[String], have: &[Hit]) -> Vec<Hit> {
        let mut lists = Vec::with_capacity(missing.len());
        for text in missing {
            let query = Query {
                text: text.clone(),
                // Some of it is there already.
                k: (query.k + have.len() as u32).min(DEEPEST),
                session: None,
                intent: None,
                ..query.clone()
            };
            // What was found stands without it.
            if let Ok(found) = self.gateway.search(self.context, &query).await {
                lists.push(found.hits.into_iter());
            }
        }
        let mut known: HashSet<TurnId> = have.iter().map(|hit| hit.turn.accepted.id).collect();
        let mut more = Vec::new();
        while more.len() < query.k as usize && lists.iter().any(|list| list.len() > 0) {
            let next = lists.iter_mut().filter_map(Iterator::next);
            more.extend(next.filter(|hit| known.insert(hit.turn.accepted.id)));
        }
        more.truncate(query.k as usize);
        more
    }

    /// Asks within a share of the time that is left: the answer needs some too.
    pub(super) async fn ask<P: Prompt + Sync>(
        &self,
        adviser: &Adviser,
        prompt: &P,
    ) -> Result<P::Meant, ModelFault> {
        let now = Instant::now();
        let left = self.context.deadline.saturating_duration_since(now);
        let asked = adviser.ask_by(&self.context.tenant, prompt, now + left / SHARE);
        Ok(asked.await?.meant)
    }

    pub(super) fn now(&self, query: &Query) -> Timestamp {
        let asked_of = query.now.or(query.filter.as_of.happened_by);
        asked_of.unwrap_or_else(|| self.gateway.clock.now())
    }
}

/// Those that serve, in their order, before the others in theirs.
fn to_front(hits: Vec<Hit>, relevant: &[usize]) -> Vec<Hit> {
    let places = hits.into_iter().enumerate();
    let (mut front, rest): (Vec<_>, Vec<_>) =
        places.partition(|(place, _)| relevant.contains(place));
    front.extend(rest);
    front.into_iter().map(|(_, hit)| hit).collect()
}

fn candidate(hit: &Hit) -> Candidate {
    let text = hit.turn.accepted.content.searchable_text();
    let speaker = hit.turn.accepted.speaker.as_str();
    let (start, _) = hit.passage;
    let from = text.floor_char_boundary((start as usize).min(text.len()));
    let shown: String = text[from..].chars().take(LENGTH).collect();
    Candidate {
        time: Some(hit.turn.accepted.effective_time()),
        text: format!("{speaker}: {shown}"),
    }
}
