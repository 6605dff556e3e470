//! Decisions of callers in a space, as records of an export and back: its legal hold, its policy,
//! corrections, undone changes, merges and splits.

use std::collections::VecDeque;

use futures::{Stream, TryStreamExt};
use memfleet_domain::access::Right;
use memfleet_domain::derivation::DecidedMemory;
use memfleet_domain::ids::{DerivationId, TurnId};
use memfleet_domain::space::{LegalHold, Space};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::audit::AuditKind;
use memfleet_ports::context::Context;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::memory::{Imported, Record, SpaceRules};
use memfleet_ports::policies::Policies;
use tracing::{Instrument, Span};

use crate::Gateway;

/// Ids that are read at a time.
const IDS: u32 = 256;

/// Most reasons in the answer to an import.
const MAX_REASONS: usize = 100;

/// A walk through what callers decided about facts and names.
struct Walk {
    ids: VecDeque<DerivationId>,
    after: Option<DerivationId>,
    is_last: bool,
}

impl Gateway {
    /// The record of what holds for a space besides its settings; none where nothing does.
    pub(super) async fn rules(
        &self,
        context: &Context,
        space: &Space,
    ) -> Result<Option<Record>, Fault> {
        let rules = SpaceRules {
            hold: space.hold.clone(),
            policy: self.policy_of(context, &space.id).await?,
        };
        Ok((rules != SpaceRules::default()).then(|| Record::Rules(Box::new(rules))))
    }

    /// Records of decisions about facts and names that draw on matching turns alone, by id.
    pub(super) fn decided(
        &self,
        scope: Scope,
        filter: TurnFilter,
    ) -> impl Stream<Item = Result<Record, Fault>> + Send + use<> {
        let walk = Walk {
            ids: VecDeque::new(),
            after: None,
            is_last: false,
        };
        let (gateway, span) = (self.clone(), Span::current());
        let records = futures::stream::try_unfold(walk, move |mut walk| {
            let (gateway, scope, filter) = (gateway.clone(), scope.clone(), filter.clone());
            let next = async move {
                let Some(id) = gateway.next_decided(&scope, &mut walk).await? else {
                    return Ok(None);
                };
                let memory = gateway.knowledge.decided_memory(&scope, id).await?;
                let is_whole = gateway.draws_on(&scope, &memory, &filter).await?;
                let record = is_whole.then(|| Record::Decided(Box::new(memory)));
                Ok::<_, Fault>(Some((record, walk)))
            };
            next.instrument(span.clone())
        });
        records.try_filter_map(|record| async { Ok(record) })
    }

    async fn next_decided(
        &self,
        scope: &Scope,
        walk: &mut Walk,
    ) -> Result<Option<DerivationId>, Fault> {
        if walk.ids.is_empty() && !walk.is_last {
            walk.ids = self.knowledge.decided(scope, IDS, walk.after).await?.into();
            walk.is_last = walk.ids.len() < IDS as usize;
            walk.after = walk.ids.back().copied();
        }
        Ok(walk.ids.pop_front())
    }

    /// True where a history draws on stored turns that match, and on no others. One that is gone by
    /// now does not.
    async fn draws_on(
        &self,
        scope: &Scope,
        memory: &DecidedMemory,
        filter: &TurnFilter,
    ) -> Result<bool, Fault> {
        let ids: Vec<TurnId> = memory.turns().into_iter().collect();
        if ids.is_empty() {
            return Ok(false);
        }
        let turns = self.ledger.turns(scope, &ids).await?;
        let matching = turns.iter().filter(|turn| {
            filter.passes(&turn.accepted) && (filter.include_replaced || turn.replaced.is_none())
        });
        Ok(matching.count() == ids.len())
    }

