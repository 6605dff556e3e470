//! Evaluation data sets (LoCoMo, the plain format) as conversations that a node remembers.

use memfleet_evaluation::Dataset;

use super::{Conversation, Located, format};
use crate::dataset::said;

/// The conversations in the text of a data set's file. The id of a turn there is its external id.
pub fn conversations(text: &str) -> Result<Vec<Conversation>, String> {
    let dataset = Dataset::parse(text).map_err(|error| error.to_string())?;
    Ok(dataset.conversations.iter().map(conversation).collect())
}

fn conversation(found: &memfleet_evaluation::Conversation) -> Conversation {
    let mut conversation = Conversation {
        name: found.id.clone(),
        ..Conversation::default()
    };
    for turn in &found.turns {
        let place = format!("conversation {}: message {}", found.id, turn.id);
        let turns = format::whole_text(&turn.searchable_text()).and_then(|()| {
            let said = said(turn, turn.session.clone(), turn.id.clone());
            said.turns().map_err(|error| format!("a name {error}"))
        });
        match turns {
            Ok(turns) => {
                let located = turns.into_iter().map(|turn| Located::new(&place, turn));
                conversation.turns.extend(located);
            }
            Err(problem) => conversation.left_out.push(Located::new(place, problem)),
        }
    }
    conversation
}
