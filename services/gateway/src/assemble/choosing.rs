//! Candidates as the assembly core takes them, the block that it makes of them, and where each item comes from.

use std::collections::HashMap;
use std::sync::Arc;

use memfleet_assembly::budget::per_item_tokens;
use memfleet_assembly::{
    Block, Candidate, Enclosure, Granularity, Nonce, Options, Order, Outdated, Place, Tokenizer,
    Trust, Untrusted, Weights,
};
use memfleet_domain::assembly::{self as words, OrderPolicy, TrustMode, UntrustedPolicy};
use memfleet_domain::space::Locale;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::assembly::{AssembledItem, Dropped, Source};
use memfleet_ports::retriever::Found;

use super::basis::Basis;
use super::prompt::{Outline, Weight};
use super::redaction::Redactions;
use crate::candidates::{Eligible, eligible};
use crate::excerpts::sentence_scores;

/// The memory system that turns come from.
pub const SYSTEM: &str = "memfleet";

/// Dropped candidates that an answer names.
const NAMED: usize = 1_000;

/// What a block is made with.
pub struct Making {
    pub basis: Arc<Basis>,
    pub outline: Arc<Outline>,
    pub weight: Arc<Weight>,
    pub tokenizer: Tokenizer,
    pub redactions: Arc<Redactions>,
    pub locale: Locale,
    /// Tokens that the block may add.
    pub budget: usize,
    pub nonce: String,
    /// The least relevance of an item; 0: any.
    pub threshold: f32,
    /// The present, where the caller tells it: then the block says so.
    pub as_of: Option<Timestamp>,
    /// What ages are counted from.
    pub now: Timestamp,
    /// The words that were searched for.
    pub query: String,
    /// Beginning of the block: the section *who this is*.
    pub lead: String,
}

/// A block, and what is told of it.
pub struct Made {
    pub block: Block,
    pub items: Vec<AssembledItem>,
    pub dropped: Vec<Dropped>,
}

