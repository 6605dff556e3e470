//! Vectors of passages, and turns that wait for theirs.

use memfleet_columns::{
    AttachedVectors, PlaceRound, StoredTexts, VectorSlot, embedding_key, from_set,
    from_token_vectors, is_outdated, json, name, to_json,
};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, OtherEmbedding, PassageVectors};
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::ledger::{TextOwner, TextVectors, Unembedded, UnembeddedDerivation};
use memfleet_ports::model_switch::SwitchGoal;
use pgvector::HalfVector;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use crate::failure::Outcome;
use crate::model_switch;
use crate::rows::{
    self, BEHIND_TURN, from_derivation_id, from_turn_id, join_sessions, to_derivation_id,
    to_turn_id, to_u32, turn_columns,
};
use crate::scope::{self, SpaceRow};
use crate::store::{PostgresStore, twice};

/// Components as half-precision floats, which hold whole numbers up to 2,048 exactly. A vector without any has no place there.
pub fn from_sentence(components: &[i8]) -> Option<HalfVector> {
    let floats: Vec<f32> = components.iter().copied().map(f32::from).collect();
    (!floats.is_empty()).then(|| HalfVector::from_f32_slice(&floats))
}

/// The same components.
pub fn to_sentence(vector: &HalfVector) -> Vec<i8> {
    let components = vector.as_slice().iter();
    components
        .map(|component| component.to_f32() as i8)
        .collect()
}

/// Where the vectors of an embedding space (absent: of the served one) are.
pub fn slot(space: SpaceRow, embedding: Option<&EmbeddingSpace>) -> Option<VectorSlot> {
    match embedding {
        Some(embedding) => space.slots.of(embedding_key(embedding)),
        None => space.slots.served(),
    }
}

/// Gives the hash of an embedding space its name.
pub async fn name_embedding(
    connection: &mut PgConnection,
    embedding: &EmbeddingSpace,
) -> Outcome<()> {
    sqlx::query(
        "INSERT INTO embedding_spaces (key, name) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING",
    )
    .bind(embedding_key(embedding))
    .bind(to_json(embedding))
    .execute(connection)
    .await?;
    Ok(())
}

/// Every embedding space with a name.
pub async fn known_embeddings(store: &PostgresStore) -> Outcome<Vec<EmbeddingSpace>> {
    let names: Vec<String> = sqlx::query_scalar("SELECT name FROM embedding_spaces ORDER BY key")
        .fetch_all(&mut *store.sweep().await?)
        .await?;
    names.iter().map(|name| Ok(json(name)?)).collect()
}

/// The embedding spaces that a space has vectors in.
pub async fn held(
    store: &PostgresStore,
    connection: &mut PgConnection,
    space: Option<SpaceRow>,
) -> Outcome<HeldEmbeddings> {
    let Some(space) = space.filter(|space| space.slots.served().is_some()) else {
        // Without vectors it takes those of the model that the operator changed to.
        let order = model_switch::order(connection).await?;
        let order = order.filter(|order| order.goal == SwitchGoal::Serve);
        return Ok(HeldEmbeddings {
            served: order.map(|order| order.target),
            other: None,
        });
    };
    let taken = |slot| space.slots.get(slot);
    let (served, other) = (
        space.slots.served().and_then(taken),
        space.slots.other().and_then(taken),
    );
    let taken = [served, other].into_iter().flatten();
    let names = store.names(connection, taken.collect()).await?;
    // Builds of before left the hash alone, which no process has given a name yet: the model here
    // compares what is its own.
    let named = |key| names.get(&key).cloned();
    Ok(HeldEmbeddings {
        served: served.and_then(named),
        other: other.and_then(named).map(|other| OtherEmbedding {
            space: other,
            is_whole: space.slots.is_other_whole,
        }),
    })
}

/// A space with turns that lack vectors in a place, as far as is known.
struct WatchedPlace {
    scope: Scope,
    /// Change up to which all turns have vectors in the place.
    after: i64,
    slot: VectorSlot,
}

