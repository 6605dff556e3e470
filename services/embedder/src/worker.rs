//! Threads that compute what waits in a queue, one for each lane.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memfleet_background::CallInProgress;
use memfleet_domain::{Fault, FaultKind};
use tokio::sync::oneshot;

use crate::queue::{Lane, Queue, QueuedModel, Request};

/// When a caller who was turned away may try again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// A model behind a queue. Dropping it ends the threads.
pub(crate) struct Workers<M: QueuedModel> {
    pub(crate) queue: Arc<Queue<M>>,
}

impl<M: QueuedModel> Workers<M> {
    /// Starts the threads. At most `capacity` texts wait in each lane, except that an empty one always
    /// takes a request.
    pub(crate) fn start(model: M, capacity: usize) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new(capacity));
        let model = Arc::new(model);
        for lane in Lane::ALL {
            let (work, model) = (queue.clone(), model.clone());
            std::thread::Builder::new()
                .name(format!("{}-{}", M::NAMES.threads, lane.label::<M>()))
                .spawn(move || run(&work, lane, model.as_ref()))?;
        }
        Ok(Self { queue })
    }

    /// The model's answer to a question of this many texts.
    pub(crate) async fn ask(
        &self,
        question: M::Question,
        texts: usize,
        lane: Lane,
    ) -> Result<M::Answer, Fault> {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            question,
            texts,
            since: Instant::now(),
            answer,
        };
        if !self.queue.push(request, lane) {
            metrics::counter!(M::NAMES.shed, "lane" => lane.label::<M>()).increment(1);
            return Err(overloaded::<M>());
        }
        let stopped = |_| Err(unavailable::<M>("has stopped"));
        answered.await.unwrap_or_else(stopped)
    }
}

impl<M: QueuedModel> Drop for Workers<M> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn overloaded<M: QueuedModel>() -> Fault {
    let message = format!("too many texts are waiting for the {}", M::NAMES.model);
    let fault = Fault::new(FaultKind::ResourceExhausted, M::NAMES.overloaded, message);
    fault.retry_after(RETRY_AFTER)
}

/// Fault of a model that failed, or whose thread has stopped.
fn unavailable<M: QueuedModel>(what: &str) -> Fault {
    let message = format!("the {} {what}", M::NAMES.model);
    Fault::new(FaultKind::Unavailable, M::NAMES.unavailable, message)
}

/// Serves requests until the queue is closed; background work behind all that callers wait for.
fn run<M: QueuedModel>(queue: &Queue<M>, lane: Lane, model: &M) {
    if lane == Lane::Background {
        memfleet_background::yield_to_callers();
    }
    while let Some(requests) = queue.take(lane) {
        let _call = (lane == Lane::Call).then(CallInProgress::begin);
        serve(requests, lane, model);
    }
}

fn serve<M: QueuedModel>(requests: Vec<Request<M>>, lane: Lane, model: &M) {
    for request in &requests {
        let wait = request.since.elapsed();
        metrics::histogram!(M::NAMES.queue_seconds, "lane" => lane.label::<M>()).record(wait);
    }
    // A panic inside the model fails these requests, not the worker.
    let outcome = catch_unwind(AssertUnwindSafe(|| model.compute(&requests, lane)));
    match outcome.unwrap_or_else(|_| Err("panic".to_owned())) {
        Ok(answers) => {
            for (request, answer) in requests.into_iter().zip(answers) {
                // The caller may have left meanwhile; then there is nobody to answer.
                let _ = request.answer.send(Ok(answer));
            }
        }
        Err(error) => {
            tracing::error!(
                error,
                lane = lane.label::<M>(),
                requests = requests.len(),
                "the {} failed",
                M::NAMES.model
            );
            for request in requests {
                let _ = request.answer.send(Err(unavailable::<M>("failed")));
            }
        }
    }
}

/// Times a computation of the model.
pub(crate) fn timed<M: QueuedModel, T>(lane: Lane, compute: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let computed = compute();
    metrics::histogram!(M::NAMES.inference_seconds, "lane" => lane.label::<M>())
        .record(started.elapsed());
    computed
}
