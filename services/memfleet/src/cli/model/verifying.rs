//! `memfleet model verify`: what lies on disk computes what it should.

use std::num::NonZeroUsize;
use std::path::Path;

use memfleet_models::{ModelDirectory, Verification, list, verify};
use memfleet_runtime::BoxError;
use memfleet_understanding::ReaderModel;
use serde_json::{Value, json};

use super::missing;
use crate::cli::exit::Error;
use crate::output::{Output, Palette, count};

/// Checks the models of a folder, or the one of this name.
pub fn run(root: &Path, name: Option<String>, output: &mut Output) -> Result<(), Error> {
    let mut here = list(root).map_err(BoxError::from)?;
    let wanted = |model: &ModelDirectory| {
        let name = name.as_ref();
        name.is_none_or(|name| *name == model.manifest().name)
    };
    here.retain(wanted);
    if here.is_empty() {
        let what = name.map_or_else(
            || "no model is".to_owned(),
            |name| format!("model {name} is not"),
        );
        return Err(missing(&format!("{what} in {}", root.display())));
    }
    for model in &here {
        let found = verify(model).map_err(BoxError::from)?;
        let reader = verify_reader(model)?;
        output.answer(
            || to_json(model, found, reader),
            |palette| sentence(model, found, reader, palette),
        )?;
    }
    Ok(())
}

/// Checks the reader of turns over a model, if it is its base; the reader's name.
fn verify_reader(model: &ModelDirectory) -> Result<Option<&'static str>, BoxError> {
    let manifest = model.manifest();
    if manifest.name != ReaderModel::BASE || manifest.revision != ReaderModel::BASE_REVISION {
        return Ok(None);
    }
    ReaderModel::open(&model.load(NonZeroUsize::MIN)?)?.check()?;
    Ok(Some(ReaderModel::NAME))
}

fn to_json(model: &ModelDirectory, found: Verification, reader: Option<&str>) -> Value {
    json!({
        "name": model.manifest().name,
        "files": found.files,
        "least_cosine": found.least_cosine,
        "mean_cosine": found.mean_cosine,
        "reader": reader,
    })
}

fn sentence(
    model: &ModelDirectory,
    found: Verification,
    reader: Option<&str>,
    palette: Palette,
) -> String {
    let reader = reader.map(|name| format!(", {name} reads turns over it"));
    format!(
        "{}  {}  {} match, cosine to full precision at least {:.4}, mean {:.4}{}",
        model.manifest().name,
        palette.good("sound"),
        count(found.files as u64, "file hash").replace("hashs", "hashes"),
        found.least_cosine,
        found.mean_cosine,
        reader.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use memfleet_models::testing::{default_model, multilingual_model};

    use super::*;

    #[test]
    fn the_reader_is_checked_over_its_base_alone() {
        let checked = verify_reader(&multilingual_model());
        assert_eq!(checked.unwrap(), Some(ReaderModel::NAME));
        assert_eq!(verify_reader(&default_model()).unwrap(), None);
    }
}
