//! A data set in a node: its conversations remembered as spaces, its turns found again by their ids.

use std::collections::HashMap;
use std::time::Duration;

use memfleet_domain::ids::{BatchId, SpaceId, TenantId, TurnId};
use memfleet_domain::turn::Content;
use memfleet_evaluation::{Conversation, Question};
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Memory, NewTurn, PageRequest, RememberRequest};
use memfleet_runtime::BoxError;

use crate::dataset::said;
use crate::patience;

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
    /// Of all that was said.
    pub characters: usize,
}

/// A call of the bench.
pub fn call() -> Context {
    let tenant = TenantId::new("default").expect("`default` is a valid name");
    Context::new(tenant, Duration::from_hours(1))
}

impl Corpus {
    /// Remembers conversations in one space and waits until they are searchable.
    pub async fn remember(
        memory: &dyn Memory,
        name: &str,
        conversations: &[Conversation],
    ) -> Result<Self, BoxError> {
        let space = SpaceId::new(name)?;
        let (mut places, mut questions, mut offset) = (HashMap::new(), Vec::new(), 0);
        let mut characters = 0;
        for (number, conversation) in conversations.iter().enumerate() {
            let (turns, said_at) = turns(number, conversation)?;
            characters += turns
                .iter()
                .map(|turn| length(&turn.content))
                .sum::<usize>();
            let ids = accept(memory, &space, turns).await?;
            places.extend(
                ids.into_iter()
                    .zip(said_at.iter().map(|place| place + offset)),
            );
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
            characters,
        })
    }
}

/// Characters that a turn takes of a context.
pub fn length(content: &Content) -> usize {
    content.searchable_text().chars().count()
}

/// The turns of a conversation, and the place there of each. Several conversations may share a space: names carry the number.
fn turns(
    number: usize,
    conversation: &Conversation,
) -> Result<(Vec<NewTurn>, Vec<usize>), BoxError> {
    let (mut turns, mut places) = (Vec::new(), Vec::new());
    for (place, turn) in conversation.turns.iter().enumerate() {
        let session = format!("{number}/{}", turn.session);
        let said = said(turn, session, format!("{number}/{place}")).turns()?;
        places.extend(said.iter().map(|_| place));
        turns.extend(said);
    }
    Ok((turns, places))
}

/// Remembers turns, in order; their ids.
pub async fn accept(
    memory: &dyn Memory,
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
        let receipt = patience::remember(memory, call, &request).await?;
        ids.extend(receipt.turns.iter().map(|turn| turn.id));
        last = Some(receipt.batch);
    }
    settled(memory, space, last).await?;
    Ok(ids)
}

/// Waits until a write is visible. Writes are applied in order, so the last one stands for all.
pub async fn settled(
    memory: &dyn Memory,
    space: &SpaceId,
    write: Option<BatchId>,
) -> Result<(), BoxError> {
    let page = PageRequest {
        limit: 1,
        after: None,
    };
    let write = write.into_iter().collect::<Vec<_>>();
    memory
        .list(&call(), space, &TurnFilter::default(), page, &write)
        .await?;
    Ok(())
}