impl Making {
    /// The core's options.
    pub fn options(&self) -> Options<'_> {
        let settings = &self.basis.settings;
        let (budget, selection) = (&settings.budget, &settings.selection);
        let most = |number: u32| (number > 0).then_some(number as usize);
        let zone = settings.format.time_zone.parse();
        Options {
            max_items: most(budget.max_items),
            max_per_session: most(budget.max_items_per_session),
            max_per_source: most(budget.max_items_per_source),
            per_item_tokens: per_item_tokens(Some(budget.max_item_tokens)),
            minimum_useful_tokens: budget.min_item_tokens as usize,
            excerpts: selection.excerpts,
            cut_at_end: selection.excerpts,
            weights: weights(selection),
            threshold: (self.threshold > 0.0).then_some(self.threshold),
            untrusted: match selection.untrusted {
                UntrustedPolicy::Include => Untrusted::Include,
                UntrustedPolicy::DownRank => Untrusted::DownRank,
                UntrustedPolicy::Segregate => Untrusted::Segregate,
                UntrustedPolicy::Exclude => Untrusted::Exclude,
            },
            include_superseded: selection.superseded,
            prompt: settings.exclusion.in_prompt.then_some(&self.weight.said),
            order: match settings.format.order {
                OrderPolicy::Chronological => Order::Chronological,
                OrderPolicy::Rank => Order::Rank,
                OrderPolicy::BestLast => Order::BestLast,
                OrderPolicy::Sandwich => Order::Sandwich,
            },
            template: &self.basis.template,
            enclosure: match (settings.format.trust, Nonce::new(&self.nonce)) {
                (TrustMode::Plain, _) | (_, None) => Enclosure::Plain,
                (TrustMode::Delimited, Some(nonce)) => Enclosure::Delimited(nonce),
                (TrustMode::Datamarked, Some(nonce)) => Enclosure::Datamarked(nonce),
            },
            time_zone: zone.unwrap_or(self.locale.time_zone.0),
            as_of: self.as_of,
            lead: &self.lead,
            place: Place {
                before: &self.outline.before,
                separator: self.outline.separator(),
            },
            ..Options::new(self.budget, &self.tokenizer)
        }
    }

    /// What excerpts of the texts are chosen by, where there are any.
    pub fn scores(
        &self,
        texts: &[impl AsRef<str>],
        passage: impl Fn(usize) -> (u32, u32),
    ) -> Vec<Option<Vec<f32>>> {
        if !self.basis.settings.selection.excerpts {
            return Vec::new();
        }
        sentence_scores(&self.analyzer(), &self.query, texts, passage)
    }

    /// The analyzer of the space's language.
    fn analyzer(&self) -> Analyzer {
        Analyzer::new(Language::tagged(self.locale.language.as_deref()))
    }

    /// The block of what was found.
    pub fn of_found(&self, found: &Found) -> Made {
        let turns = eligible(&found.hits, self.threshold, &self.analyzer());
        let shown: Vec<_> = turns
            .iter()
            .map(|found| Shown::of(found, &self.redactions))
            .collect();
        let texts: Vec<_> = shown.iter().map(|shown| shown.text.as_str()).collect();
        let scores = self.scores(&texts, |at| turns[at].passage);
        let ids: Vec<_> = turns
            .iter()
            .map(|found| found.turn.accepted.id.to_string())
            .collect();
        let candidates = candidates(&turns, &ids, &shown, &scores);
        let block = memfleet_assembly::assemble(&candidates, &self.options());
        let items = block
            .items
            .iter()
            .map(|item| self.item(item, &turns, &shown[item.candidate]))
            .collect();
        let dropped = block.left_out.iter().take(NAMED).map(|left| {
            let (reason, detail) = dropped(left.reason, |index| ids[index].clone());
            Dropped {
                space: Some(turns[left.candidate].space.clone()),
                id: ids[left.candidate].clone(),
                reason,
                detail,
                relevance: turns[left.candidate].relevance,
            }
        });
        Made {
            items,
            dropped: dropped.collect(),
            block,
        }
    }

    fn item(
        &self,
        item: &memfleet_assembly::Item,
        turns: &[Eligible<'_>],
        shown: &Shown,
    ) -> AssembledItem {
        let found = &turns[item.candidate];
        let turn = &found.turn.accepted;
        let of = |index: &usize| Source {
            system: SYSTEM.to_owned(),
            id: turns[*index].turn.accepted.id.to_string(),
        };
        AssembledItem {
            space: Some(found.space.clone()),
            id: turn.id.to_string(),
            score: found.score,
            tokens: item.tokens as u32,
            excerpt: item.truncated(),
            citation_key: key(&self.basis, item),
            session: turn.session.to_string(),
            speaker: shown.speaker.clone(),
            role: turn.role,
            event_time: turn.event_time,
            recorded_at: Some(turn.recorded_at),
            granularity: words::Granularity::Verbatim,
            trust: turn.trust,
            relevance: found.relevance,
            original_tokens: item.original_tokens as u32,
            sources: std::iter::once(&item.candidate)
                .chain(&item.merged)
                .map(of)
                .collect(),
            valid: TimeRange::default(),
            mixed_lineage: false,
            content_hash: blake3::hash(shown.text.as_bytes()).to_string(),
            signals: found.signals.to_vec(),
            corrected_from: found.corrected_from.to_vec(),
        }
    }
}

/// How items are cited, where the template shows how.
pub fn key(basis: &Basis, item: &memfleet_assembly::Item) -> String {
    if basis.template.shows_keys {
        format!("m{}", item.key)
    } else {
        String::new()
    }
}

fn weights(selection: &memfleet_domain::policy::Selection) -> Weights {
    if selection.recency == 0.0 && selection.diversity == 0.0 {
        return Weights::plain();
    }
    Weights {
        relevance: selection.relevance.into(),
        recency: selection.recency.into(),
        half_life_days: selection.half_life_days.into(),
        lambda: 1.0 - f64::from(selection.diversity),
    }
}

