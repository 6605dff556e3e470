//! What a client command talks to: the public API of a node, here or across the network.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memfleet_domain::Fault;
use memfleet_domain::ids::TenantId;
use memfleet_ports::access::default_tenant;
use memfleet_ports::admin::Admin;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::context::Context;
use memfleet_ports::injections_api::Audit;
use memfleet_ports::knowledge_api::{KnowledgeService, Told};
use memfleet_ports::ledger::Page;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::{Memory, PageRequest};
use memfleet_ports::policies::Policies;
use memfleet_rpc::client::Client;
use memfleet_runtime::config::{HumanDuration, Secret};

use super::Global;
use crate::output::printable;

/// What one call may take when `--timeout` says nothing.
const CALL: Duration = Duration::from_secs(30);
/// What a stream, an import or a forget may take when `--timeout` says nothing.
const LONG_CALL: Duration = Duration::from_hours(24);
/// Items a listing asks for at a time.
const PAGE: u32 = 1000;

/// The public API, with what every call carries.
#[derive(Clone)]
pub struct Handle {
    /// Turns and spaces.
    pub memory: Arc<dyn Memory>,
    /// Memory for prompts.
    pub assembly: Arc<dyn Assembly>,
    /// How memory enters prompts.
    pub policies: Arc<dyn Policies>,
    /// What entered which prompt.
    pub audit: Arc<dyn Audit>,
    /// What is derived of turns.
    pub knowledge: Arc<dyn KnowledgeService>,
    /// What the node says of itself.
    pub maintenance: Arc<dyn Maintenance>,
    /// Keys, quotas, the audit log.
    pub admin: Arc<dyn Admin>,
    /// Whose memory. A remote node takes it from the API key and ignores this one.
    pub tenant: TenantId,
    /// What a call may take; absent: 30 seconds a call, a day a stream, an import or a forget.
    pub timeout: Option<Duration>,
    /// The connection, where there is one.
    remote: Option<Client>,
}

impl Handle {
    /// The API behind one value that implements all of it.
    pub fn new<S>(service: Arc<S>, tenant: TenantId, timeout: Option<Duration>) -> Self
    where
        S: Memory + Assembly + Policies + Audit + KnowledgeService + Maintenance + Admin + 'static,
    {
        Self {
            memory: service.clone(),
            assembly: service.clone(),
            policies: service.clone(),
            audit: service.clone(),
            knowledge: service.clone(),
            maintenance: service.clone(),
            admin: service,
            tenant,
            timeout,
            remote: None,
        }
    }

    /// The API of the node that the global options name.
    pub async fn connect(global: &Global) -> Result<Self, Fault> {
        let timeout = global.timeout.map(HumanDuration::get);
        let client = Self::client(global).await?;
        let remote = Some(client.clone());
        let handle = Self::new(Arc::new(client), default_tenant(), timeout);
        Ok(Self { remote, ..handle })
    }

    /// A warning for the user after the calls: the node has no keys, so the one that was sent meant nothing to it.
    pub fn warning(&self) -> Option<&'static str> {
        let is_ignored = self.remote.as_ref()?.is_credential_ignored();
        is_ignored.then_some(
            "warning: the node has no keys and lets every caller in: the API key was not looked at (`memfleet key create` closes it)",
        )
    }

    /// A connection of its own to the same node.
    pub async fn client(global: &Global) -> Result<Client, Fault> {
        let timeout = global.timeout.map(HumanDuration::get);
        let context = Context::new(default_tenant(), timeout.unwrap_or(CALL));
        let key = global
            .api_key
            .as_ref()
            .filter(|key| !key.is_empty())
            .map(Secret::expose);
        context
            .within(
                "a connection",
                Client::connect_believing(&global.server, key, global.ca.clone()),
            )
            .await
            .map_err(named_as_options)
    }

    /// The circumstances of a single call that starts now.
    pub fn call(&self) -> Context {
        Context::new(self.tenant.clone(), self.timeout.unwrap_or(CALL))
    }

    /// The circumstances of a stream, or of another call that grows with what is stored.
    pub fn long_call(&self) -> Context {
        Context::new(self.tenant.clone(), self.timeout.unwrap_or(LONG_CALL))
    }
}

/// What is wrong with an address or a key is named as the command line does.
fn named_as_options(fault: Fault) -> Fault {
    let [violation] = fault.fields.as_slice() else {
        return fault;
    };
    let option = match violation.field.as_str() {
        "url" => "--server",
        "api_key" => "--api-key",
        "ca" => "--ca",
        _ => return fault,
    };
    Fault::invalid(option, violation.description.clone())
}

/// Every item of a listing, page by page.
pub async fn every<T>(
    fetch: impl AsyncFn(PageRequest) -> Result<Page<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    at_most(usize::MAX, fetch).await
}

/// The first items of a listing, page by page.
pub async fn at_most<T>(
    most: usize,
    fetch: impl AsyncFn(PageRequest) -> Result<Page<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut items = Vec::new();
    let mut after = None;
    while items.len() < most {
        let left = u32::try_from(most - items.len()).unwrap_or(PAGE);
        let limit = left.min(PAGE);
        let page = fetch(PageRequest { limit, after }).await?;
        items.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(items)
}

/// The same of what may be incomplete: what was missing goes to standard error, once each.
pub async fn every_told<T>(
    fetch: impl AsyncFn(PageRequest) -> Result<Told<T>, Fault>,
) -> Result<Vec<T>, Fault> {
    let missing = Mutex::new(BTreeSet::new());
    let fetch = async |page| {
        let told = fetch(page).await?;
        missing
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(told.degraded);
        Ok(told.page)
    };
    let items = every(fetch).await?;
    for missing in missing.into_inner().unwrap_or_else(PoisonError::into_inner) {
        eprintln!("incomplete: {}", printable(&missing));
    }
    Ok(items)
}
