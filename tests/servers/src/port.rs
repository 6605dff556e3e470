//! Free ports of this machine, each handed out once.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result};
use rustix::process::getuid;

/// Below what systems give to outgoing connections: nobody gets the port of a server that is down between two starts.
const RANGE: Range<u16> = 20_000..32_000;

/// Locks of the ports that this process handed out, one file each. They are held until it ends, so that neither another
/// test nor its probe takes the port of a server that is about to start.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port of loopback that nobody listens on and that no other call, of any process, gets while this process lives.
pub(crate) fn free() -> Result<u16> {
    let folder = std::env::temp_dir().join(format!("memfleet-test-ports-{}", getuid().as_raw()));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let count = RANGE.end - RANGE.start;
    // Processes that look at the same time begin at different places.
    let begin = (RandomState::new().build_hasher().finish() % u64::from(count)) as u16;
    for step in 0..count {
        let port = RANGE.start + (begin + step) % count;
        let Some(lock) = reserve(&folder, port)? else {
            continue;
        };
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            let mut reserved = RESERVED.lock().expect("no holder panics");
            reserved.push(lock);
            return Ok(port);
        }
    }
    anyhow::bail!("no port of {RANGE:?} is free")
}

/// Locks the file of a port; nothing where another call holds it.
fn reserve(folder: &Path, port: u16) -> Result<Option<File>> {
    let path = folder.join(port.to_string());
    let file = File::options()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| path.display().to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn a_free_port_can_be_listened_on() {
        let port = free().unwrap();
        assert!(RANGE.contains(&port));
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn ports_of_calls_at_the_same_time_are_distinct() {
        let calls: Vec<_> = (0..64).map(|_| thread::spawn(free)).collect();
        let ports = calls.into_iter().map(|call| call.join().unwrap().unwrap());
        assert_eq!(ports.collect::<BTreeSet<u16>>().len(), 64);
    }

    #[test]
    fn a_reserved_port_is_not_reserved_again() {
        let folder = tempfile::tempdir().unwrap();
        let first = reserve(folder.path(), 20_000).unwrap();
        assert!(first.is_some());
        assert!(reserve(folder.path(), 20_000).unwrap().is_none());
        assert!(reserve(folder.path(), 20_001).unwrap().is_some());
        drop(first);
        assert!(reserve(folder.path(), 20_000).unwrap().is_some());
    }
}
