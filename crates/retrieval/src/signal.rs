//! The signals of a score, by name (docs/retrieval.md).

use serde::{Deserialize, Serialize};

/// One reason why a turn may be what a query means. A turn takes the highest value of its passages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Late interaction: mean over the query's word pieces, weighted by IDF, of the highest cosine with any piece of the passage.
    Maxsim,
    /// The same, where a neighbour's piece counts with a discount that grows with distance.
    MaxsimWindow,
    /// The same, where a piece of any passage of the session counts in full, as far as its token vectors were read.
    MaxsimSession,
    /// BM25 of the passage.
    Bm25,
    /// BM25 of the passage with the one before and the one after.
    Bm25Window,
    /// BM25 of the whole session.
    Bm25Session,
    /// BM25 of the whole session for the names of speakers that the query mentions.
    Bm25SessionNames,
    /// Cosine of the sentence vectors.
    Cosine,
    /// √(2 ln m) for a turn of m passages: the bias that a maximum over m tries brings.
    LengthBias,
    /// The same where the query asks for a summary.
    LengthBiasSummary,
    /// The turn is said by the one whom the query is about (in sessions of at most two speakers).
    Speaker,
    /// The turn is said by someone whom the query mentions (in sessions of more speakers).
    SpeakerMentioned,
    /// The turn was said at, or soon after, a date that the query names.
    Date,
    /// The turn was said on a single day that the query names.
    Day,
    /// Share of words in the first person.
    FirstPerson,
    /// ln(1 + time expressions).
    TimeExpressions,
    /// ln(1 + sum of the IDF of the passage's distinct terms).
    Information,
    /// 1 − highest cosine to an earlier candidate.
    Novelty,
    /// Mean cosine to all passages of the space.
    Centrality,
    /// Share of the passage that is questions.
    Question,
    /// ln(1 + capitalised words inside sentences).
    Capitalised,
    /// The turn opens its session.
    Opening,
    /// [`Self::Maxsim`] of the head of the turn's episode (in sessions with an assistant).
    EpisodeMaxsim,
    /// BM25 of that head.
    EpisodeBm25,
    /// Cosine of that head.
    EpisodeCosine,
    /// What the turn's place in its episode takes away, where the query is routed to episodes.
    EpisodePlace,
    /// Personalised PageRank from the entities that the query names, over those that facts relate and the turns that state these facts.
    Graph,
}

impl Signal {
    /// Every signal, in the order of a score breakdown.
    pub const ALL: [Self; 27] = [
        Self::Maxsim,
        Self::MaxsimWindow,
        Self::MaxsimSession,
        Self::Bm25,
        Self::Bm25Window,
        Self::Bm25Session,
        Self::Bm25SessionNames,
        Self::Cosine,
        Self::LengthBias,
        Self::LengthBiasSummary,
        Self::Speaker,
        Self::SpeakerMentioned,
        Self::Date,
        Self::Day,
        Self::FirstPerson,
        Self::TimeExpressions,
        Self::Information,
        Self::Novelty,
        Self::Centrality,
        Self::Question,
        Self::Capitalised,
        Self::Opening,
        Self::EpisodeMaxsim,
        Self::EpisodeBm25,
        Self::EpisodeCosine,
        Self::EpisodePlace,
        Self::Graph,
    ];

    /// The name in score breakdowns and in the weights file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Maxsim => "maxsim",
            Self::MaxsimWindow => "maxsim_window",
            Self::MaxsimSession => "maxsim_session",
            Self::Bm25 => "bm25",
            Self::Bm25Window => "bm25_window",
            Self::Bm25Session => "bm25_session",
            Self::Bm25SessionNames => "bm25_session_names",
            Self::Cosine => "cosine",
            Self::LengthBias => "length_bias",
            Self::LengthBiasSummary => "length_bias_summary",
            Self::Speaker => "speaker",
            Self::SpeakerMentioned => "speaker_mentioned",
            Self::Date => "date",
            Self::Day => "day",
            Self::FirstPerson => "first_person",
            Self::TimeExpressions => "time_expressions",
            Self::Information => "information",
            Self::Novelty => "novelty",
            Self::Centrality => "centrality",
            Self::Question => "question",
            Self::Capitalised => "capitalised",
            Self::Opening => "opening",
            Self::EpisodeMaxsim => "episode_maxsim",
            Self::EpisodeBm25 => "episode_bm25",
            Self::EpisodeCosine => "episode_cosine",
            Self::EpisodePlace => "episode_place",
            Self::Graph => "graph",
        }
    }

    /// Deviation of the signal among the candidates of one query, in its own unit: the median over the
    /// questions of LoCoMo's development conversations. 0 where there is none.
    pub(crate) fn typical_deviation(self) -> f32 {
        match self {
            Self::Maxsim => 0.08,
            Self::MaxsimWindow | Self::MaxsimSession | Self::EpisodeMaxsim => 0.06,
            Self::Bm25 | Self::Bm25Window | Self::Bm25Session | Self::EpisodeBm25 => 1.3,
            Self::Cosine | Self::EpisodeCosine => 2_000.0,
            Self::FirstPerson => 0.05,
            Self::TimeExpressions => 0.25,
            Self::Information => 0.6,
            Self::Novelty => 0.1,
            Self::Centrality => 13_000.0,
            Self::Question => 0.22,
            Self::Capitalised => 0.37,
            Self::Opening => 0.21,
            _ => 0.0,
        }
    }

    /// Whether the signal says something of the whole session only.
    pub(crate) fn is_of_session(self) -> bool {
        matches!(self, Self::MaxsimSession | Self::Bm25Session)
    }

    /// True for comparisons of word pieces, of the query with those of the turn and what stands
    /// around it.
    pub(crate) fn is_late_interaction(self) -> bool {
        matches!(
            self,
            Self::Maxsim | Self::MaxsimWindow | Self::MaxsimSession
        )
    }

    /// Whether it compares the query with the turn, or the head of its episode, and nothing around it.
    pub(crate) fn is_own(self) -> bool {
        matches!(
            self,
            Self::Maxsim
                | Self::Cosine
                | Self::EpisodeMaxsim
                | Self::EpisodeBm25
                | Self::EpisodeCosine
        )
    }

    /// Whether the signal is the episode's, not the turn's own.
    pub(crate) fn is_of_episode(self) -> bool {
        matches!(
            self,
            Self::EpisodeMaxsim | Self::EpisodeBm25 | Self::EpisodeCosine | Self::EpisodePlace
        )
    }

    /// Whether the signal is compared by z-score over the candidates; the others have a scale of their own.
    pub fn is_standardised(self) -> bool {
        !matches!(
            self,
            Self::LengthBias
                | Self::LengthBiasSummary
                | Self::Speaker
                | Self::SpeakerMentioned
                | Self::Date
                | Self::Day
                | Self::EpisodePlace
        )
    }
}
