//! Narratives put together once more by a language model (Amory section 3.1, consolidation), behind the rules: it groups the last fragments of
//! a story that nobody speaks of to subplots, and finds a headline that covers them. What it wrote stays; what the rules plotted since is
//! what it is asked about next.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use chrono_tz::Tz;
use memfleet_agents::narratives::BINDER;
use memfleet_domain::derivation::{Body, Derivation, Kind};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::narrative::{Momentum, Narrative, Subplot};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::feed::Change;
use memfleet_ports::knowledge::{Question, Stage};
use memfleet_prompts::handles::Turn as Shown;
use memfleet_prompts::stories::Story;
use memfleet_prompts::stories::plot::{self, Plot, Plotting};
use memfleet_prompts::{Adviser, Asked};
use memfleet_workers::{Agent, Heard, Outcome, is_witnessed, reverted};
use tracing::instrument;

use crate::LocalConsolidator;
use crate::advised::{Advised, SHOWN, borne_out_by};
use crate::news::News;

/// Changes that are looked at together: each may be a call to the model, and all of them should be over before the lease is.
const ROUND: u32 = 16;

/// Why a change puts together.
const REPLOTTED: (&str, &str) = (
    "replotted",
    "a model put the last fragments of the story together",
);

/// The stage.
#[derive(Clone)]
pub struct Replotter {
    /// Reads and writes narratives.
    pub consolidator: Arc<LocalConsolidator>,
    /// N of Amory section 3.1: the last fragments that are looked at.
    pub fragments: usize,
    /// Finds the words.
    pub adviser: Adviser,
    /// What it had no words for.
    pub heard: Heard,
}

#[async_trait]
impl Agent for Replotter {
    #[instrument(name = "replot", skip_all, fields(tenant = %scope.tenant, space = %scope.space))]
    async fn work(&self, scope: &Scope, reached: u64) -> Result<Outcome, Fault> {
        let from = &self.consolidator;
        let changes = from.feed.changes_after(scope, reached, ROUND).await?;
        let ids = changes.changes.iter().filter_map(|change| match change {
            Change::Derived(derived) if derived.kind == Kind::Narrative => Some(derived.id),
            _ => None,
        });
        let quiet = self.quiet(scope, ids.collect()).await?;
        let mut advised = Advised::default();
        let mut is_down = false;
        for narrative in quiet.iter().filter(|it| !self.heard.has(it)) {
            if is_down {
                advised.left.insert(narrative.id);
                continue;
            }
            match self.plotted(scope, narrative).await {
                Ok(Some(news)) => advised.news.push(news),
                Ok(None) => self.heard.note(narrative),
                Err(fault) => is_down = advised.fail(narrative.id, fault),
            }
        }
        let stage = (Stage::Replot, REPLOTTED);
        from.close(scope, stage, (reached, &changes), advised).await
    }
}

impl Replotter {
    /// Those of these narratives that nobody speaks of, and that are not what a caller brought back.
    async fn quiet(&self, scope: &Scope, ids: Vec<DerivationId>) -> Result<Vec<Derivation>, Fault> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let question = Question {
            ids,
            ..Question::default()
        };
        let from = &self.consolidator;
        let mut narratives = from.of_kind(scope, Kind::Narrative, question).await?;
        let momentum = |it: &Derivation| it.narrative().map(|it| it.momentum);
        narratives.retain(|it| momentum(it) == Some(Momentum::Inactive));
        let reverted = reverted(&*from.knowledge, scope, &narratives).await?;
        narratives.retain(|it| !reverted.contains(&it.id));
        Ok(narratives)
    }

    /// What becomes of a narrative; none where there is nothing to ask about, or the model says nothing of use.
    async fn plotted(&self, scope: &Scope, derivation: &Derivation) -> Result<Option<News>, Fault> {
        let Some(narrative) = derivation.narrative() else {
            return Ok(None);
        };
        let from = &self.consolidator;
        let all = from.fragments(scope, derivation.id).await?;
        let last = &all[all.len().saturating_sub(self.fragments)..];
        let open = last.iter().filter(|it| !is_by_model(narrative, it));
        let mut items = Vec::with_capacity(last.len());
        for fragment in open {
            let mut turns = from.ledger.turns(scope, &fragment.turns).await?;
            turns.sort_by_key(|turn| turn.position);
            items.push(Item {
                fragment,
                turns: turns.iter().map(|it| Shown::clipped(it, SHOWN)).collect(),
            });
        }
        if items.is_empty() || items.iter().any(|item| item.turns.is_empty()) {
            // What is forgotten comes back as another narrative.
            return Ok(None);
        }
        let zone = from.zone(scope).await?;
        let asked = self.ask(scope, narrative, &items, zone).await?;
        Ok(asked.map(|asked| {
            let free = free(narrative, &all, &items);
            told(derivation, narrative, &items, free, asked, zone)
        }))
    }

    async fn ask(
        &self,
        scope: &Scope,
        narrative: &Narrative,
        items: &[Item<'_>],
        zone: Tz,
    ) -> Result<Option<Asked<Plot>>, Fault> {
        let by_model = narrative.subplots.iter().filter(|it| it.author != BINDER);
        let story = Story {
            subplots: by_model.map(|it| it.headline.clone()).collect(),
            ..Story::from(narrative)
        };
        // What covers all of the story may say what its headlines say.
        let headlines = Shown {
            text: format!("{}\n{}", story.headline, story.subplots.join("\n")),
            ..items[0].turns[0].clone()
        };
        let is_supported = |words: &str, fragments: Range<usize>| {
            let covers_all = fragments == (0..items.len());
            let turns = items[fragments].iter().flat_map(|item| &item.turns);
            let turns = turns.chain(covers_all.then_some(&headlines));
            is_witnessed(words, &turns.collect::<Vec<_>>(), zone)
        };
        let fragments: Vec<plot::Fragment> = items.iter().map(Item::shown).collect();
        let prompt = Plotting {
            story: &story,
            fragments: &fragments,
            is_supported: &is_supported,
        };
        self.adviser.ask(&scope.tenant, &prompt).await
    }
}

