//! From fragments to plots (Amory section 3.1, momentum-aware consolidation). A narrative of which nothing was said for a span of turns is
//! inactive: its last fragments are grouped to subplots, and its headline is looked at again. A new fragment makes it active.

mod plotting;
mod track;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::narrative::Momentum;
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Changes;
use memfleet_ports::knowledge::{Question, Rewrite, Stage};
use memfleet_workers::{Agent, Outcome, reverted};
use serde::{Deserialize, Serialize};
use tracing::instrument;

use crate::LocalConsolidator;
use crate::news::News;
use crate::stories::fragments;
use track::Tracks;

/// Changes that are looked at together.
const ROUND: u32 = 256;

/// Why a change consolidates.
const CONSOLIDATED: (&str, &str) = (
    "consolidated",
    "the last fragments of the story are put together",
);

/// Why one does not.
const RESUMED: (&str, &str) = ("resumed", "the story goes on");

/// When narratives are consolidated, as in the ablation of Amory section 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// When they go inactive.
    #[default]
    Momentum,
    /// With each fragment.
    Rapid,
    /// Never.
    None,
}

/// How narratives are consolidated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// When. Default [`Mode::Momentum`].
    pub mode: Mode,
    /// Turns of the space without a fragment of it after which a narrative is inactive. Default 40.
    pub span: u32,
    /// N of Amory section 3.1: the last fragments that are looked at. Default 10.
    pub fragments: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Momentum,
            span: 40,
            fragments: 10,
        }
    }
}

/// The stage that consolidates.
pub struct Plotter {
    consolidator: Arc<LocalConsolidator>,
    options: Options,
    tracks: Tracks,
}

#[async_trait]
impl Agent for Plotter {
    #[instrument(name = "consolidate", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let stage = Stage::Consolidate;
        let from = &self.consolidator;
        let changes = from.feed.changes_after(scope, reached, ROUND).await?;
        let round = (reached, changes.reached);
        if self.options.mode == Mode::None {
            from.write(scope, stage, Vec::new(), round).await?;
            return Ok(Outcome::more_if(changes.more));
        }
        let mut track = match self.tracks.take(scope, reached) {
            Some(track) => track,
            None => self.track(scope).await?,
        };
        let fragments = self.told(scope, &changes).await?;
        let news = track.hear(&fragments);
        let quiet = track.quiet(self.options.span.into());
        let due = match self.options.mode {
            Mode::Rapid => quiet.union(&news).copied().collect(),
            _ => quiet.clone(),
        };
        let rewrites = self.consolidate(scope, &news, &due, &quiet).await?;
        let Some(written) = from.write(scope, stage, rewrites, round).await? else {
            return Ok(Outcome::More);
        };
        track.settle(&quiet);
        self.tracks.put(scope, changes.reached, track);
        Ok(Outcome::more_if(changes.more || written > 0))
    }
}

impl Plotter {
    /// A stage that has looked at nothing yet.
    pub fn new(consolidator: Arc<LocalConsolidator>, options: Options) -> Self {
        Self {
            consolidator,
            options,
            tracks: Tracks::default(),
        }
    }

    /// The fragments among some changes, in the order in which they were first bound.
    async fn told(&self, scope: &Scope, changes: &Changes) -> Result<Vec<Derivation>, Fault> {
        self.of(scope, Kind::Fragment, fragments(changes)).await
    }

    /// Those of these ids that hold.
    async fn of(
        &self,
        scope: &Scope,
        kind: Kind,
        ids: Vec<DerivationId>,
    ) -> Result<Vec<Derivation>, Fault> {
        // No condition on ids would be all of them.
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        self.consolidator.of_kind(scope, kind, question).await
    }

    /// What becomes of the narratives that something new was said of, and of those that are due; those that are `quiet` go inactive.
    async fn consolidate(
        &self,
        scope: &Scope,
        news: &HashSet<DerivationId>,
        due: &HashSet<DerivationId>,
        quiet: &HashSet<DerivationId>,
    ) -> Result<Vec<Rewrite>, Fault> {
        let ids = news.union(due).copied().collect();
        let narratives = self.of(scope, Kind::Narrative, ids).await?;
        let undone = reverted(&*self.consolidator.knowledge, scope, &narratives).await?;
        let mut rewrites = Vec::new();
        for narrative in narratives {
            let stays = undone.contains(&narrative.id) && !self.goes_on(scope, &narrative).await?;
            if stays {
                continue;
            }
            let (written, why) = if due.contains(&narrative.id) {
                let momentum = match quiet.contains(&narrative.id) {
                    true => Momentum::Inactive,
                    false => Momentum::Active,
                };
                let plotted = self.plot(scope, &narrative, momentum).await?;
                (plotted, CONSOLIDATED)
            } else {
                (resumed(&narrative), RESUMED)
            };
            rewrites.extend(self.consolidator.rewrite(scope, written, why).await?);
        }
        Ok(rewrites)
    }
}

impl Plotter {
    /// Whether something was told of a narrative since a caller undid that it was put together: of its last fragments those that were there
    /// have subplots, or lost them by that.
    async fn goes_on(&self, scope: &Scope, narrative: &Derivation) -> Result<bool, Fault> {
        let from = &self.consolidator;
        let mut fragments = from.fragments(scope, narrative.id).await?;
        let earlier = fragments.len().saturating_sub(self.options.fragments);
        let mut fragments = fragments.split_off(earlier);
        fragments.retain(|it| it.fragment().is_some_and(|it| it.subplot.is_none()));
        let undone = reverted(&*from.knowledge, scope, &fragments).await?;
        Ok(undone.len() < fragments.len())
    }
}

/// A narrative that goes on.
fn resumed(derivation: &Derivation) -> News {
    let mut news = News::default();
    if let Some(narrative) = derivation.narrative()
        && narrative.momentum == Momentum::Inactive
    {
        let mut narrative = narrative.clone();
        narrative.momentum = Momentum::Active;
        news.amend(derivation, Body::Narrative(Box::new(narrative)));
    }
    news
}
