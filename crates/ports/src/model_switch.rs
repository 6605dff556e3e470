//! Changing the embedding model: what the operator wants, and how far each space is.
//!
//! A space gets vectors of the target beside those that it serves (*build*), the two are compared
//! on its own texts (*compare*), and then searches use the target's (*serve*). Until the vectors
//! that are not served are dropped the way back is one row a space.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use serde::{Deserialize, Serialize};

use crate::store::Result;

/// How far a change of the model is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchGoal {
    /// Vectors of the target are made beside the others and compared with them.
    Compare,
    /// Searches use them, in each space from its comparison on, unless the two models are too
    /// unlike there; they are the ones that new spaces get.
    Serve,
    /// Searches use the vectors of before.
    RollBack,
}

/// Least [`SpaceComparison::overlap`] of a space whose searches change without the operator's word:
/// below it something is likely wrong, such as damaged weights.
pub const MIN_OVERLAP: f64 = 0.1;

/// Giver of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderGiver {
    /// An operator, by a call.
    #[default]
    Operator,
    /// The configuration, for balanced searches ([`SwitchOrder::beside`]).
    Configuration,
}

/// The order that stands: the operator's, or that of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchOrder {
    /// The embedding space to change to.
    pub target: EmbeddingSpace,
    /// How far.
    pub goal: SwitchGoal,
    /// True where the vectors that searches do not use then are removed.
    #[serde(default)]
    pub drops: bool,
    /// True where searches change in spaces too whose two models are as unlike as
    /// [`MIN_OVERLAP`] tells.
    #[serde(default)]
    pub forced: bool,
    /// True where it is for spaces too that follow their language
    /// ([`ModelSwitches::follow_language`]).
    #[serde(default)]
    pub every_language: bool,
    /// Giver of the order.
    #[serde(default)]
    pub giver: OrderGiver,
}

impl SwitchOrder {
    /// Order that moves a space to the model that reads its language: the vectors of before say
    /// little of its texts, so they are not compared, and they are dropped.
    pub fn for_language(target: EmbeddingSpace) -> Self {
        Self {
            target,
            goal: SwitchGoal::Serve,
            drops: true,
            forced: true,
            every_language: false,
            giver: OrderGiver::Operator,
        }
    }

    /// Order of the configuration that gives all spaces vectors of the target beside those that
    /// they serve, in place of those of other models.
    pub fn beside(target: EmbeddingSpace) -> Self {
        Self {
            target,
            goal: SwitchGoal::Compare,
            drops: false,
            forced: false,
            every_language: false,
            giver: OrderGiver::Configuration,
        }
    }

    /// True where the change is rolled back and its vectors are removed.
    pub fn is_given_up(&self) -> bool {
        self.goal == SwitchGoal::RollBack && self.drops
    }

    /// True where the configuration gave it.
    pub fn is_configured(&self) -> bool {
        self.giver == OrderGiver::Configuration
    }

    /// Least [`SpaceComparison::overlap`] of a space whose searches change under this order.
    pub fn min_overlap(&self) -> f64 {
        if self.forced { 0.0 } else { MIN_OVERLAP }
    }
}

/// The next thing to be done in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SwitchStep {
    /// It takes vectors of the target from now on; the backfill makes those of what is there.
    Build,
    /// Everything has vectors of the target: they are compared with the served ones.
    Compare,
    /// Searches use the vectors of the target.
    Serve,
    /// Searches use the vectors of before.
    RollBack,
    /// The vectors that searches do not use are removed.
    Drop,
}

/// The next step of a space.
#[derive(Debug, Clone, PartialEq)]
pub struct NextStep {
    /// The space.
    pub scope: Scope,
    /// Order that moves it: the operator's order, or one by [`SwitchOrder::for_language`].
    pub order: SwitchOrder,
    /// True for the latter.
    pub is_for_language: bool,
    /// Step to be taken.
    pub step: SwitchStep,
}

/// The likeness of two embedding spaces, as a space's own texts tell it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct SpaceComparison {
    /// Texts that served as queries.
    pub queries: u32,
    /// The share of the ten nearest passages that both name, 0 to 1, mean over the queries.
    pub overlap: f64,
    /// Spearman's rank correlation of the nearness of sampled passages, −1 to 1, mean over the
    /// queries.
    pub correlation: f64,
}

/// How far a change of the model is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SwitchProgress {
    /// Spaces that have anything stored.
    pub spaces: u64,
    /// Spaces that take vectors of the target, and have not all of them yet.
    pub building: u64,
    /// Spaces that have all of them and serve others.
    pub compared: u64,
    /// Spaces that serve them.
    pub serving: u64,
    /// Spaces that have vectors of a second embedding space beside the served one.
    pub beside: u64,
    /// Turns of all spaces.
    pub turns: u64,
    /// Turns that have vectors of the target.
    pub done: u64,
    /// The comparisons that are known, summed up: means over all their queries.
    pub comparison: SpaceComparison,
}

/// The store's part in a change of the model.
#[async_trait]
pub trait ModelSwitches: Send + Sync {
    /// The operator's order; nothing where no change was ever asked for.
    async fn order(&self) -> Result<Option<SwitchOrder>>;

    /// Takes down what the operator wants, in place of what was wanted before.
    async fn set_order(&self, order: &SwitchOrder) -> Result<()>;

    /// Takes an order down where this one stands, or none does; false where another one stands
    /// meanwhile, which stays.
    async fn replace_order(&self, known: Option<&SwitchOrder>, order: &SwitchOrder)
    -> Result<bool>;

    /// From now on the space moves to this embedding space, whose model reads its language,
    /// whatever the operator orders for others. False where it does so already, or is not there.
    async fn follow_language(&self, scope: &Scope, target: &EmbeddingSpace) -> Result<bool>;

    /// Up to `limit` spaces where something is to be done next, under the operator's order or for
    /// their language, and what.
    async fn steps(&self, order: Option<&SwitchOrder>, limit: u32) -> Result<Vec<NextStep>>;

    /// Takes one step in a space, as one transaction. [`SwitchStep::Drop`] removes some of the
    /// vectors, [`SwitchStep::Compare`] notes the comparison. A step that is not the space's next
    /// one any more, or is of another order than [`Self::order`] or the space's language, changes
    /// nothing.
    async fn take(&self, step: &NextStep, comparison: SpaceComparison) -> Result<()>;

    /// How far it is.
    async fn progress(&self, order: &SwitchOrder) -> Result<SwitchProgress>;
}
