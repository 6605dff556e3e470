//! Free ports of this machine.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use anyhow::{Context, Result};

/// Below what systems give to outgoing connections: nobody gets the port of a server that is down between two starts.
const RANGE: Range<u16> = 20_000..32_000;

/// A port of loopback that nobody listens on.
pub(crate) fn free() -> Result<u16> {
    let count = RANGE.end - RANGE.start;
    // Processes that look at the same time begin at different places.
    let begin = (RandomState::new().build_hasher().finish() % u64::from(count)) as u16;
    (0..count)
        .map(|step| RANGE.start + (begin + step) % count)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .with_context(|| format!("no port of {RANGE:?} is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_port_can_be_listened_on() {
        let port = free().unwrap();
        assert!(RANGE.contains(&port));
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}
