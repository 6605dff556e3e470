//! SHA-256 of files, the hash that model hubs and package indexes publish.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::Error;

/// Lower-case hexadecimal SHA-256 of a file.
pub(crate) fn file(path: &Path) -> Result<String, Error> {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut hasher = Sha256::new();
        let mut block = vec![0; 1 << 16];
        loop {
            match file.read(&mut block)? {
                0 => break,
                count => hasher.update(&block[..count]),
            }
        }
        Ok(hexadecimal(&hasher.finalize()))
    };
    read().map_err(Error::file(path))
}

/// A digest in lower case.
pub(crate) fn hexadecimal(digest: &[u8]) -> String {
    let mut text = String::with_capacity(2 * digest.len());
    for byte in digest {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
    }
    text
}

/// Fails unless the file has this hash.
pub(crate) fn check(path: &Path, expected: &str) -> Result<(), Error> {
    let found = file(path)?;
    if found == expected {
        return Ok(());
    }
    Err(Error::WrongHash {
        file: path.to_owned(),
        found,
        expected: expected.to_owned(),
    })
}
