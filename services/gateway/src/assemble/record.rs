//! What entered a prompt is written down, as far as the policy says (AMP item 94).

use chrono::TimeDelta;
use memfleet_domain::Fault;
use memfleet_domain::assembly::AuditMode;
use memfleet_domain::ids::{InjectionId, SpaceId};
use memfleet_domain::policy::Audit;
use memfleet_ports::assembly::Assembled;
use memfleet_ports::context::Context;
use memfleet_ports::injections::Injection;
use uuid::Uuid;

use super::sticky::turns;
use crate::Gateway;

impl Gateway {
    /// What is written down of an answer, as far as the policy wants it, under a new id, which the answer then has.
    pub(crate) fn injection(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        audit: &Audit,
        answer: &mut Assembled,
    ) -> Result<Option<Injection>, Fault> {
        if audit.mode == AuditMode::Off {
            return Ok(None);
        }
        let id = InjectionId::from_bytes(Uuid::now_v7().into_bytes());
        answer.injection = Some(id);
        let at = self.clock.now();
        let has_block = !answer.block.is_empty();
        Ok(Some(Injection {
            id,
            at,
            caller: context.caller_name().to_owned(),
            request_id: context.request_id.to_string(),
            session: answer.session.clone(),
            exchange: answer.exchange.clone(),
            spaces: spaces.to_vec(),
            decision: answer.decision.name().to_owned(),
            block: (has_block && audit.mode == AuditMode::Full).then(|| answer.block.clone()),
            block_hash: has_block.then(|| *blake3::hash(answer.block.as_bytes()).as_bytes()),
            record: without_words(answer)?,
            turns: turns(&answer.items),
            expires_at: Some(at + TimeDelta::days(audit.retention_days.into())),
            forgotten: false,
        }))
    }
}

/// An answer as JSON without what was said in a conversation: ids and numbers, which stay when a turn is forgotten.
fn without_words(answer: &Assembled) -> Result<String, Fault> {
    let mut bare = Assembled {
        block: String::new(),
        edits: Vec::new(),
        patched: None,
        understood: None,
        ..answer.clone()
    };
    if let Some(profile) = &mut bare.profile {
        profile.speaker = String::new();
    }
    for gate in &mut bare.gates {
        gate.pattern = String::new();
    }
    for item in &mut bare.items {
        (item.speaker, item.content_hash) = (String::new(), String::new());
    }
    serde_json::to_string(&bare)
        .map_err(|error| Fault::internal(format!("an injection cannot be written: {error}")))
}
