//! How memory enters the prompts of a tenant, as the tenant set it: read from the store where its revision says that something changed, and
//! kept. A document that cannot be read is passed over, and said to be; but for a policy, without which nothing is injected: a gateway that is older
//! than the document must not go on without the redactions in it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memfleet_assembly::Template;
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::{Fault, FaultKind};
use memfleet_language::Language;
use memfleet_ports::settings::{Setting, SettingKind, Settings};
use memfleet_ports::store::StoreError;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::{Instant, timeout};

use crate::assemble::Examples;

/// How long a tenant's settings are used before the store is asked whether they changed.
const FRESH: Duration = Duration::from_secs(2);
/// How long they count while the store cannot be reached, as long as the keys of callers do …
const STALE: Duration = Duration::from_mins(5);
/// … how long it may take to answer …
const PATIENCE: Duration = Duration::from_secs(1);
/// … and after which pause it is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes of documents that are kept; a tenant that does not fit is read at each call.
const KEPT: u64 = 256 << 20;

/// Tenants whose settings are kept, about.
const TENANTS: usize = 1_000;

/// The examples for spaces whose language has none of its own.
const DEFAULT_EXAMPLES: &str = "default";

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
    /// Policies that cannot be read, and why.
    unreadable: BTreeMap<Option<SpaceId>, String>,
    /// By language, or [`DEFAULT_EXAMPLES`].
    examples: BTreeMap<String, Arc<Examples>>,
}

/// What a tenant set, when that was last known, and at which revision.
#[derive(Clone)]
struct Known {
    asked_at: Instant,
    revision: u64,
    settings: Arc<TenantSettings>,
    /// Of all documents.
    bytes: usize,
}

/// Weighs settings by the text that they were read from.
#[derive(Clone)]
struct Bytes;

impl Weighter<TenantId, Known> for Bytes {
    fn weight(&self, _: &TenantId, known: &Known) -> u64 {
        known.bytes as u64 + 1024
    }
}

/// The settings of every tenant.
pub struct SettingsCache {
    store: Arc<dyn Settings>,
    known: Cache<TenantId, Known, Bytes>,
    /// Until when the store is not asked again, and what it said.
    pause: Mutex<Option<(Instant, Fault)>>,
}

/// What a tenant set, as far as it can be known.
pub struct Lately {
    /// What it is.
    pub settings: Arc<TenantSettings>,
    /// Whether the store said so; else it is away, and they are as they were some minutes ago at the earliest.
    pub is_present: bool,
}

impl SettingsCache {
    /// Follows a store.
    pub fn new(store: Arc<dyn Settings>) -> Self {
        Self {
            store,
            known: Cache::with_weighter(TENANTS, KEPT, Bytes),
            pause: Mutex::default(),
        }
    }

    /// Where they are kept.
    pub fn store(&self) -> &dyn Settings {
        &*self.store
    }

    /// What a tenant set, as it was two seconds ago at the earliest.
    pub async fn of(&self, tenant: &TenantId) -> Result<Arc<TenantSettings>, Fault> {
        match self.no_older_than(FRESH, tenant) {
            Some(settings) => Ok(settings),
            None => self.ask(tenant).await,
        }
    }

    /// The same; while the store is away, what was known of it lately. What was not, is not: who would go on without redactions that may
    /// be set?
    pub async fn lately(&self, tenant: &TenantId) -> Result<Lately, Fault> {
        let (settings, is_present) = match self.of(tenant).await {
            Ok(settings) => (settings, true),
            Err(fault) if fault.kind == FaultKind::Unavailable => {
                (self.no_older_than(STALE, tenant).ok_or(fault)?, false)
            }
            Err(fault) => return Err(fault),
        };
        Ok(Lately {
            settings,
            is_present,
        })
    }

    fn no_older_than(&self, age: Duration, tenant: &TenantId) -> Option<Arc<TenantSettings>> {
        let known = self.known.get(tenant);
        known
            .filter(|it| it.asked_at.elapsed() < age)
            .map(|it| it.settings)
    }

