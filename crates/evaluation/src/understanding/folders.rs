//! Files of the corpus, by part and writer.

use std::fs;
use std::path::{Path, PathBuf};

use super::LineError;

/// Parts of the corpus: to learn from, and to be scored on only.
const PARTS: [&str; 2] = ["train", "test"];

/// Texts or labels of one writer, all in one part of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterFolder<T> {
    /// Part of the corpus: the folder that holds that of the writer.
    pub part: String,
    /// Name of the writer: the folder.
    pub writer: String,
    /// The items, by file and place in the file.
    pub items: Vec<T>,
}

/// A corpus that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file or folder cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// A file has a line that is not of the format.
    #[error("{}: {error}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The line.
        error: LineError,
    },
}

/// Loads `SET/PART/WRITER/*.txt`. The reader gets the name of the file without its ending, and its
/// text.
pub(super) fn load<T>(
    set: &Path,
    reader: impl Fn(&str, &str) -> Result<Vec<T>, LineError>,
) -> Result<Vec<WriterFolder<T>>, CorpusError> {
    let mut writers = Vec::new();
    for part in PARTS {
        for folder in entries(&set.join(part))? {
            let mut items = Vec::new();
            for path in entries(&folder)?.into_iter().filter(|path| is_text(path)) {
                let text = fs::read_to_string(&path).map_err(|error| io_error(&path, error))?;
                let read = reader(&name(path.file_stem()), &text);
                items.extend(read.map_err(|error| CorpusError::Format { path, error })?);
            }
            writers.push(WriterFolder {
                part: part.to_owned(),
                writer: name(folder.file_name()),
                items,
            });
        }
    }
    Ok(writers)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CorpusError> {
    let listed = fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<Result<Vec<_>, _>>()
    });
    let mut listed = listed.map_err(|error| io_error(folder, error))?;
    listed.sort();
    Ok(listed)
}

fn io_error(path: &Path, error: std::io::Error) -> CorpusError {
    CorpusError::Io {
        path: path.to_owned(),
        error,
    }
}

fn is_text(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "txt")
}

fn name(part: Option<&std::ffi::OsStr>) -> String {
    part.unwrap_or_default().to_string_lossy().into_owned()
}
