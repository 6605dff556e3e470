//! Who may call: keys of the configuration, keys of the store, tokens of an issuer. While there is none of them every caller is an
//! operator of the tenant `default`, which is why such a node listens on loopback only.

mod journal;
mod known;
mod rates;
mod uses;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use memfleet_domain::access::{Grant, KeyHash, Quota, Right, Usage};
use memfleet_domain::ids::{KeyId, SpaceId, TenantId};
use memfleet_domain::{Clock, Fault, FaultKind};
use memfleet_ports::access::{Authority, Caller, Proof, Tokens, default_tenant};
use memfleet_ports::audit::{AuditKind, AuditLog};
use memfleet_ports::context::Context;
use memfleet_ports::keys::{Key, KeyRing, Standing};
use memfleet_ports::store::Result as StoreResult;
use memfleet_ports::tenants::TenantCatalog;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use journal::{Journal, record, record_of};
use known::Known;
use rates::{Line, Rates};
use uses::Uses;

/// How long what was read of the store is taken for the present: the longest that a revoked key goes on at another gateway.
const FRESH: Duration = Duration::from_secs(2);

/// What was counted, and how long it took.
#[derive(Debug, Clone, Copy)]
struct Counted<T> {
    value: T,
    took: Duration,
}

impl<T> Counted<T> {
    /// The answer to a question that takes longer the more there is, and how long it took.
    async fn by(read: impl Future<Output = StoreResult<T>>) -> StoreResult<Option<Self>> {
        let begun = Instant::now();
        let value = read.await?;
        let took = begun.elapsed();
        Ok(Some(Self { value, took }))
    }

    /// How long the value is used, so that counting takes a fiftieth of the time at most.
    fn fresh(&self) -> Duration {
        self.took * 50
    }
}

/// Longest time that a sum over every turn of a tenant may take.
const USAGE_PATIENCE: Duration = Duration::from_mins(1);

/// What access is decided from.
pub struct Sources {
    /// Keys of the store.
    pub keys: Arc<dyn KeyRing>,
    /// Quotas.
    pub tenants: Arc<dyn TenantCatalog>,
    /// The audit log, if one is kept.
    pub log: Option<Arc<dyn AuditLog>>,
    /// Keys of the configuration, which allow everything within their tenant.
    pub configured: Vec<(TenantId, KeyHash)>,
    /// Tokens of an issuer, if there is one.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// What ends keys.
    pub clock: Arc<dyn Clock>,
}

/// Decides who may call.
pub struct Access {
    pub(crate) sources: Sources,
    /// Acts on their way to the audit log.
    pub(crate) journal: Journal,
    by_secret: Known<KeyHash, Key>,
    quotas: Known<TenantId, Quota>,
    stored: Known<TenantId, Counted<u64>>,
    usages: Known<TenantId, Counted<Usage>>,
    any: Known<(), bool>,
    /// Whether a key was ever seen: there is no way back.
    is_closed: AtomicBool,
    rates: Rates,
    uses: Uses,
}

impl Access {
    /// Access as these sources say.
    pub fn new(sources: Sources) -> Self {
        let is_closed = !sources.configured.is_empty() || sources.tokens.is_some();
        let outage = Arc::default();
        Self {
            journal: Journal::new(sources.log.clone()),
            sources,
            by_secret: Known::of(&outage),
            quotas: Known::of(&outage),
            stored: Known::of(&outage),
            usages: Known::of(&outage).waiting(USAGE_PATIENCE),
            any: Known::of(&outage),
            is_closed: AtomicBool::new(is_closed),
            rates: Rates::default(),
            uses: Uses::default(),
        }
    }

    /// Makes `secret` an operator's key, once and for all gateways: one that was revoked stays so.
    pub async fn bootstrap(&self, secret: &str) -> Result<(), Fault> {
        let hash = KeyHash::of(secret);
        let key = Key {
            id: KeyId::of(&hash),
            tenant: default_tenant(),
            label: "bootstrap".to_owned(),
            grant: Grant::ALL,
            is_operator: true,
            calls_per_minute: None,
            created_at: self.sources.clock.now(),
            expires_at: None,
            last_used_at: None,
            revoked_at: None,
            replaced_by: None,
        };
        let mut created = record(&key.tenant, AuditKind::KeyCreated, key.created_at);
        (created.caller, created.key) = ("config".to_owned(), Some(key.id));
        let records = self.journal.beside(created);
        if self.sources.keys.add(&key, &hash, &records).await? {
            tracing::info!(key = %key.id, "the bootstrap key is an operator's key");
        }
        Ok(())
    }

