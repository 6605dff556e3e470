//! Source files that the user already has.

use std::path::Path;

use crate::error::Error;
use crate::hash;
use crate::registry::{KnownModel, ModelSource};

/// The first source whose files are all in the folder; they are checked to be the pinned ones.
pub(super) fn find<'a>(model: &'a KnownModel, folder: &Path) -> Result<&'a ModelSource, Error> {
    let is_there = |source: &&ModelSource| {
        let mut files = source.files().into_iter();
        files.all(|file| folder.join(&file.name).exists())
    };
    let source = model.sources.iter().find(is_there);
    let source = source.ok_or_else(|| Error::NotInFolder {
        name: model.name.clone(),
        files: model.files(),
        folder: folder.to_owned(),
    })?;
    for file in source.files() {
        hash::check(&folder.join(&file.name), &file.sha256)?;
    }
    Ok(source)
}
