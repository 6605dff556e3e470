//! Drives the real `memfleet` binary from outside, as a user would: a process, its files, its gRPC address.

mod fleet;
mod journal;
mod tenant;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use memfleet_domain::ids::TenantId;
use memfleet_ports::context::Context;
use memfleet_rpc::Client;

pub use fleet::{Fleet, Role};
pub use journal::{Acknowledged, Journal, listed, said, settled};
pub use tenant::{OPERATOR_KEY, Tenant, key, known_keys};

/// A running node.
pub struct Node {
    process: Child,
    address: String,
}

impl Node {
    /// Starts a node whose database is `store` and waits until it says where it listens.
    pub async fn start(store: &Path) -> Result<Self> {
        let store = store.to_owned();
        tokio::task::spawn_blocking(move || Self::launch(&store, &[])).await?
    }

    /// The same with more environment, for example `MEMFLEET_AUTH__KEYS`.
    pub fn launch(store: &Path, environment: &[(&str, &str)]) -> Result<Self> {
        let mut command = up(store)?;
        command.envs(environment.iter().copied());
        Self::of(command)
    }

    /// Runs a command that becomes a node, and waits until it says where it listens.
    pub fn of(mut command: Command) -> Result<Self> {
        let mut process = command
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let output = process.stdout.take().context("standard output is piped")?;
        let mut lines = BufReader::new(output).lines();
        let Some(line) = lines.next() else {
            bail!("the node ended before it was ready: {}", process.wait()?);
        };
        let line = line?;
        let address = line
            .split("listening on ")
            .nth(1)
            .with_context(|| format!("unexpected first line: {line}"))?;
        Ok(Self {
            process,
            address: address.trim().to_owned(),
        })
    }

    /// The address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The id of the process.
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// A client of this node.
    pub async fn client(&self) -> Result<Client> {
        Ok(Client::connect(&self.url(), None).await?)
    }

    /// Runs a command of the client against this node.
    pub fn run(&self, arguments: &[&str]) -> Result<Output> {
        run(&self.url(), arguments)
    }

    /// Ends the process at once. What it wrote stays in the page cache, so this shows nothing of what a power cut leaves: a test
    /// of the SQLite adapter sees to the flushes.
    pub fn kill(mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Asks the process to stop and waits for its exit code.
    pub fn stop(mut self) -> Result<i32> {
        self.signal()?;
        self.process
            .wait()?
            .code()
            .context("the node ended by a signal")
    }

    /// Asks the process to stop.
    pub fn signal(&self) -> Result<()> {
        let asked = Command::new("kill")
            .arg("-TERM")
            .arg(self.process.id().to_string())
            .status()?;
        ensure!(asked.success(), "the node could not be signalled");
        Ok(())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _gone_already = self.process.kill();
        let _reaped_already = self.process.wait();
    }
}

/// The command that runs a node whose database is `store` on a free port.
pub fn up(store: &Path) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command
        .arg("up")
        .current_dir(store.parent().context("a store lies in a directory")?)
        .env("MEMFLEET_STORE__URL", format!("sqlite:{}", store.display()))
        .env("MEMFLEET_SERVER__ADDRESS", "127.0.0.1:0")
        .env("MEMFLEET_TELEMETRY__METRICS_ADDRESS", "off")
        .stdin(Stdio::null());
    Ok(command)
}

/// Runs a command of the client against the node at `url`.
pub fn run(url: &str, arguments: &[&str]) -> Result<Output> {
    Ok(client_command(url, arguments)?.output()?)
}

/// A command of the client against the node at `url`, without a key.
fn client_command(url: &str, arguments: &[&str]) -> Result<Command> {
    let mut command = Command::new(binary()?);
    command
        .args(arguments)
        .env("MEMFLEET_SERVER", url)
        .env_remove("MEMFLEET_API_KEY")
        .stdin(Stdio::null());
    Ok(command)
}

/// A call of the default tenant with a minute to go.
pub fn call() -> Context {
    let tenant = TenantId::new("default").expect("`default` is a valid name");
    Context::new(tenant, Duration::from_mins(1))
}

/// Whether any file beside the store holds these words.
pub fn in_files(store: &Path, words: &str) -> Result<bool> {
    for entry in std::fs::read_dir(store.parent().context("a store is in a folder")?)? {
        let bytes = std::fs::read(entry?.path())?;
        let mut windows = bytes.windows(words.len());
        if windows.any(|window| window == words.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The binary under test: `cargo xtask test` builds it, with the profile of these tests, before it
/// runs them. `MEMFLEET_TEST_PROGRAM` names another one, as for measurements.
pub fn binary() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("MEMFLEET_TEST_PROGRAM") {
        return Ok(program.into());
    }
    let tests = std::env::current_exe()?;
    let profile = tests
        .parent()
        .and_then(Path::parent)
        .context("tests lie in target/<profile>/deps")?;
    let binary = profile.join(format!("memfleet{}", std::env::consts::EXE_SUFFIX));
    ensure!(
        binary.is_file(),
        "{} is missing: run the tests with `cargo xtask test`",
        binary.display()
    );
    Ok(binary)
}
