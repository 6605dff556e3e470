//! The `Capture` service: what passes between a caller and a model is remembered, without what memory itself put there.
//!
//! `hearing` reads a prompt and its answer, `naming` makes turns of what is left, each with an id by which it is known again, and `outage` has all
//! of it go on while the store is away.

mod hearing;
mod naming;
mod outage;

pub(crate) use outage::Reach;

use std::collections::HashSet;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::assembly::{SessionOrigin, TrustMode};
use memfleet_domain::ids::{SessionId, SpaceId, TurnId};
use memfleet_domain::policy::Policy;
use memfleet_ports::capture::{Capture, RecordTurnRequest, Recorded};
use memfleet_ports::context::Context;
use memfleet_ports::ledger::Known;
use memfleet_ports::memory::RememberRequest;
use memfleet_ports::store::StoreError;
use tracing::instrument;

use crate::Gateway;
use crate::assemble::apart;
use crate::assemble::basis::Basis;
use crate::assemble::redaction::Redactions;
use crate::assemble::sticky::{Held, State};
use crate::conversations::Purpose;
use hearing::Heard;
use naming::{NamedTurn, Naming, Session};

/// Exchanges of the session whose unmarked blocks are looked for.
const EARLIER: u32 = 64;

/// Turns that one call may add.
const MOST: usize = 1_000;

#[async_trait]
impl Capture for Gateway {
    #[instrument(skip_all, fields(tenant = %context.tenant, space = %request.space))]
    async fn record_turn(
        &self,
        context: &Context,
        request: RecordTurnRequest,
    ) -> Result<Recorded, Fault> {
        context
            .within("the ingestion queue", self.capture(context, request))
            .await
    }
}

/// Without the store a block that the exchange was given is known by its delimiters; one without them would be kept as what somebody said.
fn told_by_its_marks(basis: &Basis) -> Result<(), Fault> {
    match basis.settings.format.trust {
        TrustMode::Plain => Err(away("which block memory put into this exchange")),
        TrustMode::Delimited | TrustMode::Datamarked => Ok(()),
    }
}

fn away(what: &str) -> Fault {
    StoreError::Unavailable(format!("it cannot say {what}")).into()
}

impl Gateway {
    async fn capture(
        &self,
        context: &Context,
        mut request: RecordTurnRequest,
    ) -> Result<Recorded, Fault> {
        let (prompt, answer) = (
            std::mem::take(&mut request.prompt),
            std::mem::take(&mut request.answer),
        );
        let with_system = request.include_system;
        let mut heard = apart(move || Heard::of(&prompt, &answer, with_system)).await??;
        let (session, origin) = self.session_of(context, &mut request, &mut heard).await?;
        let spaces = [request.space.clone()];
        let basis = self.basis(context, &spaces, Policy::default()).await?;
        let mut store = Reach::new(basis.is_present);
        let key = store
            .ask(self.digest_key(context, Some(&request.space)))
            .await?
            .or_else(|| self.known_digest_key(context, Some(&request.space)))
            // By other ids the ledger would not know what it has, and what it had to forget.
            .ok_or_else(|| away("under which ids this space keeps messages"))?;
        let is_exchange = request.exchange.is_some() || heard.exchange.is_some();
        let exchange = match (request.exchange.take(), heard.exchange.take()) {
            (Some(given), _) => Some(given),
            (None, Some(plain)) => store.ask(self.exchange_name(context, &plain)).await?,
            (None, None) => None,
        };
        let given = match &exchange {
            Some(exchange) => {
                store
                    .ask(self.held(context, session.id(), exchange))
                    .await?
            }
            None => None,
        };
        if is_exchange && !store.is_there() {
            told_by_its_marks(&basis)?;
        }
        let blocks = self.blocks(context, &basis, given, session.id()).await?;
        let naming = Naming {
            redactions: Redactions::new(&basis.settings.format.redactions)?,
            session,
            blocks,
            request,
            key,
        };
        let named = move || {
            let turns = naming.turns(heard);
            turns.map(|turns| (naming.request.space, naming.session, turns))
        };
        let (space, session, named) = apart(named).await??;
        let mut recorded = Recorded {
            token: None,
            turns: Vec::new(),
            duplicates: 0,
            forgotten: 0,
            left_out: named.left_out,
            blocks_removed: named.blocks_removed,
            session: session.id().clone(),
            session_origin: Some(origin),
        };
        self.remember_new(context, space, named.turns, &mut recorded, store)
            .await?;
        if let Session::Derived(known) = session
            && known.is_news
        {
            self.hear(context, &known.conversation).await?;
        }
        Ok(recorded)
    }

