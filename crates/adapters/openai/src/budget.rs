//! Budgets, enforced before a request is sent: the most that it can cost is reserved, what it cost is settled.

use std::sync::Arc;

use chrono::NaiveDate;
use memfleet_domain::Clock;
use memfleet_domain::ids::TenantId;
use memfleet_ports::language_model::{Call, Usage};
use memfleet_ports::usage::{Amount, Limits, Reservation, UsageLedger};

use crate::failure::Failure;
use crate::options::AgentOptions;

/// Tokens that a message may take besides its words, and that a request may.
const FRAME: usize = 16;

/// The budgets of all tenants.
pub struct Budget {
    /// Who counts.
    pub ledger: Arc<dyn UsageLedger>,
    /// What day it is.
    pub clock: Arc<dyn Clock>,
    /// What a tenant may use in a day.
    pub limits: Limits,
}

/// What is reserved for one request.
#[derive(Debug, Clone)]
pub struct Reserved {
    tenant: TenantId,
    day: NaiveDate,
    /// The most that it can cost.
    pub most: Usage,
}

/// The most that a call can cost: no token is shorter than a byte.
pub fn most(call: &Call, options: &AgentOptions) -> Usage {
    let words = call.messages.iter();
    let words: usize = words.map(|message| message.text.len() + FRAME).sum();
    // The schema may be said twice: in words, and by the endpoint to the model.
    let schema = call.schema.as_ref().map_or(0, |schema| 2 * schema.len());
    let tokens_in = (words + schema + 4 * FRAME) as u64;
    let tokens_out = u64::from(options.max_tokens);
    Usage {
        tokens_in,
        tokens_out,
        micros: options.micros(tokens_in, tokens_out),
    }
}

impl Budget {
    /// Reserves for one request.
    pub async fn reserve(&self, tenant: &TenantId, most: Usage) -> Result<Reserved, Failure> {
        let day = self.clock.now().date_naive();
        let made = self
            .ledger
            .reserve(tenant, day, most.amount(1), &self.limits)
            .await;
        match made {
            Ok(Reservation::Made) => Ok(Reserved {
                tenant: tenant.clone(),
                day,
                most,
            }),
            Ok(Reservation::Refused(kind)) => Err(Failure::OverBudget(kind)),
            Err(error) => {
                tracing::warn!(%error, "what models use cannot be counted, so that none is asked");
                Err(Failure::Uncounted)
            }
        }
    }

    /// One request was sent and cost this.
    pub async fn settle(&self, reserved: &Reserved, used: Usage) {
        self.put(reserved, used.amount(1)).await;
    }

    /// Nothing was sent.
    pub async fn release(&self, reserved: &Reserved) {
        self.put(reserved, Amount::default()).await;
    }

    async fn put(&self, reserved: &Reserved, used: Amount) {
        let (tenant, most) = (&reserved.tenant, reserved.most.amount(1));
        let settled = self.ledger.settle(tenant, reserved.day, most, used).await;
        if let Err(error) = settled {
            tracing::warn!(%error, "what a call of a model cost is not settled: its reserve stays");
        }
    }
}
