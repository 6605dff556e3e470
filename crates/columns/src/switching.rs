//! Steps of a change of the embedding model: which one comes next in a memory space, and what it
//! does to the space's row.

use std::cmp::Reverse;

use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_ports::model_switch::{
    NextStep, SpaceComparison, SwitchGoal, SwitchOrder, SwitchStep,
};

use crate::slots::{LOOKED_THROUGH, VectorSlot, VectorSlots};

/// A space is compared while less than one part in so many of its changes lacks vectors: where
/// turns come all the time, the newest always wait for theirs.
const LACKING_PART: i64 = 64;

/// The columns of a memory space that a change of the embedding model reads and writes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SwitchState {
    /// The last change of the space; no step moves it.
    pub head: i64,
    /// The embedding spaces of its places, by their numbers in the database.
    pub slots: VectorSlots,
    /// Change up to which nothing lacks vectors in the first place; absent where nothing lacks any.
    pub first_embedded: Option<i64>,
    /// Change up to which nothing lacks vectors in the second place; absent where nothing lacks
    /// any.
    pub second_embedded: Option<i64>,
    /// The place whose vectors are being removed.
    pub emptying: Option<VectorSlot>,
    /// The likeness of the two places' models, from the step [`SwitchStep::Compare`] on.
    pub comparison: Option<SpaceComparison>,
    /// The embedding space that its language moves it to.
    pub language: Option<i64>,
}

impl SwitchState {
    /// True where the space's language moves it, and not this order of the operator.
    pub fn follows_language(&self, order: Option<&SwitchOrder>) -> bool {
        self.language.is_some() && order.is_none_or(|order| !order.every_language)
    }

    /// The next step of a space whose target has this number, under the operator's order or that of
    /// the space's language, whose embedding space is given. Absent where nothing is to be done.
    pub fn next(
        &self,
        scope: Scope,
        target: i64,
        operator: Option<&SwitchOrder>,
        language: Option<EmbeddingSpace>,
    ) -> Option<NextStep> {
        let is_for_language = self.follows_language(operator);
        let order = match is_for_language {
            true => language.map(SwitchOrder::for_language)?,
            false => operator.cloned()?,
        };
        let step = self.next_step(target, &order)?;
        Some(NextStep {
            scope,
            order,
            is_for_language,
            step,
        })
    }

    /// True where a step is still the space's next one.
    pub fn is_next(&self, next: &NextStep, target: i64, operator: Option<&SwitchOrder>) -> bool {
        let is_for_language = self.follows_language(operator);
        is_for_language == next.is_for_language
            && (!is_for_language || self.language == Some(target))
            && self.next_step(target, &next.order) == Some(next.step)
    }

    /// The next step under an order, whose target has this number; absent where nothing is to be
    /// done, or something has to come first.
    pub fn next_step(&self, target: i64, order: &SwitchOrder) -> Option<SwitchStep> {
        let embedding = |slot: Option<VectorSlot>| slot.and_then(|slot| self.slots.get(slot));
        let served = embedding(self.slots.served());
        let builds = order.goal != SwitchGoal::RollBack;
        let is_whole = self.slots.is_other_whole;
        match embedding(self.slots.other()) {
            _ if self.emptying.is_some() => Some(SwitchStep::Drop),
            None if builds && served.is_some_and(|served| served != target) => {
                Some(SwitchStep::Build)
            }
            Some(other) if builds && other == target => {
                let is_served = order.goal == SwitchGoal::Serve && !self.is_unlike(order);
                match is_whole {
                    true => is_served.then_some(SwitchStep::Serve),
                    false => self.is_nearly_whole().then_some(SwitchStep::Compare),
                }
            }
            Some(_) if !builds && is_whole && served == Some(target) => Some(SwitchStep::RollBack),
            // The configuration names another model than before.
            Some(other) if order.is_configured() && other != target => Some(SwitchStep::Drop),
            // A change that is rolled back leaves nothing half-built.
            Some(other) if order.drops || (other == target && !is_whole) => Some(SwitchStep::Drop),
            _ => None,
        }
    }

    fn is_unlike(&self, order: &SwitchOrder) -> bool {
        self.comparison.is_some_and(|comparison| {
            comparison.queries > 0 && comparison.overlap < order.min_overlap()
        })
    }

    /// True where little enough lacks vectors in the place that searches do not use.
    fn is_nearly_whole(&self) -> bool {
        let embedded = match self.slots.serves_second {
            true => self.first_embedded,
            false => self.second_embedded,
        };
        // The note of what lacks vectors is that many changes late.
        let lacking = embedded.map(|embedded| self.head - embedded + LOOKED_THROUGH);
        lacking.is_none_or(|lacking| lacking * LACKING_PART <= self.head)
    }

