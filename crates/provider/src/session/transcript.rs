//! Conversations as digests of their messages, and how one is recognised by them.

use crate::conversation::{Message, Part, PartKind, Role};
use crate::digest;
use crate::query::without_blocks;
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;

/// The most messages that are kept of a conversation; of longer ones the last.
const MAX_MESSAGES: usize = 1_024;
/// How many messages must agree to recognise a conversation whose beginning is not sent any more.
const MIN_OVERLAP: usize = 3;
/// How many of its earlier requests a conversation can be found by.
const MAX_KEYS: usize = 16;

/// The digest of one message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Digest(String);

impl Digest {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// What user and assistant said, a digest a message. System prompts are not in it (they carry dates), nor what belongs to calls of tools
/// and reasoning (clients drop them), nor blocks of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Transcript {
    digests: Vec<Digest>,
    /// Whether the message is the assistant's; its words are what two equal greetings rarely share.
    answers: Vec<bool>,
    /// Marks digests that are keyed with a secret, without which their words cannot be guessed.
    is_keyed: bool,
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

    /// The transcript with each digest replaced by the one that `key` makes of it. One that is keyed stays
    /// as it is.
    #[must_use]
    pub fn keyed(mut self, key: impl Fn(&str) -> String) -> Self {
        if !self.is_keyed {
            for digest in &mut self.digests {
                digest.0 = key(&digest.0);
            }
            self.is_keyed = true;
        }
        self
    }

    /// The digests, in the order of the messages.
    pub fn digests(&self) -> &[Digest] {
        &self.digests
    }

    /// Whether nobody said anything.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Whether nobody answered yet: it resends nothing.
    pub fn is_opening(&self) -> bool {
        !self.has_answer_in(self.digests.len())
    }

    /// Whether it begins with all of the other.
    pub fn begins_with(&self, other: &Self) -> bool {
        self.digests.starts_with(&other.digests)
    }

    /// What names a request of the conversation: all that was said up to the user's last message.
    pub fn key(&self) -> String {
        self.key_of(self.digests.len())
    }

    /// The key of a request that said nothing but the first message.
    pub fn opening(&self) -> String {
        self.key_of(self.digests.len().min(1))
    }

    /// The keys of this request and of those that came before it in the conversation, the last 16, the latest first.
    pub fn keys(&self) -> Vec<String> {
        let all = self.digests.len();
        let asked = |end: &usize| *end == all || !self.answers[*end - 1];
        let ends = (1..=all).rev().filter(asked).take(MAX_KEYS);
        ends.map(|end| self.key_of(end)).collect()
    }

    fn key_of(&self, end: usize) -> String {
        let parts: Vec<&[u8]> = self.digests[..end].iter().map(Digest::as_bytes).collect();
        digest::of("memfleet provider 2026 turn key", &parts)
    }

    /// It with what `known` has before it, where it goes on with the end of that; else itself. A conversation that outgrows what is kept has
    /// no beginning any more.
    #[must_use]
    pub fn after(self, known: &Self) -> Self {
        let Some(start) = self.start_in(known) else {
            return self;
        };
        if start + self.digests.len() > MAX_MESSAGES {
            return self;
        }
        let mut whole = known.clone();
        whole.digests.truncate(start);
        whole.answers.truncate(start);
        whole.digests.extend(self.digests);
        whole.answers.extend(self.answers);
        whole
    }

    /// How many messages it begins with that the other begins with, too.
    pub fn shared_with(&self, other: &Self) -> usize {
        let pairs = self.digests.iter().zip(&other.digests);
        pairs.take_while(|(one, other)| one == other).count()
    }

    /// Whether it begins with all of `known`.
    fn continues(&self, known: &Self) -> bool {
        !known.is_empty() && self.begins_with(known)
    }

