//! A pull that shows how it goes; `model pull`, `up` and `demo` share it.

use std::path::PathBuf;

use memfleet_domain::Fault;
use memfleet_models::{Event, ModelDirectory, Sources, default_root, known, pull};
use memfleet_retrieval::ModelCalibration;
use memfleet_runtime::BoxError;

use crate::cli::exit::Error;
use crate::config::Config;
use crate::models::{ConfiguredModels, unknown_model};
use crate::output::Progress;

/// Gives the model of this name in the folder `root`, fetched (from the folder `from`, else from the network) and built if
/// it is not there. Progress goes to standard error.
pub fn fetch(name: &str, root: PathBuf, from: Option<PathBuf>) -> Result<ModelDirectory, Error> {
    let Some(model) = known(name) else {
        let message = unknown_model(name).unwrap_or_default();
        return Err(Fault::invalid("name", message).into());
    };
    let sources = Sources {
        folder: from,
        ..Sources::new(root)
    };
    let mut bar = Shown {
        progress: None,
        file: String::new(),
    };
    Ok(pull(model, &sources, &mut |event: Event<'_>| bar.show(event)).map_err(BoxError::from)?)
}

/// The configured models, each fetched where it is missing. Without the multilingual one there is a
/// warning: a node that cannot reach the network starts all the same.
pub fn fetch_configured(config: &Config) -> Result<ConfiguredModels, Error> {
    let models = fetch_main(config)?;
    let multilingual = config.multilingual_model().and_then(|name| {
        let fetched = fetch(name, models.folder(), None);
        let warn = |error: &Error| {
            let main = models.name();
            let facts = match config.has_reader() {
                true => ", and facts are derived once it is here (`memfleet model pull`)",
                false => "",
            };
            eprintln!(
                "model.multilingual `{name}` is not here and could not be fetched ({error}): spaces of all languages get vectors of {main}{facts}"
            );
        };
        fetched.inspect_err(warn).ok()
    });
    Ok(ConfiguredModels {
        multilingual,
        ..models
    })
}

/// The same, with the multilingual model only where it is here.
pub fn fetch_main(config: &Config) -> Result<ConfiguredModels, Error> {
    let root = config.model.directory.clone().map_or_else(default_root, Ok);
    let root = root.map_err(BoxError::from)?;
    let main = fetch(&config.model.name, root.clone(), None)?;
    let multilingual = config.multilingual_model();
    let multilingual = multilingual.and_then(|name| ModelDirectory::open(&root.join(name)).ok());
    Ok(ConfiguredModels { main, multilingual })
}

/// Problem of a model that a node is to serve; absent: there is none.
pub fn unusable_model(name: &str) -> Option<String> {
    let message =
        || format!("`{name}` has no calibration in this version, so no search can use it");
    unknown_model(name).or_else(|| ModelCalibration::shipped(name).is_none().then(message))
}

/// The bar of the file that is on its way, if one is.
struct Shown {
    progress: Option<Progress>,
    file: String,
}

impl Shown {
    fn show(&mut self, event: Event<'_>) {
        if let Event::Received { file, bytes, total } = event {
            if self.file != file {
                file.clone_into(&mut self.file);
                self.progress = None;
            }
            return self
                .progress
                .get_or_insert_with(|| Progress::bytes(total, file))
                .reached(bytes);
        }
        self.progress = None;
        match event {
            Event::Waiting => eprintln!("another process is fetching this model; waiting for it"),
            Event::Trying { source } => eprintln!("fetching from {source}"),
            Event::Failed { source, reason } => eprintln!("{source} did not work: {reason}"),
            Event::Building => eprintln!("building the int8 model"),
            Event::Verifying => eprintln!("comparing it with the full-precision model"),
            Event::Received { .. } => {}
        }
    }
}
