//! The system under test: one fleet, shared by all scenarios, each with a tenant of its own.

use std::ops::Deref;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use memfleet_e2e::{Fleet, Tenant};
use memfleet_servers::NEO4J_URL;

/// Never dropped: it ends with this process.
static FLEET: LazyLock<Fleet> = LazyLock::new(|| start().expect("the fleet starts"));

/// With a semantic graph, which is slow while the machine builds and tests.
fn start() -> Result<Fleet> {
    let graph = std::env::var(NEO4J_URL).context("`cargo xtask test` starts the servers")?;
    let settings = [
        ("MEMFLEET_GRAPH__URL", graph),
        ("MEMFLEET_GRAPH__TIMEOUT", "1m".to_owned()),
    ];
    Fleet::start_with_settings(&settings)
}

/// The next tenant that nobody has been yet.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A tenant of the fleet.
pub struct Fresh(Tenant);

impl Deref for Fresh {
    type Target = Tenant;

    fn deref(&self) -> &Tenant {
        &self.0
    }
}

impl Fresh {
    /// Another tenant of the same system.
    pub async fn other(&self) -> Result<Tenant> {
        Ok(fresh().await?.0)
    }
}

/// A tenant that has nothing yet.
pub async fn fresh() -> Result<Fresh> {
    let url = tokio::task::spawn_blocking(|| FLEET.url()).await?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    Ok(Fresh(Tenant::connect(&url, number).await?))
}
