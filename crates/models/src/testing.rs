//! For tests that need a real model.

use crate::directory::ModelDirectory;
use crate::registry::{DEFAULT_MODEL, MULTILINGUAL_MODEL};
use crate::root::default_root;

/// The default model in the default model folder.
///
/// # Panics
/// If it has not been pulled; tests do not fetch it by themselves.
pub fn default_model() -> ModelDirectory {
    pulled(DEFAULT_MODEL)
}

/// The multilingual model in the default model folder.
///
/// # Panics
/// If it has not been pulled; tests do not fetch it by themselves.
pub fn multilingual_model() -> ModelDirectory {
    pulled(MULTILINGUAL_MODEL)
}

fn pulled(name: &str) -> ModelDirectory {
    let directory = default_root().and_then(|root| ModelDirectory::open(&root.join(name)));
    directory.unwrap_or_else(|error| {
        panic!("this test needs {name}: run `memfleet model pull` ({error})")
    })
}
