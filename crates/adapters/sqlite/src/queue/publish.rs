//! Group commit: callers that publish at the same time share one transaction, and so one flush to
//! disk. A large batch has a transaction of its own, and small ones of other tenants go before it
//! once.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use memfleet_columns::{space_key, to_hash, to_json};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::ContentHash;
use memfleet_ports::queue::{Bounds, Depth, Published};
use memfleet_ports::store::{Result, StoreError};
use sqlx::{Row, SqliteConnection};
use tokio::sync::{Notify, mpsc, oneshot};

use super::depth::Waiting;
use crate::failure::{Failure, Outcome};
use crate::store::{Write, Writers};

/// Batches that share a flush at most.
const GROUP: usize = 256;

/// Bytes that share a flush at most; a larger batch goes alone.
const GROUP_BYTES: usize = 1 << 20;

/// The way to the task that writes. The task ends when the store is dropped.
#[derive(Debug)]
pub(crate) struct Publisher {
    requests: mpsc::Sender<Request>,
}

struct Request {
    entry: Entry,
    bounds: Bounds,
    answer: oneshot::Sender<Result<Published>>,
}

/// A batch as its row.
struct Entry {
    tenant: String,
    space_key: Vec<u8>,
    batch: [u8; 16],
    turns: i64,
    accepted_at: i64,
    payload_hash: [u8; 32],
    payload: String,
    /// The trace of the call, where one is recorded.
    traceparent: Option<String>,
    request_id: Option<String>,
}

impl Entry {
    /// What it adds to the queue.
    fn depth(&self) -> Depth {
        Depth {
            batches: 1,
            turns: self.turns as u64,
            bytes: self.payload.len() as u64,
            ..Depth::default()
        }
    }
}

impl Publisher {
    pub(crate) fn start(writers: Writers, ready: Arc<Notify>) -> Self {
        let (requests, receiver) = mpsc::channel(GROUP);
        tokio::spawn(run(receiver, writers, ready));
        Self { requests }
    }

    pub(crate) async fn publish(
        &self,
        batch: &Batch,
        now: Timestamp,
        bounds: Bounds,
    ) -> Result<Published> {
        let closed = || StoreError::Unavailable("it is closed".into());
        let (answer, published) = oneshot::channel();
        let entry = Entry {
            tenant: batch.scope.tenant.to_string(),
            space_key: space_key(&batch.scope),
            batch: *batch.id.as_bytes(),
            turns: batch.turns.len() as i64,
            accepted_at: now.timestamp_micros(),
            payload_hash: batch.payload_hash().0,
            payload: to_json(batch),
            traceparent: memfleet_trace::current(),
            request_id: memfleet_trace::request_id(),
        };
        let request = Request {
            entry,
            bounds,
            answer,
        };
        self.requests.send(request).await.map_err(|_| closed())?;
        published.await.map_err(|_| closed())?
    }
}

/// Goes on after a panic: whoever published then is told, and all the others are served.
async fn run(mut requests: mpsc::Receiver<Request>, writers: Writers, ready: Arc<Notify>) {
    let mut line = Line::default();
    while line.fill(&mut requests).await {
        let group = line.next_group();
        let outcomes = guarded(write(&writers, &group)).await;
        ready.notify_one();
        for (place, request) in group.into_iter().enumerate() {
            let answer = match &outcomes {
                Ok(outcomes) => outcomes[place].clone(),
                Err(Failure(error)) => Err(error.clone()),
            };
            // The caller may have left: its batch is durable all the same.
            let _gone = request.answer.send(answer);
        }
    }
}

/// Requests in the order of arrival.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Request>,
    /// True where others went before the first one, which is large.
    is_first_passed: bool,
}

impl Line {
    /// Takes in what has arrived, and waits where nothing has; false where nothing will.
    async fn fill(&mut self, requests: &mut mpsc::Receiver<Request>) -> bool {
        if self.waiting.is_empty() {
            self.waiting.extend(requests.recv().await);
        }
        while self.waiting.len() < GROUP
            && let Ok(request) = requests.try_recv()
        {
            self.waiting.push_back(request);
        }
        !self.waiting.is_empty()
    }

