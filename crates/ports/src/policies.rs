//! The public API of how memory enters prompts: policies, templates, models' profiles and the examples of a gate, as their owner sets them.
//! They are kept by [`crate::settings`].

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::ids::{SettingName, SpaceId};
use memfleet_domain::policy::Policy;

use crate::context::Context;
use crate::ledger::Page;
use crate::memory::PageRequest;
use crate::settings::{Setting, SettingKey, SettingKind};

/// What every policy is called: a tenant has one, and one for each of its spaces.
pub const POLICY_NAME: &str = "policy";

/// The policy of a tenant, or of one of its spaces.
pub fn policy_key(space: Option<SpaceId>) -> SettingKey {
    SettingKey {
        kind: SettingKind::Policy,
        space,
        name: SettingName::new(POLICY_NAME).expect("the name of policies is a valid one"),
    }
}

/// The policy that is in force, and what it is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PolicyInForce {
    /// All of it: what is said of the space, of the tenant, of the node, and as shipped.
    pub in_force: Policy,
    /// What the node's configuration says, for every tenant.
    pub of_node: Policy,
    /// What is said of the tenant.
    pub of_tenant: Policy,
    /// Its latest version, be it the one that removed it; 0: there never was one.
    pub tenant_version: u32,
    /// What is said of the space; nothing where none was asked for.
    pub of_space: Policy,
    /// As `tenant_version`.
    pub space_version: u32,
}

/// A document to set; for all of the tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    /// What it is; not [`SettingKind::Policy`], which is no text on the wire.
    pub kind: SettingKind,
    /// What it is called.
    pub name: SettingName,
    /// What it says.
    pub body: String,
    /// The latest version that the caller knows, 0 for none; whatever there is where it is absent.
    pub expected: Option<u32>,
}

/// Which documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// The present version of each, of one kind or of any.
    Present(Option<SettingKind>),
    /// Every version of one.
    History(SettingKey),
}

/// The `Policies` service. What is put is checked as a whole, and works at every gateway within three seconds.
#[async_trait]
pub trait Policies: Send + Sync {
    /// Sets the policy of the tenant or of a space; its version. One that says the same keeps its own.
    async fn put_policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
        policy: Policy,
        expected: Option<u32>,
    ) -> Result<u32, Fault>;

    /// The policy in force, of the tenant or of a space.
    async fn policy(
        &self,
        context: &Context,
        space: Option<SpaceId>,
    ) -> Result<PolicyInForce, Fault>;

    /// Sets a document; its version, as [`Self::put_policy`].
    async fn put_document(&self, context: &Context, document: NewDocument) -> Result<u32, Fault>;

    /// Documents of the tenant that the caller reaches, in the order of [`crate::settings::Settings`].
    async fn documents(
        &self,
        context: &Context,
        listing: Listing,
        page: PageRequest,
    ) -> Result<Page<Setting>, Fault>;

    /// Takes a policy or another document away; the version that does so, 0 where there never was one.
    async fn remove_document(
        &self,
        context: &Context,
        key: SettingKey,
        expected: Option<u32>,
    ) -> Result<u32, Fault>;
}
