//! `memfleet bench relevance`: the coefficients of a hit's relevance, and how far a threshold on it can be trusted.
//!
//! Every question is asked once, of its conversation and, where one session answers it, of that session alone: spaces are small when
//! they are young. Each space is also asked what it has no answer to: the adversarial questions of a data set that has some, and
//! questions of the next space. What a file shows is told by coefficients that were fitted on other conversations.

mod asking;
mod fitting;
mod report;

use std::path::PathBuf;

use clap::Args;
use memfleet_evaluation::Dataset;
use memfleet_retrieval::Relevance;
use memfleet_runtime::BoxError;

use crate::models::ConfiguredModels;
use asking::File;
use fitting::{fit, judge};
use report::{Report, ViewReport};

/// Arguments.
#[derive(Debug, Args)]
pub struct RelevanceArgs {
    /// Data sets with annotated evidence to fit on; each counts the same, however many questions it has
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Data set that is measured but not fitted on; repeatable
    #[arg(long, value_name = "FILE")]
    unseen: Vec<PathBuf>,
    /// Write what was found to this file, as comma-separated values: a line a turn
    #[arg(long, value_name = "OUT")]
    clues: Option<PathBuf>,
    /// Write the fitted coefficients to this file, in the form of `relevance.toml` of a model in
    /// crates/retrieval/data
    #[arg(long, value_name = "OUT")]
    coefficients: Option<PathBuf>,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Measures, fits, and writes the coefficients where asked.
pub async fn measure(args: &RelevanceArgs, models: &ConfiguredModels) -> Result<Report, BoxError> {
    let mut files = Vec::with_capacity(args.files.len() + args.unseen.len());
    for path in args.files.iter().chain(&args.unseen) {
        let name = path.display().to_string();
        files.push(File::ask(name, models, &Dataset::load(path)?).await?);
    }
    if let Some(path) = &args.clues {
        std::fs::write(path, asking::table(&files))?;
    }
    let fitted_on = args.files.len();
    let base = models.calibration().relevance;
    let (fitted, views) =
        tokio::task::spawn_blocking(move || judged(&files, fitted_on, &base)).await?;
    if let Some(path) = &args.coefficients {
        std::fs::write(path, toml::to_string(&fitted)?)?;
    }
    Ok(Report::new(&fitted, views))
}

/// The scorer fitted on the first files, under the name of `base`, and what it is worth on every
/// file.
fn judged(files: &[File], fitted_on: usize, base: &Relevance) -> (Relevance, Vec<ViewReport>) {
    let (seen, unseen) = files.split_at(fitted_on);
    let fitted = fit(seen, None);
    let mut views = Vec::new();
    for (at, file) in seen.iter().enumerate() {
        let held_out = |conversation| fit(seen, Some((at, conversation)));
        let models: Vec<_> = (0..file.conversations()).map(held_out).collect();
        views.extend(report::of(file, false, |conversation, asked| {
            judge(&models[conversation], asked)
        }));
    }
    for file in unseen {
        views.extend(report::of(file, true, |_, asked| judge(&fitted, asked)));
    }
    (fitting::scorer(&fitted, base), views)
}
