//! The keys of an issuer: fetched when one is first needed, from then on every ten minutes, and when a token names one that is not
//! known. One fetch at a time, by a task of its own: callers wait for it, and one that leaves does not end it. An issuer that is down
//! does not matter as long as its keys are known and not too old.

use std::sync::{Arc, Weak};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use memfleet_domain::{Fault, FaultKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::fetch::Source;
use crate::{UNAVAILABLE, refused};

/// After how long the keys are fetched again.
const REFRESH: Duration = Duration::from_mins(10);
/// The same after a fetch that failed.
const RETRY: Duration = Duration::from_secs(30);
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
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    known: Option<Set>,
    is_fetching: bool,
    /// When the last fetch ended, and what went wrong.
    last: Option<(Instant, Option<String>)>,
}

struct Set {
    keys: Vec<Key>,
    at: Instant,
}

impl State {
    fn find(&self, id: Option<&str>) -> Option<Key> {
        let set = self.known.as_ref();
        let set = set.filter(|set| set.at.elapsed() < STALE)?;
        let found = match (id, &*set.keys) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        };
        found.cloned()
    }

    fn trouble(&self) -> Option<&str> {
        let (_, trouble) = self.last.as_ref()?;
        trouble.as_deref()
    }
}

impl Keys {
    /// From this source, at most once in a `pause`.
    pub fn new(source: Source, pause: Duration) -> Self {
        Self(Arc::new(Shared {
            source,
            pause,
            state: watch::Sender::default(),
        }))
    }

    /// The key that a token names; one that names none means the only one.
    pub async fn find(&self, id: Option<&str>) -> Result<Key, Fault> {
        if let Some(key) = self.0.state.borrow().find(id) {
            return Ok(key);
        }
        self.fetched().await;
        let state = self.0.state.borrow();
        match (state.find(id), state.trouble()) {
            (Some(key), _) => Ok(key),
            (None, None) => Err(refused("names a key that its issuer does not have")),
            (None, Some(_)) => Err(Fault::new(
                FaultKind::Unavailable,
                UNAVAILABLE,
                "the keys of the issuer of tokens cannot be fetched: see `auth.jwt` and the log of the gateway",
            )
            .retry_after(self.0.pause)),
        }
    }

    /// Why the keys could not be fetched the last time; that is now where they never were.
    pub async fn trouble(&self) -> Option<String> {
        let was_fetched = self.0.state.borrow().last.is_some();
        if !was_fetched {
            self.fetched().await;
        }
        self.0.state.borrow().trouble().map(str::to_owned)
    }

    /// Has the keys fetched, unless that was done just now, and waits for it.
    async fn fetched(&self) {
        let mut state = self.0.state.subscribe();
        let is_first = state.borrow().last.is_none();
        if self.0.begin() {
            let shared = self.0.clone();
            tokio::spawn(async move {
                shared.fetch().await;
                let had = Arc::downgrade(&shared);
                drop(shared);
                if is_first {
                    refresh(had).await;
                }
            });
        }
        // The sender is here.
        let _ended = state.wait_for(|state| !state.is_fetching).await;
    }
}

/// Fetches again and again, for as long as somebody has the keys.
async fn refresh(shared: Weak<Shared>) {
    loop {
        let has_failed = match shared.upgrade() {
            Some(shared) => shared.state.borrow().trouble().is_some(),
            None => return,
        };
        sleep(if has_failed { RETRY } else { REFRESH }).await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if shared.begin() {
            shared.fetch().await;
        }
    }
}

impl Shared {
    /// Whether a fetch is due, which is then under way.
    fn begin(&self) -> bool {
        self.state.send_if_modified(|state| {
            let last = state.last.as_ref();
            let is_due = last.is_none_or(|(at, _)| at.elapsed() >= self.pause);
            let begins = is_due && !state.is_fetching;
            state.is_fetching |= begins;
            begins
        })
    }

    async fn fetch(&self) {
        let fetched = self.source.fetch().await;
        if let Err(cause) = &fetched {
            tracing::warn!(cause, "the keys of the issuer of tokens cannot be fetched");
        }
        self.state.send_modify(|state| {
            let at = Instant::now();
            state.is_fetching = false;
            state.last = Some((at, fetched.as_ref().err().cloned()));
            if let Ok(set) = fetched {
                let keys = set.keys.iter().filter_map(key).collect();
                state.known = Some(Set { keys, at });
            }
        });
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
