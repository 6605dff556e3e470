//! A store that is away does not keep words from being accepted: the queue is elsewhere, and what the store would say is looked at once more when
//! they are applied (AMP item 122).

use std::time::Duration;

use memfleet_domain::{Fault, FaultKind};
use tokio::time::timeout;

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the store answers, as far as one call knows.
pub struct Reach {
    is_there: bool,
}

impl Reach {
    /// What is known of it at the beginning.
    pub fn new(is_there: bool) -> Self {
        Self { is_there }
    }

    /// Whether it answered until now.
    pub fn is_there(&self) -> bool {
        self.is_there
    }

    /// What the store says; nothing where it is away, and for the rest of the call then.
    pub async fn ask<T>(
        &mut self,
        question: impl Future<Output = Result<T, Fault>>,
    ) -> Result<Option<T>, Fault> {
        if !self.is_there {
            return Ok(None);
        }
        match timeout(PATIENCE, question).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(fault)) if fault.kind != FaultKind::Unavailable => Err(fault),
            _ => {
                self.is_there = false;
                Ok(None)
            }
        }
    }
}
