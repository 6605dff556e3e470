//! From turns to what is stored and embedded of them.

use crate::task::Task;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::store::{Result, StoreError};
use memfleet_retrieval::document::{Document, documents};

/// The passages of each turn of a batch, with the text to embed for each.
pub type Prepared = Vec<Vec<Document>>;

/// The passages of every batch, in the language whose tag stands at its place, made off the async threads.
pub async fn prepare(tasks: Vec<Task>, languages: Vec<Option<String>>) -> Result<Vec<Prepared>> {
    let batches = move || {
        let batches = tasks.iter().zip(&languages);
        batches
            .map(|(task, language)| prepare_batch(task, language.as_deref()))
            .collect()
    };
    let prepared = memfleet_background::compute(batches).await;
    prepared.ok_or_else(|| {
        StoreError::Unexpected("preparing turns stopped: see the log for the panic".into())
    })
}

fn prepare_batch(task: &Task, language: Option<&str>) -> Prepared {
    let analyzer = Analyzer::new(Language::tagged(language));
    let turns = task.batch.turns.iter();
    turns
        .map(|turn| {
            let text = turn.content.searchable_text();
            documents(turn.speaker.as_str(), &text, &analyzer)
        })
        .collect()
}