/// A fragment that is put together, and its turns.
struct Item<'f> {
    fragment: &'f Derivation,
    turns: Vec<Shown>,
}

impl Item<'_> {
    fn shown(&self) -> plot::Fragment {
        let lines = self.turns.iter();
        let lines = lines.map(|turn| format!("{}: {}", turn.speaker, turn.text));
        let text = lines.collect::<Vec<_>>().join("\n");
        plot::Fragment {
            said_at: self.turns[0].said_at,
            text: text.chars().take(SHOWN).collect(),
        }
    }
}

/// Whether a model found the subplot of a fragment.
fn is_by_model(narrative: &Narrative, fragment: &Derivation) -> bool {
    let subplot = fragment.fragment().map(|it| narrative.subplot_of(it));
    subplot.flatten().is_some_and(|it| it.author != BINDER)
}

/// The places of the subplots that the rules found and that have no fragment but these.
fn free(narrative: &Narrative, all: &[Derivation], items: &[Item<'_>]) -> Vec<u32> {
    let items: HashSet<DerivationId> = items.iter().map(|item| item.fragment.id).collect();
    let others = all.iter().filter(|it| !items.contains(&it.id));
    let others: HashSet<u32> = others
        .filter_map(|it| it.fragment().and_then(|it| it.subplot))
        .collect();
    let subplots = (0..).zip(&narrative.subplots);
    subplots
        .filter(|(place, it)| it.author == BINDER && !others.contains(place))
        .map(|(place, _)| place)
        .collect()
}

/// New versions of a narrative and its last fragments. A subplot takes a place that is free, so that those of other fragments stay.
fn told(
    derivation: &Derivation,
    narrative: &Narrative,
    items: &[Item<'_>],
    free: Vec<u32>,
    Asked { meant, by, .. }: Asked<Plot>,
    zone: Tz,
) -> News {
    let mut news = News::by(&by);
    let mut next = narrative.clone();
    let mut free = free.into_iter();
    let mut drawn_from = derivation.turns.clone();
    let mut draw = |headline: &str, items: &[Item<'_>]| {
        let turns = items.iter().flat_map(|item| &item.turns);
        let turns: Vec<&Shown> = turns.collect();
        let drawn = borne_out_by(headline, &turns, zone);
        drawn_from.extend(drawn.iter().filter(|it| !derivation.turns.contains(it)));
    };
    for (run, headline) in meant.subplots {
        let place = free.next().unwrap_or(next.subplots.len() as u32);
        draw(&headline, &items[run.clone()]);
        let subplot = Subplot {
            headline,
            author: by.clone(),
        };
        match next.subplots.get_mut(place as usize) {
            Some(before) => *before = subplot,
            None => next.subplots.push(subplot),
        }
        for item in &items[run] {
            if let Body::Fragment(mut told) = item.fragment.body.clone() {
                told.subplot = Some(place);
                news.amend(item.fragment, Body::Fragment(told));
            }
        }
    }
    if let Some(headline) = &meant.headline {
        draw(headline, items);
        next.headline.clone_from(headline);
        next.author = by;
    }
    let mut known = HashSet::new();
    drawn_from.retain(|turn| known.insert(*turn));
    let body = Body::Narrative(Box::new(next));
    news.retell(derivation, body, drawn_from, meant.headline);
    news
}
