//! Files of a repository on a model hub, at a pinned revision.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Event, Progress, download};
use crate::error::Error;
use crate::registry::{HubSource, KnownModel};

/// Where downloads lie until the model is built.
pub(super) const FOLDER: &str = "hub";

/// Downloads what is missing; gives the folder.
pub(super) fn fetch(
    model: &KnownModel,
    source: &HubSource,
    hub: &str,
    work: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, Error> {
    let folder = work.join(FOLDER);
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let agent = download::agent();
    for file in model.sources() {
        let url = format!(
            "{hub}/{}/resolve/{}/{}",
            source.repository, model.revision, file.name
        );
        let mut received = |bytes| {
            progress.event(Event::Received {
                file: &file.name,
                bytes,
                total: file.bytes,
            });
        };
        download::file(&agent, &url, &folder, file, &mut received)?;
    }
    Ok(folder)
}
