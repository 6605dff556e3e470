//! Compiles the protos without protoc, and keeps the descriptors, comments included, for reflection: of the public API, and
//! of what the roles say to each other.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

const PUBLIC: [&str; 11] = [
    "memory",
    "assembly",
    "policies",
    "audit",
    "tools",
    "capture",
    "knowledge",
    "spaces",
    "sessions",
    "maintenance",
    "admin",
];
const INTERNAL: [&str; 4] = ["embedder", "turn_reader", "retriever", "refresher"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let public = compile(&root, "memfleet/v1", &PUBLIC)?;
    write("memfleet.v1.bin", &public)?;
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(public)?;
    let mut internal = compile(&root, "memfleet/internal/v1", &INTERNAL)?;
    // Messages of the public API are used, its services are not served beside.
    let imported = internal.file.iter_mut();
    let imported = imported.filter(|file| file.package() != "memfleet.internal.v1");
    imported.for_each(|file| file.service.clear());
    write("memfleet.internal.v1.bin", &internal)?;
    tonic_prost_build::configure()
        .btree_map(".")
        .extern_path(".memfleet.v1", "crate::proto")
        .compile_fds(internal)?;
    Ok(())
}

fn compile(root: &Path, folder: &str, names: &[&str]) -> Result<FileDescriptorSet, Box<dyn Error>> {
    let mut compiler = protox::Compiler::new([root])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(names.iter().map(|name| format!("{folder}/{name}.proto")))?;
    Ok(compiler.file_descriptor_set())
}

fn write(name: &str, descriptors: &FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    let output = PathBuf::from(env::var("OUT_DIR")?);
    Ok(fs::write(output.join(name), descriptors.encode_to_vec())?)
}
