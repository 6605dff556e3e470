//! Turns of what was said, without what memory put there and what the policy redacts. A message has the same id whenever it is sent again: by its
//! role, its text and how many like it came before, so that a history that grows is kept once (AMP item 121). Ids are digests with the key
//! of their space. Redacted is the whole message, before it
//! is cut and named: no piece and no id is of what must not be stored (AMP item 113).

use std::borrow::Cow;
use std::collections::HashMap;

use memfleet_domain::Fault;
use memfleet_domain::ids::{ExternalId, SessionId, Speaker};
use memfleet_domain::turn::{CAPTURED, Content, Metadata, Role, Trust};
use memfleet_ports::capture::RecordTurnRequest;
use memfleet_ports::memory::NewTurn;
use memfleet_provider::query::without_blocks;

use super::hearing::{Answered, Heard, Said};
use crate::assemble::redaction::Redactions;
use crate::conversations::Recognised;
use crate::digests::Key;

/// Bytes of a turn; a longer message is several.
const TEXT: usize = 65_536;
/// Labels of a turn, and bytes of the value of one.
const LABELS: (usize, usize) = (32, 512);

/// How messages become turns.
pub struct Naming {
    pub redactions: Redactions,
    pub session: Session,
    /// The blocks that the exchange was given, and those of earlier ones that nothing marks.
    pub blocks: Vec<String>,
    pub request: RecordTurnRequest,
    /// Key of ids.
    pub key: Key,
}

/// The conversation that messages are of.
pub enum Session {
    /// One that has a name.
    Named(SessionId),
    /// One that was known by what is said.
    Derived(Recognised),
}

impl Session {
    /// Its name.
    pub fn id(&self) -> &SessionId {
        match self {
            Self::Named(id) => id,
            Self::Derived(known) => &known.conversation.session,
        }
    }

    /// Where the message at a place is kept: what a fork shares is in the conversation that it comes from.
    fn of(&self, place: usize) -> &SessionId {
        match self {
            Self::Named(id) => id,
            Self::Derived(known) => known.session_of(place),
        }
    }
}

/// A turn, and the id that it has where a version before recorded it, without a key.
pub struct NamedTurn {
    pub turn: NewTurn,
    pub plain: ExternalId,
}

/// What became of messages.
#[derive(Default)]
pub struct Named {
    pub turns: Vec<NamedTurn>,
    pub left_out: u32,
    pub blocks_removed: u32,
}

impl Naming {
    /// The turns, in order.
    pub fn turns(&self, heard: Heard) -> Result<Named, Fault> {
        let model = match self.request.model.as_str() {
            "" => heard.model,
            model => model.to_owned(),
        };
        let own = self.labels(&[])?;
        let by_model = self.labels(&[("model", &model)])?;
        let mut named = Named::default();
        let mut seen = HashMap::new();
        for said in heard.messages {
            let labels = if said.role == Role::Assistant {
                &by_model
            } else {
                &own
            };
            self.add(&mut named, &mut seen, &said, labels)?;
        }
        if let Some(answer) = heard.answer {
            let labels = self.labels(&self.of_answer(&answer, &model))?;
            let said = Said {
                role: Role::Assistant,
                place: usize::MAX,
                texts: vec![answer.text],
            };
            self.add(&mut named, &mut seen, &said, &labels)?;
        }
        Ok(named)
    }

