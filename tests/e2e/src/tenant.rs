//! A tenant of a running system: what its backend and its people at a terminal can do with their key.

use std::path::PathBuf;
use std::process::Output;

use anyhow::{Result, ensure};
use memfleet_domain::access::KeyHash;
use memfleet_domain::ids::TenantId;
use memfleet_rpc::Client;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};

use crate::client_command;

/// Tenants that a system knows.
const TENANTS: usize = 64;

/// The key of whoever runs the system.
pub const OPERATOR_KEY: &str = "memfleet-the-key-of-an-operator-under-test";

/// Their keys as `auth.keys` takes them.
pub fn known_keys() -> String {
    let entry = |number| {
        let name = TenantId::new(format!("tenant-{number}")).expect("a short name");
        format!("\"{name}:{}\"", KeyHash::of(&key(number)))
    };
    let entries = (0..TENANTS).map(entry).collect::<Vec<_>>();
    format!("[{}]", entries.join(","))
}

/// The key of the tenant with this number.
pub fn key(number: usize) -> String {
    format!("the-key-of-{number}")
}

/// A tenant, by its key.
pub struct Tenant {
    /// Its client.
    pub client: Client,
    url: String,
    key: String,
    authority: Option<PathBuf>,
}

impl Tenant {
    /// One of the tenants that [`known_keys`] names.
    pub async fn connect(url: &str, number: usize) -> Result<Self> {
        Self::connect_believing(url, number, None).await
    }

    /// The same at an `https` URL whose authority is in this file.
    pub async fn connect_believing(
        url: &str,
        number: usize,
        authority: Option<PathBuf>,
    ) -> Result<Self> {
        ensure!(number < TENANTS, "the keys are used up");
        Self::believing(url, &key(number), authority).await
    }

    /// Whoever has this key.
    pub async fn with(url: &str, key: &str) -> Result<Self> {
        Self::believing(url, key, None).await
    }

    async fn believing(url: &str, key: &str, authority: Option<PathBuf>) -> Result<Self> {
        Ok(Self {
            client: Client::connect_believing(url, Some(key), authority.clone()).await?,
            url: url.to_owned(),
            key: key.to_owned(),
            authority,
        })
    }

    /// Where the system is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A message of a stock client, with the key.
    pub fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        let value: MetadataValue<Ascii> = format!("Bearer {}", self.key)
            .parse()
            .expect("keys are ASCII");
        request.metadata_mut().insert("authorization", value);
        request
    }

    /// Runs a command of the client.
    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = client_command(&self.url, arguments)?;
        let authority = self.authority.iter();
        command.envs(authority.map(|path| ("MEMFLEET_CA", path)));
        Ok(command.env("MEMFLEET_API_KEY", &self.key).output()?)
    }

    /// The same for a command that must succeed: what it printed.
    pub fn printed(&self, arguments: &[&str]) -> Result<String> {
        let output = self.run(arguments)?;
        ensure!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}
