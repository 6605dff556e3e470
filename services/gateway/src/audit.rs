//! What use-cases tell the audit log: names and ids, never texts.

use std::collections::BTreeMap;

use memfleet_domain::Fault;
use memfleet_domain::ids::{SessionId, SpaceId, TurnId};
use memfleet_ports::assembly::Assembled;
use memfleet_ports::audit::{AuditKind, AuditRecord, AuditedTurn};
use memfleet_ports::context::Context;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::retriever::Hit;
use memfleet_prompts::Template;
use memfleet_prompts::answer::Question;

use crate::Gateway;
use crate::access::record_of;

/// Turns that a record names; of more the first ones.
const TURNS: usize = 1_000;

impl Gateway {
    /// Something is about to be done in a space.
    pub(crate) async fn note_in_space<const N: usize>(
        &self,
        context: &Context,
        kind: AuditKind,
        space: &SpaceId,
        detail: [(&str, String); N],
    ) -> Result<(), Fault> {
        let detail = detail.map(|(name, value)| (name.to_owned(), value));
        let record = AuditRecord {
            space: Some(space.clone()),
            detail: detail.into(),
            ..record_of(context, kind, self.clock.now())
        };
        self.access.journal.before(record).await
    }

    /// Turns are about to be forgotten. Conditions may quote what was said, so only ids are kept of them.
    pub(crate) async fn note_forget(
        &self,
        context: &Context,
        request: &ForgetRequest,
    ) -> Result<(), Fault> {
        let everything = ("everything".to_owned(), request.everything.to_string());
        let record = AuditRecord {
            space: Some(request.space.clone()),
            turns: in_space(&request.space, &request.filter.turns),
            detail: [everything].into(),
            ..record_of(context, AuditKind::ForgetBegun, self.clock.now())
        };
        self.access.journal.before(record).await
    }

    /// The turns of one person are about to be forgotten in every space. Who that is would be a
    /// condition, so it is left out.
    pub(crate) async fn note_forget_everywhere(&self, context: &Context) -> Result<(), Fault> {
        let spaces = ("spaces".to_owned(), "all".to_owned());
        let record = AuditRecord {
            detail: [spaces].into(),
            ..record_of(context, AuditKind::ForgetBegun, self.clock.now())
        };
        self.access.journal.before(record).await
    }

    /// Turns were forgotten.
    pub(crate) async fn note_forgotten(
        &self,
        context: &Context,
        request: &ForgetRequest,
        receipt: &ForgetReceipt,
    ) {
        let count = ("turns".to_owned(), receipt.erased.turns.len().to_string());
        let record = AuditRecord {
            space: Some(request.space.clone()),
            turns: in_space(&request.space, &receipt.erased.turns),
            detail: [count].into(),
            ..record_of(context, AuditKind::Forgotten, self.clock.now())
        };
        self.access.journal.after(record).await;
    }

    /// Turns entered a prompt.
    pub(crate) fn note_injected(&self, context: &Context, answer: &Assembled) {
        if !self.access.journal.is_kept() || answer.items.is_empty() {
            return;
        }
        let turns = answer.items.iter().filter_map(|item| {
            Some(AuditedTurn {
                space: item.space.clone()?,
                session: SessionId::new(item.session.clone()).ok(),
                turn: item.turn()?,
            })
        });
        let mut detail = BTreeMap::from([("tokens".to_owned(), answer.tokens.to_string())]);
        if let Some(injection) = answer.injection {
            detail.insert("injection".to_owned(), injection.to_string());
        }
        self.access.journal.note(AuditRecord {
            turns: turns.take(TURNS).collect(),
            detail,
            ..record_of(context, AuditKind::Injected, self.clock.now())
        });
    }

    /// Turns are about to be shown to the model that answers a question.
    pub(crate) fn note_shown<'h>(&self, context: &Context, hits: impl Iterator<Item = &'h Hit>) {
        let turns = hits.take(TURNS).map(|hit| AuditedTurn {
            space: hit.space.clone(),
            session: Some(hit.turn.accepted.session.clone()),
            turn: hit.turn.accepted.id,
        });
        let prompt = ("prompt".to_owned(), Question::ID.to_string());
        self.access.journal.note(AuditRecord {
            turns: turns.collect(),
            detail: [prompt].into(),
            ..record_of(context, AuditKind::Injected, self.clock.now())
        });
    }
}

/// Turns of which no more is said than where they lie.
fn in_space(space: &SpaceId, turns: &[TurnId]) -> Vec<AuditedTurn> {
    let turns = turns.iter().take(TURNS).map(|turn| AuditedTurn {
        space: space.clone(),
        session: None,
        turn: *turn,
    });
    turns.collect()
}