    /// Where in `known` it begins, if it goes on with `known` without its beginning: clients drop the oldest messages of a long conversation.
    fn start_in(&self, known: &Self) -> Option<usize> {
        let common = overlap(&known.digests, &self.digests);
        (common >= MIN_OVERLAP).then(|| known.digests.len() - common)
    }

    fn has_answer_in(&self, first: usize) -> bool {
        self.answers.iter().take(first).any(|answer| *answer)
    }
}

/// Length of the longest end of `whole` that `next` begins with. Its time grows with the lengths, not with their product: the algorithm of
/// Knuth, Morris and Pratt.
fn overlap<T: PartialEq>(whole: &[T], next: &[T]) -> usize {
    // Of each beginning of `next` the longest end of it, other than all of it, that `next` begins with, too.
    let mut borders = vec![0; next.len()];
    let extend = |borders: &[usize], mut length: usize, item: &T| {
        while length > 0 && next.get(length) != Some(item) {
            length = borders[length - 1];
        }
        length + usize::from(next.get(length) == Some(item))
    };
    for end in 1..next.len() {
        borders[end] = extend(&borders, borders[end - 1], &next[end]);
    }
    whole
        .iter()
        .fold(0, |length, item| extend(&borders, length, item))
}

/// Finds the conversation of a request among those of its client, by the transcripts of their last requests. The longest agreement counts, of
/// equal ones the first, so the caller puts the latest first.
pub fn recognise(request: &Transcript, known: &[impl Borrow<Transcript>]) -> Match {
    let known: Vec<&Transcript> = known.iter().map(Borrow::borrow).collect();
    let best = |matches: &dyn Fn(&Transcript) -> bool| {
        let found = known.iter().enumerate().filter(|(_, known)| matches(known));
        // `rev`, because of equal ones `max_by_key` takes the last.
        found.rev().max_by_key(|(_, known)| known.digests.len())
    };
    if let Some((index, _)) = best(&|known| request.continues(known)) {
        return Match::Continues(index);
    }
    if let Some((index, _)) = best(&|known| request.start_in(known).is_some()) {
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

/// What is said, without the blanks around it; other parts count by their kind. `None` where nothing is said, or only on the way to the call
/// of a tool.
fn digest_of(message: &Message<'_>) -> Option<Digest> {
    let parts = &message.content.parts;
    let said = |part: &&Part<'_>| !matches!(part.kind, PartKind::ToolResult | PartKind::Reasoning);
    let calls = parts.iter().any(|part| part.kind == PartKind::ToolCall);
    if calls || !matches!(message.role, Role::User | Role::Assistant) {
        return None;
    }
    let mut text = String::new();
    for part in parts.iter().filter(said) {
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

/// The digests in a row, each after a letter that says who spoke; a capital where they are keyed.
impl From<Transcript> for String {
    fn from(transcript: Transcript) -> Self {
        let said = transcript.digests.iter().zip(&transcript.answers);
        let letter = |answers: bool| match (answers, transcript.is_keyed) {
            (true, true) => "A",
            (true, false) => "a",
            (false, true) => "U",
            (false, false) => "u",
        };
        said.flat_map(|(digest, answers)| [letter(*answers), &digest.0])
            .collect()
    }
}

impl TryFrom<String> for Transcript {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut transcript = Self::default();
        for said in text.as_bytes().chunks(1 + digest::LENGTH) {
            let digest = str::from_utf8(&said[1..]).map_err(|_| NO_TRANSCRIPT)?;
            if digest.len() != digest::LENGTH || !matches!(said[0], b'a' | b'u' | b'A' | b'U') {
                return Err(NO_TRANSCRIPT);
            }
            let is_keyed = said[0].is_ascii_uppercase();
            if !transcript.is_empty() && is_keyed != transcript.is_keyed {
                return Err(NO_TRANSCRIPT);
            }
            transcript.is_keyed = is_keyed;
            transcript.digests.push(Digest(digest.to_owned()));
            transcript.answers.push(said[0].eq_ignore_ascii_case(&b'a'));
        }
        Ok(transcript)
    }
}

const NO_TRANSCRIPT: &str = "is not a transcript";

/// Whether a message is one of a transcript.
pub fn is_said(message: &Message<'_>) -> bool {
    digest_of(message).is_some()
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
    use proptest::prelude::*;

    use super::*;

    /// The same by looking at every end.
    fn slow_overlap(whole: &[u8], next: &[u8]) -> usize {
        let ends = (0..=whole.len()).filter(|start| next.starts_with(&whole[*start..]));
        whole.len() - ends.min().unwrap()
    }

    proptest! {
        #[test]
        fn the_longest_overlap_is_found(
            whole in prop::collection::vec(0u8..3, 0..12),
            next in prop::collection::vec(0u8..3, 0..12),
        ) {
            prop_assert_eq!(overlap(&whole, &next), slow_overlap(&whole, &next));
        }
    }

    #[test]
    fn a_thousand_equal_messages_are_looked_for_in_many_conversations_in_no_time() {
        let request = transcript(&["same"; 1_023]);
        let mut other = transcript(&["same"; 1_024]);
        other.digests.push(Digest("another".to_owned()));
        let known = vec![other; 32];
        let begun = std::time::Instant::now();
        assert_eq!(request.start_in(&known[0]), None);
        recognise(&request, &known);
        // Milliseconds, on a busy machine a second.
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

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
    fn amp_103_a_window_is_kept_with_what_came_before_it() {
        let known = transcript(&["a", "b", "c", "d", "e", "f", "g"]);
        let window = transcript(&["c", "d", "e", "f", "g", "h", "i"]);
        let whole = transcript(&["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        assert_eq!(window.clone().after(&known), whole);
        assert_eq!(whole.clone().after(&known), whole);
        assert_eq!(window.clone().after(&transcript(&["x"])), window);
        let long: Vec<_> = (0..MAX_MESSAGES).map(|n| n.to_string()).collect();
        let long: Vec<_> = long.iter().map(String::as_str).collect();
        let mut next = long[2..].to_vec();
        next.extend(["y", "z"]);
        let kept = transcript(&next).after(&transcript(&long));
        assert_eq!(kept, transcript(&next));
    }

    #[test]
    fn amp_103_an_earlier_request_is_one_of_the_keys_of_a_later_one() {
        let said = ["hi", "hello", "who am I?", "Ada", "thanks"];
        let keys = transcript(&said).keys();
        let ends = [5, 3, 1].map(|end| transcript(&said[..end]).key());
        assert_eq!(keys, ends);
        assert_eq!(transcript(&said).opening(), ends[2]);
        assert!(transcript(&said[..1]).is_opening() && !transcript(&said[..2]).is_opening());
        let many: Vec<_> = (0..100).map(|n| n.to_string()).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(transcript(&many).keys().len(), MAX_KEYS);
        assert!(Transcript::default().keys().is_empty());
    }

    #[test]
    fn a_transcript_reads_back_from_its_text_and_nothing_else_does() {
        for said in [&[][..], &["hi"], &["hi", "hello", "é"]] {
            let transcript = transcript(said);
            let text = serde_json::to_string(&transcript).unwrap();
            assert_eq!(
                serde_json::from_str::<Transcript>(&text).unwrap(),
                transcript
            );
        }
        for text in [
            "u",
            "uabc",
            "x0123456789abcdef0123456789abcdef",
            "éééééééééééééééééééé",
        ] {
            assert!(Transcript::try_from(text.to_owned()).is_err(), "{text}");
        }
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
            content: crate::conversation::Content::list(vec![
                Part::text("Let me look"),
                Part::of(PartKind::ToolCall),
            ]),
        };
        messages.extend([
            call,
            Message::text(Role::Tool, "42"),
            Message::text(Role::Assistant, "hello "),
        ]);
        assert_eq!(Transcript::of(&messages), plain);
    }
}
