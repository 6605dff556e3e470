//! Frames of a stream, however it is cut into chunks (AMP item 41).
//!
//! A frame keeps the bytes that it was read from, so that what passes on is what came: the bytes of all frames are the stream.

use crate::Format;
use crate::malformed::{Malformed, Reason};

/// The longest frame that is held, in bytes: a whole response with pictures fits.
pub const MAX_FRAME: usize = 64 << 20;

/// How frames are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// A JSON value a line.
    Lines,
}

/// One event, with its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What came, line ends and comments with it.
    pub bytes: Vec<u8>,
    /// The event's type; `None` where it has none.
    pub event: Option<String>,
    /// Its data, lines joined; `None` of comments, blank lines and pings without data. What is not UTF-8 is replaced.
    pub data: Option<String>,
}

/// Reads frames out of chunks.
#[derive(Clone, Debug)]
pub struct Parser {
    framing: Framing,
    buffer: Vec<u8>,
    /// Where the line begins that is being read.
    line: usize,
    /// Up to where it was looked at.
    seen: usize,
    at_start: bool,
    limit: usize,
}

impl Framing {
    /// The framing of a provider's streams.
    pub fn of(format: Format) -> Self {
        match format {
            Format::OllamaChat => Self::Lines,
            _ => Self::Events,
        }
    }
}

impl Parser {
    /// A parser at the beginning of a stream.
    pub fn new(framing: Framing) -> Self {
        Self::with_limit(framing, MAX_FRAME)
    }

    /// The same with a limit of its own on the bytes of a frame.
    pub fn with_limit(framing: Framing, limit: usize) -> Self {
        Self {
            framing,
            buffer: Vec::new(),
            line: 0,
            seen: 0,
            at_start: true,
            limit,
        }
    }

    /// The frames that end in this chunk. After an error the stream is of no use.
    pub fn push(&mut self, chunk: &[u8]) -> Result<Vec<Frame>, Malformed> {
        self.buffer.extend_from_slice(chunk);
        let mut frames = Vec::new();
        let mut start = 0;
        while let Some((line, end)) = self.next_line() {
            let ends = match self.framing {
                Framing::Lines => true,
                Framing::Events => line.is_empty(),
            };
            self.line = end;
            self.seen = end;
            if ends {
                frames.push(self.frame(start, end));
                start = end;
            }
        }
        self.buffer.drain(..start);
        self.line -= start;
        self.seen -= start;
        if self.buffer.len() > self.limit {
            return Err(Malformed::here(Reason::TooLong(self.limit)));
        }
        Ok(frames)
    }

    /// What is left at the end of the stream: a frame that its sender did not end, to be read all the same.
    pub fn finish(&mut self) -> Option<Frame> {
        let end = self.buffer.len();
        (end > 0).then(|| {
            let frame = self.frame(0, end);
            self.buffer.clear();
            (self.line, self.seen) = (0, 0);
            frame
        })
    }

    /// The place of the line's text and where the next line begins. A carriage return at the very end waits for what follows it.
    fn next_line(&mut self) -> Option<(std::ops::Range<usize>, usize)> {
        let fresh = &self.buffer[self.seen..];
        let is_end = |byte: &u8| match self.framing {
            Framing::Events => matches!(byte, b'\n' | b'\r'),
            Framing::Lines => *byte == b'\n',
        };
        let Some(found) = fresh.iter().position(is_end) else {
            self.seen = self.buffer.len();
            return None;
        };
        let end = self.seen + found;
        let next = match (self.buffer[end], self.buffer.get(end + 1)) {
            (b'\r', Some(b'\n')) => end + 2,
            (b'\r', None) => {
                self.seen = end;
                return None;
            }
            _ => end + 1,
        };
        Some((self.line..end, next))
    }

    fn frame(&mut self, start: usize, end: usize) -> Frame {
        let bytes = self.buffer[start..end].to_vec();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if std::mem::take(&mut self.at_start) {
            text = text.trim_start_matches('\u{feff}').to_owned();
        }
        match self.framing {
            Framing::Lines => Frame {
                bytes,
                event: None,
                data: Some(text.trim().to_owned()).filter(|data| !data.is_empty()),
            },
            Framing::Events => event(bytes, &text),
        }
    }
}

/// Reads the fields of an event.
fn event(bytes: Vec<u8>, text: &str) -> Frame {
    let (mut event, mut data) = (None, None::<String>);
    for line in text.split(['\n', '\r']) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event = Some(value.to_owned()),
            "data" => match &mut data {
                None => data = Some(value.to_owned()),
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
            },
            _ => {}
        }
    }
    Frame { bytes, event, data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(framing: Framing, chunks: &[&[u8]]) -> Vec<Frame> {
        let mut parser = Parser::new(framing);
        let mut frames: Vec<Frame> = chunks
            .iter()
            .flat_map(|chunk| parser.push(chunk).unwrap())
            .collect();
        frames.extend(parser.finish());
        frames
    }

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: ping\ndata: {}\n\nevent:delta\rdata: {\"a\":\r\ndata:  \"日本🙂\"}\r\r\
        id: 1\nretry: 5\n\ndata\n\ndata: [DONE]\n\ndata: open";

    #[test]
    fn amp_041_events_are_the_same_whatever_the_chunks() {
        let whole = all(Framing::Events, &[STREAM.as_bytes()]);
        let data: Vec<Option<&str>> = whole.iter().map(|f| f.data.as_deref()).collect();
        let delta = "{\"a\":\n \"日本🙂\"}";
        assert_eq!(
            data,
            [
                None,
                Some("{}"),
                Some(delta),
                None,
                Some(""),
                Some("[DONE]"),
                Some("open")
            ]
        );
        assert_eq!(whole[1].event.as_deref(), Some("ping"));
        assert_eq!(whole[2].event.as_deref(), Some("delta"));
        let bytes = STREAM.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(all(Framing::Events, &chunks), whole, "{first} {second}");
            }
        }
        let one_by_one: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(all(Framing::Events, &one_by_one), whole);
    }

    #[test]
    fn a_frame_without_an_end_is_not_held_for_ever() {
        let mut parser = Parser::with_limit(Framing::Events, 100);
        assert!(parser.push(&[b'a'; 100]).unwrap().is_empty());
        assert!(parser.push(b"a").is_err());
    }

    proptest! {
        #[test]
        fn amp_037_the_bytes_of_all_frames_are_the_stream(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..200),
            cuts in prop::collection::vec(0_usize..200, 0..8),
            lines in any::<bool>(),
        ) {
            let framing = if lines { Framing::Lines } else { Framing::Events };
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let frames = all(framing, &chunks);
            let joined: Vec<u8> = frames.iter().flat_map(|frame| frame.bytes.clone()).collect();
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(frames, all(framing, &[&bytes]));
        }
    }
}
