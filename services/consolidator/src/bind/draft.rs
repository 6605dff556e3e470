//! Runs put together to fragments, each of a story.

use std::collections::HashMap;

use memfleet_agents::narratives::{BINDER, Stories, Stretch};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::narrative::{Fragment, Momentum, Narrative};
use memfleet_domain::time::{TimeRange, Timestamp};

use super::part::{Part, Run};

/// A fragment as it is bound, before anything is stored.
pub(super) struct Draft {
    pub(super) turns: Vec<TurnId>,
    pub(super) begun: Option<Timestamp>,
    pub(super) fragment: Fragment,
    /// The story that it begins, where it is of no known one.
    pub(super) begins: Option<Narrative>,
}

impl Draft {
    /// That of its opening turn, however far it goes.
    pub(super) fn id(&self) -> DerivationId {
        DerivationId::of_fragment(self.turns[0])
    }
}

/// Runs of one fragment.
struct Open<'p> {
    id: DerivationId,
    stretch: Stretch,
    runs: Vec<&'p Run>,
}

/// The fragments of a part. What is bound already stays as it is; `stories` learns of what is new.
pub(super) fn drafts(part: &Part, stories: &mut Stories) -> Vec<Draft> {
    let known: HashMap<DerivationId, &Derivation> =
        part.fragments.iter().map(|it| (it.id, it)).collect();
    let mut holds: HashMap<TurnId, DerivationId> = HashMap::new();
    for fragment in &part.fragments {
        holds.extend(fragment.turns.iter().map(|turn| (*turn, fragment.id)));
    }
    let mut opened: Vec<Open<'_>> = Vec::new();
    let mut bound = Vec::new();
    for run in &part.runs {
        let id = DerivationId::of_fragment(run.first());
        let goes_on = |open: &Open<'_>| match holds.get(&run.first()) {
            Some(fragment) => *fragment == open.id,
            None => stories.goes_on(&run.opening, open.id, &open.stretch),
        };
        match opened.last_mut().filter(|open| goes_on(open)) {
            Some(open) => open.push(run),
            None => {
                let narrative = known.get(&id).and_then(|known| known.fragment());
                let narrative = narrative.map(|fragment| fragment.narrative);
                bound.push(
                    narrative.map_or_else(|| bind(run, id, stories), |narrative| (narrative, None)),
                );
                let mut open = Open {
                    id,
                    stretch: Stretch::default(),
                    runs: Vec::new(),
                };
                open.push(run);
                opened.push(open);
            }
        }
    }
    let drafts = opened.iter().zip(bound);
    drafts
        .map(|(open, (narrative, begins))| open.draft(narrative, begins))
        .collect()
}

/// The story of a fragment that this run opens, and its beginning where it is new.
fn bind(run: &Run, id: DerivationId, stories: &mut Stories) -> (DerivationId, Option<Narrative>) {
    let story = stories.story(&run.opening);
    let narrative = story.unwrap_or(DerivationId::of_narrative(run.first()));
    stories.bind(id, narrative, &run.opening);
    (narrative, story.is_none().then(|| begin(run)))
}

fn begin(run: &Run) -> Narrative {
    Narrative {
        headline: run.episode.title.clone(),
        owner: run.speaker.clone(),
        characters: run.episode.participants.clone(),
        subplots: Vec::new(),
        momentum: Momentum::Active,
        author: BINDER.to_owned(),
    }
}

impl<'p> Open<'p> {
    fn push(&mut self, run: &'p Run) {
        self.stretch.push(&run.opening);
        self.runs.push(run);
    }

    fn draft(&self, narrative: DerivationId, begins: Option<Narrative>) -> Draft {
        let (first, last) = (self.runs[0], self.runs[self.runs.len() - 1]);
        Draft {
            turns: self
                .runs
                .iter()
                .flat_map(|run| &run.turns)
                .copied()
                .collect(),
            begun: first.begun,
            fragment: Fragment {
                narrative,
                subplot: None,
                session: first.episode.session.clone(),
                headline: first.episode.title.clone(),
                span: TimeRange {
                    start: first.episode.span.start,
                    end: last.episode.span.end,
                },
                binder: BINDER.to_owned(),
            },
            begins,
        }
    }
}
