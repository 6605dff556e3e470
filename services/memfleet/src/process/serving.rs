//! What a process answers: the public API where it has the gateway, else its role to the rest of the fleet.

use std::sync::Arc;

use memfleet_ports::access::Authority;
use memfleet_ports::refresher::Refresher;
use memfleet_ports::retriever::Retriever;
use memfleet_rpc::fleet::server::{Roles, routes as fleet_routes};
use memfleet_rpc::proto;
use memfleet_rpc::server::{Bounds, Host, Services, routes};
use memfleet_runtime::lifecycle::{Lifecycle, Policy};
use memfleet_runtime::server::{Deadline, Entrance, Server};
use memfleet_tls::{Acceptor, Callers};

use super::Process;
use crate::config::Config;

impl Process {
    /// Answers calls until the process stops.
    pub fn serve(&self, config: &Config, server: Server, process: &mut Lifecycle) {
        // The shell has read how long the caller waits.
        let host = Host {
            due: Deadline::of,
            enter: Entrance::of,
        };
        let options = &config.server;
        let bounds = Bounds {
            max_request_bytes: options.max_request_size.as_usize(),
            max_prompt_bytes: options.max_prompt_size.as_usize(),
            max_response_bytes: options.max_response_size.as_usize(),
            default_deadline: options.default_deadline.get(),
        };
        let (routes, descriptors) = match &self.gateway {
            Some(gateway) => {
                let services = Services::by(gateway);
                let authority: Arc<dyn Authority> = gateway.access.clone();
                let routes = routes(services, &authority, bounds, host);
                (routes, proto::DESCRIPTORS)
            }
            None => {
                let credential = config.internal.credential();
                let routes = fleet_routes(self.roles(), credential, bounds, host);
                (routes, proto::internal::DESCRIPTORS)
            }
        };
        let server = server.encrypted(self.acceptor(config));
        process.spawn("server", Policy::Essential, move |stop| async move {
            server.serve(routes, &[descriptors], stop).await
        });
    }

    /// Callers of the gateway say in each call who they are; roles believe those with a certificate of the fleet, where it has
    /// an authority.
    fn acceptor(&self, config: &Config) -> Option<Acceptor> {
        let is_mutual = self.gateway.is_none() && config.tls.is_mutual();
        let callers = if is_mutual {
            Callers::Certified
        } else {
            Callers::Anyone
        };
        self.tls.as_ref()?.acceptor(callers)
    }

    fn roles(&self) -> Roles {
        let retriever = self.retriever.clone();
        let refresher = self.refresher.clone();
        Roles {
            embedder: self.embedder.clone(),
            turn_reader: self.turn_reader.clone(),
            retriever: retriever.map(|retriever| retriever as Arc<dyn Retriever>),
            refresher: refresher.map(|refresher| refresher as Arc<dyn Refresher>),
        }
    }
}