    /// Requests that share the next transaction. The batches of a tenant keep their order.
    fn next_group(&mut self) -> Vec<Request> {
        let is_large = |request: &Request| request.entry.payload.len() > GROUP_BYTES;
        let is_due = self.is_first_passed || self.waiting.len() == 1;
        if is_due && self.waiting.front().is_some_and(is_large) {
            self.is_first_passed = false;
            return self.waiting.pop_front().into_iter().collect();
        }
        let (mut group, mut bytes) = (Vec::new(), 0);
        let (mut passed, mut behind) = (VecDeque::new(), HashSet::new());
        for request in self.waiting.drain(..) {
            let more = request.entry.payload.len();
            let is_behind = behind.contains(&request.entry.tenant);
            if !is_behind && bytes + more <= GROUP_BYTES {
                bytes += more;
                group.push(request);
            } else {
                behind.insert(request.entry.tenant.clone());
                passed.push_back(request);
            }
        }
        self.waiting = passed;
        if group.is_empty() {
            group.extend(self.waiting.pop_front());
        } else {
            self.is_first_passed = self.waiting.front().is_some_and(is_large);
        }
        group
    }
}

/// A panic as an error. The transaction is rolled back when it is dropped on the way.
async fn guarded<T>(work: impl Future<Output = Outcome<T>>) -> Outcome<T> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|_| {
        let cause = "publishing stopped half-way, and was undone: see the log for the panic";
        Err(Failure(StoreError::Unexpected(cause.into())))
    })
}

async fn write(writers: &Writers, group: &[Request]) -> Outcome<Vec<Result<Published>>> {
    let mut write: Write = writers.begin_durable().await?;
    // Here no other call can come between what is counted and what is added.
    let mut waiting = Waiting::queued(&mut write).await?;
    let mut outcomes = Vec::with_capacity(group.len());
    for request in group {
        outcomes.push(match enqueue(&mut write, request, &mut waiting).await {
            Err(Failure(
                refusal @ (StoreError::Conflict { .. } | StoreError::QueueFull { .. }),
            )) => Err(refusal),
            other => Ok(other?),
        });
    }
    write.commit().await?;
    Ok(outcomes)
}

async fn enqueue(
    connection: &mut SqliteConnection,
    Request { entry, bounds, .. }: &Request,
    waiting: &mut Waiting,
) -> Outcome<Published> {
    if let Some(known) = known(connection, entry).await? {
        return Ok(known);
    }
    let more = entry.depth();
    let depths = waiting.depths(Some(&entry.tenant));
    bounds.check(&depths, more.turns, more.bytes)?;
    let acceptance = insert(connection, entry).await?;
    waiting.add(&entry.tenant, more);
    Ok(Published {
        acceptance: acceptance as u64,
        duplicate: false,
    })
}

/// The batch where it waits already; refused where it waits with another payload, or is a dead
/// letter with another one: that could not be replayed beside it.
async fn known(connection: &mut SqliteConnection, entry: &Entry) -> Outcome<Option<Published>> {
    let known = sqlx::query(
        "SELECT acceptance, payload_hash, false AS is_buried FROM queue WHERE space_key = ?1 AND batch = ?2
         UNION ALL SELECT acceptance, payload_hash, true FROM dead_letters
             WHERE space_key = ?1 AND batch = ?2 AND payload_hash <> ?3
         ORDER BY is_buried LIMIT 1",
    )
    .bind(&entry.space_key)
    .bind(entry.batch.as_slice())
    .bind(entry.payload_hash.as_slice())
    .fetch_optional(&mut *connection)
    .await?;
    let Some(known) = known else {
        return Ok(None);
    };
    match known.try_get::<Option<&[u8]>, _>(1)? {
        Some(stored) if stored != entry.payload_hash => Err(conflict(stored, entry)?),
        _ => Ok(Some(Published {
            acceptance: known.try_get::<i64, _>(0)? as u64,
            duplicate: true,
        })),
    }
}

async fn insert(connection: &mut SqliteConnection, entry: &Entry) -> Outcome<i64> {
    Ok(sqlx::query_scalar(
        "INSERT INTO queue (tenant, space_key, batch, turns, bytes, accepted_at, payload_hash, payload, traceparent, request_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING acceptance",
    )
    .bind(&entry.tenant)
    .bind(&entry.space_key)
    .bind(entry.batch.as_slice())
    .bind(entry.turns)
    .bind(entry.payload.len() as i64)
    .bind(entry.accepted_at)
    .bind(entry.payload_hash.as_slice())
    .bind(&entry.payload)
    .bind(&entry.traceparent)
    .bind(&entry.request_id)
    .fetch_one(connection)
    .await?)
}

