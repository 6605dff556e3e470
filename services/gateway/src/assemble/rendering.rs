//! Memories that a caller brings from somewhere else, chosen and rendered as those that were found here. Nothing is searched, kept or written
//! down.

use std::collections::{HashMap, HashSet};

use memfleet_assembly::{Candidate, Granularity, Nonce, Reason as Core, Validity};
use memfleet_domain::Fault;
use memfleet_domain::assembly as words;
use memfleet_domain::time::Timestamp;
use memfleet_ports::assembly::{
    self, AssembleRequest, Assembled, AssembledItem, Dropped, RenderRequest, Source,
};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::retriever::Query;
use tokio::time::Instant;

use super::choosing::{Made, Making, dropped, key, trust};
use super::nonce::Contents;
use super::work::Work;
use crate::Gateway;

impl Gateway {
    /// The block of a caller's memories.
    pub(super) async fn render_candidates(
        &self,
        context: &Context,
        request: RenderRequest,
    ) -> Result<Assembled, Fault> {
        if let Some(nonce) = &request.nonce
            && Nonce::new(nonce).is_none()
        {
            let problem = "must be 4 to 64 ASCII letters and digits; left out, one is made";
            return Err(Fault::invalid("nonce", problem));
        }
        let basis = self.basis(context, &[], request.policy.clone()).await?;
        let brought = Brought {
            excluded: excluded(&request),
            candidates: request.candidates,
            excludes_session: basis.settings.exclusion.running_session,
        };
        let nonce = request.nonce.clone();
        let assembling = AssembleRequest {
            query: Query {
                text: request.query,
                spaces: Vec::new(),
                filter: TurnFilter::default(),
                k: 0,
                neighbours: 0,
                now: request.now,
                session: None,
                intent: None,
                explain: false,
                quality: None,
                vectors: None,
            },
            prompt: request.prompt,
            narratives: Vec::new(),
            aliases: Vec::new(),
            speaker: None,
            exchange: None,
            model: request.model,
            policy: request.policy,
            tokenizer: request.tokenizer,
            patch: request.patch,
            wait_for: Vec::new(),
        };
        let mut work = Work::begin(self, context, assembling, basis, Instant::now()).await?;
        if let Err(reason) = work.render(brought, nonce).await? {
            work.draft.answer.reason = Some(reason);
        }
        work.patch().await?;
        Ok(work.draft.answer)
    }
}

fn excluded(request: &RenderRequest) -> HashSet<String> {
    let session = request.session.iter().chain(&request.aliases);
    session.map(ToString::to_string).collect()
}

/// What a caller brought, and which sessions must not come back.
pub struct Brought {
    pub candidates: Vec<assembly::Candidate>,
    pub excluded: HashSet<String>,
    pub excludes_session: bool,
}

impl Brought {
    /// Whether a memory must stay out: it, or all that it was derived from, is of an excluded session (AMP items 98, 99).
    fn kept_out(&self, candidate: &assembly::Candidate) -> Option<Core> {
        if !self.excludes_session {
            return None;
        }
        if self.excluded.contains(&candidate.session) {
            return Some(Core::CurrentSession);
        }
        // Its own session is of its lineage, too.
        let lineage = &candidate.lineage_sessions;
        let is_alone = candidate.session.is_empty() && !lineage.is_empty();
        let all = is_alone && lineage.iter().all(|it| self.excluded.contains(it));
        all.then_some(Core::DerivedFromCurrent)
    }

    /// All that may enter of it, with what is asked.
    pub fn contents(&self, asked: Contents) -> Contents {
        let all = self.candidates.iter();
        let all = all.map(|it| vec![&it.id, &it.source, &it.session, &it.speaker, &it.text]);
        asked.with_all(all.collect())
    }

    fn is_mixed(&self, candidate: &assembly::Candidate) -> bool {
        let mut lineage = candidate.lineage_sessions.iter();
        lineage.any(|session| self.excluded.contains(session))
    }
}

