//! What this process and its files take.

use std::path::Path;

/// Resident memory in bytes; 0 where the system does not say.
pub fn resident_memory() -> u64 {
    let Ok(statm) = std::fs::read_to_string("/proc/self/status") else {
        return 0;
    };
    let line = statm.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or(0)
        * 1024
}

/// Bytes of all files of a directory.
pub fn bytes_of_files(directory: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let metadata = entry?.metadata()?;
        bytes += if metadata.is_file() {
            metadata.len()
        } else {
            0
        };
    }
    Ok(bytes)
}
