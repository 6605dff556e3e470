//! A file to import. It is opened once: a pipe cannot be read again from its beginning.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use memfleet_rpc::jsonl;

use crate::cli::exit::Error;

/// Bytes that editors of some systems write before the first character.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An open file whose first line is known.
pub struct Source {
    first: Vec<u8>,
    rest: BufReader<File>,
    length: u64,
}

impl Source {
    /// Opens a file.
    pub fn open(file: &Path) -> Result<Self, Error> {
        let open = || {
            let opened = File::open(file)?;
            let length = opened.metadata()?.len();
            let (mut first, mut rest) = (Vec::new(), BufReader::new(opened));
            rest.read_until(b'\n', &mut first)?;
            if first.starts_with(BYTE_ORDER_MARK) {
                first.drain(..BYTE_ORDER_MARK.len());
            }
            Ok(Self {
                first,
                rest,
                length,
            })
        };
        open().map_err(Error::file(file))
    }

    /// Tells an export by its first line.
    pub fn is_export(&self) -> bool {
        std::str::from_utf8(&self.first).is_ok_and(|line| jsonl::read(line).is_ok())
    }

    /// Bytes of the file; 0 of a pipe.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// All of it.
    pub fn bytes(mut self) -> io::Result<Vec<u8>> {
        self.rest.read_to_end(&mut self.first)?;
        Ok(self.first)
    }

    /// Line by line.
    pub fn lines(self) -> impl Iterator<Item = io::Result<String>> {
        Cursor::new(self.first).chain(self.rest).lines()
    }
}
