//! Group commit: callers that publish at the same time share one transaction, and so one flush to
//! disk. A large batch is written part by part, each in a transaction of its own, and small ones of
//! other tenants go between the parts.

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Weak};

use futures::FutureExt;
use memfleet_columns::{space_key, to_hash, to_json};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::Timestamp;
use memfleet_domain::turn::ContentHash;
use memfleet_ports::queue::{Bounds, Depth, Published};
use memfleet_ports::store::{Result, StoreError};
use sqlx::{Row, SqliteConnection};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::depth::Waiting;
use crate::failure::{Failure, Outcome};
use crate::lock::Lock;
use crate::scrub;
use crate::store::{Write, Writers, pause_after};

/// Batches that share a flush at most.
const GROUP: usize = 256;

/// Bytes that share a flush at most; a larger batch goes in parts.
const GROUP_BYTES: usize = 1 << 20;

/// Size of a part, up to three bytes more: the most that another writer waits for.
const PART_BYTES: usize = 128 << 10;

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
    /// Starts the task that writes. It ends once nobody else holds the lock of the file, since
    /// another store may open the file from then on.
    pub(crate) fn start(writers: Writers, ready: Arc<Notify>, lock: Weak<Lock>) -> Self {
        let (requests, receiver) = mpsc::channel(GROUP);
        tokio::spawn(run(receiver, writers, ready, lock));
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
async fn run(
    mut requests: mpsc::Receiver<Request>,
    writers: Writers,
    ready: Arc<Notify>,
    lock: Weak<Lock>,
) {
    let mut line = Line::default();
    loop {
        line.take_in(&mut requests);
        let (group, upload) = (line.next_group(), line.next_upload());
        if group.is_empty() && upload.is_none() {
            if line.wait(&mut requests).await {
                continue;
            }
            return;
        }
        let Some(_held) = lock.upgrade() else { return };
        if !group.is_empty() {
            let outcomes = guarded(write(&writers, &group)).await;
            ready.notify_one();
            for (place, request) in group.into_iter().enumerate() {
                request.answer(match &outcomes {
                    Ok(outcomes) => outcomes[place].clone(),
                    Err(Failure(error)) => Err(error.clone()),
                });
            }
        }
        if let Some(mut upload) = upload {
            match guarded(upload.write_part(&writers)).await {
                Ok(Step::Written) => line.upload = Some(upload),
                Ok(Step::Settled(outcome)) => {
                    ready.notify_one();
                    upload.request.answer(outcome);
                }
                Ok(Step::Abandoned) => line.orphans.extend(upload.payload),
                Err(Failure(error)) => {
                    line.orphans.extend(upload.payload);
                    upload.request.answer(Err(error));
                }
            }
        }
        line.remove_orphans(&writers).await;
    }
}

impl Request {
    /// The caller may have left meanwhile: its batch is durable all the same.
    fn answer(self, outcome: Result<Published>) {
        let _gone = self.answer.send(outcome);
    }

    /// True once the caller has left. A batch that was not accepted by then is dropped: the caller
    /// may have forgotten the space since.
    fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }

    fn is_large(&self) -> bool {
        self.entry.payload.len() > GROUP_BYTES
    }
}

/// Requests in the order of arrival. The batches of a tenant keep their order.
#[derive(Default)]
struct Line {
    waiting: VecDeque<Request>,
    /// The large one of which some parts are written.
    upload: Option<Upload>,
    /// The tenant of the last one: one of another comes next.
    last_tenant: String,
    /// Payloads of batches that failed, whose parts are to be removed.
    orphans: Vec<i64>,
}

impl Line {
    /// Adds the requests that have arrived to the line, and drops those whose callers left.
    fn take_in(&mut self, requests: &mut mpsc::Receiver<Request>) {
        self.waiting.retain(|request| !request.is_abandoned());
        while self.waiting.len() < GROUP
            && let Ok(request) = requests.try_recv()
        {
            self.waiting.push_back(request);
        }
    }

