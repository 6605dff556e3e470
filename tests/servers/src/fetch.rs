//! Programs of the servers, each of one version, fetched once into a cache outside the checkout.

mod cache;
mod command;
mod grpcurl;
mod nats;
mod neo4j;
mod postgres;
mod wheel;

use std::env;
use std::path::PathBuf;

pub use cache::Cache;
pub use grpcurl::grpcurl;
pub use nats::nats;
pub use neo4j::{java, neo4j};
pub use postgres::{earlier_postgres, postgres};

/// A path that the user gave.
fn given(variable: &str) -> Option<PathBuf> {
    let value = env::var_os(variable)?;
    (!value.is_empty()).then(|| value.into())
}
