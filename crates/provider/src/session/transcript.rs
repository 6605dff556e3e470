//! Conversations as digests of their messages, and how one is recognised by them.

use crate::conversation::{Message, Part, PartKind, Role};
use crate::digest;
use crate::query::without_blocks;
use serde::{Deserialize, Serialize};

/// The most messages that are kept of a conversation; of longer ones the last.
const MAX_MESSAGES: usize = 4_096;
/// How many messages must agree to recognise a conversation whose beginning is not sent any more.
const MIN_OVERLAP: usize = 3;

/// The digest of one message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What user and assistant said, a digest a message. System prompts are not in it (they carry dates), nor tool calls, results and
/// reasoning (clients drop them), nor blocks of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    digests: Vec<Digest>,
    /// Whether the message is the assistant's; its words are what two equal greetings rarely share.
    answers: Vec<bool>,
}

/// How a request stands to the conversations that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// It goes on with this one, or sends its last request again.
    Continues(usize),
    /// It is a branch of this one: its first `shared` messages are the same, an answer of the model among them, then it goes another way.
    /// Memory of the shared part is memory of the branch's own conversation.
    Forks {
        /// The index of the parent.
        parent: usize,
        /// Messages in common.
        shared: usize,
    },
    /// It belongs to none.
    New,
}