    /// The issuer of tokens, if there is one.
    pub fn tokens(&self) -> Option<Arc<dyn Tokens>> {
        self.sources.tokens.clone()
    }

    /// Writes down who used a key and what was noted for the audit log, until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        let uses = self.uses.run(&*self.sources.keys, stop.clone());
        tokio::join!(uses, self.journal.run(stop));
    }

    /// What a tenant may use.
    pub(crate) async fn quota(&self, tenant: &TenantId) -> Result<Quota, Fault> {
        let read = async { Ok(Some(self.sources.tenants.quota(tenant).await?)) };
        let quota = self.quotas.get(tenant, FRESH, read).await?;
        Ok(quota.unwrap_or_default())
    }

    /// Turns that a tenant has stored, seconds ago: of one with very many sessions longer ago, so that counting never takes more than a small
    /// part of the time.
    pub(crate) async fn stored_turns(&self, tenant: &TenantId) -> Result<u64, Fault> {
        let read = Counted::by(self.sources.tenants.stored_turns(tenant));
        let fresh = |counted: &Counted<u64>| counted.fresh().clamp(FRESH, Duration::from_mins(1));
        let counted = self.stored.get_while(tenant, fresh, read).await?;
        Ok(counted.map_or(0, |counted| counted.value))
    }

    /// What a tenant has. The sum looks at every turn: it is up to fifty times as old as it took, ten minutes at most.
    pub(crate) async fn usage(&self, tenant: &TenantId) -> Result<Usage, Fault> {
        let read = Counted::by(self.sources.tenants.usage(tenant));
        let fresh = |counted: &Counted<Usage>| counted.fresh().min(Duration::from_mins(10));
        let counted = self.usages.get_while(tenant, fresh, read).await?;
        Ok(counted.map(|counted| counted.value).unwrap_or_default())
    }

    /// Spaces that a tenant has, seconds ago.
    pub(crate) async fn spaces(&self, tenant: &TenantId) -> Result<u64, Fault> {
        Ok(self.sources.tenants.spaces(tenant).await?)
    }

    /// Nothing that was read counts any more: something was changed here.
    pub(crate) fn read_anew(&self) {
        self.by_secret.clear();
        self.quotas.clear();
        self.any.clear();
    }

    /// Whether nobody needs a credential.
    pub async fn is_open(&self) -> Result<bool, Fault> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let read = async { Ok(Some(self.sources.keys.has_any().await?)) };
        let any = self.any.get(&(), FRESH, read).await?.unwrap_or_default();
        if any {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        Ok(!any)
    }

    async fn believe(&self, secret: &str) -> Result<Caller, Fault> {
        let hash = KeyHash::of(secret);
        // All of them, each in constant time: the time of an answer says nothing of any key.
        let configured = self.sources.configured.iter();
        let owner = configured.fold(None, |owner, (tenant, known)| match known.is(&hash) {
            true => Some(tenant),
            false => owner,
        });
        if let Some(tenant) = owner {
            return Ok(Caller {
                tenant: tenant.clone(),
                name: format!("config:{}", KeyId::of(&hash)),
                grant: Grant::ALL,
                is_operator: false,
                calls_per_minute: None,
                proof: Proof::Configured,
            });
        }
        if let Some(tokens) = &self.sources.tokens
            && secret.split('.').count() == 3
        {
            return tokens.verify(secret).await;
        }
        let key = self.valid(&hash).await?;
        self.uses.note(&key, self.sources.clock.now());
        Ok(Caller {
            tenant: key.tenant,
            name: key.id.to_string(),
            grant: key.grant,
            is_operator: key.is_operator,
            calls_per_minute: key.calls_per_minute,
            proof: Proof::Key(hash),
        })
    }

    /// The key with this hash, if it is worth something now.
    async fn valid(&self, hash: &KeyHash) -> Result<Key, Fault> {
        let read = self.sources.keys.find(hash);
        let Some(key) = self.by_secret.get(hash, FRESH, read).await? else {
            return Err(refused(
                "CREDENTIAL_UNKNOWN",
                "the API key is not known to this server",
            ));
        };
        match key.standing(self.sources.clock.now()) {
            Standing::Valid => Ok(key),
            Standing::Expired => Err(expired()),
            Standing::Revoked => Err(refused(
                "CREDENTIAL_REVOKED",
                "the API key was revoked: use another",
            )),
        }
    }
}

