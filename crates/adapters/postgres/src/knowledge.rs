//! The knowledge port.

mod apply;
pub(crate) mod expire;
pub(crate) mod forget;
mod leftover;
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

use crate::store::{PostgresStore, twice};

#[async_trait]
impl Knowledge for PostgresStore {
    async fn apply(&self, scope: &Scope, work: Work) -> Result<Applied> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let applied = apply::apply(&mut write, scope, &work).await?;
            if applied != Applied::Stale {
                write.commit().await?;
            }
            Ok(applied)
        };
        self.ask("apply", twice(attempt)).await
    }

    async fn restore(&self, scope: &Scope, restoration: RestoredHistory) -> Result<Applied> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let applied = restore::restore(&mut write, scope, &restoration).await?;
            if applied != Applied::Stale {
                write.commit().await?;
            }
            Ok(applied)
        };
        self.ask("restore", twice(attempt)).await
    }

    async fn decided(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<DerivationId>,
    ) -> Result<Vec<DerivationId>> {
        let decided = async {
            let mut read = self.read(&scope.tenant).await?;
            restore::decided(&mut read, scope, limit, after).await
        };
        self.ask("decided", decided).await
    }

    async fn pending(&self, stage: Stage, limit: u32) -> Result<Vec<Scope>> {
        let pending = async { progress::pending(&mut *self.sweep().await?, stage, limit).await };
        self.ask("pending", pending).await
    }

    async fn claim(
        &self,
        scope: &Scope,
        stage: Stage,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<u64>> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let reached = progress::claim(&mut write, scope, stage, now, until).await?;
            write.commit().await?;
            Ok(reached)
        };
        self.ask("claim", twice(attempt)).await
    }

    async fn release(&self, scope: &Scope, stage: Stage, until: Timestamp) -> Result<()> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            progress::release(&mut write, scope, stage, until).await?;
            write.commit().await
        };
        self.ask("release", twice(attempt)).await
    }

    async fn is_left_over(&self, scope: &Scope) -> Result<bool> {
        let is_left_over = async {
            let mut read = self.read(&scope.tenant).await?;
            leftover::is_there(&mut read, scope).await
        };
        self.ask("is_left_over", is_left_over).await
    }

    async fn cleared(&self, scope: &Scope) -> Result<()> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            leftover::cleared(&mut write, scope).await?;
            write.commit().await
        };
        self.ask("cleared", twice(attempt)).await
    }

    async fn begin_rebuild(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        let attempt = || async {
            let mut write = self.write(&scope.tenant).await?;
            let begun = rebuild::begin(&mut write, scope).await?;
            write.commit().await?;
            Ok(begun)
        };
        self.ask("begin_rebuild", twice(attempt)).await
    }

    async fn position(&self, scope: &Scope, stage: Stage) -> Result<Option<Position>> {
        let position = async {
            let mut read = self.read(&scope.tenant).await?;
            progress::position(&mut read, scope, stage).await
        };
        self.ask("position", position).await
    }

    async fn rebuilding(&self, scope: &Scope) -> Result<Option<Rebuilding>> {
        let rebuilding = async {
            let mut read = self.read(&scope.tenant).await?;
            rebuild::of(&mut read, scope).await
        };
        self.ask("rebuilding", rebuilding).await
    }

    async fn unconfirmed(&self, scope: &Scope, limit: u32) -> Result<Vec<Derivation>> {
        let unconfirmed = async {
            let mut read = self.read(&scope.tenant).await?;
            rebuild::unconfirmed(&mut read, scope, limit).await
        };
        self.ask("unconfirmed", unconfirmed).await
    }

    async fn derivations(
        &self,
        scope: &Scope,
        question: &Question,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            read::derivations(&mut read, scope, question, limit, after).await
        };
        self.ask("derivations", page).await
    }

    async fn chronicle(
        &self,
        scope: &Scope,
        chronicle: &Chronicle,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            read::chronicle(&mut read, scope, chronicle, limit, after).await
        };
        self.ask("chronicle", page).await
    }

    async fn worthiest(
        &self,
        scope: &Scope,
        subject: &str,
        as_of: AsOf,
        limit: u32,
    ) -> Result<Vec<Derivation>> {
        let facts = async {
            let mut read = self.read(&scope.tenant).await?;
            read::worthiest(&mut read, scope, subject, as_of, limit).await
        };
        self.ask("worthiest", facts).await
    }

    async fn versions(&self, scope: &Scope, id: DerivationId) -> Result<Vec<Derivation>> {
        let versions = async {
            let mut read = self.read(&scope.tenant).await?;
            read::versions(&mut read, scope, id).await
        };
        self.ask("versions", versions).await
    }

    async fn changes(
        &self,
        scope: &Scope,
        filter: &ChangeFilter,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Recorded>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            read::changes(&mut read, scope, filter, limit, after).await
        };
        self.ask("changes", page).await
    }

    async fn conflicts(
        &self,
        scope: &Scope,
        statuses: &[Status],
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Conflict>> {
        let page = async {
            let mut read = self.read(&scope.tenant).await?;
            read::conflicts(&mut read, scope, statuses, limit, after).await
        };
        self.ask("conflicts", page).await
    }

    async fn conflicts_of(
        &self,
        scope: &Scope,
        facts: &[DerivationId],
        statuses: &[Status],
    ) -> Result<Vec<Conflict>> {
        let conflicts = async {
            let mut read = self.read(&scope.tenant).await?;
            read::conflicts_of(&mut read, scope, facts, statuses).await
        };
        self.ask("conflicts of facts", conflicts).await
    }
}
