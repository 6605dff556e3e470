//! Which conversation a request belongs to, where nobody says so (AMP items 103, 106).
//!
//! An id that the client gives counts first. Else the history does: a client that keeps no state here sends it again with every request, so
//! the messages of the last request of a conversation are the first of its next one. [`Transcript`] is one digest a message; a request goes
//! on with the known conversation whose transcript it begins with. Two conversations that open with the same greeting are one only until
//! they say something different: then one of them stops beginning with what is known, and gets an id of its own. Time plays no part.

mod transcript;

pub use transcript::{Digest, Match, Transcript, is_said, recognise};

use crate::conversation::Conversation;
use crate::digest;
use crate::query;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The longest id that is taken from a client or a model, in bytes.
const MAX_ID_BYTES: usize = 256;

/// Whether it can be an id: not blank, not longer, without control characters.
pub(crate) fn is_id(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= MAX_ID_BYTES && !id.contains(char::is_control)
}

/// Where the id of a session comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A header, or a field of our own API.
    Explicit,
    /// The request's metadata.
    Metadata,
    /// The first messages.
    Fingerprint,
}

/// The id that a client gives: `explicit` before what stands in the body. Blank ones, those of over 256 bytes and those with control
/// characters are none. Case counts.
pub fn given<'a>(
    explicit: Option<&'a str>,
    conversation: &'a Conversation<'_>,
) -> Option<(Cow<'a, str>, Origin)> {
    let usable = |id: &&str| is_id(id);
    let hint = conversation.hints.session.as_deref();
    explicit
        .filter(usable)
        .map(|id| (Cow::Borrowed(id), Origin::Explicit))
        .or_else(|| {
            hint.filter(usable)
                .map(|id| (Cow::Borrowed(id), Origin::Metadata))
        })
}

/// An id for a conversation that is not known yet: derived from whose it is and what it says so far, so that a retry gets the same.
/// `scope` keeps clients apart; `twin` is the id of the latest conversation in it that began with all the same messages (empty: none did), so
/// that each gets an id of its own.
pub fn derived_id(scope: &[&str], transcript: &Transcript, twin: &str) -> String {
    let scope = scope.iter().map(|part| part.as_bytes());
    let digests = transcript.digests().iter().map(Digest::as_bytes);
    let parts: Vec<&[u8]> = scope.chain([twin.as_bytes()]).chain(digests).collect();
    format!(
        "c-{}",
        digest::of("memfleet provider 2026 session id", &parts)
    )
}

/// What is said up to the user's last message. It is the same for all requests of the turn's tool rounds, and so is its key, what was injected
/// under it (AMP item 6) and the session that it belongs to. Empty where no user has spoken.
pub fn asked(conversation: &Conversation<'_>) -> Transcript {
    query::target(conversation)
        .map(|target| Transcript::of(&conversation.messages[..=target]))
        .unwrap_or_default()
}
