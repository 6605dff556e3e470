//! From what a model decided to parts of fragments: what was said of one matter at one stretch.

use memfleet_domain::derivation::Derivation;
use memfleet_domain::ids::DerivationId;
use memfleet_domain::turn::Turn;
use memfleet_prompts::stories::{Decision, Whose};

use crate::news::first_free;

/// What was said of one story at one stretch.
pub(super) struct Part<'t> {
    /// Its fragment: that of its opening turn, the n-th where this opens several.
    pub(super) id: DerivationId,
    /// Its story.
    pub(super) narrative: DerivationId,
    /// The fragment that it was in.
    pub(super) of: &'t Derivation,
    /// Its turns, in order.
    pub(super) turns: Vec<&'t Turn>,
}

/// The story of each decision; `known` are those that were shown, `said` the turns that were decided about.
pub(super) fn narratives(
    decisions: &[Decision],
    known: &[DerivationId],
    said: &[Turn],
) -> Vec<DerivationId> {
    let mut narratives = Vec::with_capacity(decisions.len());
    for decision in decisions {
        let narrative = match decision.whose {
            Whose::Known(place) => known[place],
            Whose::New { .. } => {
                let opening = said[decision.turns[0]].accepted.id;
                let among = |nth| DerivationId::of_narrative_among(opening, nth);
                first_free(among, |id| narratives.contains(id))
            }
        };
        narratives.push(narrative);
    }
    narratives
}

/// The parts of these fragments, fragment by fragment.
pub(super) fn parts<'t>(
    fragments: &'t [Derivation],
    said: &'t [Turn],
    decisions: &[Decision],
    narratives: &[DerivationId],
) -> Vec<Part<'t>> {
    let mut parts: Vec<Part<'t>> = Vec::new();
    for of in fragments {
        for (decision, narrative) in decisions.iter().zip(narratives) {
            let turns = decision.turns.iter().map(|place| &said[*place]);
            let turns = turns.filter(|turn| of.turns.contains(&turn.accepted.id));
            let turns: Vec<&Turn> = turns.collect();
            let Some(opening) = turns.first().map(|turn| turn.accepted.id) else {
                continue;
            };
            let taken: Vec<DerivationId> = parts.iter().map(|part| part.id).collect();
            let among = |nth| DerivationId::of_fragment_among(opening, nth);
            parts.push(Part {
                id: first_free(among, |id| taken.contains(id)),
                narrative: *narrative,
                of,
                turns,
            });
        }
    }
    parts
}
