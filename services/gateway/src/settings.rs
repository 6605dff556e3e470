//! How memory enters the prompts of a tenant, as the tenant set it: read from the store where its revision says that something changed, and
//! kept. A document that cannot be read any more is passed over, and said to be.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memfleet_assembly::Template;
use memfleet_domain::Fault;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_ports::settings::{Setting, SettingKind, Settings};
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// How long a tenant's settings are used before the store is asked whether they changed.
const FRESH: Duration = Duration::from_secs(2);

/// Tenants whose settings are kept.
const TENANTS: usize = 10_000;

/// A document that is used, in its version.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Versioned<T> {
    /// Counts from 1; 0: there is none.
    pub version: u32,
    /// What it says.
    pub value: T,
}

/// All that a tenant set.
#[derive(Debug, Default)]
pub struct TenantSettings {
    /// By space; that of the tenant has none.
    pub policies: BTreeMap<Option<SpaceId>, Versioned<Policy>>,
    /// By name.
    pub templates: BTreeMap<String, Versioned<Template>>,
    /// By the name of the model.
    pub models: BTreeMap<String, Versioned<ModelProfile>>,
}

/// What a tenant set, when that was last known, and at which revision.
#[derive(Clone)]
struct Known {
    asked_at: Instant,
    revision: u64,
    settings: Arc<TenantSettings>,
}

/// The settings of every tenant.
pub struct SettingsCache {
    store: Arc<dyn Settings>,
    known: Cache<TenantId, Known>,
}

impl SettingsCache {
    /// Follows a store.
    pub fn new(store: Arc<dyn Settings>) -> Self {
        Self {
            store,
            known: Cache::new(TENANTS),
        }
    }

    /// Where they are kept.
    pub fn store(&self) -> &dyn Settings {
        &*self.store
    }

    /// What a tenant set, as it was two seconds ago at the earliest.
    pub async fn of(&self, tenant: &TenantId) -> Result<Arc<TenantSettings>, Fault> {
        let known = self.known.get(tenant);
        if let Some(known) = known.as_ref().filter(|it| it.asked_at.elapsed() < FRESH) {
            return Ok(known.settings.clone());
        }
        let asked_at = Instant::now();
        let revision = self.store.revision(tenant).await?;
        let settings = match known.filter(|known| known.revision == revision) {
            Some(known) => known.settings,
            None => Arc::new(TenantSettings::of(self.store.current(tenant).await?)),
        };
        let known = Known {
            asked_at,
            revision,
            settings: settings.clone(),
        };
        self.known.insert(tenant.clone(), known);
        Ok(settings)
    }

    /// Lets go of what was known: this process changed it.
    pub fn changed(&self, tenant: &TenantId) {
        self.known.remove(tenant);
    }
}

impl TenantSettings {
    fn of(documents: Vec<Setting>) -> Self {
        let mut settings = Self::default();
        for document in documents {
            if let Err(why) = settings.add(&document) {
                let (kind, name) = (document.key.kind, &document.key.name);
                tracing::warn!(
                    "{kind} `{name}` of version {} is not used: {why}",
                    document.version
                );
            }
        }
        settings
    }

    fn add(&mut self, document: &Setting) -> Result<(), String> {
        let body = document.body.as_deref().unwrap_or_default();
        let (version, name) = (document.version, document.key.name.to_string());
        match document.key.kind {
            SettingKind::Policy => {
                let value = policy(body)?;
                let space = document.key.space.clone();
                self.policies.insert(space, Versioned { version, value });
            }
            SettingKind::Template => {
                let value = Template::parse(body).map_err(|error| error.to_string())?;
                self.templates.insert(name, Versioned { version, value });
            }
            SettingKind::ModelProfile => {
                let value = serde_json::from_str(body).map_err(|error| error.to_string())?;
                self.models.insert(name, Versioned { version, value });
            }
            SettingKind::Exemplars => {}
        }
        Ok(())
    }
}

/// Reads a policy and refuses what none may say.
pub(crate) fn policy(body: &str) -> Result<Policy, String> {
    let policy: Policy = serde_json::from_str(body).map_err(|error| error.to_string())?;
    match policy.problems().first() {
        None => Ok(policy),
        Some(problem) => Err(format!("{} {}", problem.field, problem.description)),
    }
}
