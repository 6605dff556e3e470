//! Memory and time of a model alone, with the allocator of the product:
//! `footprint MODEL_DIRECTORY FILE…`, a text a line. Prints what loading takes, how fast texts are
//! cut, what is resident after each step, and the peak.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;
use std::{env, fs, thread};

use anyhow::{Context, Result};
use memfleet_encoder::Tokens;
use memfleet_models::ModelDirectory;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Texts that are encoded at once.
const BATCH: usize = 64;
/// Batches that are encoded.
const BATCHES: usize = 16;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let directory = arguments
        .next()
        .context("footprint MODEL_DIRECTORY FILE…")?;
    let texts: Vec<String> = arguments
        .map(fs::read_to_string)
        .collect::<Result<_, _>>()?;
    let texts: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    resident("start")?;

    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let started = Instant::now();
    let encoder = ModelDirectory::open(Path::new(&directory))?.load(threads)?;
    println!("loaded in {:?}", started.elapsed());
    resident("loaded")?;

    for _ in 0..2 {
        let started = Instant::now();
        let tokens = encoder.tokenize(&texts)?;
        let pieces: usize = tokens.iter().map(Tokens::len).sum();
        let rate = pieces as f64 / started.elapsed().as_secs_f64();
        println!("{} texts, {pieces} pieces, {rate:.0} a second", texts.len());
    }
    resident("cut")?;

    let (started, mut pieces) = (Instant::now(), 0);
    let step = (texts.len() / BATCHES).max(1);
    for batch in texts.chunks(step) {
        let tokens = encoder.tokenize(&batch[..batch.len().min(BATCH)])?;
        pieces += tokens.iter().map(Tokens::len).sum::<usize>();
        encoder.encode(&tokens)?;
        encoder.encode(&tokens[..1])?;
    }
    let rate = pieces as f64 / started.elapsed().as_secs_f64();
    println!("encoded {pieces} pieces, {rate:.0} a second");
    resident("encoded")
}

/// Prints what Linux says about the memory of this process.
fn resident(step: &str) -> Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        kilobytes.map_or(0, |number| number.parse().unwrap_or(0)) / 1024
    };
    println!(
        "{step}: {} MB resident, {} of them of files, peak {} MB",
        field("VmRSS:"),
        field("RssFile:"),
        field("VmHWM:")
    );
    Ok(())
}
