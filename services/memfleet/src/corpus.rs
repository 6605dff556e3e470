//! A data set in a node: its conversations remembered as spaces, its turns found again by their ids.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::ids::{BatchId, ExternalId, SessionId, SpaceId, Speaker, TenantId, TurnId};
use memfleet_domain::turn::{Content, Media, Metadata, Role, Trust};
use memfleet_evaluation::{Conversation, Question, Turn};
use memfleet_gateway::Gateway;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::PageRequest;
use memfleet_ports::memory::{Memory, NewTurn, RememberRequest};
use memfleet_runtime::BoxError;

/// Turns a request.
const REQUEST: usize = 200;

/// Questions and the space they are asked of.
pub struct Corpus {
    /// The space.
    pub space: SpaceId,
    /// Evidence is by place.
    pub questions: Vec<Question>,
    /// The place of each turn.
    pub places: HashMap<TurnId, usize>,
}

/// A call of the bench.
pub fn call() -> Context {
    let tenant = TenantId::new("default").expect("`default` is a valid name");
    Context::new(tenant, Duration::from_hours(1))
}

impl Corpus {
    /// Remembers conversations in one space and waits until they are searchable.
    pub async fn remember(
        gateway: &Gateway,
        name: &str,
        conversations: &[Conversation],
    ) -> Result<Self, BoxError> {
        let space = SpaceId::new(name)?;
        let (mut places, mut questions, mut offset) = (HashMap::new(), Vec::new(), 0);
        for (number, conversation) in conversations.iter().enumerate() {
            let turns = conversation.turns.iter().enumerate();
            let turns = turns
                .map(|(place, turn)| new_turn(number, place, turn))
                .collect::<Result<Vec<_>, _>>()?;
            for (place, id) in accept(gateway, &space, turns)
                .await?
                .into_iter()
                .enumerate()
            {
                places.insert(id, offset + place);
            }
            questions.extend(conversation.questions.iter().map(|question| {
                Question {
                    evidence: question
                        .evidence
                        .iter()
                        .map(|place| place + offset)
                        .collect(),
                    ..question.clone()
                }
            }));
            offset += conversation.turns.len();
        }
        Ok(Self {
            space,
            questions,
            places,
        })
    }
}

/// Remembers turns, in order; their ids.
pub async fn accept(
    gateway: &Gateway,
    space: &SpaceId,
    turns: Vec<NewTurn>,
) -> Result<Vec<TurnId>, BoxError> {
    let (mut ids, mut last) = (Vec::with_capacity(turns.len()), None);
    for turns in turns.chunks(REQUEST) {
        let request = RememberRequest {
            space: space.clone(),
            turns: turns.to_vec(),
            idempotency_key: None,
        };
        let receipt = gateway.remember(&call(), request).await?;
        ids.extend(receipt.turns.iter().map(|turn| turn.id));
        last = Some(receipt.batch);
    }
    settled(gateway, space, last).await?;
    Ok(ids)
}

/// Waits until a write is visible. Writes are applied in order, so the last one stands for all.
pub async fn settled(
    gateway: &Gateway,
    space: &SpaceId,
    write: Option<BatchId>,
) -> Result<(), BoxError> {
    let page = PageRequest {
        limit: 1,
        after: None,
    };
    let write = write.into_iter().collect::<Vec<_>>();
    gateway
        .list(&call(), space, &TurnFilter::default(), page, &write)
        .await?;
    Ok(())
}

fn new_turn(conversation: usize, place: usize, turn: &Turn) -> Result<NewTurn, BoxError> {
    let role = role(turn.role);
    let media = |caption: &String| Media {
        uri: String::new(),
        mime_type: String::new(),
        caption: caption.clone(),
    };
    Ok(NewTurn {
        session: SessionId::new(format!("{conversation}/{}", turn.session))?,
        external_id: Some(ExternalId::new(format!("{conversation}/{place}"))?),
        speaker: Speaker::new(turn.speaker.as_str())?,
        role,
        content: Content {
            text: turn.text.clone(),
            media: turn.captions.iter().map(media).collect(),
        },
        event_time: turn.time,
        metadata: Metadata::new(),
        trust: Trust::of_role(role),
        replaces: None,
    })
}

fn role(role: memfleet_evaluation::Role) -> Role {
    match role {
        memfleet_evaluation::Role::User => Role::User,
        memfleet_evaluation::Role::Assistant => Role::Assistant,
        memfleet_evaluation::Role::System => Role::System,
        memfleet_evaluation::Role::Tool => Role::Tool,
    }
}
