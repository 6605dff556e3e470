//! Replies that were of use, for equal calls of the same tenant: same model, same prompt, same words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use blake3::Hasher;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::Call;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;

/// What a reply weighs besides its words.
const OVERHEAD: u64 = 128;
/// Size of a usual reply, from which the number of entries is guessed.
const USUAL: u64 = 1024;

/// How long a reply is kept.
pub const AGE: Duration = Duration::from_hours(1);

/// What a call is found by.
pub type Key = [u8; 32];

/// A reply as it is kept.
#[derive(Clone)]
struct Kept {
    tenant: TenantId,
    at: Instant,
    text: Arc<str>,
}

impl Kept {
    fn is_young(&self) -> bool {
        self.at.elapsed() < AGE
    }
}

#[derive(Clone)]
struct Length;

impl Weighter<Key, Kept> for Length {
    fn weight(&self, _: &Key, kept: &Kept) -> u64 {
        kept.text.len() as u64 + OVERHEAD
    }
}

/// Replies, within a bound of bytes and of age. They quote what they were asked about, so a tenant's go when one of its turns is
/// forgotten.
pub struct Replies {
    kept: Cache<Key, Kept, Length>,
    /// How often something was forgotten.
    forgets: AtomicU64,
}

impl Replies {
    /// At most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let entries = (bytes / USUAL) as usize;
        Self {
            kept: Cache::with_weighter(entries, bytes, Length),
            forgets: AtomicU64::new(0),
        }
    }

    /// What was said to an equal call.
    pub fn get(&self, key: &Key) -> Option<Arc<str>> {
        let kept = self.kept.get(key).filter(Kept::is_young);
        kept.map(|kept| kept.text)
    }

    /// Mark of a call that begins now, for [`Replies::put`].
    pub fn begin(&self) -> u64 {
        self.forgets.load(Ordering::SeqCst)
    }

    /// Keeps what was said, unless something was forgotten since the call began: it may have been asked about that.
    pub fn put(&self, key: Key, tenant: &TenantId, text: &str, began: u64) {
        let kept = Kept {
            tenant: tenant.clone(),
            at: Instant::now(),
            text: text.into(),
        };
        if self.begin() == began {
            self.kept.insert(key, kept);
        }
        // A forget may have come between the look and the insertion.
        if self.begin() != began {
            self.remove(&key);
        }
    }

    /// Lets go of it.
    pub fn remove(&self, key: &Key) {
        self.kept.remove(key);
    }

    /// Lets go of all of a tenant; of all tenants without one.
    pub fn forget(&self, tenant: Option<&TenantId>) {
        self.forgets.fetch_add(1, Ordering::SeqCst);
        self.kept
            .retain(|_, kept| tenant.is_some_and(|tenant| kept.tenant != *tenant));
    }

    /// Lets go of what is too old.
    pub fn expire(&self) {
        self.kept.retain(|_, kept| kept.is_young());
    }
}

/// What a call is found by.
pub fn key(tenant: &TenantId, model: &str, call: &Call) -> Key {
    let mut hasher = Hasher::new();
    let mut part = |text: &str| {
        hasher.update(&(text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    };
    part(tenant.as_str());
    part(model);
    part(&call.prompt.to_string());
    part(call.schema.as_deref().unwrap_or_default());
    for message in &call.messages {
        part(&format!("{:?}", message.voice));
        part(&message.text);
    }
    *hasher.finalize().as_bytes()
}
