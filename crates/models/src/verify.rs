//! Is a model on disk what it claims to be, and does it compute what it should?

use std::num::NonZeroUsize;

use crate::directory::ModelDirectory;
use crate::error::Error;
use crate::hash;
use crate::manifest::REFERENCE;
use crate::reference::Reference;

/// Lowest cosine to the full-precision model that a reference sentence may have.
pub const LEAST_COSINE: f32 = 0.99;

/// What a check found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verification {
    /// Files whose hash was compared.
    pub files: usize,
    /// Lowest cosine of the reference sentences.
    pub least_cosine: f32,
    /// Mean cosine of the reference sentences.
    pub mean_cosine: f32,
}

/// Compares all hashes with the manifest, then the vectors of fixed sentences with the full-precision model's.
pub fn verify(model: &ModelDirectory) -> Result<Verification, Error> {
    for (name, expected) in &model.manifest().files {
        hash::check(&model.path().join(name), expected)?;
    }
    let reference = Reference::read(&model.path().join(REFERENCE))?;
    let cosines = reference.cosines(&model.load(NonZeroUsize::MIN)?)?;
    let least_cosine = cosines.iter().copied().fold(1.0, f32::min);
    if least_cosine < LEAST_COSINE {
        return Err(Error::Inaccurate {
            found: least_cosine,
            least: LEAST_COSINE,
        });
    }
    let mean_cosine = cosines.iter().sum::<f32>() / cosines.len().max(1) as f32;
    Ok(Verification {
        files: model.manifest().files.len(),
        least_cosine,
        mean_cosine,
    })
}
