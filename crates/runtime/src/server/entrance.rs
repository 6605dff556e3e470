//! Way of a call from its arrival to a place among the calls in progress. Before its caller is known a call holds a place among the
//! strangers of its address; once whoever authenticates names the caller, one of the caller's share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Extensions;
use tonic::{Code, Status};

use super::layer::retryable;
use super::methods::Method;
use super::places::{Full, Place, Places};

/// Part of the places before authentication that streams of health and reflection may hold beside them.
const WATCH_SHARE: usize = 4;

/// Places of a server.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    strangers: Places,
    /// Places of streams that nobody authenticates. They are held for as long as callers like, so they are
    /// not those in which calls wait for their authentication.
    watches: Places,
    calls: Places,
    streams: Places,
    bytes: Places,
    largest: usize,
}

impl Rooms {
    pub(super) fn new(options: &super::Options) -> Self {
        let largest = options
            .max_prompt_size
            .max(options.max_request_size)
            .as_usize();
        let memory = options.max_request_memory.as_usize();
        Self {
            strangers: Places::new(options.max_unauthenticated_calls),
            watches: Places::new((options.max_unauthenticated_calls / WATCH_SHARE).max(1)),
            calls: Places::new(options.max_concurrent_calls),
            streams: Places::new(options.max_concurrent_streams),
            bytes: Places::new(memory.max(largest.saturating_mul(4))),
            largest,
        }
    }

    /// Lets a call from this address as far as its authentication.
    pub(super) fn open(&self, peer: Option<IpAddr>, method: &Method) -> Result<Entrance, Status> {
        let streaming = method.streaming;
        let (places, limit) = match method.is_watch {
            true => (
                &self.watches,
                "a quarter of `server.max_unauthenticated_calls`",
            ),
            false => (&self.strangers, "`server.max_unauthenticated_calls`"),
        };
        let place = places.take(&address(peer), None);
        let place = place.map_err(|full| {
            let count = places.limit();
            let who = match full {
                Full::All => "the server",
                Full::Owner | Full::Member => "this address",
            };
            overloaded(&format!(
                "{who} has as many calls open whose caller is not known as it may ({limit} is {count})"
            ))
        })?;
        Ok(Entrance {
            places: match streaming {
                true => self.streams.clone(),
                false => self.calls.clone(),
            },
            streaming,
            bytes: self.bytes.clone(),
            largest: self.largest,
            held: Arc::new(Mutex::new(Some(Held {
                weight: self.bytes.none("", None),
                place,
            }))),
        })
    }
}

/// Takes a place for a call once its caller is known. In the extensions of the call's request.
#[derive(Debug, Clone)]
pub struct Entrance {
    places: Places,
    streaming: bool,
    bytes: Places,
    largest: usize,
    held: Arc<Mutex<Option<Held>>>,
}

/// Places of a call: its own, and those of the bytes of its request.
#[derive(Debug)]
pub(super) struct Held {
    weight: Place,
    place: Place,
}

impl Held {
    /// Name of the caller, who is known by an address or by tenant and credential.
    pub(super) fn caller(&self) -> String {
        match self.place.holder() {
            (owner, Some(member)) => format!("{owner}\n{member}"),
            (owner, None) => owner.to_owned(),
        }
    }
}

impl Entrance {
    /// [`Self::enter`] of the call with these extensions; a call that came in by another way needs no place.
    pub fn of(
        extensions: &Extensions,
        tenant: &str,
        credential: Option<&str>,
    ) -> Result<(), Status> {
        match extensions.get::<Self>() {
            Some(entrance) => entrance.enter(tenant, credential),
            None => Ok(()),
        }
    }

    /// A place for a call with this credential of this tenant, in exchange for the one that the call has; held until the answer of a
    /// single call begins or a stream ends. `OVERLOADED` where the share of the tenant or of the credential is used up.
    pub fn enter(&self, tenant: &str, credential: Option<&str>) -> Result<(), Status> {
        let place = self.places.take(tenant, credential);
        let place = place.map_err(|full| {
            let who = match full {
                Full::All => "the server",
                Full::Owner => "this tenant",
                Full::Member => "this credential",
            };
            let (kind, key) = match self.streaming {
                true => ("streams", "server.max_concurrent_streams"),
                false => ("calls", "server.max_concurrent_calls"),
            };
            let limit = self.places.limit();
            overloaded(&format!(
                "{who} has as many {kind} in progress as it may (`{key}` is {limit}, shared among tenants and their credentials)"
            ))
        })?;
        // A call that ended meanwhile holds nothing any more.
        if let Some(held) = &mut *self.held() {
            *held = Held {
                weight: self.bytes.none(tenant, credential),
                place,
            };
        }
        Ok(())
    }

    /// Counts bytes of the request that came in. Those of a single call are held until its answer begins; of a stream as many as its largest
    /// message may have, until its next message is waited for.
    pub(super) fn weigh(&self, bytes: usize) -> Result<(), Status> {
        let mut held = self.held();
        let Some(Held { weight, .. }) = &mut *held else {
            return Ok(());
        };
        let more = match self.streaming {
            true => bytes.min(self.largest.saturating_sub(weight.count())),
            false => bytes,
        };
        let limit = self.bytes.limit();
        weight.grow(more).map_err(|full| {
            let who = match full {
                Full::All => "the server",
                Full::Owner => "this tenant",
                Full::Member => "this credential",
            };
            overloaded(&format!(
                "{who} has requests of as many bytes in progress as it may (`server.max_request_memory` is {limit} bytes, shared among tenants and their credentials)"
            ))
        })
    }

    /// What came in of a stream was taken out.
    pub(super) fn unload(&self) {
        if self.streaming
            && let Some(held) = &mut *self.held()
        {
            held.weight.clear();
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The shell's hold on the place of a call: gives it back, however the call ends.
#[derive(Debug)]
pub(super) struct Hold(pub(super) Entrance);

impl Hold {
    pub(super) fn take(&self) -> Option<Held> {
        self.0.held().take()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.take();
    }
}

/// Name of an address among the owners of places. Whoever has one IPv6 address has the 64 bits after the prefix.
pub(crate) fn address(peer: Option<IpAddr>) -> String {
    match peer.map(|peer| peer.to_canonical()) {
        Some(IpAddr::V4(address)) => address.to_string(),
        Some(IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}")
        }
        None => String::new(),
    }
}

fn overloaded(message: &str) -> Status {
    let message = format!("{message}; try again shortly");
    retryable(Code::ResourceExhausted, "OVERLOADED", &message)
}
