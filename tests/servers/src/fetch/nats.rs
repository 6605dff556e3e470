//! nats-server: built by Go, else the one of Debian.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail, ensure};

use super::command::{answers, command, run};
use super::{Cache, given};

const VARIABLE: &str = "MEMFLEET_NATS_SERVER";
const MODULE: &str = "github.com/nats-io/nats-server/v2@v2.15.2";
const BUILT: &str = "nats-server-2.15.2";
/// Older, and what we need of it works.
const PACKAGED: &str = "nats-server-debian";

/// The program: `MEMFLEET_NATS_SERVER`, else the cached one.
pub fn nats() -> Result<PathBuf> {
    let program = match given(VARIABLE) {
        Some(program) => program,
        None => from(&Cache::find()?)
            .map_err(|error| anyhow!("{error:#}; or {VARIABLE} names an installed nats-server"))?,
    };
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}

fn from(cache: &Cache) -> Result<PathBuf> {
    let built = || Some(cache.get(BUILT)?.join("nats-server"));
    let packaged = || Some(cache.get(PACKAGED)?.join("usr/sbin/nats-server"));
    if let Some(program) = built().or_else(packaged) {
        return Ok(program);
    }
    let mut reasons = Vec::new();
    if answers(&["go", "version"]) {
        match cache.get_or_make(BUILT, build) {
            Ok(folder) => return Ok(folder.join("nats-server")),
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    if answers(&["apt-get", "--version"]) && answers(&["dpkg-deb", "--version"]) {
        match cache.get_or_make(PACKAGED, unpack) {
            Ok(folder) => return Ok(folder.join("usr/sbin/nats-server")),
            Err(error) => reasons.push(format!("{error:#}")),
        }
    }
    if reasons.is_empty() {
        bail!(
            "nats-server is built by Go, else it is Debian's package: install Go, or run on Debian"
        );
    }
    bail!("{}", reasons.join("; "))
}

fn build(folder: &Path) -> Result<()> {
    // Without C it needs no compiler and runs whatever the machine's C library.
    let mut install = command(&["go", "install", MODULE]);
    run(install.env("GOBIN", folder).env("CGO_ENABLED", "0"))
}

/// Unpacked and not installed: the package would start a server of its own.
fn unpack(folder: &Path) -> Result<()> {
    let download = || {
        let mut download = command(&["apt-get", "download", "--quiet", "nats-server"]);
        run(download.current_dir(folder))
    };
    // A bare machine has no lists of packages, and only root may fetch them.
    if let Err(error) = download() {
        run(&mut command(&["apt-get", "update", "--quiet"])).map_err(|_| error)?;
        download()?;
    }
    let script = "dpkg-deb --extract nats-server_*.deb . && rm nats-server_*.deb";
    run(command(&["sh", "-c", script]).current_dir(folder))
}
