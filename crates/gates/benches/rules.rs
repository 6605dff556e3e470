//! What gate 1 costs: typical utterances, and 8 KB of the worst that a user can paste (AMP item 43).

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use memfleet_gates::rules::{Before, Rules, Utterance};

fn judging(criterion: &mut Criterion) {
    let eight = |unit: &str| unit.repeat(8 * 1024 / unit.len());
    let texts = [
        (
            "typical/pleasantry",
            "ok thanks a lot, see you tomorrow!".to_owned(),
        ),
        (
            "typical/question",
            "Which of my projects is most behind schedule, and why?".to_owned(),
        ),
        ("typical/spaceless", "我的狗今天需要去看医生吗？".to_owned()),
        (
            "8KB/prose",
            eight("The council voted on Monday to close two libraries. "),
        ),
        ("8KB/code", eight("let value = compute(index, &table);\n")),
        ("8KB/pleasantries", eight("thanks ")),
        ("8KB/one word", eight("a")),
        ("8KB/spaceless", eight("谢")),
        ("8KB/punctuation", eight("...? ")),
        ("8KB/open braces", eight("[{")),
    ];
    let rules = Rules::shipped();
    for (name, text) in &texts {
        let utterance = Utterance {
            text,
            before: Before::Turns,
        };
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| rules.judge(black_box(utterance)));
        });
    }
}

criterion_group!(benches, judging);
criterion_main!(benches);
