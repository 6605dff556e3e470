//! Turns, batches and vectors to test with: small, deterministic, in several scripts.

use std::collections::BTreeMap;

use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, PassageVectors, TokenVectors};
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TenantId, TurnId,
};
use memfleet_domain::ingestion::Batch;
use memfleet_domain::time::{AsOf, TimeRange, Timestamp};
use memfleet_domain::turn::{AcceptedTurn, Content, Role, Trust};

use crate::conversations::{Conversation, Owner};
use crate::filter::TurnFilter;
use crate::ledger::{IndexedBatch, Passage};

/// Texts that storage must give back byte by byte.
pub const TEXTS: [&str; 8] = [
    "I moved to Lisbon last spring.",
    "明日、東京へ引っ越します。",
    "سأعود إلى القاهرة غدًا",
    "Zoë naïvely ate crème brûlée — 3½ times 🍮👩‍👩‍👧",
    "line one\nline two\r\n\ttabbed \u{0} and a zero",
    "'; DROP TABLE turns; -- \"quoted\" \\ %_?",
    "à versus a\u{300}: composed and not",
    "x",
];

/// A space of a tenant.
pub fn scope(tenant: &str, space: &str) -> Scope {
    Scope {
        tenant: TenantId::new(tenant).expect("a valid sample"),
        space: SpaceId::new(space).expect("a valid sample"),
    }
}

/// The space that most cases use.
pub fn home() -> Scope {
    scope("acme", "ada")
}

/// The n-th second of the samples' time.
pub fn instant(seconds: i64) -> Timestamp {
    Timestamp::from_timestamp(1_700_000_000 + seconds, 123_456_000).expect("a valid sample")
}

/// The session of this name.
pub fn session(name: &str) -> SessionId {
    SessionId::new(name).expect("a valid sample")
}

/// The speaker of this name.
pub fn speaker(name: &str) -> Speaker {
    Speaker::new(name).expect("a valid sample")
}

/// A turn of Ada's in session `s1` of [`home`], recorded at second 0; change its fields as needed.
pub fn turn(external: &str, text: &str) -> AcceptedTurn {
    turn_in(&home(), "s1", external, text)
}

/// A turn in a session of a space.
pub fn turn_in(scope: &Scope, name: &str, external: &str, text: &str) -> AcceptedTurn {
    let external = ExternalId::new(external).expect("a valid sample");
    let session = session(name);
    AcceptedTurn {
        id: TurnId::of_external(scope, &session, &external),
        session,
        external_id: Some(external),
        speaker: speaker("Ada"),
        role: Role::User,
        content: Content {
            text: text.to_owned(),
            media: Vec::new(),
        },
        event_time: None,
        recorded_at: instant(0),
        metadata: BTreeMap::new(),
        trust: Trust::User,
        replaces: None,
        echoes: Vec::new(),
        place: None,
    }
}

/// A newer version of `old`.
pub fn edit(old: &AcceptedTurn, external: &str, text: &str) -> AcceptedTurn {
    AcceptedTurn {
        replaces: Some(old.id),
        ..turn_in(&home(), old.session.as_str(), external, text)
    }
}

/// A batch of [`home`].
pub fn batch(key: &str, turns: Vec<AcceptedTurn>) -> Batch {
    batch_in(&home(), key, turns)
}

/// A batch of a space.
pub fn batch_in(scope: &Scope, key: &str, turns: Vec<AcceptedTurn>) -> Batch {
    let key = IdempotencyKey::new(key).expect("a valid sample");
    Batch {
        id: BatchId::of_key(scope, &key),
        scope: scope.clone(),
        turns,
    }
}

/// An embedding space; another revision is another space.
pub fn embedding_space(revision: &str) -> EmbeddingSpace {
    EmbeddingSpace {
        model: "sample".into(),
        revision: revision.into(),
        recipe: "int8-1".into(),
        projection: "pca4-1".into(),
    }
}

