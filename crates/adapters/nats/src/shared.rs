//! What the parts of the queue share, and whether the server is prepared for them.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use memfleet_ports::queue::LetterTally;
use memfleet_ports::store::{Result, StoreError};
use tokio::sync::{Notify, watch};

use crate::admission::Admission;
use crate::buffer::Buffer;
use crate::buried::COUNTED;
use crate::difference::Difference;
use crate::lanes::Lanes;
use crate::link::Link;
use crate::names::Names;
use crate::options::Options;
use crate::streams;

/// Publishes of the same batch come one after the other; there are this many lines for all batches.
const LINES: usize = 1024;

/// Pauses between attempts to prepare the server; the last one repeats.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Whether streams and consumers are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet, and why.
    Preparing(Option<String>),
    /// They are.
    Ready,
}

/// Behind every handle of the queue.
#[derive(Debug)]
pub struct Shared {
    pub link: Link,
    pub names: Names,
    pub options: Options,
    pub lanes: Lanes,
    pub admission: Admission,
    /// When dead letters are to be held against their bounds.
    pub tally: LetterTally,
    /// One round of taking at a time.
    pub taking: tokio::sync::Mutex<Taking>,
    pub lines: Vec<tokio::sync::Mutex<()>>,
    pub ready: Notify,
    /// The highest position that was seen.
    pub highest: AtomicU64,
    /// How often a process must say that it lives.
    pub ack_wait: watch::Sender<Duration>,
    readiness: watch::Sender<Readiness>,
    differences: Mutex<Vec<Difference>>,
    put_back: Mutex<Option<String>>,
    created: Mutex<String>,
    buffer: Mutex<Buffer>,
}

/// What is known of batches while they are taken.
#[derive(Debug, Default)]
pub struct Taking {
    /// How large they were lately, in turns or KiB.
    pub usual_size: f64,
}

impl Shared {
    pub fn new(link: Link, options: Options) -> Self {
        Self {
            link,
            names: Names::new(&options.prefix),
            lanes: Lanes::default(),
            admission: Admission::default(),
            tally: LetterTally::new(options.letters.clamp(1, COUNTED), options.letter_bytes),
            taking: tokio::sync::Mutex::default(),
            lines: (0..LINES).map(|_| tokio::sync::Mutex::default()).collect(),
            ready: Notify::new(),
            highest: AtomicU64::new(0),
            ack_wait: watch::Sender::new(options.ack_wait),
            readiness: watch::Sender::new(Readiness::Preparing(None)),
            differences: Mutex::default(),
            put_back: Mutex::default(),
            created: Mutex::default(),
            buffer: Mutex::default(),
            options,
        }
    }

