//! The knowledge port.

mod apply;
pub(crate) mod expire;
pub(crate) mod forget;
mod progress;
mod read;
mod rebuild;
mod restore;

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

use crate::store::SqliteStore;

#[async_trait]
impl Knowledge for SqliteStore {
    async fn apply(&self, scope: &Scope, work: Work) -> Result<Applied> {
        let mut write = self.write_as_worker().await?;
        let applied = apply::apply(&mut write, scope, &work).await?;
        if applied != Applied::Stale {
            write.commit().await?;
        }
        Ok(applied)
    }

    async fn restore(&self, scope: &Scope, restoration: RestoredHistory) -> Result<Applied> {
        let mut write = self.write().await?;
        let applied = restore::restore(&mut write, scope, &restoration).await?;
        if applied != Applied::Stale {
            write.commit().await?;
        }
        Ok(applied)
    }

    async fn decided(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<DerivationId>,
    ) -> Result<Vec<DerivationId>> {
        Ok(restore::decided(&mut *self.read().await?, scope, limit, after).await?)
    }

    async fn pending(&self, stage: Stage, limit: u32) -> Result<Vec<Scope>> {
        Ok(progress::pending(&mut *self.read().await?, stage, limit).await?)
    }

    async fn claim(
        &self,
        scope: &Scope,
        stage: Stage,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<u64>> {
        let mut write = self.write_briefly_as_worker().await?;
        let reached = progress::claim(&mut write, scope, stage, now, until).await?;
        write.commit().await?;
        Ok(reached)
    }

    async fn release(&self, scope: &Scope, stage: Stage, until: Timestamp) -> Result<()> {
        let mut write = self.write_briefly_as_worker().await?;
        progress::release(&mut write, scope, stage, until).await?;
        Ok(write.commit().await?)
    }

    async fn is_left_over(&self, _: &Scope) -> Result<bool> {
        // The graph is in the same file.
        Ok(false)
    }

    async fn cleared(&self, _: &Scope) -> Result<()> {
        Ok(())
    }

    async fn begin_rebuild(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        let mut write = self.write_as_worker().await?;
        let begun = rebuild::begin(&mut write, scope).await?;
        write.commit().await?;
        Ok(begun)
    }

    async fn position(&self, scope: &Scope, stage: Stage) -> Result<Option<Position>> {
        Ok(progress::position(&mut *self.read().await?, scope, stage).await?)
    }

    async fn rebuilding(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        Ok(rebuild::of(&mut *self.read().await?, scope).await?)
    }

    async fn unconfirmed(&self, scope: &Scope, limit: u32) -> Result<Vec<Derivation>> {
        Ok(rebuild::unconfirmed(&mut *self.read().await?, scope, limit).await?)
    }

    async fn derivations(
        &self,
        scope: &Scope,
        question: &Question,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let mut read = self.read().await?;
        Ok(read::derivations(&mut read, scope, question, limit, after).await?)
    }

    async fn chronicle(
        &self,
        scope: &Scope,
        chronicle: &Chronicle,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let mut read = self.read().await?;
        Ok(read::chronicle(&mut read, scope, chronicle, limit, after).await?)
    }

    async fn worthiest(
        &self,
        scope: &Scope,
        subject: &str,
        as_of: AsOf,
        limit: u32,
    ) -> Result<Vec<Derivation>> {
        let mut read = self.read().await?;
        Ok(read::worthiest(&mut read, scope, subject, as_of, limit).await?)
    }

    async fn versions(&self, scope: &Scope, id: DerivationId) -> Result<Vec<Derivation>> {
        Ok(read::versions(&mut *self.read().await?, scope, id).await?)
    }

    async fn changes(
        &self,
        scope: &Scope,
        filter: &ChangeFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Recorded>> {
        let mut read = self.read().await?;
        Ok(read::changes(&mut read, scope, filter, limit, after).await?)
    }

    async fn conflicts(
        &self,
        scope: &Scope,
        statuses: &[Status],
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Conflict>> {
        let mut read = self.read().await?;
        Ok(read::conflicts(&mut read, scope, statuses, limit, after).await?)
    }

    async fn conflicts_of(
        &self,
        scope: &Scope,
        facts: &[DerivationId],
        statuses: &[Status],
    ) -> Result<Vec<Conflict>> {
        let mut read = self.read().await?;
        Ok(read::conflicts_of(&mut read, scope, facts, statuses).await?)
    }
}
