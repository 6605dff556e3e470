//! Both stages over synthetic spaces: turns of about 20 words and 42 word pieces, words by Zipf's law.

use std::hint::black_box;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta};
use chrono_tz::Tz;
use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use memfleet_domain::embedding::{PassageVectors, TokenVectors};
use memfleet_domain::ids::{ExternalId, SessionId, SpaceId, Speaker, TenantId, TurnId};
use memfleet_domain::scope::Scope;
use memfleet_domain::turn::Role;
use memfleet_language::{Analyzer, Language};
use memfleet_ports::feed::{Change, IndexedPassage, IndexedTurn};
use memfleet_ports::filter::TurnFilter;
use memfleet_retrieval::{Plan, Searched, SpaceIndex, Weights, candidates, lexical, rank};

const SENTENCE: usize = 384;
const TOKEN: usize = 64;
const PIECES: usize = 42;
const WORDS: usize = 20;
const SESSION: u32 = 25;
/// Distinct texts whose token vectors are kept; passages share them.
const TEXTS: usize = 4_096;

/// A small generator with a seed: the same space in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, small ones more often: rank r with a probability of about 1/r.
    fn zipf(&mut self, end: f64) -> u32 {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        end.powf(uniform) as u32
    }

    fn bytes(&mut self, count: usize) -> Vec<i8> {
        (0..count)
            .map(|_| ((self.next() >> 32) % 41) as i8 - 20)
            .collect()
    }
}

fn turn(number: u32, dice: &mut Dice) -> Result<IndexedTurn, Box<dyn std::error::Error>> {
    let session = SessionId::new(format!("session {}", number / SESSION))?;
    let scope = Scope {
        tenant: TenantId::new("t")?,
        space: SpaceId::new("s")?,
    };
    let speaker = ["Ada", "Ben"][(number % 2) as usize];
    let mut terms: Vec<String> = (0..WORDS)
        .map(|_| format!("w{}", dice.zipf(40_000.0)))
        .collect();
    terms.push(speaker.to_lowercase());
    terms.sort_unstable();
    terms.dedup();
    let mut pieces: Vec<u32> = (0..PIECES).map(|_| dice.zipf(30_000.0)).collect();
    pieces.sort_unstable();
    pieces.dedup();
    let passage = IndexedPassage {
        length: 120,
        words: terms.len() as u32,
        terms: terms.into_iter().map(|term| (term, 1)).collect(),
        features: vec![0.1, 0.0, 0.2, 0.7],
        sentence: Some(dice.bytes(SENTENCE)),
        pieces,
    };
    let time = DateTime::UNIX_EPOCH + TimeDelta::days(i64::from(number / SESSION));
    Ok(IndexedTurn {
        id: TurnId::of_external(&scope, &session, &ExternalId::new(number.to_string())?),
        session,
        order: (u64::from(number), 0),
        speaker: Speaker::new(speaker)?,
        role: Role::User,
        event_time: Some(time),
        recorded_at: time,
        replaced_at: None,
        first_passage: number,
        passages: vec![passage],
    })
}

fn tokens(dice: &mut Dice, pieces: usize) -> TokenVectors {
    TokenVectors {
        dimensions: TOKEN,
        pieces: (0..pieces).map(|_| dice.zipf(30_000.0)).collect(),
        values: dice.bytes(pieces * TOKEN),
    }
}

fn search(criterion: &mut Criterion) {
    let weights = Weights::shipped();
    let analyzer = Analyzer::new(Language::English);
    for turns in [1_000, 10_000, 100_000] {
        let mut dice = Dice(42);
        let mut index = SpaceIndex::new();
        for number in 0..turns {
            let turn = turn(number, &mut dice).expect("synthetic names are valid");
            index.apply(Change::Stored(Box::new(turn)));
        }
        println!(
            "{turns} turns: {} bytes a turn",
            index.bytes() / turns as usize
        );
        let texts: Vec<Arc<TokenVectors>> = (0..TEXTS)
            .map(|_| Arc::new(tokens(&mut dice, PIECES)))
            .collect();
        let vectors = PassageVectors {
            sentence: dice.bytes(SENTENCE),
            tokens: tokens(&mut dice, 14),
        };
        let spaces = [Searched {
            index: &index,
            eligible: index.eligible(&TurnFilter::default(), None),
            excerpt: None,
        }];
        let plan = || {
            let question = "When did Ada say w40 about w300 w1200 and the w9000 at w20000?";
            let plan = Plan::new(question, &spaces, &analyzer, None, Tz::UTC);
            plan.with_vectors(Some(vectors.clone()))
        };
        let plan_made = plan();
        let words = || lexical(&spaces, &plan_made, &weights);
        let chosen = candidates(&spaces, &plan_made, words(), &weights);
        let needed = chosen.needed();
        let read: Vec<Vec<_>> = needed
            .iter()
            .map(|numbers| {
                numbers
                    .iter()
                    .map(|&number| Some(Arc::clone(&texts[number as usize % TEXTS])))
                    .collect()
            })
            .collect();
        println!("{} candidates, {} passages", chosen.len(), read[0].len());
        let mut group = criterion.benchmark_group("search");
        group.sample_size(50);
        group.bench_function(BenchmarkId::new("plan", turns), |bencher| {
            bencher.iter(|| black_box(plan()));
        });
        group.bench_function(BenchmarkId::new("eligible", turns), |bencher| {
            bencher.iter(|| black_box(index.eligible(&TurnFilter::default(), None)));
        });
        group.bench_function(BenchmarkId::new("words", turns), |bencher| {
            bencher.iter(|| black_box(words()));
        });
        group.bench_function(BenchmarkId::new("first stage", turns), |bencher| {
            let candidates = |words| candidates(&spaces, &plan_made, words, &weights);
            bencher.iter_batched(words, candidates, BatchSize::SmallInput);
        });
        group.bench_function(BenchmarkId::new("second stage", turns), |bencher| {
            bencher.iter(|| black_box(rank(&spaces, &plan_made, &chosen, &read, &weights, 10)));
        });
        group.finish();
    }
}

criterion_group!(benches, search);
criterion_main!(benches);
