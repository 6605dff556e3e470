//! What a gateway has to know of an exchange from one of its requests to the next: the same bytes in the same place, what was spent, what
//! was told already. An *exchange* is a user's message with all calls of models and tools until its answer; any gateway may have the
//! next request.

use async_trait::async_trait;
use memfleet_domain::ids::{ExchangeName, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::Timestamp;

use crate::conversations::{Conversation, Sought};
use crate::injections::Injection;
use crate::store::{Result, StoreError};

/// The longest state in bytes of UTF-8.
pub const STATE_LIMIT: usize = 1 << 20;

/// Turns that one exchange, or one injection, may name.
pub const TURN_LIMIT: usize = 4_096;

/// Random bytes that digests of what was said are keyed with.
pub type Secret = [u8; 32];

/// An exchange as a gateway writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The conversation.
    pub session: SessionId,
    /// Which exchange of it.
    pub name: ExchangeName,
    /// What the gateway makes of it, as JSON that the store does not look into; [`STATE_LIMIT`] at most.
    pub state: String,
    /// What of that is no words but numbers and ids, as JSON, too, and as long at most: a forget leaves it.
    pub tally: String,
    /// Tokens of memory that entered its prompts so far.
    pub tokens: u32,
    /// The turns whose words the state holds, [`TURN_LIMIT`] at most. They may not be stored yet.
    pub turns: Vec<(SpaceId, TurnId)>,
    /// When this is written.
    pub updated_at: Timestamp,
    /// From when on it counts as gone.
    pub expires_at: Timestamp,
}

/// An exchange as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What was written last. Where that was forgotten, the state is empty and no turn is named; all else stays.
    pub exchange: Exchange,
    /// Grows with every write, and with a forget that takes its state.
    pub version: u64,
    /// Whether its state was forgotten.
    pub forgotten: bool,
}

/// What one request leaves to be kept: all of it, or nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry<'e> {
    /// Its exchange, with the version of it that was read; none: there was none.
    pub exchange: Option<(&'e Exchange, Option<u64>)>,
    /// Its conversation, in place of what is kept of that.
    pub conversation: Option<&'e Conversation>,
    /// What entered its prompt, as [`crate::injections::Injections::append`] adds it.
    pub injection: Option<&'e Injection>,
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// The version from now on.
    pub version: u64,
    /// Whether the state was left out, since it holds words of a turn that was forgotten by then.
    pub forgotten: bool,
}

impl Kept {
    /// What its last write came to.
    pub fn written(&self) -> Written {
        Written {
            version: self.version,
            forgotten: self.forgotten,
        }
    }
}

impl<'e> Entry<'e> {
    /// An exchange alone.
    pub fn of(exchange: &'e Exchange, expected: Option<u64>) -> Self {
        Self {
            exchange: Some((exchange, expected)),
            ..Self::default()
        }
    }

    /// A conversation alone.
    pub fn heard(conversation: &'e Conversation) -> Self {
        Self {
            conversation: Some(conversation),
            ..Self::default()
        }
    }

    /// Refuses what is too large to be stored.
    pub fn check(&self) -> Result<()> {
        self.exchange.map_or(Ok(()), |(it, _)| it.check())?;
        self.conversation.map_or(Ok(()), Conversation::check)?;
        self.injection.map_or(Ok(()), Injection::check)
    }
}

impl Exchange {
    /// Refuses what is too large to be stored.
    pub fn check(&self) -> Result<()> {
        let sizes = [
            (
                "the state of an exchange in bytes",
                self.state.len(),
                STATE_LIMIT,
            ),
            (
                "the tally of an exchange in bytes",
                self.tally.len(),
                STATE_LIMIT,
            ),
            ("the turns of an exchange", self.turns.len(), TURN_LIMIT),
        ];
        within(sizes)
    }