    /// Takes a step, but for the vectors that [`SwitchStep::Drop`] removes.
    pub fn take(&mut self, step: SwitchStep, target: i64, comparison: SpaceComparison) {
        match step {
            SwitchStep::Build => {
                let free = match self.slots.serves_second {
                    true => VectorSlot::First,
                    false => VectorSlot::Second,
                };
                self.name(free, Some(target));
                self.comparison = None;
                self.language = self.language.filter(|&language| language == target);
            }
            SwitchStep::Compare => {
                self.slots.is_other_whole = true;
                self.comparison = Some(comparison);
            }
            SwitchStep::Serve | SwitchStep::RollBack => {
                self.slots.serves_second = !self.slots.serves_second;
            }
            SwitchStep::Drop => {
                if self.emptying.is_none()
                    && let Some(other) = self.slots.other()
                {
                    self.name(other, None);
                    self.emptying = Some(other);
                }
            }
        }
    }

    /// Gives the place that searches do not use to an embedding space, which has no vectors yet.
    fn name(&mut self, slot: VectorSlot, embedding: Option<i64>) {
        let (name, embedded) = match slot {
            VectorSlot::First => (&mut self.slots.first, &mut self.first_embedded),
            VectorSlot::Second => (&mut self.slots.second, &mut self.second_embedded),
        };
        (*name, *embedded) = (embedding, embedding.map(|_| 0));
        self.slots.is_other_whole = false;
    }
}

/// The steps of a look through spaces that are taken first: those that end a change before those
/// that begin one, `limit` of them.
#[derive(Debug)]
pub struct FirstSteps {
    limit: usize,
    steps: Vec<NextStep>,
}

impl FirstSteps {
    /// No steps yet.
    pub fn new(limit: u32) -> Self {
        Self {
            limit: limit as usize,
            steps: Vec::new(),
        }
    }

    /// Notes the next step of a space.
    pub fn push(&mut self, step: NextStep) {
        self.steps.push(step);
        if self.steps.len() >= 2 * self.limit {
            self.cut();
        }
    }

    /// The steps in order.
    pub fn into_steps(mut self) -> Vec<NextStep> {
        self.cut();
        self.steps
    }

