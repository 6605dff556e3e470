//! Requests that wait for the model: one lane for queries, one for passages, bounded together.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use memfleet_domain::Fault;
use memfleet_domain::embedding::PassageVectors;
use tokio::sync::oneshot;

use crate::names;

/// Texts that a worker takes at once, more only for a single large request. Small, so that a new request waits little.
const TEXTS_A_ROUND: usize = 64;

/// Which worker serves a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Someone waits for an answer.
    Query,
    /// Something to store.
    Passage,
}

impl Lane {
    /// Value of the metrics' label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Passage => "passage",
        }
    }
}

/// Texts of one caller.
pub(crate) struct Request {
    pub(crate) texts: Vec<String>,
    pub(crate) since: Instant,
    pub(crate) answer: oneshot::Sender<Result<Vec<PassageVectors>, Fault>>,
}

impl Request {
    /// True when nobody waits for the answer any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.answer.is_closed()
    }
}

/// The requests that wait.
pub(crate) struct Queue {
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queries: VecDeque<Request>,
    passages: VecDeque<Request>,
    texts: usize,
    closed: bool,
}

impl Queue {
    /// A queue for this many texts.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Takes a request in; false when it would not fit beside what waits already.
    pub(crate) fn push(&self, request: Request, lane: Lane) -> bool {
        let mut state = self.lock();
        if state.texts > 0 && state.texts + request.texts.len() > self.capacity {
            return false;
        }
        state.texts += request.texts.len();
        state.lane(lane).push_back(request);
        state.report();
        drop(state);
        // Each worker waits for its own lane only, so both must look.
        self.changed.notify_all();
        true
    }

    /// Waits for requests of a lane and takes a round of them. None when the queue is closed: what waits then is
    /// dropped, which tells its callers.
    pub(crate) fn take(&self, lane: Lane) -> Option<Vec<Request>> {
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
        self.lock().texts == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn lane(&mut self, lane: Lane) -> &mut VecDeque<Request> {
        match lane {
            Lane::Query => &mut self.queries,
            Lane::Passage => &mut self.passages,
        }
    }

    /// Requests whose callers still wait, in the order of arrival.
    fn round(&mut self, lane: Lane) -> Vec<Request> {
        let mut round = Vec::new();
        let mut texts = 0;
        while let Some(request) = self.lane(lane).pop_front() {
            let count = request.texts.len();
            if !round.is_empty() && texts + count > TEXTS_A_ROUND {
                self.lane(lane).push_front(request);
                break;
            }
            self.texts -= count;
            if request.is_abandoned() {
                metrics::counter!(names::ABANDONED, "lane" => lane.label()).increment(1);
                continue;
            }
            texts += count;
            round.push(request);
        }
        round
    }

    fn report(&self) {
        for (lane, requests) in [
            (Lane::Query, &self.queries),
            (Lane::Passage, &self.passages),
        ] {
            let texts: usize = requests.iter().map(|request| request.texts.len()).sum();
            metrics::gauge!(names::QUEUED_TEXTS, "lane" => lane.label()).set(texts as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Answer = oneshot::Receiver<Result<Vec<PassageVectors>, Fault>>;

    fn request(texts: usize) -> (Request, Answer) {
        let (answer, answered) = oneshot::channel();
        let texts = vec!["text".to_owned(); texts];
        (
            Request {
                texts,
                since: Instant::now(),
                answer,
            },
            answered,
        )
    }

    fn sizes(round: &[Request]) -> Vec<usize> {
        round.iter().map(|request| request.texts.len()).collect()
    }

    #[test]
    fn a_round_is_bounded_and_keeps_the_order() {
        let queue = Queue::new(1000);
        let (requests, _answers): (Vec<_>, Vec<_>) =
            [50, 14, 1, 200, 3].into_iter().map(request).unzip();
        requests
            .into_iter()
            .for_each(|request| assert!(queue.push(request, Lane::Passage)));
        let rounds: Vec<_> = (0..4)
            .map(|_| sizes(&queue.take(Lane::Passage).unwrap()))
            .collect();
        assert_eq!(rounds, [vec![50, 14], vec![1], vec![200], vec![3]]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_full_queue_refuses_whole_requests_and_an_empty_one_takes_any() {
        let queue = Queue::new(10);
        let (large, _answer) = request(50);
        assert!(queue.push(large, Lane::Passage));
        let (small, _other) = request(1);
        assert!(!queue.push(small, Lane::Passage));
    }

    #[test]
    fn lanes_do_not_mix() {
        let queue = Queue::new(10);
        let (passage, _passage_answer) = request(2);
        let (query, _query_answer) = request(1);
        assert!(queue.push(passage, Lane::Passage) && queue.push(query, Lane::Query));
        assert_eq!(sizes(&queue.take(Lane::Query).unwrap()), [1]);
        assert_eq!(sizes(&queue.take(Lane::Passage).unwrap()), [2]);
    }

    #[test]
    fn requests_of_callers_who_left_are_not_taken() {
        let queue = Queue::new(10);
        let (left, answer) = request(4);
        let (stays, _answer) = request(3);
        assert!(queue.push(left, Lane::Passage) && queue.push(stays, Lane::Passage));
        drop(answer);
        assert_eq!(sizes(&queue.take(Lane::Passage).unwrap()), [3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn closing_tells_the_callers_who_wait() {
        let queue = Queue::new(10);
        let (waits, mut answer) = request(1);
        assert!(queue.push(waits, Lane::Query));
        queue.close();
        assert!(queue.take(Lane::Query).is_none());
        assert_eq!(
            answer.try_recv().unwrap_err(),
            oneshot::error::TryRecvError::Closed
        );
    }
}
