//! Writing when there is no hurry.

use memfleet_domain::ingestion::Receipt;
use memfleet_domain::{Fault, FaultKind};
use memfleet_ports::context::Context;
use memfleet_ports::memory::{Memory, RememberRequest};

/// Remembers a batch as soon as the node's queue has room for it. `call` makes the context of each try.
pub async fn remember(
    memory: &dyn Memory,
    call: impl Fn() -> Context,
    request: &RememberRequest,
) -> Result<Receipt, Fault> {
    loop {
        match memory.remember(&call(), request.clone()).await {
            Err(fault) if fault.kind == FaultKind::ResourceExhausted => {
                let wait = fault.retry_after.ok_or(fault)?;
                tokio::time::sleep(wait).await;
            }
            outcome => return outcome,
        }
    }
}