fn conflict(stored: &[u8], entry: &Entry) -> Outcome<Failure> {
    Ok(Failure(StoreError::Conflict {
        what: "a batch with this idempotency key".into(),
        stored: to_hash(stored)?.to_string(),
        given: ContentHash(entry.payload_hash).to_string(),
    }))
}

#[cfg(test)]
mod tests {
    use memfleet_ports::conformance::samples::{batch, instant, turn};
    use memfleet_ports::queue::{Bounds, IngestQueue};
    use memfleet_ports::store::StoreError;
    use tokio::sync::oneshot;
    use tracing::Instrument;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{Entry, GROUP_BYTES, Line, Request, guarded};
    use crate::failure::{Failure, Outcome};
    use crate::store::{Options, SqliteStore};

    /// A request of a tenant, of so many bytes.
    fn request(tenant: &str, bytes: usize) -> Request {
        Request {
            entry: Entry {
                tenant: tenant.to_owned(),
                space_key: Vec::new(),
                batch: [0; 16],
                turns: 1,
                accepted_at: 0,
                payload_hash: [0; 32],
                payload: "x".repeat(bytes),
                traceparent: None,
                request_id: None,
            },
            bounds: Bounds::NONE,
            answer: oneshot::channel().0,
        }
    }

    #[test]
    fn large_batches_go_alone_and_let_small_ones_of_others_go_first_once() {
        let large = GROUP_BYTES + 1;
        let mut line = Line::default();
        let sizes = [
            ("acme", large),
            ("acme", 1),
            ("acme", large),
            ("beta", 2),
            ("beta", 3),
        ];
        line.waiting
            .extend(sizes.map(|(tenant, bytes)| request(tenant, bytes)));
        let mut groups = Vec::new();
        while !line.waiting.is_empty() {
            let group = line.next_group().into_iter();
            let group = group.map(|it| (it.entry.tenant, it.entry.payload.len()));
            groups.push(group.collect::<Vec<_>>());
            if groups.len() == 1 {
                line.waiting.push_back(request("beta", 4));
            }
        }
        let of = |tenant: &str, sizes: &[usize]| -> Vec<_> {
            sizes
                .iter()
                .map(|size| (tenant.to_owned(), *size))
                .collect()
        };
        let expected = [
            of("beta", &[2, 3]),
            of("acme", &[large]),
            [of("acme", &[1]), of("beta", &[4])].concat(),
            of("acme", &[large]),
        ];
        assert_eq!(groups, expected);
    }

    #[tokio::test]
    async fn a_panic_undoes_the_group_and_stops_nobody_behind_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        let panicking = async {
            let _write = store.shared.writers.begin_durable().await?;
            panic!("half-way");
        };
        let outcome: Outcome<()> = guarded(panicking).await;
        assert!(matches!(outcome, Err(Failure(StoreError::Unexpected(_)))));
        let next = batch("k", vec![turn("a", "x")]);
        let published = store.publish(&next, instant(0), Bounds::NONE).await;
        assert!(!published.unwrap().duplicate);
    }

    #[tokio::test]
    async fn a_delivery_is_of_the_call_that_published_it_also_after_a_restart() {
        let subscriber = tracing_subscriber::registry().with(memfleet_trace::RequestIds);
        let _here = tracing::subscriber::set_default(subscriber);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(&path, Options::default()).await.unwrap();
        let told = batch("k", vec![turn("a", "x")]);
        let publishing = store.publish(&told, instant(0), Bounds::NONE);
        let call = tracing::info_span!("call", request_id = "r-7");
        publishing.instrument(call).await.unwrap();
        drop(store);
        let store = SqliteStore::open(&path, Options::default()).await.unwrap();
        let delivery = store.take(1).await.unwrap().remove(0);
        assert_eq!(delivery.request_id.as_deref(), Some("r-7"));
        assert_eq!(delivery.traceparent, None, "no trace is recorded");
    }

    #[tokio::test]
    async fn what_is_published_is_flushed_to_disk_before_it_is_acknowledged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memfleet.db");
        let store = SqliteStore::open(path, Options::default()).await.unwrap();
        let mut write = store.shared.writers.begin_durable().await.unwrap();
        let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous")
            .fetch_one(&mut *write)
            .await
            .unwrap();
        assert_eq!(synchronous, 2, "FULL: NORMAL leaves the WAL unflushed");
    }
}
