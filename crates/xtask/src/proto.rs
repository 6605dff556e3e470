//! The protos and their released baseline.

mod compatibility;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use prost::Message;
use prost_types::FileDescriptorSet;

const BASELINE: &str = "proto/released.binpb";

/// What the protos were compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The released ones.
    WithRelease,
    /// Nothing: there is no release yet. They compile.
    WithNothing,
}

/// Fails with every change that would break a client of the released protos.
pub fn check(root: &Path) -> Result<Compared> {
    let current = compile(root)?;
    let released = match fs::read(root.join(BASELINE)) {
        Ok(bytes) => FileDescriptorSet::decode(bytes.as_slice())
            .with_context(|| format!("{BASELINE} is damaged"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Compared::WithNothing),
        Err(error) => return Err(error).context(BASELINE),
    };
    let changes = compatibility::breaking_changes(&released, &current);
    if !changes.is_empty() {
        bail!(
            "{} incompatible changes against {BASELINE}:\n  {}",
            changes.len(),
            changes.join("\n  ")
        );
    }
    Ok(Compared::WithRelease)
}

/// Records the protos as released. Only for a release: what is recorded can no longer change incompatibly.
pub fn release(root: &Path) -> Result<()> {
    check(root)?;
    fs::write(root.join(BASELINE), compile(root)?.encode_to_vec()).context(BASELINE)
}

fn compile(root: &Path) -> Result<FileDescriptorSet> {
    let folder = root.join("proto");
    let mut files = Vec::new();
    collect(&folder, &mut files)?;
    files.sort();
    let mut set = protox::compile(&files, [&folder]).context("the protos do not compile")?;
    for file in &mut set.file {
        // Comments and positions are no part of the contract.
        file.source_code_info = None;
    }
    Ok(set)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "proto")
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_compatible_with_itself_and_guards_what_follows() {
        let root = std::env::temp_dir().join(format!("xtask-proto-{}", std::process::id()));
        fs::create_dir_all(root.join("proto/test")).unwrap();
        let write = |fields: &str| {
            let text =
                format!("syntax = \"proto3\";\npackage test;\nmessage Turn {{ {fields} }}\n");
            fs::write(root.join("proto/test/turn.proto"), text).unwrap();
        };
        write("string id = 1;");
        assert_eq!(check(&root).unwrap(), Compared::WithNothing);
        release(&root).unwrap();
        write("string id = 1; string text = 2;");
        assert_eq!(check(&root).unwrap(), Compared::WithRelease);
        write("bytes id = 1;");
        let refused = check(&root).unwrap_err().to_string();
        assert!(release(&root).is_err());
        fs::remove_dir_all(&root).unwrap();
        assert!(refused.contains("test.Turn.id"), "{refused}");
    }
}
