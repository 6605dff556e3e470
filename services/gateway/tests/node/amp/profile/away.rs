//! A store of derived memory that is away.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::derivation::{Conflict, Derivation, Status};
use memfleet_domain::ids::DerivationId;
use memfleet_domain::time::Timestamp;
use memfleet_ports::knowledge::{
    Applied, ChangeFilter, Chronicle, Knowledge, Position, Question, Rebuilding, Recorded,
    RestoredHistory, Stage, Work,
};
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::store::{Result, StoreError};

/// Answers nothing.
pub struct AwayKnowledge;

fn away<T>() -> Result<T> {
    Err(StoreError::Unavailable("away".to_owned()))
}

#[async_trait]
impl Knowledge for AwayKnowledge {
    async fn apply(&self, _: &Scope, _: Work) -> Result<Applied> {
        away()
    }

    async fn restore(&self, _: &Scope, _: RestoredHistory) -> Result<Applied> {
        away()
    }

    async fn decided(
        &self,
        _: &Scope,
        _: u32,
        _: Option<DerivationId>,
    ) -> Result<Vec<DerivationId>> {
        away()
    }

    async fn pending(&self, _: Stage, _: u32) -> Result<Vec<Scope>> {
        away()
    }

    async fn position(&self, _: &Scope, _: Stage) -> Result<Option<Position>> {
        away()
    }

    async fn claim(&self, _: &Scope, _: Stage, _: Timestamp, _: Timestamp) -> Result<Option<u64>> {
        away()
    }

    async fn release(&self, _: &Scope, _: Stage, _: Timestamp) -> Result<()> {
        away()
    }

    async fn is_left_over(&self, _: &Scope) -> Result<bool> {
        away()
    }

    async fn cleared(&self, _: &Scope) -> Result<()> {
        away()
    }

    async fn begin_rebuild(&self, _: &Scope) -> Result<Option<Rebuilding>> {
        away()
    }

    async fn rebuilding(&self, _: &Scope) -> Result<Option<Rebuilding>> {
        away()
    }

    async fn unconfirmed(&self, _: &Scope, _: u32) -> Result<Vec<Derivation>> {
        away()
    }

    async fn derivations(
        &self,
        _: &Scope,
        _: &Question,
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        away()
    }

    async fn chronicle(
        &self,
        _: &Scope,
        _: &Chronicle,
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Derivation>> {
        away()
    }

    async fn versions(&self, _: &Scope, _: DerivationId) -> Result<Vec<Derivation>> {
        away()
    }

    async fn changes(
        &self,
        _: &Scope,
        _: &ChangeFilter,
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Recorded>> {
        away()
    }

    async fn conflicts(
        &self,
        _: &Scope,
        _: &[Status],
        _: u32,
        _: Option<&PageToken>,
    ) -> Result<Page<Conflict>> {
        away()
    }

    async fn conflicts_of(
        &self,
        _: &Scope,
        _: &[DerivationId],
        _: &[Status],
    ) -> Result<Vec<Conflict>> {
        away()
    }
}