impl Transcript {
    /// The transcript of messages.
    pub fn of(messages: &[Message<'_>]) -> Self {
        let mut transcript = Self::default();
        let from = messages.len().saturating_sub(MAX_MESSAGES);
        for message in &messages[from..] {
            if let Some(digest) = digest_of(message) {
                transcript.digests.push(digest);
                transcript.answers.push(message.role == Role::Assistant);
            }
        }
        transcript
    }

    /// The digests, in the order of the messages.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// How many messages it begins with that the other begins with, too.
    pub fn shared_with(&self, other: &Self) -> usize {
        let pairs = self.digests.iter().zip(&other.digests);
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// Whether it begins with all of `known`.
    fn continues(&self, known: &Self) -> bool {
        !known.digests.is_empty() && self.digests.starts_with(&known.digests)
    }

    /// Whether it goes on with `known`, but without its beginning: clients drop the oldest messages of a long conversation.
    fn continues_the_end_of(&self, known: &Self) -> bool {
        let Some(first) = self.digests.first() else {
            return false;
        };
        let mut starts = known.digests.iter().enumerate();
        starts.any(|(start, digest)| {
            digest == first
                && known.digests.len() - start >= MIN_OVERLAP
                && self.digests.starts_with(&known.digests[start..])
        })
    }

    fn has_answer_in(&self, first: usize) -> bool {
        self.answers.iter().take(first).any(|answer| *answer)
    }
}

/// Finds the conversation of a request among those of its client, by the transcripts of their last requests. The longest agreement counts, of
/// equal ones the first, so the caller puts the latest first.
pub fn recognise(request: &Transcript, known: &[Transcript]) -> Match {
    let best = |matches: &dyn Fn(&Transcript) -> bool| {
        let found = known.iter().enumerate().filter(|(_, known)| matches(known));
        // `rev`, because of equal ones `max_by_key` takes the last.
        found.rev().max_by_key(|(_, known)| known.digests.len())
    };
    if let Some((index, _)) = best(&|known| request.continues(known)) {
        return Match::Continues(index);
    }
    if let Some((index, _)) = best(&|known| request.continues_the_end_of(known)) {
        return Match::Continues(index);
    }
    let shared = known
        .iter()
        .enumerate()
        .map(|(index, known)| (index, request.shared_with(known)))
        .filter(|(_, shared)| request.has_answer_in(*shared))
        .rev()
        .max_by_key(|(_, shared)| *shared);
    match shared {
        Some((parent, shared)) => Match::Forks { parent, shared },
        None => Match::New,
    }
}

/// What is said, without the blanks around it; other parts count by their kind. `None` where nothing is said.
fn digest_of(message: &Message<'_>) -> Option<Digest> {
    let said = |part: &&Part<'_>| {
        !matches!(
            part.kind,
            PartKind::ToolCall | PartKind::ToolResult | PartKind::Reasoning
        )
    };
    if !matches!(message.role, Role::User | Role::Assistant) {
        return None;
    }
    let mut text = String::new();
    for part in message.content.parts.iter().filter(said) {
        match (&part.kind, &part.text) {
            (PartKind::Text, Some(part)) => text += without_blocks(part).trim(),
            (kind, _) => text.extend(["\u{1}", kind_name(*kind), "\u{1}"]),
        }
    }
    if text.is_empty() {
        return None;
    }
    let role: &[u8] = match message.role {
        Role::Assistant => b"assistant",
        _ => b"user",
    };
    let parts: [&[u8]; 2] = [role, text.as_bytes()];
    Some(Digest(digest::of("memfleet provider 2026 message", &parts)))
}

/// What stands in a transcript for a part without text of its own.
fn kind_name(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Image => "image",
        PartKind::Audio => "audio",
        PartKind::Document => "document",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript(texts: &[&str]) -> Transcript {
        let messages = texts.iter().enumerate().map(|(index, text)| {
            let role = if index % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            Message::text(role, *text)
        });
        Transcript::of(&messages.collect::<Vec<_>>())
    }

    #[test]
    fn amp_103_a_growing_conversation_stays_the_same() {
        let all = ["hi", "hello", "who am I?", "Ada", "thanks"];
        for end in [1, 3] {
            let known = [transcript(&["hi"]), transcript(&all[..end])];
            let found = recognise(&transcript(&all[..end + 2]), &known);
            assert_eq!(found, Match::Continues(usize::from(end > 1)), "{end}");
        }
        let known = [transcript(&all)];
        assert_eq!(recognise(&transcript(&all), &known), Match::Continues(0));
        assert_eq!(recognise(&transcript(&["hi"]), &known), Match::New);
        assert_eq!(recognise(&Transcript::default(), &known), Match::New);
    }

    #[test]
    fn amp_103_conversations_with_the_same_greeting_part_when_they_differ() {
        let known = [transcript(&["hi", "hello Ada", "a", "b", "c"])];
        let other = transcript(&["hi", "hello Bob", "a"]);
        assert_eq!(recognise(&other, &known), Match::New);
        let both = [known[0].clone(), transcript(&["hi"])];
        assert_eq!(recognise(&other, &both), Match::Continues(1));
    }

    #[test]
    fn amp_103_a_window_that_slides_is_still_the_conversation() {
        let known = [transcript(&["a", "b", "c", "d", "e", "f", "g"])];
        let window = transcript(&["c", "d", "e", "f", "g", "h", "i"]);
        assert_eq!(recognise(&window, &known), Match::Continues(0));
        let too_short = transcript(&["g", "h", "i"]);
        assert_eq!(recognise(&too_short, &known), Match::New);
    }

    #[test]
    fn amp_106_an_edited_message_makes_a_fork_that_knows_its_parent() {
        let known = [
            transcript(&["x", "y", "z"]),
            transcript(&["a", "b", "c", "d", "e"]),
        ];
        let edited = transcript(&["a", "b", "C!", "D", "f"]);
        assert_eq!(
            recognise(&edited, &known),
            Match::Forks {
                parent: 1,
                shared: 2
            }
        );
        let rewound = transcript(&["a", "b", "c"]);
        assert_eq!(
            recognise(&rewound, &known),
            Match::Forks {
                parent: 1,
                shared: 3
            }
        );
    }

    #[test]
    fn amp_103_tool_rounds_and_memory_blocks_do_not_count() {
        let plain = transcript(&["hi", "hello"]);
        let block = "hi\n\n<memory nonce=\"a1\">\nx\n</memory nonce=\"a1\">";
        let mut messages = vec![
            Message::text(Role::System, "today is …"),
            Message::text(Role::User, block),
        ];
        let call = Message {
            role: Role::Assistant,
            content: crate::conversation::Content::list(vec![Part::of(PartKind::ToolCall)]),
        };
        messages.extend([
            call,
            Message::text(Role::Tool, "42"),
            Message::text(Role::Assistant, "hello "),
        ]);
        assert_eq!(Transcript::of(&messages), plain);
    }
}
