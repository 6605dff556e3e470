//! A language model behind each agent: what it finds in the words of a turn is taken, what it makes
//! of them is not; while it is down the agents work without it, and it is asked when it is back.
#![allow(clippy::unwrap_used)]

mod binding;
mod comparing;
mod finding;
mod plotting;
mod retelling;
mod reviewing;
mod semantics;
mod stated;

use std::sync::Arc;

use memfleet_agents_together::Memory;
use memfleet_domain::derivation::Status;
use memfleet_openai::testing::{Scripted, endpoint};
use memfleet_openai::transport::Exchange;
use memfleet_openai::{MemoryLedger, OpenAi, Options};
use memfleet_prompts::{Adviser, Press};

/// A model that does this, whatever it is asked.
fn model(memory: &Memory, does: Scripted) -> Adviser {
    over(memory, endpoint(move |_, _| does.clone()))
}

/// A model at an endpoint.
fn over(memory: &Memory, exchange: Exchange) -> Adviser {
    let mut options = Options::new("http://model.test/v1", "small");
    (options.retries, options.cache) = (0, 0);
    let ledger = Arc::new(MemoryLedger::default());
    let model = OpenAi::over(exchange, options, ledger, memory.clock()).unwrap();
    Adviser {
        model: Arc::new(model),
        press: Arc::new(Press::new([7; 32])),
    }
}

async fn statuses(memory: &Memory) -> Vec<Status> {
    let conflicts = memory.conflicts().await;
    conflicts.iter().map(|conflict| conflict.status).collect()
}
