//! Cases of AMP, the Augmented Memory Protocol, that any server of `memfleet.v1` can be held to: JSON in `cases/`, in the field names of
//! the protos, and what runs them over gRPC.
//!
//! What a case expects is what docs/amp.md promises; it was written by hand, not recorded. Nonces are random and ids are the server's, so
//! the former are masked and the latter never expected.

mod case;
mod matching;
mod server;

pub use case::{Case, Step};
pub use server::Server;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Stands for the nonce of an answer in what is expected of it.
pub const NONCE: &str = "NONCE";

/// The name of a space for one run of a case.
pub fn space_of(case: &Case) -> String {
    format!("amp-{}-{}", case.name, uuid::Uuid::now_v7().simple())
}

/// Runs a case in a space of its own, which stays.
pub async fn run(server: &Server, case: &Case) -> Result<()> {
    run_in(&space_of(case), server, case).await
}

/// Runs a case in a space that knows nothing before.
pub async fn run_in(space: &str, server: &Server, case: &Case) -> Result<()> {
    let (mut answers, mut tokens) = (Vec::<Value>::new(), Vec::new());
    for (at, step) in case.steps.iter().enumerate() {
        let asked = server.ask(space, step, &mut tokens).await;
        let answer = asked.with_context(|| format!("step {at}"))?;
        let mut wrong = matching::compare(&step.expected, &matching::masked(&answer));
        if let Some(earlier) = step.same_as {
            let earlier = answers.get(earlier).context("same_as names a later step")?;
            wrong.extend(matching::same_injection(earlier, &answer));
        }
        if !wrong.is_empty() {
            let answer = serde_json::to_string_pretty(&matching::masked(&answer))?;
            bail!("step {at}: {}\nanswer: {answer}", wrong.join("\n"));
        }
        answers.push(answer);
    }
    Ok(())
}
