//! Replies that were of use, for equal calls of the same tenant: same model, same prompt, same words.

use std::sync::Arc;

use blake3::Hasher;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::Call;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// What a reply weighs besides its words.
const OVERHEAD: u64 = 128;
/// Size of a usual reply, from which the number of entries is guessed.
const USUAL: u64 = 1024;

/// What a call is found by.
pub type Key = [u8; 32];

#[derive(Clone)]
struct Length;

impl Weighter<Key, Arc<str>> for Length {
    fn weight(&self, _: &Key, text: &Arc<str>) -> u64 {
        text.len() as u64 + OVERHEAD
    }
}

/// Replies, within a bound of bytes.
pub struct Replies(Cache<Key, Arc<str>, Length>);

impl Replies {
    /// At most this many bytes.
    pub fn new(bytes: u64) -> Self {
        let entries = (bytes / USUAL) as usize;
        Self(Cache::with_weighter(entries, bytes, Length))
    }

    /// What was said to an equal call.
    pub fn get(&self, key: &Key) -> Option<Arc<str>> {
        self.0.get(key)
    }

    /// Keeps what was said.
    pub fn put(&self, key: Key, text: &str) {
        self.0.insert(key, text.into());
    }

    /// Lets go of it.
    pub fn remove(&self, key: &Key) {
        self.0.remove(key);
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
