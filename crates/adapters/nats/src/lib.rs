//! The ingestion queue of a fleet: NATS JetStream behind the ports [`memfleet_ports::queue`] and
//! [`memfleet_ports::undelivered`].

mod admission;
mod api;
mod bridge;
mod buffer;
mod lanes;
mod letters;
mod link;
mod lookup;
mod message;
mod options;
mod publish;
mod queue;
mod replay;
mod shared;
mod streams;
mod subject;
mod taking;
mod undelivered;
mod wake;

pub use self::options::{Auth, Options, OptionsError, Tls};
pub use self::queue::NatsQueue;
pub use self::streams::Difference;
