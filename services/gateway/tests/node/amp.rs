//! How memory enters prompts (AMP), item by item, where it takes a store, a search and a clock to show it.

mod excluding;
mod exemplars;
mod failing;
mod gating;
mod needs;
mod placing;
mod profile;
mod recording;
mod rendering;
mod sessions;
mod slow;

use memfleet_domain::ids::SessionId;
use memfleet_domain::turn::Role;
use memfleet_ports::assembly::{
    AssembleRequest, Assembled, Assembly, Content, Message, Part, PartKind, Prompt,
};
use memfleet_ports::memory::NewTurn;

use crate::assembling::assemble;
use crate::roles::{Node, acme, said};

/// A request for all memory that fits, of one space and a conversation.
pub fn prompted(messages: Vec<Message>) -> AssembleRequest {
    AssembleRequest {
        prompt: Prompt::Messages(messages),
        ..assemble("ada", "", 1_000)
    }
}

pub fn message(role: Role, text: &str) -> Message {
    Message {
        role,
        content: Content::Text(text.to_owned()),
    }
}

pub fn user(text: &str) -> Message {
    message(Role::User, text)
}

pub fn tool_result(text: &str) -> Message {
    let part = Part {
        kind: PartKind::ToolResult(text.to_owned()),
        cached: false,
    };
    Message {
        role: Role::User,
        content: Content::Parts(vec![part]),
    }
}

pub fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

pub fn said_in(name: &str, text: &str) -> NewTurn {
    NewTurn {
        session: session(name),
        ..said(text)
    }
}

pub async fn assembled(node: &Node, request: AssembleRequest) -> Assembled {
    node.gateway.assemble(&acme(), request).await.unwrap()
}

/// A node where Ada said something about a kettle on Monday, and about other things.
pub async fn kettle() -> Node {
    let node = Node::new().await;
    let texts = [
        "My kettle broke on Sunday",
        "The weather is fine",
        "I sold my kettle to Bob",
    ];
    node.told("ada", texts.map(said).to_vec()).await;
    node
}
