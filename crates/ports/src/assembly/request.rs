//! What memory is asked to put into a prompt.

use memfleet_domain::assembly::{FailurePolicy, GateMode, Granularity, ProviderFormat};
use memfleet_domain::ids::{BatchId, DerivationId, ExchangeName, SessionId, SpaceId, Speaker};
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_domain::time::{TimeRange, Timestamp};
use memfleet_domain::turn::{Role, Trust};

use crate::retriever::Query;

/// The prompt under construction.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Prompt {
    /// It is not shown.
    #[default]
    Unknown,
    /// Its messages, oldest first.
    Messages(Vec<Message>),
    /// The request as it would go to the model's provider.
    Provider {
        /// What it is.
        format: ProviderFormat,
        /// Its body.
        body: Vec<u8>,
    },
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who wrote it.
    pub role: Role,
    /// What it says.
    pub content: Content,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Words.
    Text(String),
    /// Several parts.
    Parts(Vec<Part>),
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Whether the provider caches the prompt up to it: it is never edited.
    pub cached: bool,
}

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// Words.
    Text(String),
    /// Something else, by its MIME type.
    Media(String),
    /// What a tool gave back.
    ToolResult(String),
    /// Anything else.
    Opaque(Vec<u8>),
}

/// Memory for one prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembleRequest {
    /// What to find memory for, and where; its `k` bounds the candidates, and their `neighbours` are candidates of less worth. Its text
    /// may be empty: then it is what the user says last in the prompt, or the headlines of the narratives.
    pub query: Query,
    /// The prompt.
    pub prompt: Prompt,
    /// Only what was said of these; empty: anything.
    pub narratives: Vec<DerivationId>,
    /// Conversations that are excluded like that of the query.
    pub aliases: Vec<SessionId>,
    /// Person who speaks the prompt, for the section *who this is*; absent: the one user who spoke
    /// in the session of the query.
    pub speaker: Option<Speaker>,
    /// Which exchange of its session it is; absent: what the user says last names it.
    pub exchange: Option<ExchangeName>,
    /// The model that is called.
    pub model: ModelProfile,
    /// How memory enters, over what space and tenant say.
    pub policy: Policy,
    /// Name of the tokenizer that the budget is counted with; absent: the model's.
    pub tokenizer: Option<String>,
    /// Whether the provider's request is wanted with the edits in it.
    pub patch: bool,
    /// Writes that the answer must see.
    pub wait_for: Vec<BatchId>,
}

impl AssembleRequest {
    /// What a query finds, by the policies of space and tenant.
    pub fn new(query: Query) -> Self {
        Self {
            query,
            prompt: Prompt::Unknown,
            narratives: Vec::new(),
            aliases: Vec::new(),
            speaker: None,
            exchange: None,
            model: ModelProfile::default(),
            policy: Policy::default(),
            tokenizer: None,
            patch: false,
            wait_for: Vec::new(),
        }
    }

    /// All that a query finds and that fits, whatever gates say and however long it takes; a failure is one. For measuring.
    pub fn ungated(query: Query, budget_tokens: u32) -> Self {
        let mut policy = Policy::default();
        policy.gating.mode = Some(GateMode::Always);
        (policy.gating.relevance, policy.gating.best_relevance) = (Some(0.0), Some(0.0));
        policy.budget.max_tokens = Some(budget_tokens);
        policy.budget.max_item_tokens = Some(0);
        policy.budget.max_items = Some(0);
        policy.failure.policy = Some(FailurePolicy::Closed);
        policy.failure.deadline_ms = Some(600_000);
        Self {
            policy,
            ..Self::new(query)
        }
    }
}

/// Whether a prompt needs memory.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRequest {
    /// The words; empty: what the user says last in the prompt.
    pub text: String,
    /// The prompt.
    pub prompt: Prompt,
    /// The spaces that would be searched; at least one.
    pub spaces: Vec<SpaceId>,
    /// Its `gating` counts.
    pub policy: Policy,
}

/// A memory that a caller brings.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its id, unique in its source.
    pub id: String,
    /// What it says.
    pub text: String,
    /// How relevant it is, on any scale.
    pub score: f64,
    /// The calibrated probability that it bears on the query.
    pub relevance: Option<f32>,
    /// The memory system that it comes from.
    pub source: String,
    /// The session that it was said in; may be empty.
    pub session: String,
    /// Who said it; may be empty.
    pub speaker: String,
    /// In which part.
    pub role: Role,
    /// When it was said.
    pub event_time: Option<Timestamp>,
    /// When it was recorded.
    pub recorded_at: Option<Timestamp>,
    /// What kind of memory it is.
    pub granularity: Granularity,
    /// Where its words come from.
    pub trust: Trust,
    /// When it holds.
    pub valid: TimeRange,
    /// What it was derived from.
    pub lineage: Vec<String>,
    /// Sessions that it was derived from, besides its own.
    pub lineage_sessions: Vec<String>,
}

/// Memories of a caller, to be chosen from and rendered.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderRequest {
    /// The memories.
    pub candidates: Vec<Candidate>,
    /// What they were found with.
    pub query: String,
    /// The prompt.
    pub prompt: Prompt,
    /// Name of the tokenizer; absent: the model's.
    pub tokenizer: Option<String>,
    /// The running conversation.
    pub session: Option<SessionId>,
    /// Conversations that are excluded like it.
    pub aliases: Vec<SessionId>,
    /// The model that is called.
    pub model: ModelProfile,
    /// How memory enters, over what the tenant says.
    pub policy: Policy,
    /// Whether the provider's request is wanted with the edits in it.
    pub patch: bool,
    /// The present; absent: now.
    pub now: Option<Timestamp>,
    /// Delimits the block; absent: random.
    pub nonce: Option<String>,
}
