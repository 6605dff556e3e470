//! The session of a conversation that nobody names (AMP items 103, 106). Its client sends the history again with each request, so it is known by
//! that: what a request says up to the user's last message is how the next one begins. What is kept of it is in the store, so any gateway knows
//! it, and its id is derived, so that a request that comes twice has the same one whatever became of the first.

use std::cell::OnceCell;

use chrono::TimeDelta;
use memfleet_domain::Fault;
use memfleet_domain::assembly::SessionOrigin;
use memfleet_domain::ids::{SessionId, SpaceId};
use memfleet_domain::time::Timestamp;
use memfleet_ports::context::Context;
use memfleet_ports::conversations::{Ancestor, Conversation, LINEAGE_LIMIT, Owner, Sought};
use memfleet_ports::exchanges::Entry;
use memfleet_provider::session::{Match, Transcript, derived_id, recognise};

use crate::Gateway;
use crate::digests::Key;

/// How long a conversation is known that nobody goes on with.
const KEPT: TimeDelta = TimeDelta::days(30);

/// How long it is not noted that a conversation sends the same again.
const SEEN: TimeDelta = TimeDelta::days(1);

/// How long the same opening is one that is sent again. It resends no history: later somebody begins anew with the same words.
const SENT_AGAIN: TimeDelta = TimeDelta::minutes(2);

/// What a request resends of its conversation.
#[derive(Clone, Debug, Default)]
pub struct Resent {
    /// What was said up to the user's last message.
    pub transcript: Transcript,
    /// Whether something came after that: the model is at work on it.
    pub is_under_way: bool,
}

impl Resent {
    /// Whether it could be sent by somebody who begins.
    pub fn begins(&self) -> bool {
        self.transcript.is_opening() && !self.is_under_way
    }
}

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A model is to be called with it.
    Call,
    /// A model was called with it, perhaps before later ones.
    Record,
}

/// The conversation that a request belongs to.
pub struct Recognised {
    pub origin: SessionOrigin,
    /// As it is from now on.
    pub conversation: Conversation,
    /// Messages of it that the request does not send any more.
    pub before: usize,
    /// Whether something is new in it.
    pub is_news: bool,
}

impl Recognised {
    /// The session that a message is of, by how many the request has before it: what a fork shares with another conversation is told there.
    pub fn session_of(&self, place: usize) -> &SessionId {
        let place = self.before.saturating_add(place);
        let mut eldest = self.conversation.lineage.iter().rev();
        eldest
            .find(|ancestor| place < ancestor.shared as usize)
            .map_or(&self.conversation.session, |ancestor| &ancestor.session)
    }
}

impl Gateway {
    /// The conversation of a request, by those that its caller holds in a space.
    pub(crate) async fn recognised(
        &self,
        context: &Context,
        space: &SpaceId,
        resent: &Resent,
        purpose: Purpose,
    ) -> Result<Recognised, Fault> {
        let now = self.clock.now();
        let owner = Owner {
            space: space.clone(),
            caller: digest(context.caller_name()),
        };
        let key = self.digest_key(context, Some(space)).await?;
        let plain = resent.transcript.keys();
        let keyed = plain.iter().map(|plain| key.digest(plain));
        let sought = Sought {
            owner,
            opening: key.digest(&resent.transcript.opening()),
            keys: keyed.chain(plain.iter().cloned()).collect(),
        };
        let store = &self.exchanges;
        let known = store.conversations(&context.tenant, &sought, now).await?;
        Ok(Looking::new(resent, (sought, key), known, now).find(purpose))
    }

    /// Keeps a conversation as it is now.
    pub(crate) async fn hear(
        &self,
        context: &Context,
        conversation: &Conversation,
    ) -> Result<(), Fault> {
        let entry = Entry::heard(conversation);
        self.keep_entry(&context.tenant, entry).await?;
        Ok(())
    }
}

/// Who calls may be an address of somebody: what is kept is a digest.
fn digest(caller: &str) -> String {
    let mut hasher =
        blake3::Hasher::new_derive_key("memfleet gateway 2026 caller of a conversation");
    hasher.update(caller.as_bytes());
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A transcript as it is kept in a space. Versions before kept digests without a key.
fn keyed(transcript: Transcript, key: Key) -> Transcript {
    transcript.keyed(|plain| key.bare_digest(plain))
}

/// A request among the conversations that it may belong to, those heard of last first.
struct Looking<'l> {
    resent: &'l Resent,
    /// Its transcript with keyed digests, as they are kept: a message that is forgotten and sent again must
    /// not be found by guessing.
    request: Transcript,
    /// Its keys, then the same as versions before kept them, which had no key of the space. What is kept is rewritten when it
    /// is heard of, and ends after [`KEPT`].
    sought: Sought,
    key: Key,
    known: Vec<Conversation>,
    /// Of each, once it is looked at; empty where it was forgotten.
    transcripts: Vec<OnceCell<Transcript>>,
    now: Timestamp,
}