impl Making {
    /// The block of what a caller brought.
    pub fn of_brought(&self, brought: &Brought) -> Made {
        let all = &brought.candidates;
        let texts: Vec<_> = all
            .iter()
            .map(|it| self.redactions.apply(it.text.clone()))
            .collect();
        let scores = self.scores(&texts, |_| (0, 0));
        let speaker = |candidate| self.redactions.apply(speaker(candidate));
        let speakers: Vec<_> = all.iter().map(speaker).collect();
        let lineage: Vec<Vec<&str>> = all
            .iter()
            .map(|it| it.lineage.iter().map(String::as_str).collect())
            .collect();
        let places = places(all);
        let candidates: Vec<_> = all
            .iter()
            .enumerate()
            .map(|(at, it)| {
                let (session, position) = places[at];
                Candidate {
                    id: &it.id,
                    session,
                    position,
                    speaker: &speakers[at],
                    event_time: it.event_time,
                    recorded_at: it.recorded_at.or(it.event_time).unwrap_or(self.now),
                    text: &texts[at],
                    score: it.score as f32,
                    relevance: it.relevance,
                    sentence_scores: scores.get(at).and_then(Option::as_deref),
                    granularity: granularity(it.granularity),
                    trust: trust(it.trust),
                    source: &it.source,
                    lineage: &lineage[at],
                    valid: Validity {
                        from: it.valid.start,
                        until: it.valid.end,
                    },
                    superseded_by: is_over(it, self.now).then_some(""),
                    excluded: brought.kept_out(it).or_else(|| self.too_new(it)),
                    ..Candidate::default()
                }
            })
            .collect();
        let block = memfleet_assembly::assemble(&candidates, &self.options());
        let items = block
            .items
            .iter()
            .map(|item| self.brought_item(item, brought, &texts));
        let left = block.left_out.iter().map(|left| {
            let (reason, detail) = dropped(left.reason, |at| all[at].id.clone());
            Dropped {
                space: None,
                id: all[left.candidate].id.clone(),
                reason,
                detail,
                relevance: all[left.candidate].relevance,
            }
        });
        Made {
            items: items.collect(),
            dropped: left.collect(),
            block,
        }
    }

    fn too_new(&self, candidate: &assembly::Candidate) -> Option<Core> {
        let age = self.basis.settings.exclusion.newer_than_seconds;
        let until = self.now - chrono::TimeDelta::seconds(age.into());
        let at = candidate.recorded_at.or(candidate.event_time)?;
        (age > 0 && at > until).then_some(Core::RecencyFilter)
    }

    fn brought_item(
        &self,
        item: &memfleet_assembly::Item,
        brought: &Brought,
        texts: &[String],
    ) -> AssembledItem {
        let it = &brought.candidates[item.candidate];
        let of = |at: &usize| Source {
            system: brought.candidates[*at].source.clone(),
            id: brought.candidates[*at].id.clone(),
        };
        AssembledItem {
            space: None,
            id: it.id.clone(),
            score: it.score as f32,
            tokens: item.tokens as u32,
            excerpt: item.truncated(),
            citation_key: key(&self.basis, item),
            session: it.session.clone(),
            speaker: speaker(it),
            role: it.role,
            event_time: it.event_time,
            recorded_at: it.recorded_at,
            granularity: it.granularity,
            trust: it.trust,
            relevance: it.relevance,
            original_tokens: item.original_tokens as u32,
            sources: std::iter::once(&item.candidate)
                .chain(&item.merged)
                .map(of)
                .collect(),
            valid: it.valid,
            mixed_lineage: brought.is_mixed(it),
            content_hash: blake3::hash(texts[item.candidate].as_bytes()).to_string(),
            signals: Vec::new(),
            corrected_from: Vec::new(),
        }
    }
}

/// Session and position of each: the order in which a caller brings them says nothing.
fn places(candidates: &[assembly::Candidate]) -> Vec<(u64, u64)> {
    let key = |it: &assembly::Candidate| {
        let time = it.event_time.or(it.recorded_at);
        (it.source.clone(), it.session.clone(), time, it.id.clone())
    };
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_cached_key(|&at| key(&candidates[at]));
    let mut sessions = HashMap::new();
    let mut places = vec![(0, 0); candidates.len()];
    for (position, at) in order.into_iter().enumerate() {
        let next = sessions.len() as u64;
        let session = (&candidates[at].source, &candidates[at].session);
        let session = *sessions.entry(session).or_insert(next);
        places[at] = (session, position as u64);
    }
    places
}

/// Whether it holds no longer.
fn is_over(candidate: &assembly::Candidate, now: Timestamp) -> bool {
    candidate.valid.end.is_some_and(|end| end <= now)
}

fn speaker(candidate: &assembly::Candidate) -> String {
    use memfleet_domain::turn::Role;
    let name = match candidate.role {
        _ if !candidate.speaker.is_empty() => &candidate.speaker,
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Tool => "tool",
    };
    name.to_owned()
}

fn granularity(granularity: words::Granularity) -> Granularity {
    match granularity {
        words::Granularity::Verbatim => Granularity::Verbatim,
        words::Granularity::Episode => Granularity::Episode,
        words::Granularity::Summary => Granularity::Summary,
        words::Granularity::Fact => Granularity::Fact,
        words::Granularity::Triplet => Granularity::Triplet,
        words::Granularity::Profile => Granularity::Profile,
    }
}