/// What the constructor would make of a batch, with vectors: one passage a turn, two where the text has more than 20 bytes.
pub fn indexed(batch: Batch, acceptance: u64) -> IndexedBatch {
    let passages = batch
        .turns
        .iter()
        .map(|turn| passages(&turn.content.text))
        .collect();
    IndexedBatch {
        batch,
        acceptance,
        passages,
        embedding_space: Some(embedding_space("1")),
        language: None,
    }
}

/// The same while the embedder is down.
pub fn without_vectors(mut batch: IndexedBatch) -> IndexedBatch {
    for passage in batch.passages.iter_mut().flatten() {
        passage.vectors = None;
    }
    batch
}

/// The passages of a text.
pub fn passages(text: &str) -> Vec<Passage> {
    let middle = (0..=text.len() / 2)
        .rev()
        .find(|middle| text.is_char_boundary(*middle))
        .filter(|_| text.len() > 20)
        .unwrap_or(0);
    [(0, middle), (middle, text.len())]
        .into_iter()
        .filter(|(start, end)| start < end || text.is_empty())
        .map(|(start, end)| passage(text, start, end))
        .collect()
}

fn passage(text: &str, start: usize, end: usize) -> Passage {
    let words = &text[start..end];
    let mut terms = BTreeMap::new();
    for word in words.split_whitespace() {
        *terms.entry(word.to_lowercase()).or_insert(0) += 1;
    }
    Passage {
        start: start as u32,
        end: end as u32,
        terms: terms.into_iter().collect(),
        features: vec![words.len() as f32, -0.5, f32::MIN_POSITIVE],
        vectors: Some(vectors(words)),
        embedding_space: None,
    }
}

/// Vectors that depend on the text: 4 components, a row a word (one row at least).
pub fn vectors(text: &str) -> PassageVectors {
    let words: Vec<&str> = text
        .split_whitespace()
        .chain(text.is_empty().then_some(""))
        .collect();
    let seed = |word: &str| {
        word.bytes()
            .fold(7_u32, |sum, byte| sum.wrapping_mul(31) + u32::from(byte))
    };
    let row = |word: &str| seed(word).to_le_bytes().map(u8::cast_signed);
    PassageVectors {
        sentence: row(text).to_vec(),
        tokens: TokenVectors {
            dimensions: 4,
            pieces: words.iter().map(|word| seed(word) % 30_000).collect(),
            values: words.iter().flat_map(|word| row(word)).collect(),
        },
    }
}

/// A filter of each kind, all of which a turn with labels passes.
pub fn filters_for(turn: &AcceptedTurn) -> Vec<TurnFilter> {
    let instant = turn.effective_time();
    let as_of = AsOf {
        known_at: Some(turn.recorded_at),
        happened_by: Some(instant),
    };
    let time = TimeRange {
        start: Some(instant),
        end: None,
    };
    let all = TurnFilter::default;
    let labels = turn.metadata.clone().into_iter().collect();
    #[rustfmt::skip]
    let filters = vec![
        all(),
        TurnFilter { turns: vec![turn.id], ..all() },
        TurnFilter { sessions: vec![turn.session.clone()], ..all() },
        TurnFilter { excluded_sessions: vec![session("another")], ..all() },
        TurnFilter { speakers: vec![turn.speaker.clone()], ..all() },
        TurnFilter { roles: vec![turn.role], ..all() },
        TurnFilter { time, ..all() },
        TurnFilter { metadata: labels, ..all() },
        TurnFilter { as_of, ..all() },
        TurnFilter { include_replaced: true, ..all() },
    ];
    assert!(!turn.metadata.is_empty() && filters.iter().all(|filter| filter.passes(turn)));
    filters
}

/// A conversation of a caller `ada`, heard of at this second.
pub fn conversation(space: &SpaceId, called: &str, heard: i64) -> Conversation {
    Conversation {
        session: session(called),
        owner: Owner {
            space: space.clone(),
            caller: "ada".into(),
        },
        opening: "opening".into(),
        key: "key".into(),
        state: "what was said".into(),
        lineage: Vec::new(),
        heard_at: instant(heard),
        expires_at: instant(1_000),
    }
}
