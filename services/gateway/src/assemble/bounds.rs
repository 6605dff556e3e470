//! How many tokens may be added to a prompt, or why none (AMP items 65 to 70, 81).

use memfleet_assembly::Tokenizer;
use memfleet_assembly::budget::{Effective, Limit, Limits, NoBudget, Verdict};
use memfleet_domain::Fault;
use memfleet_domain::assembly::Reason;
use memfleet_ports::context::Context;

use super::basis::Basis;
use super::models::Model;
use super::prompt::Outline;
use super::sticky::Held;
use crate::Gateway;

/// What exchange and session have had already.
#[derive(Clone, Copy, Default)]
pub struct Spent {
    /// Tokens of the exchange.
    pub exchange: u64,
    /// Tokens of the session.
    pub session: u64,
}

impl Gateway {
    /// What an exchange and its session have had. The session is added up only where it has a bound.
    pub(crate) async fn spent(
        &self,
        context: &Context,
        held: &Held,
        basis: &Basis,
    ) -> Result<Spent, Fault> {
        let mut spent = Spent {
            exchange: held.tokens.into(),
            session: 0,
        };
        if basis.settings.budget.session_tokens > 0 {
            let (tenant, now) = (&context.tenant, self.clock.now());
            let session = self.exchanges.session_tokens(tenant, &held.session, now);
            spent.session = session.await?;
        }
        Ok(spent)
    }
}

/// The budget of a block. `overhead` is what a block costs without any item.
pub fn budget(
    basis: &Basis,
    model: &Model,
    outline: &Outline,
    prompt_tokens: u64,
    spent: Spent,
    overhead: usize,
) -> Result<Result<Effective, Reason>, Fault> {
    let bounds = &basis.settings.budget;
    let window = outline.window.or(model.window.map(u64::from));
    let reserved = outline
        .answer_tokens
        .or(model.reserved_output.map(u64::from));
    let left = |most: u32, spent: u64| (most > 0).then(|| u64::from(most).saturating_sub(spent));
    // A policy knows nothing of the model, so what it allows beyond the window is no mistake of the caller.
    let max_tokens = basis.said.max_tokens.map(|tokens| match window {
        Some(window) if !basis.said.max_tokens_by_call => u64::from(tokens).min(window),
        _ => u64::from(tokens),
    });
    let limits = Limits {
        max_tokens: max_tokens.map(u64::cast_signed),
        percent_of_window: basis.said.percent_of_window.map(f64::from),
        default_max_tokens: bounds.max_tokens.into(),
        default_percent: bounds.percent_of_window.into(),
        window,
        prompt_tokens,
        reserved_output: reserved.unwrap_or_else(|| bounds.reserved_output_tokens.into()),
        turn_remainder: left(bounds.exchange_tokens, spent.exchange),
        session_remainder: left(bounds.session_tokens, spent.session),
        overhead: overhead as u64,
        minimum_useful: bounds.min_item_tokens.into(),
    };
    match limits.effective() {
        Ok(Verdict::Budget(effective)) => Ok(Ok(effective)),
        Ok(Verdict::Nothing(why)) => Ok(Err(reason(why))),
        Err(error) => Err(Fault::invalid(
            format!("policy.budget.{}", error.field),
            error.reason,
        )),
    }
}

fn reason(why: NoBudget) -> Reason {
    match why {
        NoBudget::Zero => Reason::BudgetZero,
        NoBudget::NoHeadroom => Reason::NoHeadroom,
        NoBudget::TurnSpent | NoBudget::SessionSpent => Reason::BudgetUsedUp,
        NoBudget::TooSmall => Reason::BudgetTooSmall,
    }
}

/// The bound that was reached first, by the name of its setting.
pub fn name(limit: Limit) -> &'static str {
    match limit {
        Limit::MaxTokens => "budget.max_tokens",
        Limit::PercentOfWindow => "budget.percent_of_window",
        Limit::Headroom => "window",
        Limit::Turn => "budget.exchange_tokens",
        Limit::Session => "budget.session_tokens",
    }
}

/// What a tokenizer is called, and whether it only bounds.
pub fn described(tokenizer: &Tokenizer) -> (String, bool) {
    (tokenizer.name().to_owned(), tokenizer.is_approximate())
}
