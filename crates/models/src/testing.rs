//! For tests that need a real model.

use crate::directory::ModelDirectory;
use crate::registry::DEFAULT_MODEL;
use crate::root::default_root;

/// The default model in the default model folder.
///
/// # Panics
/// If it has not been pulled; tests do not fetch it by themselves.
pub fn default_model() -> ModelDirectory {
    let directory = default_root().and_then(|root| ModelDirectory::open(&root.join(DEFAULT_MODEL)));
    directory.unwrap_or_else(|error| {
        panic!("this test needs {DEFAULT_MODEL}: run `memfleet model pull` ({error})")
    })
}