/// Turns without vectors in `space`, of any tenant.
pub async fn missing(
    store: &PostgresStore,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<Vec<Unembedded>> {
    let mut unembedded = Vec::new();
    let mut round = PlaceRound::new(limit, watched(store, space).await?);
    while let Some((watched, most)) = round.next_place() {
        let tenant = &watched.scope.tenant;
        let (next, turns) = {
            let mut read = store.read(tenant).await?;
            of_space(&mut read, &watched, space, most).await?
        };
        round.count(turns.len());
        unembedded.extend(turns);
        if is_outdated(watched.after, next) {
            let attempt = || async {
                let mut write = store.write(tenant).await?;
                advance(&mut write, &watched, space).await?;
                write.commit().await
            };
            twice(attempt).await?;
        }
    }
    Ok(unembedded)
}

/// The spaces that may lack vectors in an embedding space, in any order, those where searches use
/// them first. One without any takes those of every.
async fn watched(store: &PostgresStore, space: &EmbeddingSpace) -> Outcome<Vec<WatchedPlace>> {
    let rows = sqlx::query(
        "SELECT tenant, name, after, is_second FROM spaces_unembedded($1) ORDER BY is_served DESC, random()",
    )
    .bind(embedding_key(space))
    .fetch_all(&mut *store.sweep().await?)
    .await?;
    let watched = rows.iter().map(|row| {
        Ok(WatchedPlace {
            scope: Scope {
                tenant: name(TenantId::new(row.try_get::<&str, _>(0)?))?,
                space: name(SpaceId::new(row.try_get::<&str, _>(1)?))?,
            },
            after: row.try_get(2)?,
            slot: VectorSlot::from_flag(row.try_get(3)?),
        })
    });
    watched.collect()
}

/// Turns of the space `$2` after the change `$3` that have none in the first place.
macro_rules! without_first {
    () => {
        " FROM turns t CROSS JOIN LATERAL (
              SELECT g.sentence FROM passages g WHERE g.tenant = $1 AND g.space = $2 AND g.passage = t.first_passage LIMIT 1) f
          WHERE t.tenant = $1 AND t.space = $2 AND t.change > $3 AND f.sentence IS NULL ORDER BY t.change LIMIT $4"
    };
}

/// Turns like those of `without_first`, of the second place.
macro_rules! without_second {
    () => {
        " FROM turns t WHERE t.tenant = $1 AND t.space = $2 AND t.change > $3 AND NOT EXISTS (
              SELECT FROM second_vectors v WHERE v.tenant = $1 AND v.space = $2 AND v.passage = t.first_passage)
          ORDER BY t.change LIMIT $4"
    };
}

/// Derivations in the space `$2` after the change `$3` without vectors in the first place.
macro_rules! derived_without_first {
    () => {
        " FROM derivations d CROSS JOIN LATERAL (
              SELECT g.sentence FROM passages g WHERE g.tenant = $1 AND g.space = $2 AND g.passage = d.passage LIMIT 1) f
          WHERE d.tenant = $1 AND d.space = $2 AND d.change > $3 AND d.known_until IS NULL AND f.sentence IS NULL
          ORDER BY d.change LIMIT $4"
    };
}

/// Derivations without vectors in the second place.
macro_rules! derived_without_second {
    () => {
        " FROM derivations d WHERE d.tenant = $1 AND d.space = $2 AND d.change > $3 AND d.known_until IS NULL AND NOT EXISTS (
              SELECT FROM second_vectors v WHERE v.tenant = $1 AND v.space = $2 AND v.passage = d.passage)
          ORDER BY d.change LIMIT $4"
    };
}

