//! Conversations of evaluation data sets (LoCoMo, the plain format) as turns that a node remembers.

use memfleet_domain::ids::{ExternalId, NameError, SessionId, Speaker};
use memfleet_domain::turn::{Content, Role, Trust};
use memfleet_evaluation::{Dataset, Turn};
use memfleet_ports::memory::NewTurn;

use super::Conversation;
use super::messages::media;

/// The conversations in the text of a data set's file.
pub fn conversations(text: &str) -> Result<Vec<Conversation>, String> {
    let dataset = Dataset::parse(text).map_err(|error| error.to_string())?;
    dataset
        .conversations
        .into_iter()
        .map(|conversation| {
            let turns = conversation.turns.into_iter().map(|turn| {
                let id = turn.id.clone();
                new_turn(turn).map_err(|error| {
                    format!(
                        "a name in message {id} of conversation {} {error}",
                        conversation.id
                    )
                })
            });
            Ok(Conversation {
                turns: turns.collect::<Result<_, String>>()?,
                name: conversation.id.clone(),
            })
        })
        .collect()
}

/// A turn of a data set; its id there is its external id.
pub fn new_turn(turn: Turn) -> Result<NewTurn, NameError> {
    let role = match turn.role {
        memfleet_evaluation::Role::User => Role::User,
        memfleet_evaluation::Role::Assistant => Role::Assistant,
        memfleet_evaluation::Role::System => Role::System,
        memfleet_evaluation::Role::Tool => Role::Tool,
    };
    // Data sets keep captions without the pictures: the caption is all there is to refer to.
    let captions = turn
        .captions
        .iter()
        .map(|caption| media(&format!("data:,{caption}"), "", caption));
    Ok(NewTurn {
        session: SessionId::new(turn.session)?,
        external_id: Some(ExternalId::new(turn.id)?),
        speaker: Speaker::new(turn.speaker)?,
        role,
        content: Content {
            media: captions.collect(),
            text: turn.text,
        },
        event_time: turn.time,
        metadata: std::collections::BTreeMap::new(),
        trust: Trust::of_role(role),
        replaces: None,
    })
}