    /// Waits until a request arrives or the next part is due; false where nothing will come.
    async fn wait(&mut self, requests: &mut mpsc::Receiver<Request>) -> bool {
        let arrived = match &self.upload {
            Some(upload) => match timeout_at(upload.due, requests.recv()).await {
                Ok(arrived) => arrived,
                Err(_due) => return true,
            },
            None => requests.recv().await,
        };
        match (arrived, &mut self.upload) {
            (Some(request), _) => self.waiting.push_back(request),
            (None, Some(upload)) => upload.due = Instant::now(),
            (None, None) => return false,
        }
        true
    }

    /// Small requests that share the next transaction, of tenants that have no large one before
    /// them.
    fn next_group(&mut self) -> Vec<Request> {
        let (mut group, mut bytes) = (Vec::new(), 0);
        let mut passed = VecDeque::new();
        let uploading = self.upload.iter().map(|it| &it.request.entry.tenant);
        let mut behind: HashSet<String> = uploading.cloned().collect();
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
        group
    }

    /// The large request whose next part is due: the one that has begun, or the first that none of
    /// its tenant is before.
    fn next_upload(&mut self) -> Option<Upload> {
        if self.upload.is_some() {
            return self.upload.take_if(|begun| begun.due <= Instant::now());
        }
        let mut before = HashSet::new();
        let mut next = None;
        for (place, request) in self.waiting.iter().enumerate() {
            let tenant = request.entry.tenant.as_str();
            let is_first_of_tenant = before.insert(tenant);
            if is_first_of_tenant && request.is_large() {
                next = next.or(Some(place));
                if tenant != self.last_tenant {
                    next = Some(place);
                    break;
                }
            }
        }
        let next = self.waiting.remove(next?)?;
        self.last_tenant.clone_from(&next.entry.tenant);
        Some(Upload::of(next))
    }

    /// Removes parts of batches that failed; those that cannot be removed now are tried again.
    async fn remove_orphans(&mut self, writers: &Writers) {
        while let Some(payload) = self.orphans.last().copied() {
            let removal = async {
                let mut write = writers.begin_relaxed().await?;
                remove_parts(&mut write, payload).await?;
                write.commit().await
            };
            if let Err(Failure(error)) = guarded(removal).await {
                tracing::warn!(%error, "parts of a batch that failed are removed later");
                return;
            }
            self.orphans.pop();
        }
    }
}

/// Outcome of writing a part of a large batch.
enum Step {
    /// There are more parts.
    Written,
    /// The batch is in the queue, or refused.
    Settled(Result<Published>),
    /// Its caller left before it was accepted.
    Abandoned,
}

/// A large batch while its payload is written.
struct Upload {
    request: Request,
    /// Bytes of the payload that are written.
    written: usize,
    /// Number of the payload, once a part is there.
    payload: Option<i64>,
    /// When the next part is written, see [`pause_after`].
    due: Instant,
}

impl Upload {
    fn of(request: Request) -> Self {
        Self {
            request,
            written: 0,
            payload: None,
            due: Instant::now(),
        }
    }

    /// Writes the next part, with the last one the row that makes it a batch of the queue.
    async fn write_part(&mut self, writers: &Writers) -> Outcome<Step> {
        let (entry, end) = (&self.request.entry, self.part_end());
        let is_last = end == entry.payload.len();
        // A flush writes out all that was committed before it.
        let mut write: Write = match is_last {
            true => writers.begin_durable().await?,
            false => writers.begin_relaxed().await?,
        };
        if self.request.is_abandoned() {
            return Ok(Step::Abandoned);
        }
        let begun = Instant::now();
        if self.payload.is_none() {
            let waiting = Waiting::queued(&mut write).await?;
            let refused = refused_or_known(&mut write, &self.request, &waiting).await;
            if let Some(outcome) = answerable(refused)?.transpose() {
                return Ok(Step::Settled(outcome));
            }
        }
        let text = &entry.payload[self.written..end];
        let payload = put_part(&mut write, self.payload, text).await?;
        (self.payload, self.written) = (Some(payload), end);
        if !is_last {
            write.commit().await?;
            self.due = Instant::now() + pause_after(begun.elapsed());
            return Ok(Step::Written);
        }
        let mut waiting = Waiting::queued(&mut write).await?;
        let enqueued = enqueue(&mut write, &self.request, Some(payload), &mut waiting).await;
        let outcome = answerable(enqueued)?;
        if outcome
            .as_ref()
            .map_or(true, |published| published.duplicate)
        {
            remove_parts(&mut write, payload).await?;
        }
        write.commit().await?;
        Ok(Step::Settled(outcome))
    }