/// What a turn shows of what somebody said, without what is to be hidden.
struct Shown {
    text: String,
    speaker: String,
    correction: String,
}

impl Shown {
    fn of(found: &Eligible<'_>, redactions: &Redactions) -> Self {
        let turn = &found.turn.accepted;
        let correction = match found.outdated {
            Some(Outdated::Corrected(text)) => redactions.apply(text.to_owned()),
            _ => String::new(),
        };
        Self {
            text: redactions.apply(turn.content.searchable_text()),
            speaker: redactions.apply(turn.speaker.to_string()),
            correction,
        }
    }

    fn told<'s>(&'s self, outdated: Outdated<'s>) -> Outdated<'s> {
        match outdated {
            Outdated::Corrected(_) => Outdated::Corrected(&self.correction),
            other => other,
        }
    }
}

fn candidates<'a>(
    turns: &'a [Eligible<'a>],
    ids: &'a [String],
    shown: &'a [Shown],
    scores: &'a [Option<Vec<f32>>],
) -> Vec<Candidate<'a>> {
    let mut sessions = HashMap::new();
    let places = turns.iter().zip(ids);
    let places = places.map(|(found, id)| ((found.space, found.turn.accepted.id), &**id));
    let places: HashMap<_, _> = places.collect();
    let pairs = turns.iter().zip(ids).zip(shown).enumerate();
    pairs
        .map(|(index, ((found, id), shown))| {
            let next = sessions.len() as u64;
            let turn = &found.turn.accepted;
            Candidate {
                id,
                session: *sessions.entry((found.space, &turn.session)).or_insert(next),
                position: found.turn.position.into(),
                speaker: &shown.speaker,
                event_time: turn.event_time,
                recorded_at: turn.recorded_at,
                outdated: found.outdated.map(|it| shown.told(it)),
                text: &shown.text,
                score: found.score,
                relevance: found.relevance,
                sentence_scores: scores.get(index).and_then(Option::as_deref),
                trust: trust(turn.trust),
                granularity: Granularity::Verbatim,
                successor: found
                    .successor
                    .and_then(|turn| places.get(&(found.space, turn)).copied()),
                ..Candidate::default()
            }
        })
        .collect()
}

/// A trust label in the words of the core.
pub fn trust(label: turn::Trust) -> Trust {
    match label {
        turn::Trust::User => Trust::User,
        turn::Trust::Assistant => Trust::Assistant,
        turn::Trust::Tool => Trust::Tool,
        turn::Trust::Web => Trust::Web,
    }
}

/// Why something was dropped, in the words of the API; `id` tells which it repeats.
pub fn dropped(
    reason: memfleet_assembly::Reason,
    id: impl Fn(usize) -> String,
) -> (words::DropReason, String) {
    use memfleet_assembly::Reason as Core;
    use words::DropReason;
    let reason = match reason {
        Core::Duplicate(of) => return (DropReason::Duplicate, format!("of {}", id(of))),
        Core::Budget => DropReason::Budget,
        Core::TooLong => DropReason::TooLong,
        Core::MaxItems => DropReason::MaxItems,
        Core::PerSessionCap => DropReason::PerSessionCap,
        Core::PerSourceCap => DropReason::PerSourceCap,
        Core::Blank => DropReason::Blank,
        Core::InvalidScore => DropReason::InvalidScore,
        Core::BelowThreshold => DropReason::BelowThreshold,
        Core::InPrompt => DropReason::InPrompt,
        Core::Superseded => DropReason::Superseded,
        Core::Untrusted => DropReason::Untrusted,
        Core::DerivedFromIncluded => DropReason::DerivedFromIncluded,
        Core::CurrentSession => DropReason::CurrentSession,
        Core::DerivedFromCurrent => DropReason::DerivedFromCurrent,
        Core::RecencyFilter => DropReason::RecencyFilter,
        Core::Policy => DropReason::Policy,
    };
    (reason, String::new())
}
