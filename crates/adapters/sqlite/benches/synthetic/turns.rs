//! Turns to measure stores with, the same for each of them: of LoCoMo length (42 word pieces of 64 components, 25 terms, 200
//! bytes of text).

use std::time::Instant;

use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::conformance::samples::{batch, embedding_space, home, turn_in};
use memfleet_ports::ledger::{IndexedBatch, Passage};
use rand::Rng;
use rand::rngs::StdRng;

fn word(random: &mut StdRng) -> String {
    let length = random.random_range(2..9);
    (0..length)
        .map(|_| char::from(random.random_range(b'a'..=b'z')))
        .collect()
}

/// A turn and its only passage.
pub fn told(random: &mut StdRng, number: usize) -> (AcceptedTurn, Vec<Passage>) {
    let words: Vec<String> = (0..34).map(|_| word(random)).collect();
    let text = words.join(" ");
    let pieces: Vec<u32> = (0..42)
        .map(|_| random.random_range(1_000..30_000))
        .collect();
    let values = (0..pieces.len() * 64).map(|_| random.random()).collect();
    let mut terms: Vec<_> = words[..25].iter().map(|word| (word.clone(), 1)).collect();
    terms.sort();
    let passage = Passage {
        start: 0,
        end: text.len() as u32,
        terms,
        features: vec![0.5; 12],
        vectors: Some(PassageVectors {
            sentence: (0..384).map(|_| random.random()).collect(),
            tokens: TokenVectors {
                dimensions: 64,
                pieces,
                values,
            },
        }),
        embedding_space: None,
    };
    let session = format!("session {}", number / 25);
    (
        turn_in(&home(), &session, &number.to_string(), &text),
        vec![passage],
    )
}

/// A batch of neighbouring turns.
pub fn indexed(random: &mut StdRng, first: usize, count: usize) -> IndexedBatch {
    let (turns, passages) = (first..first + count)
        .map(|number| told(random, number))
        .unzip();
    IndexedBatch {
        batch: batch(&first.to_string(), turns),
        acceptance: first as u64,
        passages,
        embedding_space: Some(embedding_space("1")),
        language: None,
    }
}

/// Prints how long a call takes.
pub async fn measure(what: &str, runs: usize, mut run: impl AsyncFnMut()) {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let start = Instant::now();
        run().await;
        times.push(start.elapsed());
    }
    times.sort();
    println!(
        "{what}: best {:?}, p50 {:?}, p95 {:?}, p99 {:?}",
        times[0],
        times[runs / 2],
        times[runs * 95 / 100],
        times[runs * 99 / 100]
    );
}
