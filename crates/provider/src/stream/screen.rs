//! What of a streamed reply reaches the client while memory tools are on offer (AMP items 28, 37, 38).
//!
//! Nobody knows at the first word whether a reply will call memory. So frames wait until it is clear: a round that calls only memory is
//! hidden, of a mixed one memory's calls are taken out. Text beyond a limit is released and streamed live; should such a reply still
//! call memory, its end is held back and the next round's stream goes on where it was interrupted. How much is held is bounded by the
//! caller's limit on a reply.

mod look;
mod render;

use super::Frame;
use crate::Format;
use crate::reply::Usage;
use crate::tools::Names;
use look::{Kind, Look};
use render::Renderer;

/// When frames are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// When the stream has ended.
    Hold,
    /// When this many bytes of text came and no call. `OpenAI` responses are held all the same: their last event repeats everything, so
    /// two rounds cannot be joined.
    LiveAfter(usize),
    /// At once. For the last round, which has no memory tools to call.
    Live,
}

impl Default for Policy {
    fn default() -> Self {
        Self::LiveAfter(400)
    }
}

/// What a stream was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing of memory was in it; the client has all of it.
    Passed,
    /// It called memory only, and the client has nothing of it but pings. Another round follows.
    Hidden,
    /// It called memory and the client's tools; the client has what is its own.
    Mixed,
    /// It called memory after the client had seen text. Another round follows, through [`Screen::resumed`].
    Interrupted {
        /// How many blocks of content the client has, for the numbers of those to come.
        blocks: u64,
    },
    /// The provider reported an error; the client has it.
    Failed,
}

/// Decides frame by frame.
#[derive(Clone, Debug)]
pub struct Screen {
    policy: Policy,
    renderer: Renderer,
    /// Held, in their order, each with what it is.
    held: Vec<(Frame, Look)>,
    live: bool,
    resumed: bool,
    seen: Seen,
}

/// What was in the stream so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    failed: bool,
    memory: bool,
    client: bool,
    text: usize,
    blocks: u64,
}

impl Screen {
    /// A screen for the first stream that a client gets in answer to its request.
    pub fn new(format: Format, names: Names, policy: Policy) -> Self {
        let policy = match (format, policy) {
            (Format::OpenaiResponses, Policy::LiveAfter(_)) => Policy::Hold,
            (_, policy) => policy,
        };
        Self {
            policy,
            renderer: Renderer::new(format, names),
            held: Vec::new(),
            live: policy == Policy::Live,
            resumed: false,
            seen: Seen::default(),
        }
    }

    /// A screen for the stream after one that was interrupted: its opening is left out and its blocks are counted on.
    pub fn resumed(format: Format, names: Names, policy: Policy, blocks: u64) -> Self {
        let mut screen = Self::new(format, names, policy);
        screen.resumed = true;
        screen.seen.blocks = blocks;
        screen.renderer.count_from(blocks);
        screen
    }

    /// Adds the tokens of hidden rounds to the counts that this stream reports.
    #[must_use]
    pub fn counting(mut self, hidden: Usage) -> Self {
        self.renderer.count_tokens(hidden);
        self
    }

    /// Takes a frame and gives what the client gets now.
    pub fn push(&mut self, frame: Frame) -> Vec<u8> {
        let look = self.renderer.look(&frame);
        match look.kind {
            Kind::Ping => return frame.bytes,
            Kind::Error => return self.fail(frame),
            Kind::Opening if self.resumed => return Vec::new(),
            _ => {}
        }
        self.note(&look);
        let waits = self.seen.memory && look.kind == Kind::Closing;
        if self.live && !waits {
            return self.renderer.render(frame, &look, self.seen.memory);
        }
        self.held.push((frame, look));
        if self.is_released() {
            self.live = true;
            return self.release();
        }
        Vec::new()
    }

    fn fail(&mut self, frame: Frame) -> Vec<u8> {
        self.seen.failed = true;
        let mut out = if self.seen.memory {
            Vec::new()
        } else {
            self.release()
        };
        out.extend(frame.bytes);
        out
    }

    fn note(&mut self, look: &Look) {
        self.seen.memory |= look.calls_memory;
        self.seen.client |= look.calls_client;
        self.seen.text = self.seen.text.saturating_add(look.text);
        if look.opens_block && !look.calls_memory {
            self.seen.blocks += 1;
        }
        self.renderer.drop_calls(&look.dropped);
    }

    fn is_released(&self) -> bool {
        match self.policy {
            Policy::LiveAfter(limit) => {
                !self.seen.memory && !self.seen.client && self.seen.text > limit
            }
            Policy::Hold | Policy::Live => false,
        }
    }

    fn release(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let frames = held
            .into_iter()
            .flat_map(|(frame, look)| self.renderer.render(frame, &look, false));
        frames.collect()
    }

    /// What the stream was, and what of it the client gets at its end.
    pub fn finish(mut self) -> (Outcome, Vec<u8>) {
        match (self.seen.memory, self.seen.client, self.live) {
            _ if self.seen.failed => (Outcome::Failed, Vec::new()),
            (false, ..) => (Outcome::Passed, self.release()),
            (true, true, _) => (Outcome::Mixed, self.release()),
            (true, false, false) => (Outcome::Hidden, Vec::new()),
            (true, false, true) => {
                let blocks = self.seen.blocks;
                // The end is held back, but not what it says.
                self.held.retain(|(_, look)| look.text > 0);
                (Outcome::Interrupted { blocks }, self.release())
            }
        }
    }
}
