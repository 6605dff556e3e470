//! Assembly of 200 candidates at a budget of 4,000 tokens: short chat turns, and long turns cut to excerpts; in the plain
//! form, and with all that costs: weights with diversity, citation keys, and a mark on every line. And what a reply has from 200 turns.
#![allow(
    missing_docs,
    reason = "the macro of the benchmarks makes a function without"
)]

use chrono::{DateTime, TimeDelta};
use criterion::{Criterion, criterion_group, criterion_main};
use memfleet_assembly::{
    Candidate, Enclosure, Nonce, Options, Place, SentenceScorer, Sources, Template, Tokenizer,
    Trust, Weights, assemble,
};
use memfleet_language::{Analyzer, Language};
use std::hint::black_box;

fn texts(sentences: usize) -> Vec<String> {
    let sentence = |turn: usize, index: usize| {
        format!(
            "In week {turn} we met at the station and talked about plan {index} with friend {}. ",
            (turn * 31 + index) % 97
        )
    };
    (0..200)
        .map(|turn| (0..sentences).map(|index| sentence(turn, index)).collect())
        .collect()
}

fn bench(criterion: &mut Criterion) {
    let analyzer = Analyzer::new(Language::English);
    let tokenizer = Tokenizer::named("o200k_base").expect("o200k_base is built in");
    for (name, sentences) in [("short turns", 2), ("long turns", 25)] {
        let texts = texts(sentences);
        let query = SentenceScorer::new(
            &analyzer,
            "Which plan with friend 12?",
            texts.iter().map(String::as_str),
        );
        let scores: Vec<Vec<f32>> = texts
            .iter()
            .map(|text| query.score(text, &memfleet_language::sentences(text)))
            .collect();
        let candidates: Vec<Candidate<'_>> = texts
            .iter()
            .zip(&scores)
            .enumerate()
            .map(|(index, (text, scores))| Candidate {
                session: index as u64 % 20,
                position: index as u64,
                speaker: if index % 2 == 0 {
                    "Caroline"
                } else {
                    "Melanie"
                },
                event_time: Some(DateTime::UNIX_EPOCH + TimeDelta::days(index as i64 % 20)),
                recorded_at: DateTime::UNIX_EPOCH,
                text,
                score: -(index as f32),
                sentence_scores: Some(scores),
                trust: Trust::User,
                ..Candidate::default()
            })
            .collect();
        let plain = Options::new(4000, &tokenizer);
        let full = Options {
            weights: Weights::balanced(),
            template: Template::cited(),
            enclosure: Nonce::new("k3f9a1c7").map_or(Enclosure::Plain, Enclosure::Datamarked),
            place: Place::after(&texts[0]),
            ..plain.clone()
        };
        for (form, options) in [("plain", plain), ("weights, keys and marks", full)] {
            criterion.bench_function(&format!("{name}, {form}"), |bencher| {
                bencher.iter(|| assemble(black_box(&candidates), &options));
            });
        }
    }
}

fn echoes(criterion: &mut Criterion) {
    for (name, sentences) in [("short turns", 2), ("long turns", 25)] {
        let texts = texts(sentences);
        let reply = format!("As you said: {}", texts[100]);
        criterion.bench_function(&format!("echoes of 200 {name}"), |bencher| {
            bencher.iter(|| {
                let sources = Sources::of(texts.iter().map(String::as_str), Language::English);
                black_box(sources.echoes(black_box(&reply)))
            });
        });
    }
}

criterion_group!(benches, bench, echoes);
criterion_main!(benches);
