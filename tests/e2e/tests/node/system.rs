//! The system under test: one node.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::Result;
use memfleet_e2e::{Node, OPERATOR_KEY, RULES, Tenant, known_keys};
use tempfile::TempDir;

/// A tenant of a node on a store of its own.
pub struct Fresh {
    tenant: Tenant,
    pub node: Node,
    pub store: PathBuf,
    directory: TempDir,
}

impl Deref for Fresh {
    type Target = Tenant;

    fn deref(&self) -> &Tenant {
        &self.tenant
    }
}

impl Fresh {
    /// Ends the process at once; the files stay as long as the answer lives.
    pub fn kill(self) -> Result<TempDir> {
        self.node.kill()?;
        Ok(self.directory)
    }

    /// Another tenant of the same system.
    pub async fn other(&self) -> Result<Tenant> {
        Tenant::connect(self.url(), 1).await
    }
}

/// A node on this store, and the tenant that [`fresh`] gave.
pub async fn open(store: &Path) -> Result<(Node, Tenant)> {
    open_with(store, &[RULES]).await
}

async fn open_with(store: &Path, settings: &[(&str, &str)]) -> Result<(Node, Tenant)> {
    let keys = known_keys();
    let keys = [
        ("MEMFLEET_AUTH__KEYS", &*keys),
        ("MEMFLEET_AUTH__BOOTSTRAP_KEY", OPERATOR_KEY),
    ];
    let node = Node::launch(store, &[&keys, settings].concat())?;
    let tenant = Tenant::connect(&node.url(), 0).await?;
    Ok((node, tenant))
}

/// The only tenant of a node whose facts are statements.
pub async fn reading() -> Result<Fresh> {
    start(&[]).await
}

/// A tenant that has nothing yet.
pub async fn fresh() -> Result<Fresh> {
    start(&[RULES]).await
}

async fn start(settings: &[(&str, &str)]) -> Result<Fresh> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let (node, tenant) = open_with(&store, settings).await?;
    Ok(Fresh {
        tenant,
        node,
        store,
        directory,
    })
}