/// Derivations that lack vectors in `space`, of any tenant.
pub async fn missing_derivations(
    store: &PostgresStore,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<Vec<UnembeddedDerivation>> {
    let mut missing = Vec::new();
    let mut round = PlaceRound::new(limit, watched(store, space).await?);
    while let Some((watched, most)) = round.next_place() {
        let tenant = &watched.scope.tenant;
        let mut read = store.read(tenant).await?;
        let Some(row) = scope::find(&mut read, &watched.scope).await? else {
            continue;
        };
        if !takes(row, &watched, space) {
            continue;
        }
        let documents: Vec<String> = sqlx::query_scalar(match watched.slot {
            VectorSlot::First => concat!("SELECT d.document", derived_without_first!()),
            VectorSlot::Second => concat!("SELECT d.document", derived_without_second!()),
        })
        .bind(tenant.as_str())
        .bind(row.id)
        .bind(watched.after)
        .bind(i64::from(most))
        .fetch_all(&mut *read)
        .await?;
        round.count(documents.len());
        for document in documents {
            missing.push(UnembeddedDerivation {
                scope: watched.scope.clone(),
                derivation: json(&document)?,
            });
        }
    }
    Ok(missing)
}

/// The turns, and the change of the first of them.
async fn of_space(
    connection: &mut PgConnection,
    watched: &WatchedPlace,
    embedding: &EmbeddingSpace,
    limit: u32,
) -> Outcome<(Option<i64>, Vec<Unembedded>)> {
    let tenant = &watched.scope.tenant;
    let Some(space) = scope::find(connection, &watched.scope).await? else {
        return Ok((None, Vec::new()));
    };
    if !takes(space, watched, embedding) {
        return Ok((None, Vec::new()));
    }
    let changes: Vec<(i64, Uuid)> = sqlx::query_as(match watched.slot {
        VectorSlot::First => concat!("SELECT t.change, t.id", without_first!()),
        VectorSlot::Second => concat!("SELECT t.change, t.id", without_second!()),
    })
    .bind(tenant.as_str())
    .bind(space.id)
    .bind(watched.after)
    .bind(i64::from(limit))
    .fetch_all(&mut *connection)
    .await?;
    let next = changes.first().map(|(change, _)| *change);
    let ids = changes.into_iter().map(|(_, id)| id).collect::<Vec<_>>();
    let turns = of_tenant(connection, tenant, space.id, ids).await?;
    Ok((next, turns))
}

/// True where vectors of an embedding space go to the place that is watched.
fn takes(mut space: SpaceRow, watched: &WatchedPlace, embedding: &EmbeddingSpace) -> bool {
    space.slots.place(embedding_key(embedding)) == Some(watched.slot)
}

/// Moves the note of what a space lacks to the first turn that lacks something, or takes it off.
async fn advance(
    connection: &mut PgConnection,
    watched: &WatchedPlace,
    embedding: &EmbeddingSpace,
) -> Outcome<()> {
    let tenant = watched.scope.tenant.as_str();
    let Some(space) = scope::lock(connection, &watched.scope).await? else {
        return Ok(());
    };
    if !takes(space, watched, embedding) {
        return Ok(());
    }
    let (turns, derived, update) = match watched.slot {
        VectorSlot::First => (
            concat!("SELECT t.change", without_first!()),
            concat!("SELECT d.change", derived_without_first!()),
            "UPDATE spaces SET embedded = $3 WHERE tenant = $1 AND id = $2 AND embedded = $4",
        ),
        VectorSlot::Second => (
            concat!("SELECT t.change", without_second!()),
            concat!("SELECT d.change", derived_without_second!()),
            "UPDATE spaces SET second_embedded = $3 WHERE tenant = $1 AND id = $2 AND second_embedded = $4",
        ),
    };
    let mut next: Option<i64> = None;
    for query in [turns, derived] {
        let change: Option<i64> = sqlx::query_scalar(query)
            .bind(tenant)
            .bind(space.id)
            .bind(watched.after)
            .bind(1_i64)
            .fetch_optional(&mut *connection)
            .await?;
        next = [next, change].into_iter().flatten().min();
    }
    sqlx::query(update)
        .bind(tenant)
        .bind(space.id)
        .bind(next.map(|next| next - 1))
        // A note that changed since says more than was looked at.
        .bind(watched.after)
        .execute(connection)
        .await?;
    Ok(())
}

async fn of_tenant(
    connection: &mut PgConnection,
    tenant: &TenantId,
    space: i64,
    ids: Vec<Uuid>,
) -> Outcome<Vec<Unembedded>> {
    let rows = sqlx::query(concat!(
        "SELECT ",
        turn_columns!(),
        ", p.name, t.first_passage, ranges.starts, ranges.lengths
         FROM unnest($3::uuid[]) WITH ORDINALITY AS waiting(id, place)
         JOIN turns t ON t.tenant = $1 AND t.space = $2 AND t.id = waiting.id",
        join_sessions!(),
        "JOIN spaces p ON p.tenant = t.tenant AND p.id = t.space
         CROSS JOIN LATERAL (
             SELECT array_agg(g.start ORDER BY g.passage), array_agg(g.length ORDER BY g.passage) FROM passages g
             WHERE g.tenant = $1 AND g.space = t.space
                 AND g.passage >= t.first_passage AND g.passage < t.first_passage + t.passages) ranges(starts, lengths)
         ORDER BY waiting.place"
    ))
    .bind(tenant.as_str())
    .bind(space)
    .bind(ids)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| unembedded(row, tenant)).collect()
}

