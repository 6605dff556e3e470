//! The keys of an issuer: fetched when they are first needed, again now and then, and when a token names one that is not known. An
//! issuer that is down does not matter as long as its keys are known and not too old.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use memfleet_domain::{Fault, FaultKind};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::fetch::Source;
use crate::refused;

/// After how long the keys are fetched again, behind the calls.
const REFRESH: Duration = Duration::from_mins(10);
/// How long keys count that cannot be fetched again.
const STALE: Duration = Duration::from_hours(1);

/// A key that the issuer signs with.
#[derive(Clone)]
pub struct Key {
    id: Option<String>,
    /// The one way in which it signs.
    pub algorithm: Algorithm,
    /// What verifies.
    pub key: DecodingKey,
}

/// The keys of an issuer.
#[derive(Clone)]
pub struct Keys(Arc<Shared>);

struct Shared {
    source: Source,
    pause: Duration,
    known: RwLock<Option<Set>>,
    /// When they were last fetched, or could not be.
    tried: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Set {
    keys: Arc<[Key]>,
    at: Instant,
}

impl Set {
    fn find(&self, id: Option<&str>) -> Option<Key> {
        let found = match (id, &*self.keys) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        };
        found.filter(|_| self.at.elapsed() < STALE).cloned()
    }
}

impl Keys {
    /// From this source, at most once in a `pause`.
    pub fn new(source: Source, pause: Duration) -> Self {
        Self(Arc::new(Shared {
            source,
            pause,
            known: RwLock::default(),
            tried: Mutex::default(),
        }))
    }

    /// The key that a token names; one that names none means the only one.
    pub async fn find(&self, id: Option<&str>) -> Result<Key, Fault> {
        let known = self.known();
        if let Some(set) = &known
            && let Some(key) = set.find(id)
        {
            if set.at.elapsed() > REFRESH {
                let keys = self.clone();
                tokio::spawn(async move { keys.refresh().await });
            }
            return Ok(key);
        }
        let is_fetched = self.refresh().await;
        match self.known().and_then(|set| set.find(id)) {
            Some(key) => Ok(key),
            None if is_fetched => Err(refused("names a key that its issuer does not have")),
            None => Err(Fault::new(
                FaultKind::Unavailable,
                "ISSUER_UNAVAILABLE",
                "the keys of the issuer of tokens cannot be fetched: see `auth.jwt` and the log of the gateway",
            )
            .retry_after(self.0.pause)),
        }
    }

    fn known(&self) -> Option<Set> {
        let known = self.0.known.read().unwrap_or_else(PoisonError::into_inner);
        known.clone()
    }

    /// Fetches the keys, unless that was tried just now; whether the last try went well.
    async fn refresh(&self) -> bool {
        let mut tried = self.0.tried.lock().await;
        let now = Instant::now();
        if let Some(last) = *tried
            && now < last + self.0.pause
        {
            return self.known().is_some_and(|set| set.at >= last);
        }
        *tried = Some(now);
        match self.0.source.fetch().await {
            Ok(set) => {
                let set = Set {
                    keys: set.keys.iter().filter_map(key).collect(),
                    at: now,
                };
                *self.0.known.write().unwrap_or_else(PoisonError::into_inner) = Some(set);
                true
            }
            Err(cause) => {
                tracing::warn!(cause, "the keys of the issuer of tokens cannot be fetched");
                false
            }
        }
    }
}

/// A key that we accept: only public ones, each for one way of signing.
fn key(jwk: &Jwk) -> Option<Key> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
            Algorithm::ES256
        }
        AlgorithmParameters::OctetKeyPair(curve) if curve.curve == EllipticCurve::Ed25519 => {
            Algorithm::EdDSA
        }
        _ => return None,
    };
    let signs = matches!(
        jwk.common.public_key_use,
        None | Some(PublicKeyUse::Signature)
    );
    signs.then_some(())?;
    Some(Key {
        id: jwk.common.key_id.clone(),
        algorithm,
        key: DecodingKey::from_jwk(jwk).ok()?,
    })
}

/// What a fetch gives.
pub type Fetched = Result<JwkSet, String>;
