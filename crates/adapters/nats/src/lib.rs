//! The ingestion queue of a fleet: NATS JetStream behind the ports [`memfleet_ports::queue`] and
//! [`memfleet_ports::undelivered`], what processes announce to each other ([`memfleet_ports::events`]), and the stream of what happened
//! ([`memfleet_ports::outbox`]).
//!
//! One work-queue stream holds what waits, one stream the dead letters. Subjects are the index (`subject`): how full the queue is,
//! where a batch is and what a space has waiting is asked of the server's index of subjects. The position of acceptance
//! is the place in the stream; what is put back later names its old position in its subject. Each lane of tenants has one
//! durable consumer that all processes share (`taking`), and each process says that it lives as long as it holds
//! something.
//!
//! A publish is as durable as the server makes it: a single server flushes its files every two minutes unless it is told
//! `sync_interval: always`, so that it survives `kill -9` but not a power cut; a cluster has each message on several machines.

mod admission;
mod api;
mod bridge;
mod buffer;
mod buried;
mod difference;
mod events;
mod failure;
mod lanes;
mod letters;
mod link;
mod lookup;
mod message;
mod names;
mod options;
mod publish;
mod queue;
mod receiving;
mod replay;
mod shared;
mod streams;
mod subject;
mod taking;
mod tries;
mod undelivered;
mod wake;
mod withdraw;

pub use self::difference::Difference;
pub use self::options::{Auth, Options, OptionsError, Tls};
pub use self::queue::NatsQueue;
