//! `memfleet bench encoder`: how fast the embedding model reads, beside what the processor gives at best and beside ONNX
//! Runtime. All take turns in one run, so that a busy machine slows them alike.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use clap::Args;
use memfleet_encoder::{Encoder, Tokens};
use memfleet_models::ModelDirectory;
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::latency::Latency;
use super::synthetic::Conversation;

/// Texts that are encoded together.
const BATCH: usize = 64;
/// Queries that are timed, of each kind.
const QUERIES: usize = 300;
/// Pause between two queries, in which other work goes on.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the processor's own rate is measured in a round.
const RATE: Duration = Duration::from_millis(200);
const QUERY: &str = "Which museum did we want to see in Lisbon?";
const ONNXRUNTIME: &str = include_str!("encoder/onnxruntime.py");

/// Flags of a processor that say how fast it multiplies bytes.
const FLAGS: [&str; 9] = [
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
    "sve",
];

/// Arguments.
#[derive(Debug, Args)]
pub struct EncoderArgs {
    /// Texts, one a line [default: 1,024 turns from a seed, 35 word pieces each on average]
    #[arg(long, value_name = "FILE")]
    texts: Option<PathBuf>,
    /// Rounds in which all take turns; the median is reported
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Threads of each [default: as many as the machine has]
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// The model's weights as an ONNX file in 32-bit floats, to compare ONNX Runtime in int8 and fp32
    #[arg(long, value_name = "FILE")]
    onnx: Option<PathBuf>,
    /// Python with the packages onnxruntime and onnx
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Figures of one run.
#[derive(Debug, Serialize)]
pub struct Report {
    model: String,
    threads: usize,
    cpu_flags: Vec<String>,
    instructions: &'static str,
    texts: usize,
    word_pieces: usize,
    word_pieces_per_second: f64,
    turns_per_second: f64,
    /// Multiplications of bytes a second that the processor reaches, in thousands of millions.
    machine_gmac_per_second: f64,
    /// Share of that rate that the encoder's products make.
    share_of_machine: Option<f64>,
    query_word_pieces: usize,
    query_ms: Latency,
    query_beside_passages_ms: Latency,
    onnxruntime: Option<OnnxRuntime>,
}

/// Figures of ONNX Runtime on the same texts.
#[derive(Debug, Serialize)]
struct OnnxRuntime {
    version: String,
    int8_word_pieces_per_second: f64,
    fp32_word_pieces_per_second: f64,
    /// Ours divided by theirs.
    ratio_to_int8: f64,
    ratio_to_fp32: f64,
}

/// Measures it.
pub fn measure(args: &EncoderArgs, model: &ModelDirectory) -> Result<Report, BoxError> {
    let threads = args.threads.or(thread::available_parallelism().ok());
    let threads = threads.unwrap_or(NonZeroUsize::MIN);
    let encoder = model.load(threads)?;
    let texts = texts(args.texts.as_deref())?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut tokens = encoder.tokenize(&texts)?;
    tokens.sort_by_key(Tokens::len);
    let pieces: usize = tokens.iter().map(Tokens::len).sum();
    let rival = args.onnx.as_deref();
    let mut rival = rival
        .map(|onnx| Rival::start(&args.python, onnx, &tokens, threads))
        .transpose()?;
    encode(&encoder, &tokens)?;
    let (mut ours, mut machine, mut int8, mut fp32) = (vec![], vec![], vec![], vec![]);
    for _ in 0..args.rounds {
        machine.push(machine_rate(threads));
        ours.push(pieces as f64 / encode(&encoder, &tokens)?);
        if let Some(rival) = &mut rival {
            int8.push(pieces as f64 / rival.seconds("int8")?);
            fp32.push(pieces as f64 / rival.seconds("fp32")?);
        }
    }
    let (ours, machine) = (median(ours), median(machine));
    let query = encoder.tokenize(&[QUERY])?;
    let beside = beside(&encoder, &tokens, || queries(&encoder, &query, PAUSE))?;
    Ok(Report {
        model: model.manifest().name.clone(),
        threads: threads.get(),
        cpu_flags: cpu_flags(),
        instructions: memfleet_encoder::instructions(),
        texts: texts.len(),
        word_pieces: pieces,
        word_pieces_per_second: ours,
        turns_per_second: ours * texts.len() as f64 / pieces as f64,
        machine_gmac_per_second: machine / 1e9,
        share_of_machine: encoder
            .multiplications()
            .map(|multiplications| 100.0 * ours * multiplications as f64 / machine),
        query_word_pieces: query.iter().map(Tokens::len).sum(),
        query_ms: queries(&encoder, &query, Duration::ZERO)?,
        query_beside_passages_ms: beside,
        onnxruntime: rival.map(|rival| {
            let (int8, fp32) = (median(int8), median(fp32));
            OnnxRuntime {
                version: rival.version.clone(),
                int8_word_pieces_per_second: int8,
                fp32_word_pieces_per_second: fp32,
                ratio_to_int8: ours / int8,
                ratio_to_fp32: ours / fp32,
            }
        }),
    })
}

fn texts(file: Option<&Path>) -> Result<Vec<String>, BoxError> {
    let Some(path) = file else {
        let turns = Conversation::new(1).turns(1_024);
        return Ok(turns.into_iter().map(|turn| turn.content.text).collect());
    };
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let texts: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect();
    if texts.is_empty() {
        return Err(format!("{}: no text; one a line is expected", path.display()).into());
    }
    Ok(texts)
}

/// Seconds that all texts take.
fn encode(encoder: &Encoder, tokens: &[Tokens]) -> Result<f64, BoxError> {
    let begun = Instant::now();
    for batch in tokens.chunks(BATCH) {
        encoder.encode(batch)?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Multiplications a second of all threads together.
fn machine_rate(threads: NonZeroUsize) -> f64 {
    thread::scope(|scope| {
        let rates: Vec<_> = (0..threads.get())
            .map(|_| scope.spawn(|| memfleet_encoder::product_rate(RATE)))
            .collect();
        rates
            .into_iter()
            .map(|rate| rate.join().unwrap_or_default())
            .sum()
    })
}

fn queries(encoder: &Encoder, query: &[Tokens], pause: Duration) -> Result<Latency, BoxError> {
    let mut durations = Vec::with_capacity(QUERIES);
    for _ in 0..QUERIES {
        thread::sleep(pause);
        let begun = Instant::now();
        encoder.encode(query)?;
        durations.push(begun.elapsed());
    }
    Ok(Latency::of(durations))
}

/// Does something while passages are encoded in the background, as a node does it.
fn beside<T>(
    encoder: &Encoder,
    tokens: &[Tokens],
    work: impl FnOnce() -> Result<T, BoxError>,
) -> Result<T, BoxError> {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let bulk = scope.spawn(|| {
            memfleet_background::yield_to_callers();
            let mut batches = tokens.chunks(BATCH).cycle();
            while !ends.load(Ordering::Relaxed) {
                encoder.encode(batches.next().unwrap_or_default())?;
            }
            Ok::<_, BoxError>(())
        });
        let result = work();
        ends.store(true, Ordering::Relaxed);
        bulk.join().map_err(|_| "encoding passages panicked")??;
        result
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Those of [`FLAGS`] that the system names.
fn cpu_flags() -> Vec<String> {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"));
    let flags = line.unwrap_or_default().split_whitespace();
    flags
        .filter(|flag| FLAGS.contains(flag))
        .map(str::to_owned)
        .collect()
}

/// ONNX Runtime in a process of its own.
struct Rival {
    version: String,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _pieces: tempfile::NamedTempFile,
}

impl Rival {
    fn start(
        python: &Path,
        onnx: &Path,
        tokens: &[Tokens],
        threads: NonZeroUsize,
    ) -> Result<Self, BoxError> {
        let mut pieces = tempfile::NamedTempFile::new()?;
        let ids: Vec<&[u32]> = tokens.iter().map(Tokens::ids).collect();
        serde_json::to_writer(&mut pieces, &ids)?;
        pieces.flush()?;
        let mut process = Command::new(python)
            .args(["-c", ONNXRUNTIME])
            .args([onnx, pieces.path()])
            .arg(threads.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", python.display()))?;
        let input = process.stdin.take().ok_or("no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?);
        let mut rival = Self {
            version: String::new(),
            process,
            input,
            output,
            _pieces: pieces,
        };
        rival.version = rival.line()?;
        Ok(rival)
    }

    fn seconds(&mut self, precision: &str) -> Result<f64, BoxError> {
        writeln!(self.input, "{precision}")?;
        Ok(self.line()?.parse()?)
    }

    fn line(&mut self) -> Result<String, BoxError> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => {
                Err("ONNX Runtime did not start; its packages: pip install onnxruntime onnx".into())
            }
            _ => Ok(line.trim().to_owned()),
        }
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Report {
    /// The figures for people.
    pub fn table(&self) -> String {
        let mut table = format!(
            "{}: {} texts, {} word pieces, {} threads, {} ({})\n\
             encoder               {:>10.0} word pieces/s, {:.0} turns/s\n\
             machine               {:>10.0} thousand million products of bytes a second",
            self.model,
            self.texts,
            self.word_pieces,
            self.threads,
            self.instructions,
            self.cpu_flags.join(" "),
            self.word_pieces_per_second,
            self.turns_per_second,
            self.machine_gmac_per_second,
        );
        if let Some(share) = self.share_of_machine {
            let _ = write!(table, ", {share:.0} % reached");
        }
        for (name, latency) in [
            ("one query            ", &self.query_ms),
            ("… beside passages    ", &self.query_beside_passages_ms),
        ] {
            let _ = write!(
                table,
                "\n{name} {:>10.2} ms p50, {:.2} ms p99 ({} word pieces)",
                latency.p50, latency.p99, self.query_word_pieces
            );
        }
        if let Some(other) = &self.onnxruntime {
            let _ = write!(
                table,
                "\nONNX Runtime {} int8 {:>8.0} word pieces/s, ratio {:.2}\n\
                 … fp32                {:>10.0} word pieces/s, ratio {:.2}",
                other.version,
                other.int8_word_pieces_per_second,
                other.ratio_to_int8,
                other.fp32_word_pieces_per_second,
                other.ratio_to_fp32,
            );
        }
        table
    }
}
