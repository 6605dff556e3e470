//! Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere.

use std::io::{IsTerminal as _, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TURNS: &str = "{msg} {wide_bar} {human_pos}/{human_len} turns  {per_sec}  {eta} left";
const CHANGES: &str = "{msg} {wide_bar} {human_pos}/{human_len} changes  {eta} left";
const CONVERSATIONS: &str = "{msg} {wide_bar} {human_pos}/{human_len} conversations  {eta} left";
const QUESTIONS: &str = "{msg} {wide_bar} {human_pos}/{human_len} questions  {eta} left";
const TRIPLETS: &str = "{msg} {spinner} {human_pos} triplets";
const BYTES: &str = "{msg} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";

/// Between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A bar with rate and time left, which disappears when it is dropped; where standard error is no
/// terminal a line every ten seconds.
pub struct Progress {
    bar: ProgressBar,
    /// When the next line is due; none on a terminal.
    due: Option<Mutex<Instant>>,
}

impl Progress {
    /// Counts turns.
    pub fn turns(total: u64, what: &str) -> Self {
        Self::new(total, what, TURNS)
    }

    /// Counts changes of a space.
    pub fn changes(total: u64, what: &str) -> Self {
        Self::new(total, what, CHANGES)
    }

    /// Counts conversations that are remembered.
    pub fn conversations(total: u64, what: &str) -> Self {
        Self::new(total, what, CONVERSATIONS)
    }

    /// Counts questions that are asked.
    pub fn questions(total: u64, what: &str) -> Self {
        Self::new(total, what, QUESTIONS)
    }

    /// Counts triplets of which nobody knows how many there are.
    pub fn triplets(what: &str) -> Self {
        Self::new(0, what, TRIPLETS)
    }

    /// Counts bytes.
    pub fn bytes(total: u64, what: &str) -> Self {
        Self::new(total, what, BYTES)
    }

    fn new(total: u64, what: &str, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template(template).expect("the templates above are valid"),
        );
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        let due = || Mutex::new(Instant::now() + LINE_EVERY);
        Self {
            bar,
            due: (!stderr().is_terminal()).then(due),
        }
    }

    /// Goes on with another part of the work.
    pub fn turn_to(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// Waits for work that says nothing of itself.
    pub async fn while_waiting<T>(&self, work: impl Future<Output = T>) -> T {
        let mut every = tokio::time::interval(Duration::from_secs(1));
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                _ = every.tick() => self.tell(Instant::now()),
            }
        }
    }

    /// That much more is done.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
        self.tell(Instant::now());
    }

    /// That much is done in all.
    pub fn reached(&self, position: u64) {
        self.bar.set_position(position);
        self.tell(Instant::now());
    }

    fn tell(&self, now: Instant) {
        if let Some(line) = self.line(now) {
            eprintln!("{line}");
        }
    }

    /// The line that is due, where there is no terminal.
    fn line(&self, now: Instant) -> Option<String> {
        let mut due = self
            .due
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if now < *due {
            return None;
        }
        *due = now + LINE_EVERY;
        let (what, done) = (self.bar.message(), self.bar.position());
        Some(match self.bar.length().filter(|total| *total > 0) {
            Some(total) => format!("{what}: {done} of {total}"),
            None => format!("{what}: {done}"),
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_a_line_now_and_then_says_how_far_it_is() {
        let now = Instant::now();
        let mut progress = Progress::turns(50, "talk");
        progress.due = Some(Mutex::new(now));
        progress.bar.inc(20);
        assert_eq!(progress.line(now).as_deref(), Some("talk: 20 of 50"));
        assert_eq!(progress.line(now), None);
        assert!(progress.line(now + LINE_EVERY).is_some());
    }

    #[test]
    fn line_names_the_part_that_the_work_turned_to() {
        let now = Instant::now();
        let mut progress = Progress::questions(50, "talk: conversation 1 of 2");
        progress.due = Some(Mutex::new(now));
        progress.turn_to("talk: conversation 2 of 2");
        progress.bar.inc(30);
        let line = progress.line(now);
        assert_eq!(line.as_deref(), Some("talk: conversation 2 of 2: 30 of 50"));
    }
}
