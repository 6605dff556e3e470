//! Runs put together to fragments, each of a story.

use std::collections::HashMap;

use memfleet_agents::narratives::{BINDER, Stories, Stretch};
use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::{DerivationId, Speaker, TurnId};
use memfleet_domain::narrative::Fragment;
use memfleet_domain::time::{TimeRange, Timestamp};

use super::part::Part;
use super::run::Run;

/// A fragment as it is bound, before anything is stored.
pub(super) struct Draft {
    pub(super) turns: Vec<TurnId>,
    pub(super) begun: Option<Timestamp>,
    pub(super) fragment: Fragment,
    /// Whose story it begins, where it is of no known one.
    pub(super) begins: Option<Speaker>,
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
fn bind(run: &Run, id: DerivationId, stories: &mut Stories) -> (DerivationId, Option<Speaker>) {
    let story = stories.story(&run.opening);
    let narrative = story.unwrap_or(DerivationId::of_narrative(run.first()));
    stories.bind(id, narrative, &run.opening);
    let begins = story.is_none().then(|| run.speaker.clone());
    (narrative, begins)
}

impl<'p> Open<'p> {
    fn push(&mut self, run: &'p Run) {
        self.stretch.push(&run.opening);
        self.runs.push(run);
    }

    fn draft(&self, narrative: DerivationId, begins: Option<Speaker>) -> Draft {
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
                session: first.session.clone(),
                headline: first.headline.clone(),
                span: TimeRange {
                    start: first.span.start,
                    end: last.span.end,
                },
                binder: BINDER.to_owned(),
            },
            begins,
        }
    }
}