fn unembedded(row: &PgRow, tenant: &TenantId) -> Outcome<Unembedded> {
    let starts: Vec<i32> = row
        .try_get::<Option<_>, _>(BEHIND_TURN + 2)?
        .unwrap_or_default();
    let lengths: Vec<i32> = row
        .try_get::<Option<_>, _>(BEHIND_TURN + 3)?
        .unwrap_or_default();
    let range = |(start, length)| (to_u32(start), to_u32(start) + to_u32(length));
    Ok(Unembedded {
        scope: Scope {
            tenant: tenant.clone(),
            space: name(SpaceId::new(row.try_get::<&str, _>(BEHIND_TURN)?))?,
        },
        turn: rows::turn(row)?,
        first_passage: to_u32(row.try_get(BEHIND_TURN + 1)?),
        ranges: starts.into_iter().zip(lengths).map(range).collect(),
    })
}

/// Adds the vectors of texts and lets the feed bring them again.
pub async fn attach(
    connection: &mut PgConnection,
    scope: &Scope,
    embedding: &EmbeddingSpace,
    texts: &[TextVectors],
) -> Outcome<()> {
    let tenant = scope.tenant.as_str();
    let Some(mut space) = scope::lock(connection, scope).await? else {
        return Ok(());
    };
    let embedding = embedding_key(embedding);
    let Some(slot) = space.slots.place(embedding) else {
        return Ok(());
    };
    let stored = stored(connection, tenant, space.id, texts).await?;
    let attached = AttachedVectors::new(texts, stored, space.head)?;
    if attached.head == space.head {
        return Ok(());
    }
    put_vectors(connection, tenant, (space, slot), &attached.vectors).await?;
    // Indexes do not follow a place while it is filled, so its changes are not announced.
    if space.slots.is_read(slot) {
        let named = Some(embedding).filter(|_| space.slots.served() == Some(slot));
        announce(connection, tenant, (space.id, named), &attached).await?;
        space.head = attached.head;
    }
    sqlx::query("UPDATE spaces SET head = $3, embedding = $4 WHERE tenant = $1 AND id = $2")
        .bind(tenant)
        .bind(space.id)
        .bind(space.head)
        .bind(space.slots.first)
        .execute(connection)
        .await?;
    Ok(())
}

/// The passages of those turns that are there, and of the current versions of the derivations.
async fn stored(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    texts: &[TextVectors],
) -> Outcome<StoredTexts> {
    let (mut turns, mut derivations) = (Vec::new(), Vec::new());
    for text in texts {
        match text.owner {
            TextOwner::Turn(turn) => turns.push(from_turn_id(&turn)),
            TextOwner::Derivation(id, _) => derivations.push(from_derivation_id(id)),
        }
    }
    let rows: Vec<(Uuid, Option<i32>, i32, i32)> = sqlx::query_as(
        "SELECT id, NULL, first_passage, passages FROM turns WHERE tenant = $1 AND space = $2 AND id = ANY ($3)
         UNION ALL SELECT id, version, passage, 1 FROM derivations
             WHERE tenant = $1 AND space = $2 AND id = ANY ($4) AND known_until IS NULL",
    )
    .bind(tenant)
    .bind(space)
    .bind(turns)
    .bind(derivations)
    .fetch_all(connection)
    .await?;
    let stored = rows.into_iter().map(|(id, version, first, count)| {
        let owner = match version {
            None => TextOwner::Turn(to_turn_id(id)),
            Some(version) => TextOwner::Derivation(to_derivation_id(id), version as u32),
        };
        (owner, to_u32(first)..to_u32(first) + to_u32(count))
    });
    Ok(stored.collect())
}