    /// What this process has from the server.
    pub fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was set differently from what this build would set, when it was last compared.
    pub fn differences(&self) -> Vec<Difference> {
        let differences = self.differences.lock();
        differences.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Warnings for the operator of the server.
    pub fn concerns(&self) -> Vec<String> {
        let put_back = self.put_back.lock();
        let put_back = put_back.unwrap_or_else(PoisonError::into_inner).clone();
        let differences = self.differences().into_iter();
        let differences = differences.map(|difference| difference.to_string());
        put_back.into_iter().chain(differences).collect()
    }

    /// The stream gives out positions that it gave out before: it is to be prepared again before anything goes on.
    pub fn is_put_back(&self) -> StoreError {
        self.link.lost.notify_one();
        let stream = &self.names.ingest;
        StoreError::Unavailable(format!(
            "the stream {stream} was put back to an older state and is being moved on: try again"
        ))
    }

    /// Remembers that a position was given out.
    pub fn note_position(&self, position: u64) {
        self.highest.fetch_max(position, Ordering::AcqRel);
    }

    /// Returns when streams and consumers are there and the server can be reached, or says why not when the time of a request is
    /// over.
    pub async fn prepared(&self) -> Result<()> {
        let mut readiness = self.readiness.subscribe();
        let ready = async {
            readiness
                .wait_for(|now| *now == Readiness::Ready)
                .await
                .map(|_| ())
        };
        if let Ok(Ok(())) = tokio::time::timeout(self.link.timeout, ready).await {
            return Ok(());
        }
        if let Readiness::Preparing(Some(cause)) = &*self.readiness.borrow()
            && self.link.reach().borrow().up
        {
            return Err(StoreError::Unavailable(cause.clone()));
        }
        Err(self.link.unreachable())
    }

    /// Prepares the server after every connection, and when something turns out to be gone. Calls wait meanwhile: streams may
    /// have been made anew, and what is held then means other batches. Never ends.
    pub async fn keep_prepared(&self) {
        let mut reach = self.link.reach();
        loop {
            let epoch = match reach.wait_for(|reach| reach.up).await {
                Ok(reach) => reach.epoch,
                Err(_) => return,
            };
            self.prepare(epoch).await;
            tokio::select! {
                never = self.keep_comparing() => match never {},
                // Where it cannot be reached any more at all, the loop begins by seeing that.
                _ = async { reach.wait_for(|reach| !reach.up || reach.epoch > epoch).await.is_ok() } => {
                    self.readiness.send_replace(Readiness::Preparing(None));
                }
                () = self.link.lost.notified() => {
                    self.readiness.send_replace(Readiness::Preparing(None));
                    // What is lost is not there at once in a cluster that starts; asking again and again helps nobody.
                    tokio::time::sleep(PAUSES[0]).await;
                }
            }
        }
    }

    /// Reports settings that change while the server is connected. What is missing is found by those who need it.
    async fn keep_comparing(&self) -> Infallible {
        loop {
            tokio::time::sleep(self.options.compare_every).await;
            match streams::differences(&self.link, &self.names, &self.options).await {
                Ok(differences) => self.report(differences),
                Err(failure) => tracing::debug!(?failure, "the streams cannot be compared"),
            }
        }
    }

    /// Tries until it works, or the connection is another.
    async fn prepare(&self, epoch: u64) {
        for attempt in 0.. {
            let reach = *self.link.reach().borrow();
            if !reach.up || reach.epoch > epoch {
                return;
            }
            let Err(error) = self.try_to_prepare().await else {
                return;
            };
            tracing::warn!(%error, "the ingestion queue is not prepared");
            self.readiness
                .send_replace(Readiness::Preparing(Some(error.to_string())));
            tokio::time::sleep(PAUSES[attempt.min(PAUSES.len() - 1)]).await;
        }
    }

    async fn try_to_prepare(&self) -> Result<()> {
        if let Some(accepted) = &self.options.accepted {
            self.note_position(accepted.highest_acceptance().await?);
        }
        let first = self.highest.load(Ordering::Acquire) + 1;
        let prepared = streams::prepare(&self.link, &self.names, &self.options, first).await?;
        self.note_position(prepared.last_sequence);
        self.ack_wait.send_replace(prepared.ack_wait);
        self.report(prepared.differences);
        if let Some(last) = prepared.put_back_to {
            self.report_put_back(last, prepared.last_sequence);
        }
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        if *created != prepared.created {
            if !created.is_empty() {
                tracing::error!(
                    stream = self.names.ingest,
                    "the stream was made anew: what waited in the old one is gone"
                );
                self.buffer().clear();
            }
            *created = prepared.created;
        }
        drop(created);
        self.lanes.mark_all();
        self.readiness.send_replace(Readiness::Ready);
        self.ready.notify_one();
        Ok(())
    }

    /// Until the process ends: what is lost is not to be seen anywhere else.
    fn report_put_back(&self, from: u64, to: u64) {
        let stream = &self.names.ingest;
        let cause = format!(
            "the stream {stream} was put back to position {from}, and goes on behind {to}: what was accepted in between and not \
             stored is lost, writers have to send it again (docs/operations/backup.md)"
        );
        tracing::error!("{cause}");
        metrics::counter!("memfleet_queue_put_back_total").increment(1);
        *self.put_back.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
    }

    fn report(&self, found: Vec<Difference>) {
        let known = self.differences.lock();
        let mut known = known.unwrap_or_else(PoisonError::into_inner);
        for difference in found.iter().filter(|one| !known.contains(one)) {
            tracing::error!(%difference, "NATS is set up differently; it is left as it is");
        }
        *known = found;
    }
}
