//! Conversations whose clients give them no name: what a gateway knows one by when its history is sent again (AMP items 103, 106). Any gateway
//! may have the next request, so they are kept where exchanges are.

use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::time::Timestamp;

use crate::exchanges::{STATE_LIMIT, within};
use crate::store::Result;

/// Conversations that one may come from.
pub const LINEAGE_LIMIT: usize = 16;

/// Of those that are found: by the keys of earlier requests, by their opening, and of others.
pub const FOUND: [u32; 3] = [8, 16, 8];

/// A conversation as its last request tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The name that was derived for it.
    pub session: SessionId,
    /// Whose it is.
    pub owner: Owner,
    /// A digest of how it began; empty where something of the space was forgotten since.
    pub opening: String,
    /// A digest of all of its last request.
    pub key: String,
    /// What the gateway makes of it, as JSON that the store does not look into; [`STATE_LIMIT`] at most. Empty where something of the space was
    /// forgotten since.
    pub state: String,
    /// Those that it comes from, the nearest first, [`LINEAGE_LIMIT`] at most.
    pub lineage: Vec<Ancestor>,
    /// When it was heard of last.
    pub heard_at: Timestamp,
    /// From when on it counts as gone.
    pub expires_at: Timestamp,
}

/// Whose a conversation is. Nothing that two owners say makes one conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The space that it is held in.
    pub space: SpaceId,
    /// Who holds it, as a digest.
    pub caller: String,
}

/// A conversation that another one comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Its name.
    pub session: SessionId,
    /// How many messages both begin with.
    pub shared: u32,
}

/// What is known of a request whose conversation is looked for.
#[derive(Debug, Clone)]
pub struct Sought {
    /// Whose it is.
    pub owner: Owner,
    /// How it begins.
    pub opening: String,
    /// Its key and those of the requests before it, the latest first.
    pub keys: Vec<String>,
}

impl Conversation {
    /// Refuses what is too large to be stored.
    pub fn check(&self) -> Result<()> {
        within([
            (
                "the state of a conversation in bytes",
                self.state.len(),
                STATE_LIMIT,
            ),
            (
                "the lineage of a conversation",
                self.lineage.len(),
                LINEAGE_LIMIT,
            ),
        ])
    }
}
