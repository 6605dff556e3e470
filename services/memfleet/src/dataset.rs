//! Turns of evaluation data sets (LoCoMo, the plain format) as what a node takes.

use memfleet_domain::turn::Role;
use memfleet_evaluation::Turn;

use crate::said::{Said, media};

/// A turn of a data set under a session and an id.
pub fn said(turn: &Turn, session: String, id: String) -> Said {
    // Data sets keep captions without the pictures: the caption is all there is to refer to.
    let captions = turn.captions.iter();
    Said {
        session,
        id,
        speaker: turn.speaker.clone(),
        role: role(turn.role),
        text: turn.text.clone(),
        media: captions.map(|caption| media("", "", caption)).collect(),
        time: turn.time,
    }
}

fn role(role: memfleet_evaluation::Role) -> Role {
    match role {
        memfleet_evaluation::Role::User => Role::User,
        memfleet_evaluation::Role::Assistant => Role::Assistant,
        memfleet_evaluation::Role::System => Role::System,
        memfleet_evaluation::Role::Tool => Role::Tool,
    }
}
