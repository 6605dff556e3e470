//! The record of what entered which prompt: the exact block, where the tenant's policy keeps it, and where each part of it came from.

use async_trait::async_trait;
use memfleet_domain::ids::{ExchangeName, InjectionId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};

use crate::exchanges::{TURN_LIMIT, within};
use crate::ledger::{Page, PageToken};
use crate::store::Result;

/// The longest block in bytes of UTF-8.
pub const BLOCK_LIMIT: usize = 1 << 20;

/// The longest record in bytes of UTF-8.
pub const RECORD_LIMIT: usize = 1 << 20;

/// Spaces that one injection may name.
pub const SPACE_LIMIT: usize = 1_024;

/// What entered one prompt, or why nothing did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Given by whoever made it: written twice, it is the same.
    pub id: InjectionId,
    /// When.
    pub at: Timestamp,
    /// For whom, as [`crate::access::Caller::name`].
    pub caller: String,
    /// In which call.
    pub request_id: String,
    /// The conversation that the prompt is of.
    pub session: Option<SessionId>,
    /// The exchange that the prompt is of.
    pub exchange: Option<ExchangeName>,
    /// The spaces that were asked, [`SPACE_LIMIT`] at most.
    pub spaces: Vec<SpaceId>,
    /// What was decided, for example `INJECTED`.
    pub decision: String,
    /// The exact text, [`BLOCK_LIMIT`] at most; absent where there was none, where policy keeps none and where it was forgotten.
    pub block: Option<String>,
    /// BLAKE3 of the exact text. Absent where there was none, and where it was forgotten: it would tell a guess from another one.
    pub block_hash: Option<[u8; 32]>,
    /// Gate trace, provenance, drops and usage as JSON that the store does not look into: ids and numbers, since it stays when a turn is
    /// forgotten. [`RECORD_LIMIT`] at most.
    pub record: String,
    /// The turns whose words the block holds, [`TURN_LIMIT`] at most.
    pub turns: Vec<(SpaceId, TurnId)>,
    /// From when on it need not be kept; for ever where it is absent.
    pub expires_at: Option<Timestamp>,
    /// Whether a turn or a space that it names was forgotten.
    pub forgotten: bool,
}

impl Injection {
    /// Bytes of what may be large of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, String::len);
        block + self.record.len() + size_of_val(&*self.turns) + size_of_val(&*self.spaces)
    }

    /// Refuses what is too large to be stored.
    pub fn check(&self) -> Result<()> {
        let block = self.block.as_ref().map_or(0, String::len);
        within([
            ("the block of an injection in bytes", block, BLOCK_LIMIT),
            (
                "the record of an injection in bytes",
                self.record.len(),
                RECORD_LIMIT,
            ),
            ("the turns of an injection", self.turns.len(), TURN_LIMIT),
            ("the spaces of an injection", self.spaces.len(), SPACE_LIMIT),
        ])
    }

    /// What stays of it when a turn of its is forgotten.
    #[must_use]
    pub fn tombstone(self) -> Self {
        Self {
            block: None,
            block_hash: None,
            forgotten: true,
            ..self
        }
    }

    /// The spaces that it names, be it by a turn, each once.
    pub fn all_spaces(&self) -> Vec<&SpaceId> {
        let of_turns = self.turns.iter().map(|(space, _)| space);
        let mut spaces: Vec<_> = self.spaces.iter().chain(of_turns).collect();
        spaces.sort();
        spaces.dedup();
        spaces
    }
}

/// Which injections; all conditions that are given hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InjectionFilter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// That name this space.
    pub space: Option<SpaceId>,
    /// That hold words of this turn.
    pub turn: Option<(SpaceId, TurnId)>,
    /// Of this time.
    pub time: TimeRange,
}

/// Where injections are kept. They are added and read; nothing changes one but a forget: where a turn or a whole space goes,
/// [`crate::erasure::Erasure`] takes block and hash of every injection that names it in the same transaction, and what is added later with
/// words of a forgotten turn comes without them. A forget is refused of a space on legal hold; the words of such a space in a block that also
/// names another space go with that one's, since they stay in their turns.
#[async_trait]
pub trait Injections: Send + Sync {
    /// Adds injections, all or none. One that is there already stays as it is.
    async fn append(&self, tenant: &TenantId, injections: &[Injection]) -> Result<()>;

    /// One of them.
    async fn get(&self, tenant: &TenantId, id: InjectionId) -> Result<Option<Injection>>;

    /// Page of the injections that match, newest first; one of large ones ends before its limit.
    async fn list(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Injection>>;

    /// The turns of the `limit` newest that match, as often as they name them; nothing else of these is read.
    async fn turns_given(
        &self,
        tenant: &TenantId,
        filter: &InjectionFilter,
        limit: u32,
    ) -> Result<Vec<(SpaceId, TurnId)>>;

    /// Removes injections of a tenant beyond `most`, the oldest first, but for those that name a space on legal hold; some thousand at a
    /// time; how many.
    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64>;

    /// Removes those whose time is over by `now`, of all tenants; how many. One that names a space on legal hold is kept until the hold is
    /// lifted: what a model was told from it is evidence, too.
    async fn expire(&self, now: Timestamp) -> Result<u64>;
}
