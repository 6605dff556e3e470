//! How fast it is; for reading, run by hand: `cargo test --release -p memfleet-nats -- --ignored --nocapture speed`.

use std::time::Instant;

use memfleet_ports::conformance::samples::{batch_in, instant, scope, turn_in};
use memfleet_ports::queue::{Bounds, IngestQueue};

use crate::server::{Streams, connected, options};

const BATCHES: usize = 4_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, not a test"]
async fn publishing_taking_and_acknowledging() {
    let options = options();
    let queue = connected(&options).await;
    let _streams = Streams::of(options);
    let bounds = Bounds {
        turns: 1_000_000,
        bytes: 1 << 40,
    };
    for publishers in [1, 32] {
        let started = Instant::now();
        let mut tasks = Vec::new();
        for publisher in 0..publishers {
            let queue = queue.clone();
            tasks.push(tokio::spawn(async move {
                let mut times = Vec::new();
                for n in 0..BATCHES / publishers {
                    let space = scope(&format!("tenant{}", n % 20), "s");
                    let key = format!("{publishers} {publisher} {n}");
                    let told = batch_in(
                        &space,
                        &key,
                        vec![turn_in(&space, "s", &key, &"word ".repeat(40))],
                    );
                    let begun = Instant::now();
                    queue.publish(&told, instant(0), bounds).await.unwrap();
                    times.push(begun.elapsed());
                }
                times
            }));
        }
        let mut times = Vec::new();
        for task in tasks {
            times.extend(task.await.unwrap());
        }
        times.sort_unstable();
        let rate = BATCHES as f64 / started.elapsed().as_secs_f64();
        let percentile = |of: usize| times[times.len() * of / 100];
        println!(
            "{publishers} publishers: {rate:.0}/s, p50 {:?}, p99 {:?}",
            percentile(50),
            percentile(99)
        );
    }
    let started = Instant::now();
    let mut taken = 0;
    while taken < 2 * BATCHES {
        let deliveries = queue.take(64).await.unwrap();
        let positions: Vec<_> = deliveries
            .iter()
            .map(|delivery| delivery.acceptance)
            .collect();
        queue.acknowledge(&positions).await.unwrap();
        taken += positions.len();
    }
    println!(
        "taken and acknowledged: {:.0}/s",
        taken as f64 / started.elapsed().as_secs_f64()
    );
}