#[async_trait]
impl Authority for Access {
    async fn identify(&self, credential: Option<&str>) -> Result<Caller, Fault> {
        let is_open = self.is_open().await?;
        let caller = match credential {
            _ if is_open => anyone(),
            Some(secret) => self.believe(secret).await?,
            None => return Err(missing()),
        };
        self.count(&caller).await?;
        Ok(caller)
    }

    async fn renew(&self, caller: &Caller) -> Result<(), Fault> {
        match &caller.proof {
            Proof::Key(hash) => self.valid(hash).await.map(drop),
            Proof::Until(end) if *end <= self.sources.clock.now() => Err(expired()),
            Proof::Until(_) | Proof::Configured => Ok(()),
            Proof::Open => match self.is_open().await? {
                true => Ok(()),
                false => Err(missing()),
            },
        }
    }

    async fn count(&self, caller: &Caller) -> Result<(), Fault> {
        // A store that is away is no reason to refuse calls that may not need it.
        let quota = self.quota(&caller.tenant).await.unwrap_or_default();
        let key = caller.calls_per_minute.map(|limit| Line {
            what: "key",
            name: &caller.name,
            limit,
        });
        let tenant = quota.calls_per_minute.map(|limit| Line {
            what: "tenant",
            name: caller.tenant.as_str(),
            limit,
        });
        let lines: Vec<_> = key.into_iter().chain(tenant).collect();
        self.rates.count(&lines)
    }

    fn refused(&self, caller: &Caller, request_id: &str, method: &str, right: Right) {
        let mut refused = record(&caller.tenant, AuditKind::Refused, self.sources.clock.now());
        refused.caller.clone_from(&caller.name);
        request_id.clone_into(&mut refused.request_id);
        refused.detail = [
            ("method".to_owned(), method.to_owned()),
            ("right".to_owned(), right.to_string()),
        ]
        .into();
        self.journal.note(refused);
    }
}

/// The secret of a new key: 256 random bits, with a prefix that scanners of leaked secrets can look for.
pub fn new_secret() -> (String, KeyHash) {
    let (first, second) = (rand::random::<u128>(), rand::random::<u128>());
    let secret = format!("memfleet-{first:032x}{second:032x}");
    let hash = KeyHash::of(&secret);
    (secret, hash)
}

/// Whether who calls may see a space; work that nobody asked for sees every one.
pub(crate) fn reaches(context: &Context, space: &SpaceId) -> bool {
    let caller = context.caller.as_ref();
    caller.is_none_or(|caller| caller.grant.reaches(space.as_str()))
}

/// Whether who calls may see every space that there may ever be.
pub(crate) fn reaches_all(context: &Context) -> bool {
    let caller = context.caller.as_ref();
    caller.is_none_or(|caller| caller.grant.is_everywhere())
}

/// Everybody, while no key exists.
fn anyone() -> Caller {
    Caller {
        tenant: default_tenant(),
        name: "open".to_owned(),
        grant: Grant::ALL,
        is_operator: true,
        calls_per_minute: None,
        proof: Proof::Open,
    }
}

fn missing() -> Fault {
    refused(
        "CREDENTIAL_MISSING",
        "send an API key as `authorization: Bearer <key>`",
    )
}

fn expired() -> Fault {
    refused(
        "CREDENTIAL_EXPIRED",
        "the credential has expired: use another",
    )
}

fn refused(reason: &'static str, message: &'static str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, reason, message)
}

#[cfg(test)]
mod tests;