    fn part_end(&self) -> usize {
        let payload = &self.request.entry.payload;
        payload.ceil_char_boundary(self.written + PART_BYTES)
    }
}

/// Writes a part of a payload, the first one under a new number; the number.
async fn put_part(
    connection: &mut SqliteConnection,
    payload: Option<i64>,
    text: &str,
) -> Outcome<i64> {
    Ok(sqlx::query_scalar(
        "INSERT INTO queue_parts (payload, text)
         VALUES (coalesce(?1, (SELECT coalesce(max(payload), 0) + 1 FROM queue_parts)), ?2) RETURNING payload",
    )
    .bind(payload)
    .bind(text)
    .fetch_one(connection)
    .await?)
}

/// Removes the parts of a payload, whose text may be left in unused bytes of the file.
async fn remove_parts(connection: &mut SqliteConnection, payload: i64) -> Outcome<()> {
    sqlx::query("DELETE FROM queue_parts WHERE payload = ?")
        .bind(payload)
        .execute(&mut *connection)
        .await?;
    scrub::due(connection).await
}

/// Removes parts of batches that never came into the queue: the process ended in between.
pub(crate) async fn remove_orphans(connection: &mut SqliteConnection) -> Outcome<()> {
    let removed = sqlx::query(
        "DELETE FROM queue_parts WHERE payload NOT IN (SELECT parts FROM queue WHERE parts IS NOT NULL)",
    )
    .execute(&mut *connection)
    .await?;
    match removed.rows_affected() {
        0 => Ok(()),
        _ => scrub::due(connection).await,
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
        let enqueued = enqueue(&mut write, request, None, &mut waiting).await;
        outcomes.push(answerable(enqueued)?);
    }
    write.commit().await?;
    Ok(outcomes)
}

/// Separates a refusal, which concerns the caller of one batch alone, from a failure of all.
fn answerable<T>(outcome: Outcome<T>) -> Outcome<Result<T>> {
    match outcome {
        Err(Failure(refusal @ (StoreError::Conflict { .. } | StoreError::QueueFull { .. }))) => {
            Ok(Err(refusal))
        }
        other => Ok(Ok(other?)),
    }
}

/// Puts a batch into the queue, its payload in the row or in parts that are there.
async fn enqueue(
    connection: &mut SqliteConnection,
    request: &Request,
    parts: Option<i64>,
    waiting: &mut Waiting,
) -> Outcome<Published> {
    let Request { entry, bounds, .. } = request;
    let more = entry.depth();
    let depths = waiting.depths(Some(&entry.tenant));
    if bounds.check(&depths, more.turns, more.bytes).is_ok()
        && let Some(acceptance) = insert(connection, entry, parts).await?
    {
        waiting.add(&entry.tenant, more);
        return Ok(Published {
            acceptance: acceptance as u64,
            duplicate: false,
        });
    }
    let known = refused_or_known(connection, request, waiting).await?;
    known.ok_or_else(|| {
        let cause = "a batch is neither in the queue nor could it be put there";
        Failure(StoreError::Unexpected(cause.into()))
    })
}