    /// The version that this write gives to what is `kept` of the exchange, if its writer knew that: `expected` is the version that it has
    /// read, none where there was none; what had expired by then counts as not there. Nothing where the same is kept already: it is sent
    /// again.
    pub fn follows(&self, kept: Option<&Kept>, expected: Option<u64>) -> Result<Option<u64>> {
        let current = kept.map_or(0, |kept| kept.version);
        let is_free = kept.is_none_or(|kept| kept.exchange.expires_at <= self.updated_at);
        match expected {
            Some(expected) if expected == current && current > 0 => Ok(Some(current + 1)),
            None if is_free => Ok(Some(current + 1)),
            _ if kept.is_some_and(|kept| self.is_in(kept)) => Ok(None),
            _ => Err(StoreError::Stale {
                what: "the exchange",
                expected: expected.unwrap_or(0),
                current,
            }),
        }
    }

    /// Whether it is what is kept, but for what was forgotten of it.
    fn is_in(&self, kept: &Kept) -> bool {
        if !kept.forgotten {
            return kept.exchange == *self;
        }
        let left = Self {
            state: String::new(),
            turns: Vec::new(),
            ..self.clone()
        };
        kept.exchange == left
    }
}

/// Refuses the first size that is beyond its limit.
pub(crate) fn within<const N: usize>(sizes: [(&'static str, usize, usize); N]) -> Result<()> {
    let beyond = sizes.into_iter().find(|(_, size, limit)| size > limit);
    beyond.map_or(Ok(()), |(what, size, limit)| {
        Err(StoreError::Oversized { what, size, limit })
    })
}

/// Where exchanges are kept for as long as they last. Where a turn is forgotten, [`crate::erasure::Erasure`] takes the state of every
/// exchange that names it in the same transaction; what names it later is stored without its state. A legal hold keeps no exchange: the
/// words that it holds are in the turns. Of conversations a forget of something in their space takes the digest of how they began, the state, and a key
/// without a secret (it begins with a hexadecimal digit); one of the whole space takes all, and the secret.
#[async_trait]
pub trait Exchanges: Send + Sync {
    /// The exchange, unless it has expired by `now`.
    async fn get(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        name: &ExchangeName,
        now: Timestamp,
    ) -> Result<Option<Kept>>;

    /// Writes what a request leaves, if nobody wrote its exchange since that was read; [`StoreError::Stale`] otherwise, and then nothing of it.
    /// Of several at a time one wins. The same write sent again is answered as the first time.
    async fn keep(&self, tenant: &TenantId, entry: Entry<'_>) -> Result<Written>;

    /// The states of the `limit` exchanges of a session that were written last, of those that have not expired by `now`, the newest first.
    async fn states(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        limit: u32,
        now: Timestamp,
    ) -> Result<Vec<String>>;

    /// Tokens of all exchanges of a session that have not expired by `now`.
    async fn session_tokens(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        now: Timestamp,
    ) -> Result<u64>;

    /// The conversations of an owner that a request may belong to, as far as they have not expired by `now`: of those that one of the keys is
    /// the last request of, those of the latest keys; of those that opened like it, and of all, the latest; as many as
    /// [`crate::conversations::FOUND`] says. Those heard of last come first.
    async fn conversations(
        &self,
        tenant: &TenantId,
        sought: &Sought,
        now: Timestamp,
    ) -> Result<Vec<Conversation>>;

    /// The secret of a space, or without one that of what a tenant does in several. It is made at the first call and the same from then on;
    /// that of a space goes when the space is forgotten as a whole. The space need not exist.
    async fn secret(&self, tenant: &TenantId, space: Option<&SpaceId>) -> Result<Secret>;

    /// Removes exchanges and conversations of a tenant beyond `most` of each, those that end first, some thousand at a time; how many.
    async fn bound(&self, tenant: &TenantId, most: u32) -> Result<u64>;

    /// Removes exchanges and conversations that have expired by `now`, of all tenants; how many.
    async fn expire(&self, now: Timestamp) -> Result<u64>;
}
