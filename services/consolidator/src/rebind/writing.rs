//! What a model decided, as versions of fragments and narratives.

use std::collections::HashMap;

use chrono_tz::Tz;
use memfleet_agents::episodes::{head, title};
use memfleet_domain::derivation::{Body, Derivation, Origin};
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::narrative::{Fragment, Momentum, Narrative};
use memfleet_domain::time::TimeRange;
use memfleet_domain::turn::Turn;
use memfleet_domain::{Fault, Scope};
use memfleet_prompts::Asked;
use memfleet_prompts::handles::Turn as Shown;
use memfleet_prompts::stories::{Bound, Decision, Whose};

use super::Rebinder;
use super::board::Board;
use super::parts::{Part, narratives, parts};
use crate::advised::{SHOWN, borne_out_by};
use crate::cast::Cast;
use crate::news::News;

impl Rebinder {
    /// What becomes of `fragments`, whose turns are `said`; `known` are the stories that were shown.
    pub(super) async fn news(
        &self,
        scope: &Scope,
        board: &Board,
        fragments: &[Derivation],
        said: &[Turn],
        known: &[DerivationId],
        Asked { meant, by, .. }: Asked<Bound>,
    ) -> Result<News, Fault> {
        let narratives = narratives(&meant.decisions, known, said);
        let parts = parts(fragments, said, &meant.decisions, &narratives);
        let ids = parts.iter().map(|it| it.id);
        let ids = ids.chain(narratives.iter().copied()).collect();
        let mut written = Written {
            board,
            said,
            versions: self.consolidator.versions(scope, ids).await?,
            zone: self.consolidator.zone(scope).await?,
            news: News::by(&by),
        };
        for (decision, id) in meant.decisions.iter().zip(&narratives) {
            written.narrative(decision, *id);
        }
        for part in &parts {
            written.fragment(part);
        }
        for fragment in fragments {
            if parts.iter().all(|part| part.id != fragment.id) {
                written.filler(fragment);
            }
        }
        written.news.kept.extend(narratives);
        Ok(written.news)
    }

    /// The turns of these fragments, in the order in which they were said.
    pub(super) async fn said(
        &self,
        scope: &Scope,
        fragments: &[Derivation],
    ) -> Result<Vec<Turn>, Fault> {
        let ledger = &self.consolidator.ledger;
        let mut said = Vec::new();
        for fragment in fragments {
            let mut turns = ledger.turns(scope, &fragment.turns).await?;
            turns.sort_by_key(|turn| turn.position);
            said.extend(turns);
        }
        Ok(said)
    }
}

/// What is written of one reply.
struct Written<'a> {
    board: &'a Board,
    said: &'a [Turn],
    /// Of what is there or was.
    versions: HashMap<DerivationId, u32>,
    zone: Tz,
    news: News,
}

impl Written<'_> {
    /// A story that begins, or another headline for the one that the rules began with the same turn.
    fn narrative(&mut self, decision: &Decision, id: DerivationId) {
        let Whose::New { headline, owner } = &decision.whose else {
            return;
        };
        let said = decision.turns.iter().map(|place| &self.said[*place]);
        let said: Vec<&Turn> = said.collect();
        let told: Vec<Shown> = said
            .iter()
            .map(|turn| Shown::clipped(turn, SHOWN))
            .collect();
        let mut turns = borne_out_by(headline, &told.iter().collect::<Vec<_>>(), self.zone);
        let mut speakers: Vec<Speaker> = Vec::new();
        Cast::of(said.iter().copied()).join(&mut speakers, &mut turns);
        let owner = speakers.iter().find(|it| it.as_str() == owner);
        let mut narrative = Narrative {
            headline: headline.clone(),
            owner: owner.unwrap_or(&speakers[0]).clone(),
            characters: speakers,
            subplots: Vec::new(),
            momentum: Momentum::Active,
            author: self.news.by.clone(),
        };
        let begun = said[0].accepted.effective_time();
        let known = self.board.narrative(id);
        if let Some((known, told)) = known.and_then(|it| Some((it, it.narrative()?))) {
            narrative.subplots.clone_from(&told.subplots);
            narrative.momentum = told.momentum;
            for character in &told.characters {
                if !narrative.characters.contains(character) {
                    narrative.characters.push(character.clone());
                }
            }
            // Its earlier versions are words of these.
            for turn in &known.turns {
                if !turns.contains(turn) {
                    turns.push(*turn);
                }
            }
        }
        let version = self.versions.get(&id).copied();
        self.news.begin(id, version, narrative, turns, Some(begun));
    }

    /// A part of what was said at a stretch. Where it opens as that did, it is the same fragment.
    fn fragment(&mut self, part: &Part<'_>) {
        let Some(whole) = part.of.fragment() else {
            return;
        };
        let (first, last) = (part.turns[0], part.turns[part.turns.len() - 1]);
        let turns: Vec<TurnId> = part.turns.iter().map(|it| it.accepted.id).collect();
        let is_same = part.id == part.of.id;
        let is_moved = part.narrative != whole.narrative;
        let fragment = Fragment {
            narrative: part.narrative,
            subplot: whole.subplot.filter(|_| is_same && !is_moved),
            session: whole.session.clone(),
            headline: match is_same {
                true => whole.headline.clone(),
                false => title(&head(&first.accepted.content.searchable_text())),
            },
            span: TimeRange {
                start: first.accepted.event_time,
                end: last.accepted.event_time,
            },
            binder: self.news.by.clone(),
        };
        if is_same && is_moved {
            self.news.moved.push((part.of.id, whole.narrative));
        }
        let begun = match is_same {
            true => part.of.valid.start,
            false => Some(first.accepted.effective_time()),
        };
        let headline = fragment.headline.clone();
        let version = self.versions.get(&part.id).copied();
        let body = Body::Fragment(Box::new(fragment));
        self.news
            .write(part.id, version, body, turns, begun, headline);
    }

    /// What was said at a stretch and tells of nothing. It is withdrawn in the model's name, so that the rules do not bind it again.
    fn filler(&mut self, fragment: &Derivation) {
        let mut gone = fragment.clone();
        if let Body::Fragment(told) = &mut gone.body {
            told.binder.clone_from(&self.news.by);
        }
        gone.origin = Origin::Extracted(self.news.by.clone());
        self.news.withdrawn.push(gone);
    }
}