impl<'l> Looking<'l> {
    fn new(
        resent: &'l Resent,
        (sought, key): (Sought, Key),
        known: Vec<Conversation>,
        now: Timestamp,
    ) -> Self {
        Self {
            transcripts: vec![OnceCell::new(); known.len()],
            request: keyed(resent.transcript.clone(), key),
            resent,
            sought,
            key,
            known,
            now,
        }
    }

    /// What was said in one of them. Most requests are known by their key, so few are read.
    fn transcript(&self, at: usize) -> &Transcript {
        // The state of another version of this program is as good as none.
        let read = || {
            let stored = serde_json::from_str(&self.known[at].state).unwrap_or_default();
            keyed(stored, self.key)
        };
        self.transcripts[at].get_or_init(read)
    }

    fn find(&self, purpose: Purpose) -> Recognised {
        if purpose == Purpose::Record
            && let Some(at) = self.had_it()
        {
            return self.unchanged(at);
        }
        match self.matched() {
            Match::Continues(at) => self.continued(at),
            Match::Forks { parent, shared } => {
                self.begun(SessionOrigin::Forked, self.lineage(parent, shared))
            }
            Match::New => self.begun(SessionOrigin::New, Vec::new()),
        }
    }

    /// The conversation that has had this request: it was its last, or others came after it.
    fn had_it(&self) -> Option<usize> {
        let last = self.known.iter().position(|it| self.is_last(it));
        let earlier = || {
            let has_it = |at: &usize| self.transcript(*at).begins_with(&self.request);
            (0..self.known.len()).find(has_it)
        };
        last.or_else(earlier)
    }

    /// True if this request was the last one of a conversation.
    fn is_last(&self, it: &Conversation) -> bool {
        let plain = self.sought.keys.len() / 2;
        it.key == self.sought.keys[0] || it.key == self.sought.keys[plain]
    }

    fn matched(&self) -> Match {
        let is_over = |it: &Conversation| {
            self.resent.begins() && self.is_last(it) && it.heard_at + SENT_AGAIN <= self.now
        };
        // By its key a conversation is known whose words were forgotten, too.
        let with_key = |key: &String| {
            let mut all = self.known.iter();
            all.position(|it| it.key == *key && !is_over(it))
        };
        if let Some(at) = self.sought.keys.iter().find_map(with_key) {
            return Match::Continues(at);
        }
        let nothing = Transcript::default();
        let open = self.known.iter().enumerate();
        let open = open.map(|(at, it)| match is_over(it) {
            true => &nothing,
            false => self.transcript(at),
        });
        recognise(&self.request, &open.collect::<Vec<_>>())
    }

    fn unchanged(&self, at: usize) -> Recognised {
        let (whole, request) = (self.transcript(at), &self.request);
        let before = match whole.begins_with(request) {
            true => 0,
            false => whole
                .digests()
                .len()
                .saturating_sub(request.digests().len()),
        };
        Recognised {
            origin: SessionOrigin::Continued,
            conversation: self.known[at].clone(),
            before,
            is_news: false,
        }
    }

    fn continued(&self, at: usize) -> Recognised {
        let (known, request) = (&self.known[at], &self.request);
        let whole = request.clone().after(self.transcript(at));
        let before = whole.digests().len() - request.digests().len();
        let conversation = self.told(known.session.clone(), &whole, known.lineage.clone());
        Recognised {
            origin: SessionOrigin::Continued,
            is_news: conversation.state != known.state
                || conversation.key != known.key
                || known.heard_at + SEEN <= self.now,
            conversation: Conversation {
                opening: match before {
                    0 => conversation.opening,
                    // Its beginning is not sent any more.
                    _ => known.opening.clone(),
                },
                ..conversation
            },
            before,
        }
    }

