//! Keyed digests by which conversations without a name, their exchanges and captured messages are known again. Words
//! that are forgotten must not be found by guessing at digests that stay, so they are keyed with random bytes that the store
//! keeps for a space and removes with it. Those of versions before had no key; where they may still be, both are looked for.

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExchangeName, SpaceId, TenantId};
use memfleet_ports::context::Context;
use memfleet_ports::exchanges::Secret;
use quick_cache::sync::Cache;

use crate::Gateway;

/// Hexadecimal digits of a digest.
const LENGTH: usize = 32;

/// First letter of a digest with a key: no hexadecimal digit, so that stores tell it from one without.
const KEYED: &str = "k";

/// Spaces whose secrets are remembered.
const REMEMBERED: usize = 10_000;

/// A key of digests.
#[derive(Clone, Copy)]
pub(crate) struct Key(Secret);

impl Key {
    /// The key with these bytes.
    #[cfg(test)]
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// The digest that stands for one without a key.
    pub fn digest(&self, plain: &str) -> String {
        format!("{KEYED}{}", self.bare_digest(plain))
    }

    /// The hexadecimal digits of [`Self::digest`].
    pub fn bare_digest(&self, plain: &str) -> String {
        let digest = blake3::keyed_hash(&self.0, plain.as_bytes()).to_hex();
        digest[..LENGTH].to_owned()
    }
}

type Whose = (TenantId, Option<SpaceId>);

/// Keys of spaces, for as long as the store cannot say them.
pub struct Keys(Cache<Whose, Key>);

impl Default for Keys {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Gateway {
    /// The key of a space; without one that of what a tenant does in several.
    pub(crate) async fn digest_key(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
    ) -> Result<Key, Fault> {
        let key = Key(self.exchanges.secret(&context.tenant, space).await?);
        self.keys
            .0
            .insert((context.tenant.clone(), space.cloned()), key);
        Ok(key)
    }

    /// The name of an exchange that is known by what was said.
    pub(crate) async fn exchange_name(
        &self,
        context: &Context,
        plain: &ExchangeName,
    ) -> Result<ExchangeName, Fault> {
        let key = self.digest_key(context, None).await?;
        ExchangeName::new(key.digest(plain.as_str()))
            .map_err(|error| Fault::internal(error.to_string()))
    }

    /// Key of a space (or of the tenant) as it was read last, without a look into the store.
    pub(crate) fn known_digest_key(
        &self,
        context: &Context,
        space: Option<&SpaceId>,
    ) -> Option<Key> {
        let whose = (context.tenant.clone(), space.cloned());
        self.keys.0.get(&whose)
    }
}
