//! Analyzer throughput in bytes a second: chat prose, technical text, and text without spaces.
#![allow(
    missing_docs,
    reason = "the macro of the benchmarks makes a function without"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memfleet_language::{Analyzer, Language, passages, time};
use std::hint::black_box;

fn analyzer(criterion: &mut Criterion) {
    let prose = "Last week I finally went to the pottery class we talked about, and Caroline's friends were there too! ".repeat(100);
    let technical = "Set max_token_count=4096 in src/config/loader.rs (v1.2.3), then call parseHTTPHeader() on 2023-05-08. ".repeat(100);
    let japanese =
        "昨日は友達と一緒に新しい映画を見に行きました。とても面白かったです。".repeat(100);
    let english = Analyzer::new(Language::English);
    let mut group = criterion.benchmark_group("analyzer");
    for (name, text) in [
        ("prose", &prose),
        ("technical", &technical),
        ("japanese", &japanese),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| english.visit(black_box(text), |term| _ = black_box(term)));
        });
    }
    group.bench_function("passages", |bencher| {
        bencher.iter(|| passages(black_box(&prose), 700));
    });
    group.bench_function("time", |bencher| {
        bencher.iter(|| time::count_expressions(black_box(&prose), Language::English));
    });
    group.finish();
}

criterion_group!(benches, analyzer);
criterion_main!(benches);