    /// The latest one that began with the same messages keeps its id; that it was heard of since tells apart those that begin later.
    fn begun(&self, origin: SessionOrigin, lineage: Vec<Ancestor>) -> Recognised {
        let twin = self.had_it().map(|at| &self.known[at]);
        let twin = twin.map(|it| format!("{} {}", it.session, it.heard_at.timestamp_micros()));
        let owner = &self.sought.owner;
        let scope = [owner.space.as_str(), &owner.caller];
        let id = derived_id(&scope, &self.resent.transcript, &twin.unwrap_or_default());
        let id = format!("c-{}", self.key.digest(&id));
        let session = SessionId::new(id).expect("hexadecimal digits are a name");
        Recognised {
            origin,
            conversation: self.told(session, &self.request, lineage),
            before: 0,
            is_news: true,
        }
    }

    fn lineage(&self, parent: usize, shared: usize) -> Vec<Ancestor> {
        let parent = &self.known[parent];
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let nearest = Ancestor {
            session: parent.session.clone(),
            shared,
        };
        let farther = parent.lineage.iter().map(|ancestor| Ancestor {
            session: ancestor.session.clone(),
            shared: ancestor.shared.min(shared),
        });
        let lineage = std::iter::once(nearest).chain(farther);
        lineage.take(LINEAGE_LIMIT).collect()
    }

    fn told(&self, session: SessionId, whole: &Transcript, lineage: Vec<Ancestor>) -> Conversation {
        Conversation {
            session,
            owner: self.sought.owner.clone(),
            opening: self.sought.opening.clone(),
            key: self.sought.keys[0].clone(),
            state: serde_json::to_string(whole).unwrap_or_default(),
            lineage,
            heard_at: self.now,
            expires_at: self.now + KEPT,
        }
    }
}

#[cfg(test)]
mod tests {
    use memfleet_provider::session::asked;
    use memfleet_provider::{Format, Request};

    use super::*;

    fn resent(messages: &[(&str, &str)]) -> Resent {
        let messages = messages
            .iter()
            .map(|(role, text)| serde_json::json!({"role": role, "content": text}));
        let body = serde_json::json!({"messages": messages.collect::<Vec<_>>()}).to_string();
        let request = Request::parse(Format::OpenaiChat, body.as_bytes()).unwrap();
        Resent {
            transcript: asked(request.conversation()),
            is_under_way: false,
        }
    }

    fn find(resent: &Resent, key: Key, known: Vec<Conversation>) -> Recognised {
        let sought = Sought {
            owner: Owner {
                space: SpaceId::new("ada").unwrap(),
                caller: String::new(),
            },
            opening: key.digest(&resent.transcript.opening()),
            keys: vec![
                key.digest(&resent.transcript.key()),
                resent.transcript.key(),
            ],
        };
        Looking::new(resent, (sought, key), known, Timestamp::UNIX_EPOCH).find(Purpose::Call)
    }

    const SECRET: (&str, &str) = ("user", "My PIN is 4471.");

    #[test]
    fn state_of_a_resent_history_has_no_digest_that_can_be_guessed() {
        let first = resent(&[SECRET]);
        let whole = resent(&[SECRET, ("assistant", "Noted."), ("user", "Thanks!")]);
        let key = Key::new([7; 32]);
        let mut known = find(&first, key, Vec::new()).conversation;
        // A forget empties what is kept; the client goes on with its history.
        known.state.clear();
        let kept = find(&whole, key, vec![known.clone()]).conversation;
        let guess = String::from(first.transcript.clone());
        assert!(!kept.state.contains(&guess[1..]), "{}", kept.state);
        let other = find(&whole, Key::new([8; 32]), Vec::new()).conversation;
        assert_ne!(kept.state, other.state);
    }

    #[test]
    fn conversation_kept_without_a_key_is_recognised_and_rewritten() {
        let key = Key::new([7; 32]);
        let turns = [
            SECRET,
            ("assistant", "Noted."),
            ("user", "And my cat is Pixel."),
            ("assistant", "A fine name."),
            ("user", "What is her name?"),
        ];
        let first = resent(&turns[..3]);
        let mut old = find(&first, key, Vec::new()).conversation;
        old.key = first.transcript.key();
        old.state = serde_json::to_string(&first.transcript).unwrap();
        let next = find(&resent(&turns), key, vec![old.clone()]);
        assert_eq!(next.conversation.session, old.session);
        let again = find(&resent(&turns), key, vec![next.conversation.clone()]);
        assert_eq!(again.conversation.session, old.session);
        assert!(next.conversation.state.starts_with("\"U"));
    }
}
