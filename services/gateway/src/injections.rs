//! The `Audit` service: what entered which prompt, read back as `assemble::record` wrote it down.

use async_trait::async_trait;
use memfleet_domain::assembly::{Decision, Reason};
use memfleet_domain::ids::InjectionId;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::assembly::Assembled;
use memfleet_ports::context::Context;
use memfleet_ports::injections::{Injection, InjectionFilter};
use memfleet_ports::injections_api::{Audit, PastInjection};
use memfleet_ports::ledger::Page;
use memfleet_ports::memory::PageRequest;
use serde_json::Value;
use tracing::instrument;

use crate::Gateway;
use crate::access::{reaches, reaches_all};

#[async_trait]
impl Audit for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, injection = %id))]
    async fn injection(&self, context: &Context, id: InjectionId) -> Result<PastInjection, Fault> {
        let kept = self.injections.get(&context.tenant, id).await?;
        // Whether there is one that it may not see is nothing that a caller learns.
        let kept = kept.filter(|kept| is_reached(context, kept));
        let kept = kept.ok_or_else(|| Fault::not_found(format_args!("injection {id}")))?;
        let block = kept.block.clone();
        Ok(PastInjection {
            block,
            ..told(kept)
        })
    }

    #[instrument(skip_all, fields(tenant = %context.tenant))]
    async fn injections(
        &self,
        context: &Context,
        filter: InjectionFilter,
        page: PageRequest,
    ) -> Result<Page<PastInjection>, Fault> {
        if filter.space.is_none() && !reaches_all(context) {
            let message =
                "this credential does not reach every space: name one of those that it does";
            let fault = Fault::new(FaultKind::PermissionDenied, "SPACE_NOT_GRANTED", message);
            return Err(fault.with("right", "read"));
        }
        let after = page.after.as_ref();
        let listed = self
            .injections
            .list(&context.tenant, &filter, page.limit, after);
        let Page { items, next } = listed.await?;
        let reached = items.into_iter().filter(|it| is_reached(context, it));
        Ok(Page {
            items: reached.map(told).collect(),
            next,
        })
    }
}

fn is_reached(context: &Context, injection: &Injection) -> bool {
    let spaces = injection.all_spaces();
    spaces.into_iter().all(|space| reaches(context, space))
}

/// An injection without its block.
fn told(kept: Injection) -> PastInjection {
    let answer = answer(&kept);
    PastInjection {
        id: kept.id,
        at: kept.at,
        caller: kept.caller,
        request_id: kept.request_id,
        session: kept.session,
        exchange: kept.exchange,
        spaces: kept.spaces,
        answer,
        block: None,
        block_hash: kept.block_hash,
        forgotten: kept.forgotten,
    }
}

/// The answer as the record has it; what the columns say of one that cannot be read.
fn answer(kept: &Injection) -> Assembled {
    read(&kept.record).unwrap_or_else(|| Assembled {
        injection: Some(kept.id),
        decision: kept.decision.parse().unwrap_or(Decision::Skipped),
        reason: None,
        session: kept.session.clone(),
        exchange: kept.exchange.clone(),
        degraded: vec!["record: another version of memfleet wrote it".to_owned()],
        ..Assembled::skipped(Reason::NothingFound)
    })
}

/// Reads a record; what one of an older version does not say yet is as in an empty answer.
fn read(record: &str) -> Option<Assembled> {
    let Ok(Value::Object(said)) = serde_json::from_str(record) else {
        return None;
    };
    let mut whole = serde_json::to_value(Assembled::skipped(Reason::NothingFound)).ok()?;
    whole.as_object_mut()?.extend(said);
    serde_json::from_value(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memfleet_domain::Timestamp;
    use memfleet_domain::ids::SpaceId;

    fn kept(record: &str) -> Injection {
        Injection {
            id: InjectionId::from_bytes([7; 16]),
            at: Timestamp::UNIX_EPOCH,
            caller: "config".to_owned(),
            request_id: String::new(),
            session: None,
            exchange: None,
            spaces: vec![SpaceId::new("ada").unwrap()],
            decision: "injected".to_owned(),
            block: None,
            block_hash: None,
            record: record.to_owned(),
            turns: Vec::new(),
            expires_at: None,
            forgotten: false,
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let mut written = Assembled::skipped(Reason::BudgetZero);
        (written.tokens, written.left_out) = (7, 3);
        let record = serde_json::to_string(&written).unwrap();
        assert_eq!(answer(&kept(&record)), written);
    }

    #[test]
    fn a_record_of_another_version_gives_what_can_be_understood_of_it() {
        let older = answer(&kept(
            r#"{"tokens": 7, "decision": "injected", "reason": null}"#,
        ));
        assert_eq!((older.tokens, older.decision), (7, Decision::Injected));
        assert!(older.degraded.is_empty());
        let newer = r#"{"tokens": 7, "of_the_future": true}"#;
        assert_eq!(answer(&kept(newer)).tokens, 7);
        for unreadable in [
            "",
            "[]",
            "{",
            r#"{"tokens": "seven"}"#,
            r#"{"gates": [{}]}"#,
        ] {
            let told = answer(&kept(unreadable));
            assert_eq!(told.decision, Decision::Injected, "{unreadable}");
            assert_eq!(told.injection, Some(InjectionId::from_bytes([7; 16])));
            assert_eq!(told.degraded.len(), 1);
        }
    }
}
