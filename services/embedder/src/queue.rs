//! Requests that wait for a model: one lane for calls, one for background work, each with its bound.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use memfleet_domain::Fault;
use tokio::sync::oneshot;

use crate::names::QueueNames;

/// Model that answers the requests of a queue.
pub(crate) trait QueuedModel: Send + Sync + 'static {
    /// Question of a request.
    type Question: Send;
    /// Answer to it.
    type Answer: Send;

    /// Names in metrics, faults and logs.
    const NAMES: QueueNames;

    /// Texts that a worker takes at once, more only for a single large request. Small, so that a
    /// new request waits little.
    const TEXTS_A_ROUND: usize;

    /// One answer a request, in order; of a caller who left in the middle any.
    fn compute(&self, requests: &[Request<Self>], lane: Lane) -> Result<Vec<Self::Answer>, String>;
}

/// Worker that serves a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Serves callers who wait for an answer.
    Call,
    /// Serves work that gives way to calls.
    Background,
}

impl Lane {
    /// Both lanes.
    pub(crate) const ALL: [Self; 2] = [Self::Call, Self::Background];

    /// Value of the metrics' label.
    pub(crate) fn label<M: QueuedModel>(self) -> &'static str {
        M::NAMES.lanes[self as usize]
    }
}

/// Question of one caller.
pub(crate) struct Request<M: QueuedModel + ?Sized> {
    pub(crate) question: M::Question,
    /// Texts of the question.
    pub(crate) texts: usize,
    pub(crate) since: Instant,
    pub(crate) answer: oneshot::Sender<Result<M::Answer, Fault>>,
}

impl<M: QueuedModel> Request<M> {
    /// True when nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The requests that wait.
pub(crate) struct Queue<M: QueuedModel> {
    capacity: usize,
    state: Mutex<State<M>>,
    changed: Condvar,
}

struct State<M: QueuedModel> {
    /// Requests of each lane.
    lanes: [VecDeque<Request<M>>; 2],
    /// Texts of each lane.
    texts: [usize; 2],
    closed: bool,
}

impl<M: QueuedModel> Queue<M> {
    /// A queue for this many texts of each lane: background work takes no place of calls.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::new(State {
                lanes: [VecDeque::new(), VecDeque::new()],
                texts: [0; 2],
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// Takes a request in; false when it would not fit beside what waits already.
    pub(crate) fn push(&self, request: Request<M>, lane: Lane) -> bool {
        let mut state = self.lock();
        let texts = &mut state.texts[lane as usize];
        if *texts > 0 && *texts + request.texts > self.capacity {
            return false;
        }
        *texts += request.texts;
        state.lane(lane).push_back(request);
        state.report();
        drop(state);
        // Each worker waits for its own lane only, so both must look.
        self.changed.notify_all();
        true
    }

    /// Waits for requests of a lane and takes a round of them. None when the queue is closed: what waits then is
    /// dropped, which tells its callers.
    pub(crate) fn take(&self, lane: Lane) -> Option<Vec<Request<M>>> {
        let mut state = self.lock();
        loop {
            if state.closed {
                state.lane(lane).clear();
                return None;
            }
            let round = state.round(lane);
            if !round.is_empty() {
                state.report();
                return Some(round);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the workers.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// True when no request waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().texts == [0; 2]
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: QueuedModel> State<M> {
    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Request<M>> {
        &mut self.lanes[lane as usize]
    }

    /// Requests whose callers still wait, in the order of arrival.
    fn round(&mut self, lane: Lane) -> Vec<Request<M>> {
        let mut round = Vec::new();
        let mut texts = 0;
        while let Some(request) = self.lane(lane).pop_front() {
            let count = request.texts;
            if !round.is_empty() && texts + count > M::TEXTS_A_ROUND {
                self.lane(lane).push_front(request);
                break;
            }
            self.texts[lane as usize] -= count;
            if request.is_abandoned() {
                metrics::counter!(M::NAMES.abandoned, "lane" => lane.label::<M>()).increment(1);
                continue;
            }
            texts += count;
            round.push(request);
        }
        round
    }

    fn report(&self) {
        for (lane, texts) in Lane::ALL.into_iter().zip(self.texts) {
            metrics::gauge!(M::NAMES.queued, "lane" => lane.label::<M>()).set(texts as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Model that is never asked.
    struct Idle;

    impl QueuedModel for Idle {
        type Question = ();
        type Answer = ();
        const NAMES: QueueNames = crate::names::READING;
        const TEXTS_A_ROUND: usize = 64;

        fn compute(&self, _: &[Request<Self>], _: Lane) -> Result<Vec<()>, String> {
            unreachable!("no worker runs")
        }
    }

    type Answer = oneshot::Receiver<Result<(), Fault>>;

    fn request(texts: usize) -> (Request<Idle>, Answer) {
        let (answer, answered) = oneshot::channel();
        (
            Request {
                question: (),
                texts,
                since: Instant::now(),
                answer,
            },
            answered,
        )
    }

    fn sizes(round: &[Request<Idle>]) -> Vec<usize> {
        round.iter().map(|request| request.texts).collect()
    }

    #[test]
    fn a_round_is_bounded_and_keeps_the_order() {
        let queue = Queue::new(1000);
        let (requests, _answers): (Vec<_>, Vec<_>) =
            [50, 14, 1, 200, 3].into_iter().map(request).unzip();
        requests
            .into_iter()
            .for_each(|request| assert!(queue.push(request, Lane::Background)));
        let rounds: Vec<_> = (0..4)
            .map(|_| sizes(&queue.take(Lane::Background).unwrap()))
            .collect();
        assert_eq!(rounds, [vec![50, 14], vec![1], vec![200], vec![3]]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_lane_refuses_whole_requests_and_an_empty_one_takes_any() {
        let queue = Queue::new(10);
        let (large, _answer) = request(50);
        assert!(queue.push(large, Lane::Background));
        let (small, _other) = request(1);
        assert!(!queue.push(small, Lane::Background));
        let (call, _waits) = request(1);
        assert!(queue.push(call, Lane::Call));
    }

    #[test]
    fn lanes_do_not_mix() {
        let queue = Queue::new(10);
        let (work, _work_answer) = request(2);
        let (call, _call_answer) = request(1);
        assert!(queue.push(work, Lane::Background) && queue.push(call, Lane::Call));
        assert_eq!(sizes(&queue.take(Lane::Call).unwrap()), [1]);
        assert_eq!(sizes(&queue.take(Lane::Background).unwrap()), [2]);
    }

    #[test]
    fn requests_of_callers_who_left_are_not_taken() {
        let queue = Queue::new(10);
        let (left, answer) = request(4);
        let (stays, _answer) = request(3);
        assert!(queue.push(left, Lane::Background) && queue.push(stays, Lane::Background));
        drop(answer);
        assert_eq!(sizes(&queue.take(Lane::Background).unwrap()), [3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn closing_tells_the_callers_who_wait() {
        let queue = Queue::new(10);
        let (waits, mut answer) = request(1);
        assert!(queue.push(waits, Lane::Call));
        queue.close();
        assert!(queue.take(Lane::Call).is_none());
        assert_eq!(
            answer.try_recv().unwrap_err(),
            oneshot::error::TryRecvError::Closed
        );
    }
}