    fn of_answer<'a>(&self, answer: &Answered, model: &'a str) -> [(&'static str, &'a str); 3] {
        let said = |is_so: bool| if is_so { "true" } else { "" };
        let is_partial = self.request.partial || answer.is_partial;
        [
            ("model", model),
            ("partial", said(is_partial)),
            ("failed", said(answer.has_failed)),
        ]
    }

    /// The caller's labels and these; empty ones are none.
    fn labels(&self, more: &[(&str, &str)]) -> Result<Metadata, Fault> {
        let mut labels = self.request.metadata.clone();
        for (key, value) in more.iter().filter(|(_, value)| !value.is_empty()) {
            let end = value.floor_char_boundary(LABELS.1);
            labels.insert((*key).to_owned(), value[..end].to_owned());
        }
        if labels.len() > LABELS.0 {
            let problem = "leaves no room for the labels of the answer: give at most 29";
            return Err(Fault::invalid("metadata", problem));
        }
        Ok(labels)
    }

    fn add(
        &self,
        named: &mut Named,
        seen: &mut HashMap<(Role, String), u64>,
        said: &Said,
        labels: &Metadata,
    ) -> Result<(), Fault> {
        let before: usize = said.texts.iter().map(String::len).sum();
        let texts = said.texts.iter().map(|text| self.without_memory(text));
        let texts: Vec<_> = texts.collect();
        let after: usize = texts.iter().map(String::len).sum();
        named.blocks_removed += u32::from(after < before);
        let texts: Vec<_> = texts
            .into_iter()
            .filter(|text| !text.trim().is_empty())
            .collect();
        if texts.is_empty() {
            named.left_out += 1;
            return Ok(());
        }
        let text = self.redactions.apply_to_parts(&texts);
        let count = seen.entry((said.role, text.clone())).or_default();
        let ordinal = *count;
        *count += 1;
        for (at, piece) in pieces(&text).into_iter().enumerate() {
            let plain = external_id(said.role, &text, ordinal, at as u64);
            let id = captured(&self.key.digest(plain.as_str()));
            let turn = self.turn(said, id, piece, labels)?;
            named.turns.push(NamedTurn { turn, plain });
        }
        Ok(())
    }

    fn turn(
        &self,
        said: &Said,
        external_id: ExternalId,
        text: &str,
        labels: &Metadata,
    ) -> Result<NewTurn, Fault> {
        let role = said.role;
        let (given, name) = match role {
            Role::User => (&self.request.user, "user"),
            Role::Assistant => (&self.request.assistant, "assistant"),
            Role::System => (&None, "system"),
            Role::Tool => (&None, "tool"),
        };
        let speaker = match given {
            Some(speaker) => speaker.clone(),
            None => Speaker::new(name).map_err(|error| Fault::internal(error.to_string()))?,
        };
        Ok(NewTurn {
            session: self.session.of(said.place).clone(),
            external_id: Some(external_id),
            speaker,
            role,
            content: Content {
                text: text.to_owned(),
                media: Vec::new(),
            },
            event_time: self.request.event_time,
            metadata: labels.clone(),
            trust: Trust::of_role(role),
            replaces: None,
        })
    }

    /// A text without blocks of memory: those that are known as they were given, and any that is marked as one.
    fn without_memory(&self, text: &str) -> String {
        let mut text = Cow::Borrowed(text);
        for block in self.blocks.iter().filter(|block| !block.is_empty()) {
            if text.contains(block) {
                text = Cow::Owned(without(&text, block));
            }
        }
        without_blocks(&text).into_owned()
    }
}

/// A text without a block and the blank lines before it.
fn without(text: &str, block: &str) -> String {
    let mut pieces = text.split(block).peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(piece) = pieces.next() {
        let is_last = pieces.peek().is_none();
        kept.push_str(if is_last {
            piece
        } else {
            piece.trim_end_matches('\n')
        });
    }
    kept
}

fn external_id(role: Role, text: &str, ordinal: u64, piece: u64) -> ExternalId {
    let mut hasher = blake3::Hasher::new_derive_key("memfleet gateway 2026 captured message");
    hasher.update(&[role as u8]);
    hasher.update(&ordinal.to_be_bytes());
    hasher.update(&piece.to_be_bytes());
    hasher.update(text.as_bytes());
    captured(&hasher.finalize().to_hex()[..32])
}

fn captured(digest: &str) -> ExternalId {
    let id = format!("{CAPTURED}{digest}");
    ExternalId::new(id).expect("digits and letters are a name")
}

/// A text in pieces that turns may hold, at the ends of lines where there are any. Together they are the text.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while rest.len() > TEXT {
        let most = rest.floor_char_boundary(TEXT);
        let line = rest[..most].rfind('\n').map_or(most, |at| at + 1);
        // A piece without words would be no turn.
        let end = if rest[..line].trim().is_empty() {
            most
        } else {
            line
        };
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}
