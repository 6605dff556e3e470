//! One process a database: two nodes on one file would hand out the same queue rows twice.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use memfleet_ports::store::StoreError;

use crate::private;

/// Held as long as the store is open; the operating system releases it when the process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes `<database>.lock`, or says who is in the way.
    pub fn take(database: &Path) -> Result<Self, StoreError> {
        let path = path_of(database);
        let refused =
            |cause: std::io::Error| StoreError::Unavailable(format!("{}: {cause}", path.display()));
        let file = private::options().open(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Unavailable(format!(
                "{} is in use by another memfleet process (it holds {})",
                database.display(),
                path.display()
            ))),
            Err(TryLockError::Error(cause)) => Err(refused(cause)),
        }
    }
}

fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
