//! A tenant's settings: documents in versions, of which none is ever changed. Gateways follow them by a number that is cheap to ask for.

use async_trait::async_trait;
use memfleet_domain::ids::{SettingName, SpaceId, TenantId};
use memfleet_domain::time::Timestamp;
use memfleet_domain::words;

use crate::ledger::{Page, PageToken};
use crate::store::{Result, StoreError};

/// The longest document in bytes of UTF-8.
pub const BODY_LIMIT: usize = 256 << 10;

// In the order of their names, which is that of a listing.
words! {
    /// What a document is about.
    SettingKind {
        /// Questions that need memory and such that need none.
        Exemplars = "exemplars",
        /// What a model takes: its window, its tokenizer, what it supports.
        ModelProfile = "model_profile",
        /// How memory is chosen, gated, budgeted and placed.
        Policy = "policy",
        /// How a block of memory is written.
        Template = "template",
    }
}

/// Which document of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SettingKey {
    /// What it is about.
    pub kind: SettingKind,
    /// The space that it is for; all of the tenant's where it is absent. The space need not exist.
    pub space: Option<SpaceId>,
    /// What it is called.
    pub name: SettingName,
}

/// One version of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Which document.
    pub key: SettingKey,
    /// 1, 2, 3 and so on.
    pub version: u32,
    /// What it says, as JSON or TOML that the store does not look into; absent where this version removed it.
    pub body: Option<String>,
    /// Who wrote it, as [`crate::access::Caller::name`].
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A version that is about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised {
    /// What the document says from now on, [`BODY_LIMIT`] at most; absent to remove it.
    pub body: Option<String>,
    /// Who writes it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The latest version that the writer knows, 0 for none; whatever there is where it is absent.
    pub expected: Option<u32>,
}

impl Revised {
    /// Whether it changes a document that is as `latest`; refused where its writer did not know that. What would say the same once
    /// more is no change, whatever was expected: a write that is sent again finds its own version.
    pub fn changes(&self, latest: Option<&Setting>) -> Result<bool> {
        let size = self.body.as_ref().map_or(0, String::len);
        if size > BODY_LIMIT {
            return Err(StoreError::Oversized {
                what: "a setting in bytes",
                size,
                limit: BODY_LIMIT,
            });
        }
        let current = latest.map_or(0, |latest| latest.version);
        if latest.and_then(|latest| latest.body.as_ref()) == self.body.as_ref() {
            return Ok(false);
        }
        match self.expected {
            Some(expected) if expected != current => Err(StoreError::Stale {
                what: "the setting",
                expected: expected.into(),
                current: current.into(),
            }),
            _ => Ok(true),
        }
    }
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Put {
    /// The latest version after it; 0 where nothing was removed that never was there.
    pub version: u32,
    /// Whether this write made it.
    pub changed: bool,
}

/// Where settings are kept. Those of a space go, with their history, when [`crate::erasure::Erasure`] forgets the space as a whole.
#[async_trait]
pub trait Settings: Send + Sync {
    /// Writes the next version of a document, or removes the document by one; [`StoreError::Stale`] where another one is there than was
    /// expected. Of two at a time both are kept, one after the other.
    async fn put(&self, tenant: &TenantId, key: &SettingKey, revised: &Revised) -> Result<Put>;

    /// The latest version of each document that is not removed, by kind, space (none first) and name.
    async fn current(&self, tenant: &TenantId) -> Result<Vec<Setting>>;

    /// One version of a document.
    async fn get(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        version: u32,
    ) -> Result<Option<Setting>>;

    /// All versions of a document, the newest first.
    async fn history(
        &self,
        tenant: &TenantId,
        key: &SettingKey,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Setting>>;

    /// A number that grows with every change of the tenant's settings; 0 before the first one.
    async fn revision(&self, tenant: &TenantId) -> Result<u64>;
}
