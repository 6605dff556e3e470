//! Evaluation data sets (LoCoMo, the plain format) as conversations that a node remembers.

use memfleet_evaluation::Dataset;

use super::Conversation;
use crate::dataset::said;

/// The conversations in the text of a data set's file. The id of a turn there is its external id.
pub fn conversations(text: &str) -> Result<Vec<Conversation>, String> {
    let dataset = Dataset::parse(text).map_err(|error| error.to_string())?;
    dataset.conversations.iter().map(conversation).collect()
}

fn conversation(found: &memfleet_evaluation::Conversation) -> Result<Conversation, String> {
    let mut turns = Vec::with_capacity(found.turns.len());
    for turn in &found.turns {
        let said = said(turn, turn.session.clone(), turn.id.clone()).turns();
        turns.extend(said.map_err(|error| {
            format!(
                "a name in message {} of conversation {} {error}",
                turn.id, found.id
            )
        })?);
    }
    Ok(Conversation {
        name: found.id.clone(),
        turns,
    })
}
