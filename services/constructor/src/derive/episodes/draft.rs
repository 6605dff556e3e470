//! A run of turns as an episode: its head, title, summary, participants and span.

use std::collections::HashMap;

use memfleet_agents::episodes::{Run, Said, central, head, runs, title};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::episode::Episode;
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_language::Language;

use super::Summariser;

/// Who cuts and summarises.
pub(super) const NAME: &str = "rules-1";

/// Turns that speak for an episode in its summary.
const SPOKEN: usize = 3;

/// An episode as it is cut, before anything is stored.
pub(super) struct Drafted {
    pub(super) turns: Vec<TurnId>,
    pub(super) head: String,
    pub(super) begun: Timestamp,
    pub(super) episode: Episode,
}

impl Drafted {
    /// That of its opening turn, however far it goes.
    pub(super) fn id(&self) -> DerivationId {
        DerivationId::of_episode(self.turns[0])
    }

    /// With the words that somebody else found for the same turns.
    pub(super) fn in_words_of(mut self, known: Option<&Derivation>) -> Self {
        let known = known.filter(|known| !known.is_withdrawn() && known.turns == self.turns);
        if let Some(told) = known.and_then(Derivation::episode)
            && told.extractor != NAME
        {
            self.episode.title.clone_from(&told.title);
            self.episode.summary.clone_from(&told.summary);
            self.episode.extractor.clone_from(&told.extractor);
        }
        self
    }
}

impl Summariser {
    /// The episodes of some parts of a session.
    pub(super) async fn drafted(
        &self,
        scope: &Scope,
        segments: &[Vec<Turn>],
    ) -> Result<Vec<Drafted>, Fault> {
        let ids: Vec<TurnId> = segments
            .iter()
            .flatten()
            .map(|turn| turn.accepted.id)
            .collect();
        let indexed = self.0.feed.indexed(scope, &ids).await?;
        let vectors: HashMap<TurnId, Vec<i8>> = indexed
            .into_iter()
            .filter_map(|turn| {
                let first = turn.passages.into_iter().next()?;
                Some((turn.id, first.sentence?))
            })
            .collect();
        let language = self.0.indexer.language(scope).await?;
        let cut = segments
            .iter()
            .flat_map(|segment| drafts(segment, &vectors, language));
        Ok(cut.collect())
    }
}

fn drafts(turns: &[Turn], vectors: &HashMap<TurnId, Vec<i8>>, language: Language) -> Vec<Drafted> {
    let texts: Vec<String> = turns
        .iter()
        .map(|turn| turn.accepted.content.searchable_text())
        .collect();
    let said: Vec<Said<'_>> = turns
        .iter()
        .zip(&texts)
        .map(|(turn, text)| Said {
            role: turn.accepted.role,
            text,
            time: Some(turn.accepted.effective_time()),
            vector: vectors.get(&turn.accepted.id).map(Vec::as_slice),
        })
        .collect();
    runs(&said, language)
        .into_iter()
        .filter_map(|run| {
            let turns = &turns[run.turns.clone()];
            draft(turns, &said[run.turns.clone()], &run)
        })
        .collect()
}

/// None where nothing is said in words.
fn draft(turns: &[Turn], said: &[Said<'_>], run: &Run) -> Option<Drafted> {
    let heads = said.iter().map(|said| head(said.text));
    let head = heads.into_iter().find(|head| !head.is_empty())?;
    let time = |turn: Option<&Turn>| turn.and_then(|turn| turn.accepted.event_time);
    let mut participants: Vec<Speaker> = Vec::new();
    for turn in turns {
        if !participants.contains(&turn.accepted.speaker) {
            participants.push(turn.accepted.speaker.clone());
        }
    }
    Some(Drafted {
        turns: turns.iter().map(|turn| turn.accepted.id).collect(),
        begun: turns[0].accepted.effective_time(),
        episode: Episode {
            session: turns[0].accepted.session.clone(),
            title: title(&head),
            summary: summary(turns, said),
            participants,
            span: TimeRange {
                start: time(turns.first()),
                end: time(turns.last()),
            },
            trigger: run.trigger,
            extractor: NAME.to_owned(),
        },
        head,
    })
}

/// What the most central turns say first, each with who says it.
fn summary(turns: &[Turn], said: &[Said<'_>]) -> String {
    let spoken: Vec<usize> = (0..said.len())
        .filter(|&at| !head(said[at].text).is_empty())
        .collect();
    let vectors: Vec<&[i8]> = spoken
        .iter()
        .map(|&at| said[at].vector.unwrap_or_default())
        .collect();
    let lines = central(&vectors, SPOKEN).into_iter().map(|at| {
        let at = spoken[at];
        let words = title(&head(said[at].text));
        format!("{}: {words}", turns[at].accepted.speaker.as_str())
    });
    lines.collect::<Vec<_>>().join("\n")
}
