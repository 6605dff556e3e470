//! A thread that computes the requests of one lane.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use memfleet_background::CallInProgress;
use memfleet_domain::embedding::PassageVectors;
use memfleet_domain::{Fault, FaultKind};
use memfleet_encoder::Tokens;

use crate::batches::batches;
use crate::choice::letters;
use crate::legibility::is_illegible;
use crate::model::{Model, TextKind};
use crate::names;
use crate::queue::{Lane, Queue, Request};

/// Word pieces of a batch, padding included.
const BATCH_TOKENS: usize = 1024;

/// Serves requests until the queue is closed; passages behind all that callers wait for.
pub(crate) fn run(queue: &Queue, lane: Lane, model: &dyn Model) {
    if lane == Lane::Passage {
        memfleet_background::yield_to_callers();
    }
    while let Some(requests) = queue.take(lane) {
        let _call = (lane == Lane::Query).then(CallInProgress::begin);
        serve(requests, lane, model);
    }
}

/// What a caller is told when the model or its thread is gone.
pub(crate) fn unavailable(message: &str) -> Fault {
    Fault::new(FaultKind::Unavailable, "EMBEDDER_UNAVAILABLE", message)
}

fn serve(requests: Vec<Request>, lane: Lane, model: &dyn Model) {
    let waited = requests.iter().map(|request| request.since.elapsed());
    waited.for_each(|wait| {
        metrics::histogram!(names::QUEUE_SECONDS, "lane" => lane.label()).record(wait);
    });
    // A panic inside the model fails these requests, not the worker.
    let outcome = catch_unwind(AssertUnwindSafe(|| compute(&requests, lane, model)));
    match outcome.unwrap_or_else(|_| Err("panic".to_owned())) {
        Ok(mut vectors) => {
            for request in requests {
                let own = vectors.drain(..request.texts.len()).collect();
                // The caller may have left meanwhile; then there is nobody to answer.
                let _ = request.answer.send(Ok(own));
            }
        }
        Err(error) => {
            tracing::error!(
                error,
                lane = lane.label(),
                requests = requests.len(),
                "texts could not be embedded"
            );
            for request in requests {
                let _ = request
                    .answer
                    .send(Err(unavailable("the embedding model failed")));
            }
        }
    }
}

/// Vectors of all texts of all requests, in order; those of callers who left in the middle may be empty.
fn compute(
    requests: &[Request],
    lane: Lane,
    model: &dyn Model,
) -> Result<Vec<PassageVectors>, String> {
    let texts: Vec<&str> = requests
        .iter()
        .flat_map(|request| &request.texts)
        .map(String::as_str)
        .collect();
    let owners: Vec<&Request> = requests
        .iter()
        .flat_map(|request| request.texts.iter().map(move |_| request))
        .collect();
    let kind = match lane {
        Lane::Query => TextKind::Query,
        Lane::Passage => TextKind::Passage,
    };
    let tokens = model.tokenize(kind, &texts);
    let tokens = tokens.map_err(|error| error.to_string())?;
    let illegible = match lane {
        Lane::Passage => vec![false; texts.len()],
        Lane::Query => illegible(model, &texts)?,
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
        let started = Instant::now();
        let answers = model
            .encode(kind, &members)
            .map_err(|error| error.to_string())?;
        metrics::histogram!(names::INFERENCE_SECONDS, "lane" => lane.label())
            .record(started.elapsed());
        metrics::counter!(names::TEXTS, "lane" => lane.label()).increment(batch.len() as u64);
        let count: usize = batch.iter().map(|&index| lengths[index]).sum();
        metrics::counter!(names::TOKENS, "lane" => lane.label()).increment(count as u64);
        for (index, answer) in batch.into_iter().zip(answers) {
            vectors[index] = answer;
        }
    }
    Ok(vectors)
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
