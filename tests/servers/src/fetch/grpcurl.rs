//! grpcurl, which a sample of the README calls: built by Go.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, ensure};

use super::command::{command, run};
use super::{Cache, given};

const VARIABLE: &str = "MEMFLEET_GRPCURL";
const MODULE: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";
const BUILT: &str = "grpcurl-1.9.3";

/// The program: `MEMFLEET_GRPCURL`, else the cached one.
pub fn grpcurl() -> Result<PathBuf> {
    let program = match given(VARIABLE) {
        Some(program) => program,
        None => Cache::find()?
            .get_or_make(BUILT, build)
            .map_err(|error| anyhow!("{error:#}; or {VARIABLE} names an installed grpcurl"))?
            .join("grpcurl"),
    };
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}

fn build(folder: &Path) -> Result<()> {
    let mut install = command(&["go", "install", MODULE]);
    run(install.env("GOBIN", folder).env("CGO_ENABLED", "0"))
}
