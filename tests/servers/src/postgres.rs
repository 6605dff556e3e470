//! A PostgreSQL server with pgvector.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use rustix::process::Pid;

use crate::home::Home;
use crate::server::Server;
use crate::supervisor::Recipe;
use crate::{fetch, port};

/// The superuser; it needs no password from this machine.
const SUPERUSER: &str = "postgres";

/// What a commit is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Commits survive the death of the server. Quick.
    #[default]
    Process,
    /// Commits survive the death of the machine, as in production: every commit waits for the disk.
    Machine,
}

/// A server of its own data. Ends, and takes the data along, when it is dropped.
#[derive(Debug)]
pub struct Postgres {
    server: Server,
    binaries: PathBuf,
    port: u16,
}

impl Postgres {
    /// A new, empty server whose data lies under the folder.
    pub fn start(folder: &Path, durability: Durability) -> Result<Self> {
        Self::start_from(&fetch::postgres()?, folder, durability)
    }

    /// The same, from the programs in a folder.
    pub fn start_from(binaries: &Path, folder: &Path, durability: Durability) -> Result<Self> {
        // The server runs in another folder.
        let binaries = std::path::absolute(binaries)?;
        let home = Home::create(folder, "postgres")?;
        initialise(&binaries, &home)?;
        let port = port::free()?;
        let recipe = Recipe {
            name: "PostgreSQL",
            program: binaries.join("postgres"),
            arguments: arguments(&home.data(), port, durability),
            // Ends the backends too, and frees what they share.
            end: "QUIT",
        };
        Ok(Self {
            server: Server::start(home, recipe, &is_ready)?,
            binaries,
            port,
        })
    }

    /// The address, for the superuser and the database of the same name.
    pub fn url(&self) -> String {
        let port = self.port;
        format!("postgres://{SUPERUSER}@127.0.0.1:{port}/{SUPERUSER}")
    }

    /// The folder with `psql`, `pg_dump` and the like.
    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    /// The id of the postmaster, while it runs.
    pub fn process(&self) -> Option<u32> {
        self.server.process()
    }

    /// Ends the server in order: clients are cut off, everything is written.
    pub fn stop(&mut self) -> Result<()> {
        self.server.stop()
    }

    /// Kills all of the server's processes (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        self.server.kill()
    }

    /// Starts on the same port and data, after a stop if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.server.stop()?;
        self.server.start_again(&is_ready)
    }

    /// Stops the server and copies its data to a folder that is not there yet; it is not started again.
    pub fn copy_to(&mut self, folder: &Path) -> Result<()> {
        self.server.copy_to(folder)
    }

    /// Replaces the data by such a copy; the server is stopped for it and not started again.
    pub fn put_back(&mut self, folder: &Path) -> Result<()> {
        self.server.put_back(folder)
    }

    /// Stops all of the server's processes where they are (SIGSTOP): connections stay open and nothing answers.
    pub fn pause(&self) -> Result<()> {
        self.server.pause()
    }

    /// Lets a paused server go on.
    pub fn resume(&self) -> Result<()> {
        self.server.resume()
    }
}

fn initialise(binaries: &Path, home: &Home) -> Result<()> {
    let program = binaries.join("initdb");
    let status = home
        .command(&program)?
        .args(["-U", SUPERUSER, "--auth=trust", "-E", "UTF8", "--locale=C"])
        // A machine that dies takes the test with it.
        .args(["--no-sync", "--no-instructions", "-D"])
        .arg(home.data())
        .stdin(Stdio::null())
        .stdout(home.log()?)
        .stderr(home.log()?)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !status.success() {
        let program = program.display();
        bail!("{program}: {status}:\n{}", home.last_words());
    }
    Ok(())
}

fn arguments(data: &Path, port: u16, durability: Durability) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-D".into(), data.into(), "-p".into()].into();
    arguments.push(port.to_string().into());
    let written = match durability {
        Durability::Process => "off",
        Durability::Machine => "on",
    };
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "max_connections=200".to_owned(),
        "shared_buffers=32MB".to_owned(),
        // Shared memory of a container is small, and what lies with the data goes with it.
        "dynamic_shared_memory_type=mmap".to_owned(),
        format!("fsync={written}"),
        format!("full_page_writes={written}"),
    ];
    for setting in settings {
        arguments.extend(["-c".into(), setting.into()]);
    }
    arguments
}

/// The postmaster says so itself in its file, as it does to `pg_ctl`. The file of one that was killed is still there.
fn is_ready(home: &Home, postmaster: Pid) -> bool {
    let said = fs::read_to_string(home.data().join("postmaster.pid"));
    said.is_ok_and(|said| says_ready(&said, &postmaster.to_string()))
}

fn says_ready(said: &str, postmaster: &str) -> bool {
    let mut lines = said.lines().map(str::trim);
    lines.next() == Some(postmaster) && lines.nth(6) == Some("ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_postmaster_is_ready_when_it_says_so() {
        let said = "71\n/data\n1700000000\n5432\n\n127.0.0.1\n  1 2\nready   \n";
        assert!(says_ready(said, "71"));
        assert!(!says_ready(&said.replace("ready ", "starting"), "71"));
        assert!(!says_ready("71\n/data\n", "71"));
        assert!(!says_ready(said, "72"), "another one said so");
    }

    #[test]
    fn a_commit_waits_for_the_disk_only_where_it_must_survive_the_machine() {
        let of = |durability| arguments(Path::new("/data"), 5432, durability);
        assert!(of(Durability::Process).contains(&"fsync=off".into()));
        assert!(of(Durability::Machine).contains(&"fsync=on".into()));
    }
}
