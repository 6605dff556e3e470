//! The value of every signal for a candidate's passage.

pub(crate) mod date;
mod episode;

use memfleet_domain::embedding::QueryVectors;
use memfleet_domain::ids::{DerivationId, TurnId};

use crate::candidates::Candidates;
use crate::document::Feature;
use crate::dot::Query;
use crate::index::{NONE, TurnEntry};
use crate::late_interaction::{LateInteraction, TokensBySpace};
use crate::lexical::inverse_frequency;
use crate::plan::Plan;
use crate::searched::Searched;
use crate::signal::Signal;
use crate::weights::Weights;
use episode::Episodes;

/// Sessions of more speakers are scenes: there the one named is mostly talked about, not talking.
const DIALOGUE: usize = 2;

/// A passage of a candidate.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) space: usize,
    pub(crate) turn: &'a TurnEntry,
    pub(crate) row: u32,
}

/// What signals are computed from.
pub(crate) struct Evidence<'a> {
    spaces: &'a [Searched<'a>],
    plan: &'a Plan,
    weights: &'a Weights,
    candidates: &'a Candidates,
    late: Option<LateInteraction<'a>>,
    query: Option<Query>,
    /// The direction in which all sentence vectors point together; absent without any.
    centre: Option<Query>,
    /// Passages of all spaces.
    count: f32,
    episodes: Episodes,
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(
        spaces: &'a [Searched<'a>],
        plan: &'a Plan,
        weights: &'a Weights,
        candidates: &'a Candidates,
        tokens: &TokensBySpace,
    ) -> Self {
        let sentence = |vectors: &QueryVectors| Query::new(&vectors.sentence);
        Self {
            spaces,
            plan,
            weights,
            candidates,
            late: LateInteraction::new(spaces, plan, candidates, tokens),
            query: plan
                .vectors
                .as_ref()
                .filter(|vectors| !vectors.sentence.is_empty())
                .map(sentence),
            centre: centre(spaces),
            count: spaces
                .iter()
                .map(|space| space.index.passages().alive())
                .sum::<usize>() as f32,
            episodes: Episodes::of(spaces, candidates, weights),
        }
    }

    /// The signal of a passage before standardising; NaN where what it needs is missing.
    pub(crate) fn value(&self, signal: Signal, place: Place<'_>) -> f32 {
        let index = self.spaces[place.space].index;
        let lexical = &self.candidates.lexical.scores[place.space];
        let (row, session) = (place.row as usize, place.turn.session as usize);
        match signal {
            Signal::Maxsim => self
                .late
                .as_ref()
                .map_or(f32::NAN, |late| late.passage(place.space, place.row)),
            Signal::MaxsimWindow => self.maxsim_window(place),
            Signal::MaxsimSession => self.late.as_ref().map_or(f32::NAN, |late| {
                late.session(place.space, place.turn.session)
            }),
            Signal::Bm25 => lexical.passage[row],
            Signal::Bm25Window => lexical.window[row],
            Signal::Bm25Session => lexical.session[session],
            Signal::Bm25SessionNames => lexical.session_names[session],
            Signal::Cosine => self.cosine(place),
            Signal::LengthBias => length_bias(place.turn),
            Signal::LengthBiasSummary if self.plan.intent.abstracted => length_bias(place.turn),
            Signal::LengthBiasSummary => 0.0,
            Signal::Speaker => self.speaker(place),
            Signal::SpeakerMentioned => self.speaker_mentioned(place),
            Signal::Date => date::nearness(&self.plan.dates, place.turn.event_time),
            Signal::Day => f32::from(date::is_on_named_day(
                &self.plan.dates,
                place.turn.event_time,
            )),
            Signal::FirstPerson => self.feature(place, Feature::FirstPerson),
            Signal::TimeExpressions => self.feature(place, Feature::TimeExpressions),
            Signal::Information => self.information(place),
            Signal::Novelty => self.spaces[place.space].novelty(place.row),
            Signal::Centrality => self.centrality(place),
            Signal::Question => self.feature(place, Feature::Question),
            Signal::Capitalised => self.feature(place, Feature::Capitalised),
            Signal::EpisodeMaxsim => self.of_episode(place, |row| {
                self.late
                    .as_ref()
                    .map_or(f32::NAN, |late| late.episode(place.space, row))
            }),
            Signal::EpisodeBm25 => self.of_episode(place, |row| lexical.episode[row as usize]),
            Signal::EpisodeCosine => self.of_episode(place, |row| {
                let heads = &index.episodes().passages().sentences;
                product(self.query.as_ref(), heads.get(row))
            }),
            Signal::EpisodePlace => self.episode_place(place),
            Signal::Graph => self.candidates.walk.value(place.space, place.turn.id),
            Signal::Opening => f32::from(index.passages().previous(place.turn.first_row) == NONE),
        }
    }

    fn maxsim_window(&self, place: Place<'_>) -> f32 {
        let searched = &self.spaces[place.space];
        let window = |late: &LateInteraction<'_>| {
            late.window(searched, place.space, place.row, &self.weights.window)
        };
        self.late.as_ref().map_or(f32::NAN, window)
    }

    /// What no BM25 of a session exceeds.
    pub(crate) fn attainable_session(&self) -> f32 {
        self.candidates.lexical.attainable_session
    }

    /// Whether the query names a day, a week or a month.
    pub(crate) fn asks_for_date(&self) -> bool {
        date::is_asked_for(&self.plan.dates)
    }

    /// Whether the query says whose words it asks for, in a session where that tells turns apart.
    pub(crate) fn asks_for_speaker(&self, place: Place<'_>) -> bool {
        self.is_dialogue(place) && (self.plan.subject.is_some() || self.plan.role.is_some())
    }

    /// A value of the turn's episode; NaN for a turn without one.
    fn of_episode(&self, place: Place<'_>, value: impl FnOnce(u32) -> f32) -> f32 {
        let episode = self.episodes.get(place.space, place.turn.id);
        episode.map_or(f32::NAN, |episode| value(episode.row))
    }

    fn episode_place(&self, place: Place<'_>) -> f32 {
        let route = self.plan.route(self.weights);
        let episode = self.episodes.get(place.space, place.turn.id);
        episode.map_or(0.0, |episode| route.of(episode.part))
    }

    /// The facts that a turn states, and how well late interaction finds each.
    pub(crate) fn facts(
        &self,
        space: usize,
        turn: TurnId,
    ) -> impl Iterator<Item = (DerivationId, f32)> {
        let facts = self.spaces[space].index.facts().of(turn);
        facts.map(move |fact| {
            let value = self
                .late
                .as_ref()
                .map_or(f32::NAN, |late| late.fact(space, fact.row));
            (fact.id, value)
        })
    }

    /// The episode that a turn is part of, where it counts.
    pub(crate) fn episode(&self, space: usize, turn: TurnId) -> Option<DerivationId> {
        let episode = self.episodes.get(space, turn)?;
        Some(self.spaces[space].index.episodes().at(episode.row).id)
    }

    /// The fragment that a turn is part of, where it counts.
    pub(crate) fn fragment(&self, place: Place<'_>) -> Option<(usize, u32)> {
        self.episodes.get(place.space, place.turn.id)?;
        let fragments = self.spaces[place.space].index.fragments();
        let fragment = fragments.of(place.turn.id).next()?;
        Some((place.space, fragment.row))
    }

    pub(crate) fn sentence(&self, place: Place<'_>) -> Option<&'a [i8]> {
        self.spaces[place.space].sentence(place.row)
    }

    fn cosine(&self, place: Place<'_>) -> f32 {
        product(self.query.as_ref(), self.sentence(place))
    }

    fn centrality(&self, place: Place<'_>) -> f32 {
        product(self.centre.as_ref(), self.sentence(place))
    }

    fn feature(&self, place: Place<'_>, feature: Feature) -> f32 {
        self.spaces[place.space].features(place.row)[feature as usize]
    }

    fn information(&self, place: Place<'_>) -> f32 {
        let frequencies = self.spaces[place.space].term_frequencies(place.row);
        frequencies
            .into_iter()
            .map(|frequency| inverse_frequency(self.count, frequency))
            .sum::<f32>()
            .ln_1p()
    }

    fn is_dialogue(&self, place: Place<'_>) -> bool {
        self.spaces[place.space]
            .index
            .speakers_in_session_of(place.turn)
            <= DIALOGUE
    }

    fn speaker_name(&self, place: Place<'_>) -> &str {
        self.spaces[place.space].index.speaker_name(place.turn)
    }

    fn speaker(&self, place: Place<'_>) -> f32 {
        if !self.is_dialogue(place) {
            return 0.0;
        }
        match (&self.plan.subject, self.plan.role) {
            (Some((subject, sureness)), _) if subject == self.speaker_name(place) => *sureness,
            (None, Some(role)) => f32::from(role == place.turn.role),
            _ => 0.0,
        }
    }

    fn speaker_mentioned(&self, place: Place<'_>) -> f32 {
        let mentioned = || {
            self.plan
                .mentioned
                .iter()
                .any(|name| name == self.speaker_name(place))
        };
        f32::from(!self.is_dialogue(place) && mentioned())
    }
}

fn length_bias(turn: &TurnEntry) -> f32 {
    (2.0 * (turn.rows as f32).ln()).sqrt()
}

/// NaN where one is missing or of another length.
fn product(query: Option<&Query>, sentence: Option<&[i8]>) -> f32 {
    match (query, sentence) {
        (Some(query), Some(sentence)) if query.len() == sentence.len() => {
            query.dot(sentence) as f32
        }
        _ => f32::NAN,
    }
}

/// The sum of all sentence vectors, shortened until its largest component fits a byte.
fn centre(spaces: &[Searched<'_>]) -> Option<Query> {
    let sums = || spaces.iter().map(Searched::sentence_sum);
    let mut centre = vec![0_i64; sums().map(|(sum, _)| sum.len()).max()?];
    for (sum, scale) in sums() {
        centre
            .iter_mut()
            .zip(sum)
            .for_each(|(total, &x)| *total += (x as f64 * scale).round() as i64);
    }
    let largest = centre.iter().map(|x| x.unsigned_abs()).max()?.max(1) as f32;
    let bytes: Vec<i8> = centre
        .iter()
        .map(|&x| (x as f32 / largest * f32::from(i8::MAX)).round() as i8)
        .collect();
    Some(Query::new(&bytes))
}
