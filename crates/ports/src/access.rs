//! Who calls, and whether they may: asked for every call of the public API before anything else.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::access::{Grant, KeyHash, Right};
use memfleet_domain::ids::TenantId;
use memfleet_domain::time::Timestamp;

/// Tenant of every call while no key exists, and of operators.
pub const DEFAULT_TENANT: &str = "default";

/// The tenant [`DEFAULT_TENANT`].
pub fn default_tenant() -> TenantId {
    TenantId::new(DEFAULT_TENANT).expect("the default tenant has a valid name")
}

/// Somebody whose credential was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Whose memory the calls are about.
    pub tenant: TenantId,
    /// Who it is, for the audit log: the id of a key, `subject` of a token; never a secret.
    pub name: String,
    /// What the credential allows.
    pub grant: Grant,
    /// Whether it may manage every tenant.
    pub is_operator: bool,
    /// Calls a minute that this credential has at each gateway.
    pub calls_per_minute: Option<u32>,
    /// What says so.
    pub proof: Proof,
}

/// What a caller was believed for, and how to find out whether that still holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Nothing: no key exists yet.
    Open,
    /// A key of the configuration: as good as the process.
    Configured,
    /// A key of the store.
    Key(KeyHash),
    /// A token that ends by itself.
    Until(Timestamp),
}

/// Says who calls and what they may do.
#[async_trait]
pub trait Authority: Send + Sync {
    /// Who shows this credential. Counts as a call.
    async fn identify(&self, credential: Option<&str>) -> Result<Caller, Fault>;

    /// Whether a caller that was identified some time ago is still believed; for streams, which outlast a revocation.
    async fn renew(&self, caller: &Caller) -> Result<(), Fault>;

    /// Counts one more call of a caller: a message of a stream is one.
    async fn count(&self, caller: &Caller) -> Result<(), Fault>;

    /// Hears that a call was refused for want of a right; never waits.
    fn refused(&self, caller: &Caller, request_id: &str, method: &str, right: Right);
}

/// Believes tokens that somebody else issued.
#[async_trait]
pub trait Tokens: Send + Sync {
    /// Whom the token speaks of.
    async fn verify(&self, token: &str) -> Result<Caller, Fault>;

    /// Whether its keys could be had the last time.
    async fn check(&self) -> Result<(), Fault>;
}