    /// Asks the store, unless it did not answer a moment ago.
    async fn ask(&self, tenant: &TenantId) -> Result<Arc<TenantSettings>, Fault> {
        let pause = || self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        let paused = pause().clone().filter(|(end, _)| Instant::now() < *end);
        if let Some((_, fault)) = paused {
            return Err(fault);
        }
        let late = || StoreError::Unavailable("it does not answer".to_owned()).into();
        let read = timeout(PATIENCE, self.now(tenant)).await;
        let read = read.unwrap_or_else(|_| Err(late()));
        if let Err(fault) = &read
            && fault.kind == FaultKind::Unavailable
        {
            *pause() = Some((Instant::now() + PAUSE, fault.clone()));
        }
        read
    }

    /// What a tenant set, as it is now.
    pub async fn now(&self, tenant: &TenantId) -> Result<Arc<TenantSettings>, Fault> {
        let known = self.known.get(tenant);
        let asked_at = Instant::now();
        let revision = self.store.revision(tenant).await?;
        let known = match known.filter(|known| known.revision == revision) {
            Some(known) => Known { asked_at, ..known },
            None => {
                let documents = self.store.current(tenant).await?;
                let bodies = documents.iter().filter_map(|it| it.body.as_ref());
                Known {
                    asked_at,
                    revision,
                    bytes: bodies.map(String::len).sum(),
                    settings: Arc::new(TenantSettings::of(documents)),
                }
            }
        };
        let settings = known.settings.clone();
        self.known.insert(tenant.clone(), known);
        Ok(settings)
    }

    /// Lets go of what was known: this process changed it.
    pub fn changed(&self, tenant: &TenantId) {
        self.known.remove(tenant);
    }
}

impl TenantSettings {
    /// The tenant's examples of gate 2 for a space of this language: those of the language, else those for all others.
    pub(crate) fn examples(&self, language: Option<&str>) -> Option<&Arc<Examples>> {
        let language = Language::tagged(language).code();
        let own = self.examples.get(language);
        own.or_else(|| self.examples.get(DEFAULT_EXAMPLES))
    }

    /// The policies of spaces, in their order; what was not set says nothing.
    pub(crate) fn of_spaces<'s>(
        &'s self,
        spaces: &'s [SpaceId],
    ) -> impl Iterator<Item = Policy> + 's {
        let of = |space: &SpaceId| self.policies.get(&Some(space.clone()));
        spaces
            .iter()
            .map(move |space| of(space).map(|it| it.value.clone()).unwrap_or_default())
    }

    /// Whether the policies of these spaces, and that of the tenant, can be read.
    pub(crate) fn readable(&self, spaces: &[SpaceId]) -> Result<(), Fault> {
        let mut all = spaces.iter().cloned().map(Some).chain([None]);
        let broken = all.find_map(|space| self.unreadable.get_key_value(&space));
        let Some((space, why)) = broken else {
            return Ok(());
        };
        let whose = space
            .as_ref()
            .map_or("the tenant".to_owned(), |space| format!("space `{space}`"));
        Err(Fault::new(
            FaultKind::Unavailable,
            "POLICY_UNREADABLE",
            format!(
                "the policy of {whose} cannot be read by this version: {why}. Update this server, or put the policy again"
            ),
        ))
    }

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
                let space = document.key.space.clone();
                let mut value = policy(body).inspect_err(|why| {
                    self.unreadable.insert(space.clone(), why.clone());
                })?;
                // They are for what is derived: an assembly has no use for them.
                value.topics = None;
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
            SettingKind::Exemplars => {
                let examples = Examples::parse(body, format!("{name} {version}"));
                let examples = examples.map_err(|error| error.to_string())?;
                self.examples.insert(name, Arc::new(examples));
            }
        }
        Ok(())
    }
}

/// Whether examples may have this name; the names that they may have where not.
pub(crate) fn names_examples(name: &str) -> Result<(), String> {
    if name == DEFAULT_EXAMPLES || Language::of_code(name).is_some() {
        return Ok(());
    }
    let codes = Language::ALL.map(Language::code).join(", ");
    Err(format!(
        "must be `{DEFAULT_EXAMPLES}` or the language of spaces, one of {codes}; `und` stands for every other language"
    ))
}

/// Reads a policy and refuses what none may say.
pub(crate) fn policy(body: &str) -> Result<Policy, String> {
    let policy: Policy = serde_json::from_str(body).map_err(|error| error.to_string())?;
    match policy.problems().first() {
        None => Ok(policy),
        Some(problem) => Err(format!("{} {}", problem.field, problem.description)),
    }
}
