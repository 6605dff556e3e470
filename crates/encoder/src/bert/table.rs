//! Rows of bytes that are looked up by number. Those of a file beside the model are read when they
//! are needed: of a table of 250,000 rows a text touches a few. Read, not mapped: the system maps
//! whatever lies around a touched row as long as the file is in its cache, 70 MB after 500 rows,
//! and a file that is cut off later ends a read with an error and not the process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A table whose rows have one width.
pub(super) struct Table {
    width: usize,
    rows: usize,
    place: Place,
}

enum Place {
    Memory(Vec<u8>),
    File(FilePart),
}

/// Consecutive bytes of a file, which were all there when it was opened.
pub(super) struct FilePart {
    path: PathBuf,
    file: File,
    offset: u64,
    length: u64,
}

impl FilePart {
    /// Opens a file; the error says what is wrong with it.
    pub(super) fn open(path: &Path, offset: u64, length: u64) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > found) {
            return Err(format!(
                "{} has {found} bytes, {length} from byte {offset} are expected",
                path.display()
            ));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            offset,
            length,
        })
    }

    fn read(&self, at: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let read = self.file.read_exact_at(bytes, self.offset + at as u64);
        read.map_err(|error| Error::Inference(format!("{}: {error}", self.path.display())))
    }
}

impl Table {
    /// Rows that lie in memory; nothing if they do not fill whole ones.
    pub(super) fn of_bytes(bytes: Vec<u8>, width: usize) -> Option<Self> {
        let rows = whole_rows(bytes.len(), width)?;
        Some(Self {
            width,
            rows,
            place: Place::Memory(bytes),
        })
    }

    /// Rows that stay in a file; nothing if they do not fill whole ones.
    pub(super) fn of_file(part: FilePart, width: usize) -> Option<Self> {
        let rows = whole_rows(usize::try_from(part.length).ok()?, width)?;
        Some(Self {
            width,
            rows,
            place: Place::File(part),
        })
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// A row, read into `room` where it does not lie in memory.
    pub(super) fn row<'a>(&'a self, row: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        if row >= self.rows {
            return Err(Error::Shape(format!("no vector for word piece {row}")));
        }
        let at = row * self.width;
        match &self.place {
            Place::Memory(bytes) => Ok(&bytes[at..][..self.width]),
            Place::File(part) => {
                room.resize(self.width, 0);
                part.read(at, room)?;
                Ok(room)
            }
        }
    }
}

fn whole_rows(bytes: usize, width: usize) -> Option<usize> {
    (width > 0 && bytes.is_multiple_of(width)).then(|| bytes / width)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rows_of_a_file_are_those_of_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        let bytes: Vec<u8> = (0..=23).collect();
        fs::write(&path, &bytes).unwrap();
        let memory = Table::of_bytes(bytes[4..20].to_vec(), 4).unwrap();
        let file = Table::of_file(FilePart::open(&path, 4, 16).unwrap(), 4).unwrap();
        let (mut one, mut other) = (Vec::new(), Vec::new());
        assert_eq!((memory.rows(), file.rows()), (4, 4));
        for row in [3, 0, 2] {
            let expected = memory.row(row, &mut one).unwrap();
            assert_eq!(file.row(row, &mut other).unwrap(), expected);
        }
        assert!(memory.row(4, &mut one).is_err() && file.row(4, &mut other).is_err());
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused_when_it_is_opened_and_fails_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows");
        fs::write(&path, [1; 12]).unwrap();
        let reason = FilePart::open(&path, 0, 16).err().unwrap();
        assert!(reason.contains("has 12 bytes, 16"), "{reason}");
        assert!(FilePart::open(&path, u64::MAX, 16).is_err());
        let table = Table::of_file(FilePart::open(&path, 0, 12).unwrap(), 4).unwrap();
        fs::write(&path, [1; 6]).unwrap();
        assert!(table.row(0, &mut Vec::new()).is_ok());
        assert!(table.row(1, &mut Vec::new()).is_err());
    }

    #[test]
    fn rows_are_whole() {
        assert!(Table::of_bytes(vec![0; 6], 4).is_none());
        assert!(Table::of_bytes(vec![0; 6], 0).is_none());
    }
}
