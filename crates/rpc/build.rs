//! Compiles `proto/memfleet/v1` without protoc, and keeps the descriptors, comments included, for reflection.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

const FILES: [&str; 5] = ["memory", "assembly", "spaces", "sessions", "maintenance"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(FILES.map(|name| format!("memfleet/v1/{name}.proto")))?;
    let descriptors = compiler.file_descriptor_set();
    let output = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(output.join("memfleet.v1.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(descriptors)?;
    Ok(())
}
