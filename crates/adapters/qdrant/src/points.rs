//! Points: one a passage that has a vector. Ids are derived, so that a change that is applied twice changes nothing.

use memfleet_columns::{embedding_key, space_key};
use memfleet_domain::Scope;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::TurnId;
use memfleet_ports::feed::IndexedTurn;
use qdrant_client::qdrant::{Condition, Filter, PointStruct, ScoredPoint, Value, value::Kind};
use uuid::Uuid;

/// Payload: the space, as a hash of tenant and name; Qdrant keeps the points of one together.
pub const SPACE: &str = "space";
/// Payload: the embedding space, as a hash. Builds of before wrote points of one at a time, without
/// it.
pub const EMBEDDING: &str = "embedding";
/// Payload: the turn.
pub const TURN: &str = "turn";
/// Payload: the passage's number.
pub const PASSAGE: &str = "passage";

/// Filter for the points of a space with vectors of an embedding space.
pub fn of_embedding(scope: &Scope, embedding: &EmbeddingSpace) -> Filter {
    Filter::must([
        Condition::matches(SPACE, key(scope)),
        Condition::matches(EMBEDDING, embedding_key(embedding)),
    ])
}

/// Filter for the points of a space that builds of before wrote.
pub fn unnamed(scope: &Scope) -> Filter {
    Filter::must([
        Condition::matches(SPACE, key(scope)),
        Condition::is_empty(EMBEDDING),
    ])
}

/// Of all points of a space.
pub fn of_space(scope: &Scope) -> Filter {
    Filter::must([Condition::matches(SPACE, key(scope))])
}

/// Of all points of these of its turns.
pub fn of_turns(scope: &Scope, turns: &[TurnId]) -> Filter {
    let turns: Vec<_> = turns.iter().map(ToString::to_string).collect();
    Filter::must([
        Condition::matches(SPACE, key(scope)),
        Condition::matches(TURN, turns),
    ])
}

/// The points of a turn with vectors of an embedding space, by the length of their vectors.
pub fn of(
    scope: &Scope,
    embedding: &EmbeddingSpace,
    turn: &IndexedTurn,
) -> Vec<(usize, PointStruct)> {
    let numbered = (turn.first_passage..).zip(&turn.passages);
    numbered
        .filter_map(|(number, passage)| {
            let vector = passage.sentence.as_ref()?;
            let vector: Vec<f32> = vector.iter().map(|&part| f32::from(part)).collect();
            let payload = [
                (SPACE, Value::from(key(scope))),
                (EMBEDDING, Value::from(embedding_key(embedding))),
                (TURN, Value::from(turn.id.to_string())),
                (PASSAGE, Value::from(i64::from(number))),
            ];
            let id = id(scope, embedding, &number.to_le_bytes()).to_string();
            Some((vector.len(), PointStruct::new(id, vector, payload)))
        })
        .collect()
}

/// The passage of a point; none where somebody else wrote it.
pub fn passage(value: Option<&Value>) -> Option<u32> {
    match value?.kind {
        Some(Kind::IntegerValue(number)) => u32::try_from(number).ok(),
        _ => None,
    }
}

/// The passage that was found, with its inner product.
pub fn near(point: &ScoredPoint) -> Option<(u32, f32)> {
    Some((passage(point.payload.get(PASSAGE))?, point.score))
}

/// The point that says how far the mirror of a space in an embedding space is.
pub fn progress_id(scope: &Scope, embedding: &EmbeddingSpace) -> Uuid {
    id(scope, embedding, b"reached")
}

fn id(scope: &Scope, embedding: &EmbeddingSpace, what: &[u8]) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(&space_key(scope))
        .update(&embedding_key(embedding).to_le_bytes())
        .update(what);
    let hash = hasher.finalize();
    let bytes = hash.as_bytes().first_chunk().expect("a hash is longer");
    Uuid::new_v8(*bytes)
}

/// The payload [`SPACE`] of a space.
pub fn key(scope: &Scope) -> String {
    let bytes = *space_key(scope).first_chunk().expect("16 bytes");
    Uuid::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use memfleet_domain::ids::{SessionId, Speaker};
    use memfleet_domain::time::Timestamp;
    use memfleet_domain::turn::Role;
    use memfleet_ports::conformance::samples::{embedding_space, home, scope, turn};
    use memfleet_ports::feed::IndexedPassage;

    use super::*;

    fn with(sentence: Option<Vec<i8>>) -> IndexedPassage {
        IndexedPassage {
            length: 4,
            words: 1,
            terms: Vec::new(),
            features: Vec::new(),
            sentence,
            pieces: Vec::new(),
        }
    }

    fn said(first_passage: u32, passages: Vec<IndexedPassage>) -> IndexedTurn {
        IndexedTurn {
            id: turn("a", "x").id,
            session: SessionId::new("s").unwrap(),
            order: (1, 0),
            speaker: Speaker::new("Ada").unwrap(),
            role: Role::User,
            event_time: None,
            recorded_at: Timestamp::UNIX_EPOCH,
            replaced_at: None,
            first_passage,
            passages,
        }
    }

    #[test]
    fn a_passage_without_a_vector_has_no_point() {
        let turn = said(7, vec![with(None), with(Some(vec![1, -127]))]);
        let points = of(&home(), &embedding_space("1"), &turn);
        assert_eq!(points.len(), 1);
        assert_eq!(points[0].0, 2);
        assert_eq!(passage(points[0].1.payload.get(PASSAGE)), Some(8));
    }

    #[test]
    fn the_same_number_in_another_space_or_of_another_model_is_another_point() {
        let other = scope("acme", "bob");
        let (one, two) = (embedding_space("1"), embedding_space("2"));
        assert_ne!(id(&home(), &one, &[0]), id(&other, &one, &[0]));
        assert_ne!(id(&home(), &one, &[0]), id(&home(), &two, &[0]));
        assert_ne!(key(&home()), key(&other));
        assert_ne!(id(&home(), &one, &[0]), progress_id(&home(), &one));
    }

    #[test]
    fn a_foreign_payload_is_no_passage() {
        assert_eq!(passage(None), None);
        assert_eq!(passage(Some(&Value::from("7"))), None);
        assert_eq!(passage(Some(&Value::from(-1))), None);
    }
}
