//! What is kept of the fuzzer's inputs, and every beginning of it, holds on any compiler.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use memfleet_fuzz::CHECKS;

/// The inputs of a target.
fn seeds(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let entries = fs::read_dir(folder.join(target)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_input_that_is_kept_holds() {
    for (target, check) in CHECKS {
        let seeds = seeds(target);
        assert!(seeds.len() >= 5, "{target} has few inputs");
        for seed in seeds {
            println!("{}", seed.display());
            check(&fs::read(seed).unwrap());
        }
    }
}

#[test]
fn so_does_every_input_that_breaks_off_or_is_garbled() {
    for (target, check) in CHECKS {
        for seed in seeds(target) {
            println!("{}", seed.display());
            let bytes = fs::read(seed).unwrap();
            let step = bytes.len().div_ceil(64).max(1);
            for at in (0..bytes.len()).step_by(step) {
                check(&bytes[..at]);
                let mut garbled = bytes.clone();
                garbled[at] ^= 0x21;
                check(&garbled);
            }
        }
    }
}
