//! gRPC services over the traits of `memfleet-ports`: [`routes`] makes all of them, behind authentication, with bounded
//! messages and deadlines.

mod access;
mod admin;
mod answers;
mod assembly;
mod calls;
mod capture;
mod injections;
mod knowledge;
mod maintenance;
mod memory;
mod policies;
mod sessions;
mod spaces;
mod tools;
mod unreadable;

use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
use memfleet_ports::access::Authority;
use memfleet_ports::admin::Admin;
use memfleet_ports::assembly::Assembly;
use memfleet_ports::capture::Capture;
use memfleet_ports::injections_api::Audit;
use memfleet_ports::knowledge_api::KnowledgeService;
use memfleet_ports::maintenance::Maintenance;
use memfleet_ports::memory::Memory;
use memfleet_ports::policies::Policies;
use memfleet_ports::tools::Tools;
use tokio::time::Instant;
use tonic::Status;
use tonic::service::{LayerExt, Routes};
use tower::util::MapResponseLayer;

use unreadable::Limit;

use crate::auth::{AuthLayer, Public};
use crate::proto::admin_server::AdminServer;
use crate::proto::assembly_server::AssemblyServer;
use crate::proto::audit_server::AuditServer;
use crate::proto::capture_server::CaptureServer;
use crate::proto::knowledge_server::KnowledgeServer;
use crate::proto::maintenance_server::MaintenanceServer;
use crate::proto::memory_server::MemoryServer;
use crate::proto::policies_server::PoliciesServer;
use crate::proto::sessions_server::SessionsServer;
use crate::proto::spaces_server::SpacesServer;
use crate::proto::tools_server::ToolsServer;

pub(crate) use access::Admitted;
pub(crate) use calls::Calls;

/// What answers the calls.
#[derive(Clone)]
pub struct Services {
    /// The services Memory, Spaces and Sessions.
    pub memory: Arc<dyn Memory>,
    /// The service Assembly.
    pub assembly: Arc<dyn Assembly>,
    /// The service Policies.
    pub policies: Arc<dyn Policies>,
    /// The service Audit.
    pub audit: Arc<dyn Audit>,
    /// The service Tools.
    pub tools: Arc<dyn Tools>,
    /// The service Capture.
    pub capture: Arc<dyn Capture>,
    /// The service Knowledge.
    pub knowledge: Arc<dyn KnowledgeService>,
    /// The service Maintenance.
    pub maintenance: Arc<dyn Maintenance>,
    /// The service Admin.
    pub admin: Arc<dyn Admin>,
}

impl Services {
    /// One that answers all calls.
    pub fn by<S>(all: &Arc<S>) -> Self
    where
        S: Memory
            + Assembly
            + Policies
            + Audit
            + Tools
            + Capture
            + KnowledgeService
            + Maintenance
            + Admin
            + 'static,
    {
        Self {
            memory: all.clone(),
            assembly: all.clone(),
            policies: all.clone(),
            audit: all.clone(),
            tools: all.clone(),
            capture: all.clone(),
            knowledge: all.clone(),
            maintenance: all.clone(),
            admin: all.clone(),
        }
    }
}

/// Bounds of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Largest message that is accepted, in bytes. Default 16 MiB.
    pub max_request_bytes: usize,
    /// The same for the services `Assembly` and `Capture`, whose messages hold prompts with all their pictures; never less than the other.
    /// Default 32 MiB.
    pub max_prompt_bytes: usize,
    /// Largest message that is sent, in bytes. Default 64 MiB.
    pub max_response_bytes: usize,
    /// Time of each message of `RememberStream`, and of a single call that nobody gave a deadline. Default 30 s.
    pub default_deadline: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            max_request_bytes: 16 << 20,
            max_prompt_bytes: 32 << 20,
            max_response_bytes: 64 << 20,
            default_deadline: Duration::from_secs(30),
        }
    }
}

/// When a call's answer is due, as whoever serves the routes noted it in the request's extensions: there the caller's
/// `grpc-timeout` is read and bounded. None: a stream that lasts as long as its caller likes.
pub type Due = fn(&Extensions) -> Option<Instant>;

/// Takes a place for a call whose tenant, and credential where it has one, are known, or says why there is none.
pub type Enter = fn(&Extensions, &str, Option<&str>) -> Result<(), Status>;

/// Parts of a call that whoever serves the routes looks after, from the extensions of its request.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// When its answer is due.
    pub due: Due,
    /// Its place among the calls in progress: asked for once its caller is known, before anything else of it is read.
    pub enter: Enter,
}

/// Every service of `memfleet.v1`, for callers whom `authority` knows. Add health and reflection (of [`crate::proto::DESCRIPTORS`]) beside
/// them: those stay open.
pub fn routes(
    services: Services,
    authority: &Arc<dyn Authority>,
    bounds: Bounds,
    host: Host,
) -> Routes {
    let due = host.due;
    let calls = Calls { bounds, due };
    let of_all = Limit::of_requests(bounds);
    let of_prompts = Limit::of_prompts(bounds);
    let layers = |limit: Limit| {
        let explain = MapResponseLayer::new(move |answer| unreadable::explain(answer, limit));
        (AuthLayer(Public(authority.clone()), host.enter), explain)
    };
    let Services {
        memory,
        assembly,
        policies,
        audit,
        tools,
        capture,
        knowledge,
        maintenance,
        admin,
    } = services;
    macro_rules! bounded {
        ($server:ident, $service:expr) => {
            bounded!($server, $service, of_all)
        };
        ($server:ident, $service:expr, $limit:ident) => {
            layers($limit).named_layer(
                $server::new($service)
                    .max_decoding_message_size($limit.bytes)
                    .max_encoding_message_size(bounds.max_response_bytes),
            )
        };
    }
    Routes::default()
        .add_service(bounded!(
            MemoryServer,
            memory::Service {
                memory: memory.clone(),
                calls
            }
        ))
        .add_service(bounded!(
            SpacesServer,
            spaces::Service {
                memory: memory.clone(),
                calls
            }
        ))
        .add_service(bounded!(
            SessionsServer,
            sessions::Service { memory, calls }
        ))
        .add_service(bounded!(
            AssemblyServer,
            assembly::Service { assembly, calls },
            of_prompts
        ))
        .add_service(bounded!(ToolsServer, tools::Service { tools, calls }))
        .add_service(bounded!(
            CaptureServer,
            capture::Service { capture, calls },
            of_prompts
        ))
        .add_service(bounded!(
            PoliciesServer,
            policies::Service { policies, calls }
        ))
        .add_service(bounded!(AuditServer, injections::Service { audit, calls }))
        .add_service(bounded!(
            KnowledgeServer,
            knowledge::Service { knowledge, calls }
        ))
        .add_service(bounded!(
            MaintenanceServer,
            maintenance::Service { maintenance, calls }
        ))
        .add_service(bounded!(AdminServer, admin::Service { admin, calls }))
}
