//! Vectors of the texts of requests, in batches of similar length.

use memfleet_domain::embedding::PassageVectors;
use memfleet_encoder::Tokens;

use crate::batches::batches;
use crate::choice::letters;
use crate::legibility::is_illegible;
use crate::model::{Model, TextKind};
use crate::names::{self, QueueNames};
use crate::queue::{Lane, QueuedModel, Request};
use crate::worker::timed;

/// Word pieces of a batch, padding included.
const BATCH_TOKENS: usize = 1024;

/// Embedding model behind a queue.
pub(crate) struct QueuedEmbedding(pub(crate) Box<dyn Model>);

impl QueuedModel for QueuedEmbedding {
    type Question = Vec<String>;
    type Answer = Vec<PassageVectors>;
    const NAMES: QueueNames = names::EMBEDDING;
    const TEXTS_A_ROUND: usize = 64;

    fn compute(
        &self,
        requests: &[Request<Self>],
        lane: Lane,
    ) -> Result<Vec<Vec<PassageVectors>>, String> {
        let mut vectors = self.vectors(requests, lane)?.into_iter();
        let answers = requests.iter().map(|request| request.question.len());
        Ok(answers
            .map(|count| vectors.by_ref().take(count).collect())
            .collect())
    }
}

impl QueuedEmbedding {
    /// Vectors of all texts of all requests, in order; those of callers who left in the middle may
    /// be empty.
    fn vectors(
        &self,
        requests: &[Request<Self>],
        lane: Lane,
    ) -> Result<Vec<PassageVectors>, String> {
        let Self(model) = self;
        let texts: Vec<&str> = requests
            .iter()
            .flat_map(|request| &request.question)
            .map(String::as_str)
            .collect();
        let owners: Vec<&Request<Self>> = requests
            .iter()
            .flat_map(|request| request.question.iter().map(move |_| request))
            .collect();
        let kind = match lane {
            Lane::Call => TextKind::Query,
            Lane::Background => TextKind::Passage,
        };
        let tokens = model.tokenize(kind, &texts);
        let tokens = tokens.map_err(|error| error.to_string())?;
        let illegible = match kind {
            TextKind::Passage => vec![false; texts.len()],
            TextKind::Query => illegible(&**model, &texts)?,
        };
        let lengths: Vec<usize> = tokens.iter().map(Tokens::len).collect();
        let mut vectors = vec![PassageVectors::default(); texts.len()];
        for batch in batches(&lengths, BATCH_TOKENS) {
            let batch: Vec<usize> = batch
                .into_iter()
                .filter(|&index| !owners[index].is_abandoned())
                .filter(|&index| !illegible[index])
                .collect();
            if batch.is_empty() {
                continue;
            }
            let members: Vec<Tokens> = batch.iter().map(|&index| tokens[index].clone()).collect();
            let answers = timed::<Self, _>(lane, || model.encode(kind, &members));
            let answers = answers.map_err(|error| error.to_string())?;
            let label = lane.label::<Self>();
            metrics::counter!(names::TEXTS, "lane" => label).increment(batch.len() as u64);
            let count: usize = batch.iter().map(|&index| lengths[index]).sum();
            metrics::counter!(names::TOKENS, "lane" => label).increment(count as u64);
            for (index, answer) in batch.into_iter().zip(answers) {
                vectors[index] = answer;
            }
        }
        Ok(vectors)
    }
}

/// Queries that the model cannot read: they have no vectors, and words decide.
fn illegible(model: &dyn Model, texts: &[&str]) -> Result<Vec<bool>, String> {
    let letters: Vec<String> = texts.iter().map(|text| letters(text)).collect();
    let borrowed: Vec<&str> = letters.iter().map(String::as_str).collect();
    let tokens = model.tokenize(TextKind::Query, &borrowed);
    let tokens = tokens.map_err(|error| error.to_string())?;
    let pairs = letters.iter().zip(&tokens);
    Ok(pairs
        .map(|(letters, tokens)| is_illegible(letters, tokens))
        .collect())
}
