//! The gateway: the public API's use-cases. It checks, names and accepts turns, waits for writes that a read must see, asks
//! the retriever, and renders what fits a prompt. The wire is `memfleet-rpc`'s business.
//!
//! `memory` is the `Memory` service, `knowledge` the `Knowledge` service, `assemble` the `Assembly` service, `tools` the `Tools` service,
//! `capture` the `Capture` service, `policies` the `Policies` service, `injections` the `Audit` service, `maintain` the `Maintenance` service, `admin` the `Admin`
//! service; `conversations` knows again those that nobody names, by `digests`; `settings` is how memory enters the prompts of a tenant; `access` decides who may call them. `known` brings to what was found what memory knows of it, `answer` answers
//! questions from it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod access;
mod admin;
mod answer;
mod assemble;
mod audit;
mod candidates;
mod capture;
mod conversations;
mod digests;
mod excerpts;
mod graph;
mod hit_need;
mod imagining;
mod injections;
mod keeping;
mod knowledge;
mod known;
mod maintain;
mod memory;
pub mod node_policy;
mod policies;
pub mod settings;
pub mod shares;
mod tools;
mod understanding;

use std::sync::Arc;
use std::time::Duration;

use memfleet_assembly::Tokenizers;
use memfleet_domain::Clock;
use memfleet_domain::quality::SearchQuality;
use memfleet_ports::embedder::Embedder;
use memfleet_ports::events::Events;
use memfleet_ports::exchanges::Exchanges;
use memfleet_ports::graph::Graph;
use memfleet_ports::health::Health;
use memfleet_ports::injections::Injections;
use memfleet_ports::knowledge::Knowledge;
use memfleet_ports::ledger::Ledger;
use memfleet_ports::model_switch::ModelSwitches;
use memfleet_ports::queue::IngestQueue;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::retriever::Retriever;
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::turn_reader::TurnReader;
use memfleet_ports::usage::UsageLedger;
use memfleet_prompts::Adviser;

use access::Access;
pub use assemble::Routing;
pub use digests::Keys;
use node_policy::NodePolicy;
use settings::SettingsCache;
use shares::TenantShares;
pub use tools::ToolRejections;

/// What the gateway works with.
#[derive(Clone)]
pub struct Gateway {
    /// Accepts turns.
    pub queue: Arc<dyn IngestQueue>,
    /// Gives turns back.
    pub ledger: Arc<dyn Ledger>,
    /// Which spaces exist.
    pub spaces: Arc<dyn SpaceCatalog>,
    /// Facts and episodes, how they changed, and what contradicts what.
    pub knowledge: Arc<dyn Knowledge>,
    /// Who is connected to what, where a graph is kept.
    pub graph: Option<Arc<dyn Graph>>,
    /// Searches.
    pub retriever: Arc<dyn Retriever>,
    /// Forgets, corrects and undoes.
    pub refresher: Arc<dyn Refresher>,
    /// The language model that answers questions, where one is configured.
    pub author: Option<Adviser>,
    /// Named in the node's status.
    pub embedder: Arc<dyn Embedder>,
    /// Reads which found turns a prompt needs.
    pub reader: Arc<dyn TurnReader>,
    /// Changes of the embedding model.
    pub switches: Arc<dyn ModelSwitches>,
    /// Wakes readers that wait for a write.
    pub events: Events,
    /// How the parts are that may fail while the rest goes on.
    pub health: Health,
    /// What language models cost.
    pub usage: Arc<dyn UsageLedger>,
    /// How memory enters prompts where no tenant says otherwise.
    pub policy: Arc<NodePolicy>,
    /// How memory enters the prompts of each tenant.
    pub settings: Arc<SettingsCache>,
    /// What the requests of one exchange share.
    pub exchanges: Arc<dyn Exchanges>,
    /// Keys of digests as they were read last.
    pub keys: Arc<Keys>,
    /// What entered which prompt.
    pub injections: Arc<dyn Injections>,
    /// What counts tokens.
    pub tokenizers: Tokenizers,
    /// The second gate of AMP.
    pub routing: Arc<Routing>,
    /// Models that took no tools lately.
    pub rejections: Arc<ToolRejections>,
    /// Calls that compute.
    pub shares: Arc<TenantShares>,
    /// Who may call, how much, and what is written down of it.
    pub access: Arc<Access>,
    /// Recorded time.
    pub clock: Arc<dyn Clock>,
    /// Bounds.
    pub options: Options,
}

/// Bounds of the gateway.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Turns that may wait in the queue …
    pub max_queued_turns: u64,
    /// … and bytes. Of both a tenant gets at most half of what the others leave; beyond that `Remember` is
    /// `RESOURCE_EXHAUSTED`.
    pub max_queued_bytes: u64,
    /// Exchanges under way of a tenant, and conversations that are known again, beyond which those that end first go …
    pub max_exchanges: u32,
    /// … and injections, the oldest first.
    pub max_injections: u32,
    /// Quality of searches that do not name one.
    pub quality: SearchQuality,
    /// How long a profile or a timeline waits for the graph to say which other names somebody has. Without an answer it is of the one name.
    pub names_within: Duration,
    /// Longest time that an answer or a block waits for the facts of the writes that it is to see,
    /// where half of the time that the call has left allows it.
    pub facts_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_queued_turns: 100_000,
            max_queued_bytes: 256 << 20,
            max_exchanges: 100_000,
            max_injections: 1_000_000,
            quality: SearchQuality::Fast,
            names_within: Duration::from_secs(5),
            facts_within: Duration::from_secs(5),
        }
    }
}
