//! `memfleet bench gates`: what the gates before the search (AMP items 42–58) do to utterances whose right answer is known.

mod report;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use memfleet_domain::assembly::GateOutcome;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_encoder::{Encoder, quantise};
use memfleet_gates::labelled::{self, Labelled};
use memfleet_gates::routing::{Exemplars, Query, Router, Routing};
use memfleet_gates::rules::{Before, Rules, Utterance};
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;

pub use report::Report;
use report::{FileReport, Judged};

use crate::cli::Error;

/// Arguments.
#[derive(Debug, Args)]
pub struct GatesArgs {
    /// Files of labelled utterances (docs/gates.md)
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Examples for gate 2 in place of the shipped ones
    #[arg(long, value_name = "TOML")]
    exemplars: Option<PathBuf>,
    /// Print the utterances that were judged wrongly
    #[arg(long)]
    show: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Judges every utterance of every file, one after the other as a node would.
pub fn measure(args: &GatesArgs, model: &ModelDirectory) -> Result<Report, Error> {
    let exemplars = match &args.exemplars {
        Some(path) => Exemplars::parse(&read(path)?).map_err(BoxError::from)?,
        None => Exemplars::shipped().clone(),
    };
    let gates = Gates::load(model, &exemplars)?;
    let files = args.files.iter().map(|path| {
        let lines = labelled::parse(&read(path)?).map_err(BoxError::from)?;
        let judged = lines.into_iter().map(|line| gates.judge(line));
        let judged = judged.collect::<Result<Vec<_>, _>>()?;
        Ok(FileReport::of(
            path.display().to_string(),
            &judged,
            args.show,
        ))
    });
    Ok(Report {
        files: files.collect::<Result<_, Error>>()?,
    })
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(Error::file(path.to_owned()))
}

/// Both gates and what they need.
struct Gates {
    encoder: Encoder,
    router: Router,
    space: EmbeddingSpace,
}

impl Gates {
    fn load(model: &ModelDirectory, exemplars: &Exemplars) -> Result<Self, BoxError> {
        let encoder = model.load(NonZeroUsize::MIN)?;
        let space = space(model);
        let texts = exemplars.texts().collect::<Vec<_>>();
        let vectors = encode(&encoder, &texts)?;
        let router = Router::new(exemplars, vectors, space.clone())?;
        Ok(Self {
            encoder,
            router,
            space,
        })
    }

    fn judge(&self, line: Labelled) -> Result<Judged, BoxError> {
        let started = Instant::now();
        let rules = Rules::shipped().judge(Utterance {
            text: &line.text,
            before: match line.has_history {
                true => Before::Turns,
                false => Before::Nothing,
            },
        });
        let by_rules = started.elapsed();
        let routing = match rules.outcome {
            GateOutcome::Pass => Some(self.route(&line.text)?),
            _ => None,
        };
        Ok(Judged {
            line,
            rules,
            routing,
            by_rules,
            by_both: started.elapsed(),
        })
    }

    fn route(&self, text: &str) -> Result<Routing, BoxError> {
        let vectors = encode(&self.encoder, &[text])?;
        Ok(self.router.route(Query {
            text,
            vector: vectors.first().map_or(&[], Vec::as_slice),
            space: &self.space,
        }))
    }
}

fn encode(encoder: &Encoder, texts: &[&str]) -> Result<Vec<Vec<i8>>, BoxError> {
    let encodings = encoder.encode(&encoder.tokenize(texts)?)?;
    let vectors = encodings
        .iter()
        .map(|encoding| quantise::sentence(&encoding.sentence));
    Ok(vectors.collect())
}

/// All vectors here are of one space; its name only has to be the same.
fn space(model: &ModelDirectory) -> EmbeddingSpace {
    EmbeddingSpace {
        model: model.path().display().to_string(),
        revision: String::new(),
        recipe: String::new(),
        projection: String::new(),
    }
}