    /// The blocks that may be in what is recorded: those of the exchange, and where nothing marks them those of earlier ones, which a caller
    /// that keeps its messages sends again.
    async fn blocks(
        &self,
        context: &Context,
        basis: &Basis,
        held: Option<Held>,
        session: &SessionId,
    ) -> Result<Vec<String>, Fault> {
        let given = held.map(|held| held.state.given).unwrap_or_default();
        let answers = given.into_iter().map(|given| given.answer);
        let answers: Vec<_> = answers.filter(|it| !it.block.is_empty()).collect();
        let is_plain = basis.settings.format.trust == TrustMode::Plain
            || answers.iter().any(|answer| answer.nonce.is_empty());
        let mut blocks: Vec<_> = answers.into_iter().map(|answer| answer.block).collect();
        if is_plain && basis.is_present {
            let (tenant, now) = (&context.tenant, self.clock.now());
            let states = self.exchanges.states(tenant, session, EARLIER, now).await?;
            blocks.extend(states.iter().flat_map(|state| State::blocks(state)));
        }
        Ok(blocks)
    }

    /// The conversation, and how it is known.
    async fn session_of(
        &self,
        context: &Context,
        request: &mut RecordTurnRequest,
        heard: &mut Heard,
    ) -> Result<(Session, SessionOrigin), Fault> {
        if let Some(session) = request.session.take() {
            return Ok((Session::Named(session), SessionOrigin::Given));
        }
        if let Some(session) = heard.session.take() {
            return Ok((Session::Named(session), SessionOrigin::Request));
        }
        let Some(resent) = heard.resent.take() else {
            let problem = "is required where the `provider_request` does not tell it and no user says anything, or the history is not sent along";
            return Err(Fault::invalid("session", problem));
        };
        let known = self.recognised(context, &request.space, &resent, Purpose::Record);
        let known = known.await?;
        let origin = known.origin;
        Ok((Session::Derived(known), origin))
    }

    /// Accepts what the ledger neither has nor had to forget; all of it where the ledger cannot tell, which then takes each turn once.
    async fn remember_new(
        &self,
        context: &Context,
        space: SpaceId,
        mut turns: Vec<NamedTurn>,
        recorded: &mut Recorded,
        mut store: Reach,
    ) -> Result<(), Fault> {
        let scope = context.scope(&space);
        let ids = |NamedTurn { turn, plain }: &NamedTurn| {
            let external = turn.external_id.iter().chain([plain]);
            let ids = external.map(|external| TurnId::of_external(&scope, &turn.session, external));
            ids.collect::<Vec<_>>()
        };
        let all: Vec<_> = turns.iter().flat_map(ids).collect();
        let mut known = Known::default();
        for ids in all.chunks(MOST) {
            let part = async { Ok(self.ledger.known(&scope, ids).await?) };
            let part = store.ask(part).await?.unwrap_or_default();
            known.stored.extend(part.stored);
            known.forgotten.extend(part.forgotten);
        }
        let mut leave_out = |seen: &HashSet<TurnId>| {
            let all = turns.len();
            turns.retain(|turn| !ids(turn).iter().any(|id| seen.contains(id)));
            (all - turns.len()) as u32
        };
        recorded.duplicates = leave_out(&known.stored);
        recorded.forgotten = leave_out(&known.forgotten);
        if turns.is_empty() {
            return Ok(());
        }
        if turns.len() > MOST && !store.is_there() {
            return Err(away("which of so many messages are new"));
        }
        if turns.len() > MOST {
            let problem = format!(
                "hold {} that are new; at most {MOST} are taken at once",
                turns.len()
            );
            return Err(Fault::invalid("messages", problem));
        }
        let request = RememberRequest {
            space,
            turns: turns.into_iter().map(|named| named.turn).collect(),
            idempotency_key: None,
        };
        let receipt = self.accept_captured(context, request, store).await?;
        if receipt.duplicate {
            recorded.duplicates += receipt.turns.len() as u32;
        } else {
            recorded.turns = receipt.turns;
        }
        recorded.token = Some(receipt.batch);
        Ok(())
    }
}
