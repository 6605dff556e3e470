//! Derived memory of the store behind [`Whole`].

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Conflict, Derivation, Status};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::{AsOf, Timestamp};
use memfleet_ports::knowledge::{
    Applied, ChangeFilter, Chronicle, Knowledge, Position, Question, Rebuilding, Recorded,
    RestoredHistory, Stage, Work,
};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::Result;
use memfleet_ports::undelivered::Undelivered;

use super::whole::Whole;

#[async_trait]
impl<Q: Undelivered> Knowledge for Whole<Q> {
    async fn apply(&self, scope: &Scope, work: Work) -> Result<Applied> {
        self.store.apply(scope, work).await
    }

    async fn restore(&self, scope: &Scope, history: RestoredHistory) -> Result<Applied> {
        self.store.restore(scope, history).await
    }

    async fn decided(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<DerivationId>,
    ) -> Result<Vec<DerivationId>> {
        self.store.decided(scope, limit, after).await
    }

    async fn pending(&self, stage: Stage, limit: u32) -> Result<Vec<Scope>> {
        self.store.pending(stage, limit).await
    }

    async fn position(&self, scope: &Scope, stage: Stage) -> Result<Option<Position>> {
        self.store.position(scope, stage).await
    }

    async fn claim(
        &self,
        scope: &Scope,
        stage: Stage,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<u64>> {
        self.store.claim(scope, stage, now, until).await
    }

    async fn release(&self, scope: &Scope, stage: Stage, until: Timestamp) -> Result<()> {
        self.store.release(scope, stage, until).await
    }

    async fn is_left_over(&self, scope: &Scope) -> Result<bool> {
        self.store.is_left_over(scope).await
    }

    async fn cleared(&self, scope: &Scope) -> Result<()> {
        self.store.cleared(scope).await
    }

    async fn derivations(
        &self,
        scope: &Scope,
        question: &Question,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let store = &self.store;
        store.derivations(scope, question, limit, after).await
    }

    async fn chronicle(
        &self,
        scope: &Scope,
        chronicle: &Chronicle,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let store = &self.store;
        store.chronicle(scope, chronicle, limit, after).await
    }

    async fn worthiest(
        &self,
        scope: &Scope,
        subject: &str,
        as_of: AsOf,
        limit: u32,
    ) -> Result<Vec<Derivation>> {
        self.store.worthiest(scope, subject, as_of, limit).await
    }

    async fn versions(&self, scope: &Scope, id: DerivationId) -> Result<Vec<Derivation>> {
        self.store.versions(scope, id).await
    }

    async fn changes(
        &self,
        scope: &Scope,
        filter: &ChangeFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Recorded>> {
        self.store.changes(scope, filter, limit, after).await
    }

    async fn conflicts(
        &self,
        scope: &Scope,
        statuses: &[Status],
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Conflict>> {
        self.store.conflicts(scope, statuses, limit, after).await
    }

    async fn conflicts_of(
        &self,
        scope: &Scope,
        facts: &[DerivationId],
        statuses: &[Status],
    ) -> Result<Vec<Conflict>> {
        self.store.conflicts_of(scope, facts, statuses).await
    }

    async fn begin_rebuild(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        self.store.begin_rebuild(scope).await
    }

    async fn rebuilding(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        self.store.rebuilding(scope).await
    }

    async fn unconfirmed(&self, scope: &Scope, limit: u32) -> Result<Vec<Derivation>> {
        self.store.unconfirmed(scope, limit).await
    }
}
