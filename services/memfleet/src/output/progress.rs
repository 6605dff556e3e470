//! Progress of long work, on standard error and on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TURNS: &str = "{msg} {wide_bar} {human_pos}/{human_len} turns  {per_sec}  {eta} left";
const CHANGES: &str = "{msg} {wide_bar} {human_pos}/{human_len} changes  {eta} left";
const TRIPLETS: &str = "{msg} {spinner} {human_pos} triplets";
const BYTES: &str = "{msg} {wide_bar} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";

/// A bar with rate and time left. It disappears when it is dropped.
pub struct Progress(ProgressBar);

impl Progress {
    /// Counts turns.
    pub fn turns(total: u64, what: &str) -> Self {
        Self::new(total, what, TURNS)
    }

    /// Counts changes of a space.
    pub fn changes(total: u64, what: &str) -> Self {
        Self::new(total, what, CHANGES)
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
        // Hides itself where standard error is not a terminal.
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
        bar.set_style(
            ProgressStyle::with_template(template).expect("the templates above are valid"),
        );
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// That much more is done.
    pub fn advance(&self, by: u64) {
        self.0.inc(by);
    }

    /// That much is done in all.
    pub fn reached(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