    /// Takes on the hold and the policy of the records, or names what stays away. A hold is set
    /// wherever there is none, as it destroys nothing; a policy only where the space has no turns and
    /// no policy of its own.
    pub(super) async fn settle_rules(
        &self,
        context: &Context,
        scope: &Scope,
        rules: SpaceRules,
        imported: &mut Imported,
    ) -> Result<(), Fault> {
        let Some(found) = self.spaces.get(scope).await? else {
            let reason = "the legal hold and the policy: the space does not exist yet";
            leave_out(imported, reason.to_owned());
            return Ok(());
        };
        let is_empty = found.turns == 0;
        let own = self.policy_of(context, &scope.space).await?;
        let policy = rules.policy.filter(|policy| own.as_ref() != Some(policy));
        let hold = rules.hold.filter(|_| found.hold.is_none());
        let refusal = (!manages(context)).then_some("this credential has no right `admin`");
        if let Some(policy) = policy {
            let refusal = refusal.or((!is_empty).then_some("the space has turns already"));
            match refusal.or(own.map(|_| "the space has another one")) {
                Some(refusal) => leave_out(imported, format!("the policy: {refusal}")),
                None => {
                    let put = self.put_policy(context, Some(scope.space.clone()), policy, None);
                    taken("the policy", put.await, imported)?;
                }
            }
        }
        match (hold, refusal) {
            (None, _) => {}
            (Some(_), Some(refusal)) => leave_out(imported, format!("the legal hold: {refusal}")),
            (Some(hold), None) => {
                // Turns that were here before were on no hold.
                let since = if is_empty {
                    hold.since
                } else {
                    self.clock.now()
                };
                let hold = LegalHold { since, ..hold };
                let detail = [("reason", hold.reason.clone())];
                self.note_in_space(context, AuditKind::HoldSet, &scope.space, detail)
                    .await?;
                if self.spaces.hold(scope, Some(&hold)).await?.is_none() {
                    leave_out(imported, "the legal hold: the space is gone".to_owned());
                }
            }
        }
        Ok(())
    }

    /// Puts back what callers decided about a fact or a naming, once the turns before it are
    /// stored. One that cannot be put back is named, and the next records are taken.
    pub(super) async fn import_decided(
        &self,
        context: &Context,
        scope: &Scope,
        memory: &DecidedMemory,
        imported: &mut Imported,
    ) -> Result<(), Fault> {
        self.stored(context, scope).await?;
        let name = match memory.id() {
            Some(id) => format!("memory {id}"),
            None => "a memory".to_owned(),
        };
        if let Some(problem) = memory.problem() {
            leave_out(imported, format!("{name}: {problem}"));
            return Ok(());
        }
        let ids: Vec<TurnId> = memory.turns().into_iter().collect();
        if self.ledger.turns(scope, &ids).await?.len() == ids.len() {
            if !manages(context) && self.is_kept_by_hold(scope, memory).await? {
                let reason = "the space is on legal hold, and this credential has no right `admin`";
                leave_out(imported, format!("{name}: {reason}"));
                return Ok(());
            }
            let taken_on = self.refresher.restore(context, &scope.space, memory).await;
            imported.decided += u64::from(taken(&name, taken_on, imported)? == Some(true));
            return Ok(());
        }
        let known = self.ledger.known(scope, &ids).await?;
        if !ids.iter().any(|id| known.forgotten.contains(id)) {
            let reason = format!("{name}: a turn that it draws on is not in the space");
            leave_out(imported, reason);
        }
        Ok(())
    }

    /// True where a history would be put into a space on hold: it may take the place of what agents
    /// derived since the hold began.
    async fn is_kept_by_hold(&self, scope: &Scope, memory: &DecidedMemory) -> Result<bool, Fault> {
        let Some(id) = memory.id() else {
            return Ok(false);
        };
        let known = self.knowledge.decided_memory(scope, id).await?;
        if !memory.adds_to(&known) {
            return Ok(false);
        }
        let found = self.spaces.get(scope).await?;
        Ok(found.is_some_and(|space| space.hold.is_some()))
    }
}

/// Names a part of the records that was left out, and why.
fn leave_out(imported: &mut Imported, reason: String) {
    if imported.left_out.len() < MAX_REASONS {
        imported.left_out.push(reason);
    }
}

/// The answer to one record; none where the record is refused, which is named. Other faults would
/// meet the next record too.
fn taken<T>(
    name: &str,
    answer: Result<T, Fault>,
    imported: &mut Imported,
) -> Result<Option<T>, Fault> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(fault) if is_of_the_record(&fault) => {
            leave_out(imported, format!("{name}: {fault}"));
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn is_of_the_record(fault: &Fault) -> bool {
    let reasons = ["LEGAL_HOLD", "VERSION_CHANGED"];
    fault.kind == FaultKind::InvalidArgument || reasons.contains(&fault.reason.as_ref())
}

/// True where the caller may put a space on hold and set its policy.
fn manages(context: &Context) -> bool {
    let caller = context.caller.as_ref();
    caller.is_none_or(|caller| {
        caller.grant.rights.contains(Right::Admin) && caller.grant.is_everywhere()
    })
}
