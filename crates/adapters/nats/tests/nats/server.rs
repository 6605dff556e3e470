//! The server that tests talk to, and queues on it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memfleet_nats::{NatsQueue, Options};

/// The server that the test command started.
pub fn url() -> String {
    std::env::var("MEMFLEET_TEST_NATS_URL").expect(
        "these tests need a NATS server with JetStream: run `cargo xtask test`, which starts one, or name one in MEMFLEET_TEST_NATS_URL",
    )
}

/// Options with a prefix that no other test has.
pub fn options() -> Options {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Options {
        servers: vec![url()],
        prefix: format!("t{}_{number}", std::process::id()),
        max_bytes: 64 << 20,
        ..Options::default()
    }
}

/// A queue that is prepared.
pub async fn connected(options: &Options) -> NatsQueue {
    let queue = NatsQueue::connect(options.clone()).await.unwrap();
    queue.prepared().await.unwrap();
    queue
}

/// Removes a test's streams from the server when the test ends.
pub struct Streams(Options);

impl Drop for Streams {
    fn drop(&mut self) {
        let options = self.0.clone();
        let removing = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(remove(&options));
        });
        let _left_behind = removing.join();
    }
}

async fn remove(options: &Options) {
    let Ok(client) = async_nats::connect(&options.servers[0]).await else {
        return;
    };
    let context = async_nats::jetstream::new(client);
    for kind in ["INGEST", "DEAD_LETTERS", "EVENTS", "TRIES"] {
        let name = format!("{}_{kind}", options.prefix.to_uppercase());
        let _gone = context.delete_stream(name).await;
    }
}

impl Streams {
    pub fn of(options: Options) -> Self {
        Self(options)
    }
}

/// An empty queue, and what removes it.
pub async fn fresh() -> (NatsQueue, Streams) {
    let options = options();
    let queue = connected(&options).await;
    (queue, Streams(options))
}

/// Several processes' queues on the same streams.
pub async fn replicas<const N: usize>(options: Options) -> ([NatsQueue; N], Streams) {
    let mut queues = Vec::with_capacity(N);
    for _ in 0..N {
        queues.push(connected(&options).await);
    }
    let queues = queues.try_into().expect("as many as were pushed");
    (queues, Streams(options))
}

/// Fails a test that waits for what does not come.
pub async fn soon<T>(what: &str, awaited: impl Future<Output = T>) -> T {
    let timed = tokio::time::timeout(Duration::from_secs(20), awaited).await;
    timed.unwrap_or_else(|_| panic!("{what} did not come"))
}