    fn cut(&mut self) {
        self.steps.sort_by_key(|next| Reverse(next.step));
        self.steps.truncate(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{embedding_space, scope};

    use memfleet_ports::model_switch::OrderGiver;

    use super::*;

    const OLD: i64 = 7;
    const TARGET: i64 = 8;

    fn order(goal: SwitchGoal, drops: bool) -> SwitchOrder {
        SwitchOrder {
            target: embedding_space("2"),
            goal,
            drops,
            forced: false,
            every_language: false,
            giver: OrderGiver::Operator,
        }
    }

    fn likeness(overlap: f64) -> SpaceComparison {
        SpaceComparison {
            queries: 2,
            overlap,
            correlation: 0.0,
        }
    }

    /// A space of 10,000 changes with vectors of one model.
    fn before() -> SwitchState {
        SwitchState {
            head: 10_000,
            slots: VectorSlots {
                first: Some(OLD),
                ..VectorSlots::default()
            },
            ..SwitchState::default()
        }
    }

    fn stepped(mut state: SwitchState, order: &SwitchOrder, step: SwitchStep) -> SwitchState {
        assert_eq!(state.next_step(TARGET, order), Some(step));
        state.take(step, TARGET, likeness(0.5));
        state
    }

    #[test]
    fn a_change_goes_there_and_back_and_there_again() {
        let (serve, back) = (
            order(SwitchGoal::Serve, false),
            order(SwitchGoal::RollBack, false),
        );
        let mut state = stepped(before(), &serve, SwitchStep::Build);
        assert_eq!(state.slots.second, Some(TARGET));
        assert_eq!(state.second_embedded, Some(0));
        assert_eq!(state.next_step(TARGET, &serve), None);
        state.second_embedded = None;
        let compare = order(SwitchGoal::Compare, false);
        state = stepped(state, &compare, SwitchStep::Compare);
        assert_eq!(state.next_step(TARGET, &compare), None);
        for _ in 0..2 {
            state = stepped(state, &serve, SwitchStep::Serve);
            assert_eq!(state.next_step(TARGET, &serve), None);
            state = stepped(state, &back, SwitchStep::RollBack);
            assert_eq!(state.next_step(TARGET, &back), None);
        }
        state = stepped(state, &serve, SwitchStep::Serve);
        let drops = order(SwitchGoal::Serve, true);
        state = stepped(state, &drops, SwitchStep::Drop);
        assert_eq!(state.slots.first, None);
        assert_eq!(state.emptying, Some(VectorSlot::First));
        // Until nothing of it is left.
        state = stepped(state, &back, SwitchStep::Drop);
        state.emptying = None;
        assert_eq!(state.next_step(TARGET, &drops), None);
        // The way back is another change, to the place that is free.
        state.take(SwitchStep::Build, OLD, SpaceComparison::default());
        assert_eq!(
            (state.slots.first, state.first_embedded),
            (Some(OLD), Some(0))
        );
    }

    #[test]
    fn a_space_is_compared_while_its_last_turns_wait() {
        let serve = order(SwitchGoal::Serve, false);
        let mut state = stepped(before(), &serve, SwitchStep::Build);
        for (embedded, step) in [
            (Some(9_859), None),
            (Some(9_860), Some(SwitchStep::Compare)),
            (None, Some(SwitchStep::Compare)),
        ] {
            state.second_embedded = embedded;
            assert_eq!(state.next_step(TARGET, &serve), step, "{embedded:?}");
        }
    }

    #[test]
    fn a_half_built_place_goes_with_its_change() {
        let built = stepped(
            before(),
            &order(SwitchGoal::Serve, false),
            SwitchStep::Build,
        );
        let mut state = stepped(
            built.clone(),
            &order(SwitchGoal::RollBack, false),
            SwitchStep::Drop,
        );
        state.emptying = None;
        assert_eq!(state, before());
        // A drop alone leaves what is built.
        assert_eq!(
            built.next_step(TARGET, &order(SwitchGoal::Serve, true)),
            None
        );
    }

    #[test]
    fn vectors_of_a_model_that_the_configuration_named_before_go() {
        let beside = SwitchOrder::beside(embedding_space("2"));
        let mut state = stepped(before(), &beside, SwitchStep::Build);
        state.second_embedded = None;
        state = stepped(state, &beside, SwitchStep::Compare);
        assert_eq!(state.next_step(TARGET, &beside), None);
        assert_eq!(state.next_step(TARGET + 1, &beside), Some(SwitchStep::Drop));
        let operators = order(SwitchGoal::Compare, false);
        assert_eq!(state.next_step(TARGET + 1, &operators), None);
    }

    #[test]
    fn an_unlike_model_waits_for_the_operator() {
        let mut state = stepped(
            before(),
            &order(SwitchGoal::Serve, false),
            SwitchStep::Build,
        );
        state.take(SwitchStep::Compare, TARGET, likeness(0.09));
        let mut serve = order(SwitchGoal::Serve, true);
        assert_eq!(state.next_step(TARGET, &serve), None);
        serve.forced = true;
        assert_eq!(state.next_step(TARGET, &serve), Some(SwitchStep::Serve));
        // The operator gives it up.
        let back = order(SwitchGoal::RollBack, true);
        assert_eq!(state.next_step(TARGET, &back), Some(SwitchStep::Drop));
    }

    #[test]
    fn a_space_that_follows_its_language_is_moved_by_nothing_else() {
        let operator = order(SwitchGoal::Serve, false);
        let mut state = before();
        assert!(!state.follows_language(Some(&operator)) && !state.follows_language(None));
        state.language = Some(TARGET);
        assert!(state.follows_language(Some(&operator)) && state.follows_language(None));
        let language = SwitchOrder::for_language(embedding_space("2"));
        state = stepped(state, &language, SwitchStep::Build);
        state.second_embedded = None;
        state = stepped(state, &language, SwitchStep::Compare);
        state = stepped(state, &language, SwitchStep::Serve);
        state = stepped(state, &language, SwitchStep::Drop);
        state.emptying = None;
        assert_eq!(state.next_step(TARGET, &language), None);
        // The operator may still want one model for all.
        let every = SwitchOrder {
            every_language: true,
            ..operator
        };
        assert!(!state.follows_language(Some(&every)));
        state.take(SwitchStep::Build, OLD, SpaceComparison::default());
        assert_eq!(state.language, None);
    }

    #[test]
    fn steps_that_end_a_change_come_first() {
        let mut steps = FirstSteps::new(2);
        for (name, step) in [
            ("a", SwitchStep::Build),
            ("b", SwitchStep::Build),
            ("c", SwitchStep::Drop),
            ("d", SwitchStep::Build),
            ("e", SwitchStep::Serve),
        ] {
            steps.push(NextStep {
                scope: scope("acme", name),
                order: order(SwitchGoal::Serve, false),
                is_for_language: false,
                step,
            });
        }
        let steps = steps.into_steps().into_iter();
        let steps: Vec<_> = steps.map(|next| (next.scope, next.step)).collect();
        let expected = [("c", SwitchStep::Drop), ("e", SwitchStep::Serve)];
        let expected = expected.map(|(name, step)| (scope("acme", name), step));
        assert_eq!(steps, expected);
    }
}
