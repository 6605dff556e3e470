//! Way of a call from its arrival to a place among the calls in progress. Before its caller is known a call holds a place among the
//! strangers of its address; once whoever authenticates names the caller, one of the caller's share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http::Extensions;
use tonic::{Code, Status};

use super::layer::retryable;
use super::places::{Full, Place, Places};

/// Places of a server.
#[derive(Debug, Clone)]
pub(super) struct Rooms {
    strangers: Places,
    calls: Places,
    streams: Places,
}

impl Rooms {
    pub(super) fn new(options: &super::Options) -> Self {
        Self {
            strangers: Places::new(options.max_unauthenticated_calls),
            calls: Places::new(options.max_concurrent_calls),
            streams: Places::new(options.max_concurrent_streams),
        }
    }

    /// Lets a call from this address as far as its authentication.
    pub(super) fn open(&self, peer: Option<IpAddr>, streaming: bool) -> Result<Entrance, Status> {
        let place = self.strangers.take(&address(peer), None);
        let place = place.map_err(|full| {
            let limit = self.strangers.limit();
            let who = match full {
                Full::All => "the server",
                Full::Owner | Full::Member => "this address",
            };
            overloaded(&format!(
                "{who} has as many calls open whose caller is not known as it may (`server.max_unauthenticated_calls` is {limit})"
            ))
        })?;
        Ok(Entrance {
            places: match streaming {
                true => self.streams.clone(),
                false => self.calls.clone(),
            },
            streaming,
            place: Arc::new(Mutex::new(Some(place))),
        })
    }
}

/// Takes a place for a call once its caller is known. In the extensions of the call's request.
#[derive(Debug, Clone)]
pub struct Entrance {
    places: Places,
    streaming: bool,
    place: Arc<Mutex<Option<Place>>>,
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
        let mut held = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        // A call that ended meanwhile holds nothing any more.
        if held.is_some() {
            *held = Some(place);
        }
        Ok(())
    }
}

/// The shell's hold on the place of a call: gives it back, however the call ends.
#[derive(Debug)]
pub(super) struct Hold(pub(super) Entrance);

impl Hold {
    pub(super) fn take(&self) -> Option<Place> {
        let mut place = self.0.place.lock();
        place
            .as_mut()
            .unwrap_or_else(|poisoned| poisoned.get_mut())
            .take()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.take();
    }
}

/// Name of an address among the owners of places. Whoever has one IPv6 address has the 64 bits after the prefix.
pub(super) fn address(peer: Option<IpAddr>) -> String {
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
