//! Policies, stop order and drain, on paused time.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use super::*;

struct Scripted(UnboundedReceiver<StopReason>);

impl Signals for Scripted {
    async fn next(&mut self) -> StopReason {
        match self.0.recv().await {
            Some(reason) => reason,
            None => std::future::pending().await,
        }
    }
}

fn process() -> (Lifecycle, UnboundedSender<StopReason>, Scripted) {
    let (sender, receiver) = unbounded_channel();
    (
        Lifecycle::new(&Options::default()),
        sender,
        Scripted(receiver),
    )
}

async fn until(stop: CancellationToken) -> Result<(), Infallible> {
    stop.cancelled().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_signal_drains_and_stops_cleanly() {
    let (mut process, signals, scripted) = process();
    process.spawn("worker", Policy::Essential, |stop| async move {
        stop.cancelled().await;
        sleep(Duration::from_secs(10)).await;
        Ok::<_, Infallible>(())
    });
    signals.send(StopReason::Terminate).unwrap();
    assert_eq!(process.run(scripted).await, Outcome::Stopped);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_essential_task_stops_the_process() {
    for result in [Ok(()), Err("broken")] {
        let (mut process, _signals, scripted) = process();
        process.spawn("worker", Policy::Essential, move |_| async move { result });
        process.spawn("server", Policy::Essential, until);
        assert_eq!(process.run(scripted).await, Outcome::Failed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_of_its_task() {
    let (mut process, _signals, scripted) = process();
    process.spawn("worker", Policy::Essential, |_| async {
        Err::<(), _>(panicking().to_string())
    });
    assert_eq!(process.run(scripted).await, Outcome::Failed);
}

fn panicking() -> u32 {
    panic!("on purpose")
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_a_best_effort_task_changes_nothing() {
    let (mut process, signals, scripted) = process();
    process.spawn("sweep", Policy::BestEffort, |_| async { Err("broken") });
    process.spawn("server", Policy::Essential, until);
    let running = tokio::spawn(process.run(scripted));
    sleep(Duration::from_mins(1)).await;
    assert!(!running.is_finished());
    signals.send(StopReason::Interrupt).unwrap();
    assert_eq!(running.await.unwrap(), Outcome::Stopped);
}

#[tokio::test(start_paused = true)]
async fn work_beyond_the_drain_limit_is_cut_off() {
    let (mut process, signals, scripted) = process();
    process.spawn("stuck", Policy::Essential, |_| {
        std::future::pending::<Result<(), Infallible>>()
    });
    signals.send(StopReason::Terminate).unwrap();
    let begun = Instant::now();
    assert_eq!(process.run(scripted).await, Outcome::CutOff);
    assert_eq!(
        begun.elapsed().as_secs(),
        Options::default().drain.get().as_secs()
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_signal_cuts_off_at_once() {
    let (mut process, signals, scripted) = process();
    process.spawn("stuck", Policy::Essential, |_| {
        std::future::pending::<Result<(), Infallible>>()
    });
    signals.send(StopReason::Interrupt).unwrap();
    signals.send(StopReason::Interrupt).unwrap();
    let begun = Instant::now();
    assert_eq!(process.run(scripted).await, Outcome::CutOff);
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn supports_stop_after_the_tasks_that_lean_on_them() {
    let (mut process, _signals, scripted) = process();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (front, support) = (order.clone(), order.clone());
    process.spawn_support("batcher", Policy::Essential, move |stop| async move {
        stop.cancelled().await;
        support.lock().unwrap().push("batcher");
        Ok::<_, Infallible>(())
    });
    process.spawn("server", Policy::Essential, move |stop| async move {
        stop.cancelled().await;
        sleep(Duration::from_secs(5)).await;
        front.lock().unwrap().push("server");
        Ok::<_, Infallible>(())
    });
    process.stop_token().cancel();
    assert_eq!(process.run(scripted).await, Outcome::Stopped);
    assert_eq!(*order.lock().unwrap(), ["server", "batcher"]);
}

#[tokio::test(start_paused = true)]
async fn what_others_lean_on_is_told_to_stop_though_a_front_does_not_end() {
    let (mut process, signals, scripted) = process();
    process.spawn("server", Policy::Essential, |_| {
        std::future::pending::<Result<(), Infallible>>()
    });
    let written = Arc::new(Mutex::new(false));
    let note = written.clone();
    process.spawn_support("writer", Policy::Essential, |stop| async move {
        stop.cancelled().await;
        sleep(Duration::from_secs(1)).await;
        *note.lock().unwrap() = true;
        Ok::<_, Infallible>(())
    });
    signals.send(StopReason::Terminate).unwrap();
    assert_eq!(process.run(scripted).await, Outcome::CutOff);
    assert!(*written.lock().unwrap());
}