/// The batch where it waits already; refused where the queue has no room for it.
async fn refused_or_known(
    connection: &mut SqliteConnection,
    Request { entry, bounds, .. }: &Request,
    waiting: &Waiting,
) -> Outcome<Option<Published>> {
    let known = known(connection, entry).await?;
    if known.is_none() {
        let (more, depths) = (entry.depth(), waiting.depths(Some(&entry.tenant)));
        bounds.check(&depths, more.turns, more.bytes)?;
    }
    Ok(known)
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

/// Its position, unless [`known`] has something to say of it.
async fn insert(
    connection: &mut SqliteConnection,
    entry: &Entry,
    parts: Option<i64>,
) -> Outcome<Option<i64>> {
    Ok(sqlx::query_scalar(
        "INSERT INTO queue (tenant, space_key, batch, turns, bytes, accepted_at, payload_hash, payload, traceparent, request_id, parts)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 WHERE NOT EXISTS (
             SELECT 1 FROM dead_letters WHERE space_key = ?2 AND batch = ?3 AND payload_hash <> ?7)
         ON CONFLICT (space_key, batch) DO NOTHING RETURNING acceptance",
    )
    .bind(&entry.tenant)
    .bind(&entry.space_key)
    .bind(entry.batch.as_slice())
    .bind(entry.turns)
    .bind(entry.payload.len() as i64)
    .bind(entry.accepted_at)
    .bind(entry.payload_hash.as_slice())
    .bind(parts.map_or(entry.payload.as_str(), |_| ""))
    .bind(&entry.traceparent)
    .bind(&entry.request_id)
    .bind(parts)
    .fetch_optional(connection)
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
    use std::time::Duration;

    use memfleet_ports::conformance::samples::{batch, instant, turn};
    use memfleet_ports::queue::{Bounds, IngestQueue};
    use memfleet_ports::store::StoreError;
    use tokio::sync::oneshot;
    use tokio::time::Instant;
    use tracing::Instrument;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{Entry, GROUP_BYTES, Line, Request, Upload, guarded};
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
    fn large_batches_go_in_parts_and_small_ones_of_others_between_these() {
        let large = GROUP_BYTES + 1;
        let mut line = Line::default();
        let sizes = [
            ("acme", 5),
            ("acme", large),
            ("acme", 1),
            ("gamma", large),
            ("beta", 2),
            ("beta", 3),
        ];
        line.waiting
            .extend(sizes.map(|(tenant, bytes)| request(tenant, bytes)));
        let name = |it: &Request| (it.entry.tenant.clone(), it.entry.payload.len());
        let group = |line: &mut Line| line.next_group().iter().map(name).collect::<Vec<_>>();
        let of = |tenant: &str, size: usize| (tenant.to_owned(), size);
        assert_eq!(
            group(&mut line),
            [of("acme", 5), of("beta", 2), of("beta", 3)]
        );
        let begun = line.next_upload().unwrap();
        assert_eq!(name(&begun.request), of("acme", large));
        line.upload = Some(Upload {
            due: Instant::now() + Duration::from_mins(1),
            ..begun
        });
        assert!(line.next_upload().is_none(), "it is not due yet");
        line.waiting.push_back(request("delta", 4));
        assert_eq!(group(&mut line), [of("delta", 4)], "acme's order is kept");
        line.upload.as_mut().unwrap().due = Instant::now();
        assert_eq!(
            name(&line.next_upload().unwrap().request),
            of("acme", large)
        );
        assert_eq!(group(&mut line), [of("acme", 1)]);
        let next = line.next_upload().unwrap();
        assert_eq!(name(&next.request), of("gamma", large));
        assert!(line.next_upload().is_none() && line.waiting.is_empty());
    }

    #[test]
    fn a_group_has_no_more_bytes_than_share_a_flush() {
        let mut line = Line::default();
        let half = GROUP_BYTES / 2 + 1;
        line.waiting.extend(
            [("acme", half), ("acme", half), ("beta", 1)].map(|(it, size)| request(it, size)),
        );
        assert_eq!(line.next_group().len(), 2, "acme's first and beta's");
        assert!(line.next_upload().is_none());
        assert_eq!(line.next_group().len(), 1);
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
