//! Our encoder and candle on the same texts, in turns of one run, so that a busy machine slows both alike:
//! `compare MODEL_DIRECTORY CHECKPOINT_DIRECTORY [TEXTS]`. The first holds `model.onnx`, the second
//! `model.safetensors` and `config.json`, both `tokenizer.json`; TEXTS has one short turn a line.

mod reference;
mod turns;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, ensure};
use memfleet_encoder::{Encoder, ModelFiles, Pooling, Spec};

use reference::Candle;

/// Texts that are encoded at once.
const BATCH: usize = 16;
/// Batches of each encoder in a round.
const BATCHES: usize = 8;
/// Rounds; the encoders alternate inside each.
const ROUNDS: usize = 8;
/// Runs of a single query.
const QUERIES: usize = 300;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: compare MODEL_DIRECTORY CHECKPOINT_DIRECTORY [TEXTS]";
    let model = arguments.next().context(usage)?;
    let checkpoint = arguments.next().context(usage)?;
    let texts = match arguments.next() {
        Some(path) => fs::read_to_string(path)?.lines().map(str::to_owned).collect(),
        None => turns::texts(BATCH * BATCHES),
    };
    let model = Path::new(&model);
    let files = ModelFiles { model: model.join("model.onnx"), tokenizer: model.join("tokenizer.json") };
    let spec = Spec { max_tokens: 256, dimensions: 384, pooling: Pooling::Mean };
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let ours = Encoder::open(&files, spec, threads)?;
    let candle = Candle::open(Path::new(&checkpoint))?;

    let batches: Vec<Vec<&str>> = texts.chunks(BATCH).take(BATCHES).map(|batch| batch.iter().map(String::as_str).collect()).collect();
    ensure!(!batches.is_empty(), "no texts");
    agree(&ours, &candle, &batches[0])?;
    let (mut our_time, mut candle_time) = (Duration::ZERO, Duration::ZERO);
    let mut tokens = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for batch in &batches {
            let pieces = ours.tokenize(batch)?;
            tokens += pieces.iter().map(memfleet_encoder::Tokens::len).sum::<usize>();
            ours.encode(&pieces)?;
        }
        our_time += started.elapsed();
        let started = Instant::now();
        for batch in &batches {
            candle.encode(batch)?;
        }
        candle_time += started.elapsed();
    }
    let rate = |time: Duration| tokens as f64 / time.as_secs_f64();
    let turns = (ROUNDS * batches.iter().map(Vec::len).sum::<usize>()) as f64;
    println!("{} tokens in batches of {BATCH} turns, {:.1} tokens a turn, {threads} threads", tokens, tokens as f64 / turns);
    println!("ours   {:>8.0} tokens/s {:>6.0} turns/s", rate(our_time), turns / our_time.as_secs_f64());
    println!("candle {:>8.0} tokens/s {:>6.0} turns/s", rate(candle_time), turns / candle_time.as_secs_f64());
    println!("ratio  {:.2}", candle_time.as_secs_f64() / our_time.as_secs_f64());
    query_latency(&ours)
}

/// Cosine of the sentence vectors, so that no speed is compared that computes something else.
fn agree(ours: &Encoder, candle: &Candle, batch: &[&str]) -> Result<()> {
    let quantised = ours.encode(&ours.tokenize(batch)?)?;
    let reference = candle.encode(batch)?;
    let cosines = quantised.iter().zip(&reference).map(|(a, b)| a.sentence.iter().zip(b).map(|(x, y)| x * y).sum::<f32>());
    let least = cosines.fold(1.0, f32::min);
    println!("least cosine to candle in one batch: {least:.4}");
    ensure!(least > 0.98, "the two compute different things");
    Ok(())
}

fn query_latency(ours: &Encoder) -> Result<()> {
    let mut times = Vec::with_capacity(QUERIES);
    for _ in 0..QUERIES {
        let started = Instant::now();
        ours.encode(&ours.tokenize(&["Which museum did we want to see in Lisbon?"])?)?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    println!("query of 12 tokens: p50 {:.2?}, p99 {:.2?}", times[QUERIES / 2], times[QUERIES * 99 / 100]);
    Ok(())
}
