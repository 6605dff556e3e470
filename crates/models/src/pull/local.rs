//! Source files that the user already has.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::hash;
use crate::registry::KnownModel;

/// Checks that all files are there and are the pinned ones.
pub(super) fn check(model: &KnownModel, folder: &Path) -> Result<PathBuf, Error> {
    for file in model.sources() {
        hash::check(&folder.join(&file.name), &file.sha256)?;
    }
    Ok(folder.to_owned())
}
