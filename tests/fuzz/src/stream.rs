//! Streams of replies: however they are cut they say the same, and a client gets what is its own.

use memfleet_provider::stream::{Assembler, Frame, Framing, Outcome, Parser, Policy, Screen};
use memfleet_provider::tools::Names;
use memfleet_provider::{Format, Reply};
use serde::de::IgnoredAny;

use crate::choices::Choices;

/// The number of a format, one of how a client gets it and the size of a chunk; then the bytes of a stream.
pub fn stream(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let format = choices.one(Format::ALL);
    let policy = choices.one(&[Policy::Live, Policy::Hold, Policy::LiveAfter(3)]);
    let chunk = 1 + choices.number();
    let bytes = choices.rest();

    let whole = frames(format, &[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(chunk).collect();
    assert_eq!(frames(format, &pieces), whole);
    assert_eq!(joined(&whole), bytes);
    if let Some(reply) = assembled(format, &whole) {
        for message in &reply.messages {
            let read = serde_json::from_str::<IgnoredAny>(message);
            assert!(read.is_ok(), "{message}");
        }
    }
    screened(format, policy, &whole);
}

fn frames(format: Format, chunks: &[&[u8]]) -> Vec<Frame> {
    let mut parser = Parser::new(Framing::of(format));
    let mut frames = Vec::new();
    for chunk in chunks {
        frames.extend(
            parser
                .push(chunk)
                .expect("an input is shorter than a frame may be"),
        );
    }
    frames.extend(parser.finish());
    frames
}

fn joined(frames: &[Frame]) -> Vec<u8> {
    frames
        .iter()
        .flat_map(|frame| frame.bytes.clone())
        .collect()
}

/// What the stream says, up to its first frame that cannot be read.
fn assembled(format: Format, frames: &[Frame]) -> Option<Reply> {
    let mut assembler = Assembler::new(format);
    let _ = frames.iter().try_for_each(|frame| assembler.push(frame));
    assembler.finish().ok()
}

fn screened(format: Format, policy: Policy, frames: &[Frame]) {
    let mut screen = Screen::new(format, Names::default(), policy);
    let mut seen = Vec::new();
    for frame in frames {
        seen.extend(screen.push(frame.clone()));
    }
    let (outcome, rest) = screen.finish();
    seen.extend(rest);
    // Events of responses repeat the request's tools, of which a client sees its own, whatever is called.
    if outcome == Outcome::Passed && format != Format::OpenaiResponses {
        // Pings do not wait, so with what waits they may come earlier than they came.
        assert_eq!(seen.len(), joined(frames).len());
        assert!(policy != Policy::Live || seen == joined(frames));
    }
}