/// Moves texts to the end of the feed; turns name the embedding space that searches use.
async fn announce(
    connection: &mut PgConnection,
    tenant: &str,
    (space, named): (i64, Option<i64>),
    attached: &AttachedVectors<'_>,
) -> Outcome<()> {
    let turns = attached.turns.iter();
    let (ids, changes): (Vec<_>, Vec<_>) = turns
        .map(|(turn, change)| (from_turn_id(turn), *change))
        .unzip();
    sqlx::query(
        "UPDATE turns t SET embedding = coalesce($3, t.embedding), change = new.change
         FROM unnest($4::uuid[], $5::bigint[]) AS new(id, change)
         WHERE t.tenant = $1 AND t.space = $2 AND t.id = new.id",
    )
    .bind(tenant)
    .bind(space)
    .bind(named)
    .bind(ids)
    .bind(changes)
    .execute(&mut *connection)
    .await?;
    let derivations = attached.derivations.iter();
    let (ids, changes): (Vec<_>, Vec<_>) = derivations
        .map(|(id, change)| (from_derivation_id(*id), *change))
        .unzip();
    sqlx::query(
        "UPDATE derivations d SET change = new.change FROM unnest($3::uuid[], $4::bigint[]) AS new(id, change)
         WHERE d.tenant = $1 AND d.space = $2 AND d.id = new.id AND d.known_until IS NULL",
    )
    .bind(tenant)
    .bind(space)
    .bind(ids)
    .bind(changes)
    .execute(connection)
    .await?;
    Ok(())
}

async fn put_vectors(
    connection: &mut PgConnection,
    tenant: &str,
    (space, slot): (SpaceRow, VectorSlot),
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    match slot {
        VectorSlot::First => {
            put_sentences(connection, tenant, space.id, vectors).await?;
            put_tokens(connection, tenant, space.id, vectors).await
        }
        VectorSlot::Second => put_second(connection, tenant, space.id, vectors).await,
    }
}

/// Vectors with the number of their passage.
pub type Numbered<'v> = (u32, &'v PassageVectors);

async fn put_sentences(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    let sentences = vectors
        .iter()
        .map(|(_, vectors)| from_sentence(&vectors.sentence));
    let pieces = vectors
        .iter()
        .map(|(_, vectors)| from_set(&vectors.tokens.pieces));
    sqlx::query(
        "UPDATE passages g SET sentence = n.sentence, pieces = n.pieces
         FROM unnest($3::integer[], $4::halfvec[], $5::bytea[]) AS n(passage, sentence, pieces)
         WHERE g.tenant = $1 AND g.space = $2 AND g.passage = n.passage",
    )
    .bind(tenant)
    .bind(space)
    .bind(rows::from_u32(vectors.iter().map(|(passage, _)| *passage)))
    .bind(sentences.collect::<Vec<_>>())
    .bind(pieces.collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes token vectors over what was there.
pub async fn put_tokens(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    if vectors.is_empty() {
        return Ok(());
    }
    let tokens = vectors
        .iter()
        .map(|(_, vectors)| from_token_vectors(&vectors.tokens));
    sqlx::query(
        "INSERT INTO token_vectors (tenant, space, passage, vectors)
         SELECT $1, $2, * FROM unnest($3::integer[], $4::bytea[])
         ON CONFLICT (tenant, space, passage) DO UPDATE SET vectors = excluded.vectors",
    )
    .bind(tenant)
    .bind(space)
    .bind(rows::from_u32(vectors.iter().map(|(passage, _)| *passage)))
    .bind(tokens.collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes vectors to the second place, over what was there.
pub async fn put_second(
    connection: &mut PgConnection,
    tenant: &str,
    space: i64,
    vectors: &[Numbered<'_>],
) -> Outcome<()> {
    if vectors.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&PassageVectors) -> Vec<u8>| {
        let values = vectors.iter().map(|(_, vectors)| value(vectors));
        values.collect::<Vec<_>>()
    };
    let sentences = vectors
        .iter()
        .map(|(_, vectors)| from_sentence(&vectors.sentence));
    sqlx::query(
        "INSERT INTO second_vectors (tenant, space, passage, pieces, sentence, vectors)
         SELECT $1, $2, * FROM unnest($3::integer[], $4::bytea[], $5::halfvec[], $6::bytea[])
         ON CONFLICT (tenant, space, passage) DO UPDATE
             SET pieces = excluded.pieces, sentence = excluded.sentence, vectors = excluded.vectors",
    )
    .bind(tenant)
    .bind(space)
    .bind(rows::from_u32(vectors.iter().map(|(passage, _)| *passage)))
    .bind(column(|vectors| from_set(&vectors.tokens.pieces)))
    .bind(sentences.collect::<Vec<_>>())
    .bind(column(|vectors| from_token_vectors(&vectors.tokens)))
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_reads_back_exactly() {
        let all: Vec<i8> = (i8::MIN..=i8::MAX).collect();
        assert_eq!(to_sentence(&from_sentence(&all).unwrap()), all);
        assert_eq!(from_sentence(&[]), None);
    }
}
