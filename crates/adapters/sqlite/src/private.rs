//! Files that only their owner may read: memory is private, whatever the process's umask says.

use std::fs::OpenOptions;
use std::path::Path;

/// How a file is opened that may have to be made: a new one gets mode 0600 on Unix, one that is there keeps its own.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes an empty file unless there is one. SQLite fills it, and gives its WAL the same mode.
pub fn make(path: &Path) -> std::io::Result<()> {
    options().open(path).map(drop)
}
