//! The system under test: one node.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::Result;
use memfleet_e2e::{Node, OPERATOR_KEY, Tenant, known_keys};
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
    let settings = [
        ("MEMFLEET_AUTH__KEYS", &*known_keys()),
        ("MEMFLEET_AUTH__BOOTSTRAP_KEY", OPERATOR_KEY),
    ];
    let node = Node::launch(store, &settings)?;
    let tenant = Tenant::connect(&node.url(), 0).await?;
    Ok((node, tenant))
}

/// A tenant that has nothing yet.
pub async fn fresh() -> Result<Fresh> {
    let directory = tempfile::tempdir()?;
    let store = directory.path().join("memory.db");
    let (node, tenant) = open(&store).await?;
    Ok(Fresh {
        tenant,
        node,
        store,
        directory,
    })
}
