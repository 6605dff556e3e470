//! The audit log: administrative acts, and which turns entered which prompt. Names and ids, never texts.

use std::collections::BTreeMap;

use async_trait::async_trait;
use memfleet_domain::ids::{KeyId, SessionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::words;
use serde::{Deserialize, Serialize};

use crate::ledger::{Page, PageToken};
use crate::store::Result;

words! {
    /// What happened.
    AuditKind {
        /// A key was made.
        KeyCreated = "key_created",
        /// A key got a successor.
        KeyRotated = "key_rotated",
        /// A key was revoked.
        KeyRevoked = "key_revoked",
        /// The quota of the tenant was set.
        QuotaSet = "quota_set",
        /// Settings of a space, its retention period among them, are about to be set.
        SpaceSet = "space_set",
        /// A space is about to be put on legal hold.
        HoldSet = "hold_set",
        /// A legal hold is about to be lifted.
        HoldLifted = "hold_lifted",
        /// Turns are about to be forgotten.
        ForgetBegun = "forget_begun",
        /// Turns were forgotten.
        Forgotten = "forgotten",
        /// Records are about to be imported.
        ImportBegun = "import_begun",
        /// Dead letters are about to be replayed.
        ReplayBegun = "replay_begun",
        /// A fact is about to be corrected.
        CorrectionBegun = "correction_begun",
        /// A change of derived memory is about to be undone.
        RevertBegun = "revert_begun",
        /// The facts of a space are about to be derived once more.
        RebuildBegun = "rebuild_begun",
        /// A policy of how memory enters prompts is about to be set.
        PolicySet = "policy_set",
        /// A template, a model's profile or the examples of a gate are about to be set.
        DocumentSet = "document_set",
        /// A policy or another such document is about to be taken away.
        DocumentRemoved = "document_removed",
        /// The embedding model is about to be changed, or the change taken back.
        ModelSwitchBegun = "model_switch_begun",
        /// A call was refused for want of the right `admin`.
        Refused = "refused",
        /// Turns entered a prompt.
        Injected = "injected",
    }
}

/// A turn that a record is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditedTurn {
    /// Where it lies.
    pub space: SpaceId,
    /// Its session, where that is known.
    pub session: Option<SessionId>,
    /// Which.
    pub turn: TurnId,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// When.
    pub at: Timestamp,
    /// Whose log.
    pub tenant: TenantId,
    /// What.
    pub kind: AuditKind,
    /// Who, as [`crate::access::Caller::name`].
    pub caller: String,
    /// In which call.
    pub request_id: String,
    /// The space, where it is about one.
    pub space: Option<SpaceId>,
    /// The key, where it is about one.
    pub key: Option<KeyId>,
    /// The turns.
    pub turns: Vec<AuditedTurn>,
    /// Further names and numbers.
    pub detail: BTreeMap<String, String>,
}

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditFilter {
    /// Only these kinds; all when there is none.
    pub kinds: Vec<AuditKind>,
    /// Only records of this time.
    pub time: TimeRange,
}

/// Where records are kept. They are added and read, never changed.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Adds records, all or none.
    async fn append(&self, records: &[AuditRecord]) -> Result<()>;

    /// The records of a tenant that match, the newest first.
    async fn list(
        &self,
        tenant: &TenantId,
        filter: &AuditFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<AuditRecord>>;

    /// Removes what is older, of all tenants; how many records.
    async fn expire(&self, before: Timestamp) -> Result<u64>;
}
