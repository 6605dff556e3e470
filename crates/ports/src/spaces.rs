//! Spaces, their settings, and the sessions in them.

use async_trait::async_trait;
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings};
use memfleet_domain::ids::TenantId;
use memfleet_domain::space::{LegalHold, Locale, Session, Space, SpaceSettings};
use memfleet_domain::time::Timestamp;

use crate::ledger::{Page, PageToken};
use crate::store::Result;

/// The catalogue of spaces.
#[async_trait]
pub trait SpaceCatalog: Send + Sync {
    /// Creates the space or changes its settings.
    async fn put(&self, scope: &Scope, settings: &SpaceSettings, now: Timestamp) -> Result<Space>;

    /// Puts the space on legal hold, or lifts the hold where there is none given; the space, if it exists. One that is on hold already
    /// is so since it was, for the reason that is given now. From its commit on [`crate::erasure::Erasure`] removes nothing of it.
    async fn hold(&self, scope: &Scope, hold: Option<&LegalHold>) -> Result<Option<Space>>;

    /// The space, if it exists. It exists from its first turn or `put` on, until it is forgotten as a whole.
    async fn get(&self, scope: &Scope) -> Result<Option<Space>>;

    /// How the space's text is read, if it exists, without the totals that [`Self::get`] adds up.
    async fn locale(&self, scope: &Scope) -> Result<Option<Locale>>;

    /// The embedding spaces that the space has vectors in; none where it was never written to. One
    /// that no process has named yet is left out.
    async fn embeddings(&self, scope: &Scope) -> Result<HeldEmbeddings>;

    /// [`Self::locale`] and [`Self::embeddings`] of a space that exists, in one read: a look that
    /// every search takes.
    async fn locale_and_embeddings(
        &self,
        scope: &Scope,
    ) -> Result<Option<(Locale, HeldEmbeddings)>> {
        let Some(locale) = self.locale(scope).await? else {
            return Ok(None);
        };
        Ok(Some((locale, self.embeddings(scope).await?)))
    }

    /// Tells the store an embedding space whose model is here: it may have vectors of it by a hash
    /// alone.
    async fn name_embedding(&self, _: &EmbeddingSpace) -> Result<()> {
        Ok(())
    }

    /// The spaces of a tenant by name.
    async fn list(
        &self,
        tenant: &TenantId,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Space>>;

    /// The sessions of a space, by the time of their first turn.
    async fn sessions(
        &self,
        scope: &Scope,
        limit: u32,
        after: Option<&PageToken>,
    ) -> Result<Page<Session>>;
}
