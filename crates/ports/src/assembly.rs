//! The public API of context assembly (AMP, the Augmented Memory Protocol).

mod answer;
mod request;

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::model_profile::ModelProfile;

use crate::context::Context;

pub use answer::{
    Assembled, AssembledItem, BudgetUse, Dropped, Edit, EditOperation, GateEntry, Gated,
    ProfileUse, Source,
};
pub use request::{
    AssembleRequest, Candidate, Content, GateRequest, Message, Part, PartKind, Prompt,
    RenderRequest,
};

/// Tokens of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    /// One a text.
    pub counts: Vec<u32>,
    /// What counted.
    pub tokenizer: TokenizerInfo,
    /// All that there are.
    pub tokenizers: Vec<TokenizerInfo>,
}

/// A tokenizer by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenizerInfo {
    /// Its name.
    pub name: String,
    /// Whether it counts more than there is, since the real one is not public.
    pub approximate: bool,
}

/// The `Assembly` service.
#[async_trait]
pub trait Assembly: Send + Sync {
    /// Chooses and renders the memory that belongs in a prompt, and says where it goes.
    async fn assemble(
        &self,
        context: &Context,
        request: AssembleRequest,
    ) -> Result<Assembled, Fault>;

    /// What the first two gates say of a prompt.
    async fn gate(&self, context: &Context, request: GateRequest) -> Result<Gated, Fault>;

    /// Chooses from and renders what the caller brings.
    async fn render(&self, context: &Context, request: RenderRequest) -> Result<Assembled, Fault>;

    /// Tokens of each text.
    async fn count_tokens(
        &self,
        context: &Context,
        tokenizer: &str,
        texts: &[String],
    ) -> Result<Counted, Fault>;

    /// The models that are known, by name.
    async fn model_profiles(&self, context: &Context) -> Result<Vec<ModelProfile>, Fault>;

    /// Sets the tenant's profile of a model; with how often it was set.
    async fn put_model_profile(
        &self,
        context: &Context,
        profile: ModelProfile,
    ) -> Result<(ModelProfile, u32), Fault>;
}
