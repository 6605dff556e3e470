//! Vectors of passages, and turns that wait for theirs.

use memfleet_columns::{
    AttachedVectors, Damage, PlaceRound, StoredTexts, VectorSlot, is_outdated, json, name,
    space_key, to_derivation_id, to_json, to_turn_id,
};
use memfleet_domain::Scope;
use memfleet_domain::embedding::{EmbeddingSpace, HeldEmbeddings, OtherEmbedding};
use memfleet_domain::ids::{SpaceId, TenantId};
use memfleet_ports::ledger::{TextOwner, TextVectors, Unembedded, UnembeddedDerivation};
use memfleet_ports::model_switch::SwitchGoal;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

use crate::failure::Outcome;
use crate::model_switch;
use crate::passages;
use crate::rows::{self, BEHIND_TURN, turn_columns};
use crate::scope::{self, SpaceRow};

/// The number of an embedding space in this file.
pub async fn embedding_space(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
) -> Outcome<i64> {
    let name = to_json(space);
    if let Some(id) = find_embedding_space(connection, space).await? {
        return Ok(id);
    }
    let inserted =
        sqlx::query_scalar("INSERT INTO embedding_spaces (name) VALUES (?) RETURNING id");
    Ok(inserted.bind(name).fetch_one(connection).await?)
}

/// The number of an embedding space, where anything was ever stored of it.
pub async fn find_embedding_space(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
) -> Outcome<Option<i64>> {
    let found = sqlx::query_scalar("SELECT id FROM embedding_spaces WHERE name = ?");
    Ok(found
        .bind(to_json(space))
        .fetch_optional(connection)
        .await?)
}

/// Every embedding space of this file.
pub async fn known_embeddings(connection: &mut SqliteConnection) -> Outcome<Vec<EmbeddingSpace>> {
    let names: Vec<String> = sqlx::query_scalar("SELECT name FROM embedding_spaces ORDER BY id")
        .fetch_all(connection)
        .await?;
    names.iter().map(|name| Ok(json(name)?)).collect()
}

/// Where the vectors of an embedding space (absent: of the served one) are.
pub async fn slot(
    connection: &mut SqliteConnection,
    space: SpaceRow,
    embedding: Option<&EmbeddingSpace>,
) -> Outcome<Option<VectorSlot>> {
    let Some(embedding) = embedding else {
        return Ok(space.slots.served());
    };
    let embedding = find_embedding_space(connection, embedding).await?;
    Ok(embedding.and_then(|embedding| space.slots.of(embedding)))
}

/// The embedding spaces that a space has vectors in.
pub async fn held(connection: &mut SqliteConnection, scope: &Scope) -> Outcome<HeldEmbeddings> {
    let row = sqlx::query(
        "SELECT s.name, o.name, p.is_other_whole FROM spaces p
         LEFT JOIN embedding_spaces s ON s.id = iif(p.serves_second, p.second_embedding, p.embedding)
         LEFT JOIN embedding_spaces o ON o.id = iif(p.serves_second, p.embedding, p.second_embedding)
         WHERE p.key = ?",
    )
    .bind(space_key(scope))
    .fetch_optional(&mut *connection)
    .await?;
    let served: Option<String> = row
        .as_ref()
        .map(|row| row.try_get(0))
        .transpose()?
        .flatten();
    let Some(row) = row.filter(|_| served.is_some()) else {
        // Without vectors it takes those of the model that the operator changed to.
        let order = model_switch::order(connection).await?;
        let order = order.filter(|order| order.goal == SwitchGoal::Serve);
        return Ok(HeldEmbeddings {
            served: order.map(|order| order.target),
            other: None,
        });
    };
    let other: Option<&str> = row.try_get(1)?;
    let is_whole = row.try_get(2)?;
    let other = other.map(|name| {
        Ok::<_, Damage>(OtherEmbedding {
            space: json(name)?,
            is_whole,
        })
    });
    Ok(HeldEmbeddings {
        served: served.as_deref().map(json).transpose()?,
        other: other.transpose()?,
    })
}

/// A space with turns that lack vectors in a place, as far as is known.
#[derive(Debug, Clone)]
pub struct WatchedPlace {
    space: i64,
    slot: VectorSlot,
    /// Change up to which all turns have vectors in the place.
    after: i64,
}

/// Turns that lack vectors, and where nothing lacks any though it may have.
#[derive(Debug, Default)]
pub struct MissingVectors {
    pub turns: Vec<Unembedded>,
    /// Spaces whose note of what they lack is out of date.
    pub done: Vec<WatchedPlace>,
}

/// Turns of a space that have none in the first place.
const WITHOUT_FIRST: &str = concat!(
    "SELECT ",
    turn_columns!(),
    ", p.tenant, p.name, t.first_passage, t.passages, t.change
     FROM turns t JOIN sessions s ON s.id = t.session JOIN spaces p ON p.id = t.space
     WHERE t.space = ?1 AND t.change > ?2 AND EXISTS (
         SELECT 1 FROM passages g WHERE g.key = (t.space << 32) + t.first_passage AND g.sentence IS NULL)
     ORDER BY t.change LIMIT ?3"
);

/// Turns of a space that have none in the second place.
const WITHOUT_SECOND: &str = concat!(
    "SELECT ",
    turn_columns!(),
    ", p.tenant, p.name, t.first_passage, t.passages, t.change
     FROM turns t JOIN sessions s ON s.id = t.session JOIN spaces p ON p.id = t.space
     WHERE t.space = ?1 AND t.change > ?2 AND NOT EXISTS (
         SELECT 1 FROM second_vectors v WHERE v.key = (t.space << 32) + t.first_passage)
     ORDER BY t.change LIMIT ?3"
);

/// Derivations of a space without vectors in the first place.
const DERIVED_WITHOUT_FIRST: &str = "SELECT d.change, d.document, p.tenant, p.name
     FROM derivations d JOIN spaces p ON p.id = d.space
     WHERE d.space = ?1 AND d.change > ?2 AND d.known_until IS NULL AND EXISTS (
         SELECT 1 FROM passages g WHERE g.key = (d.space << 32) + d.passage AND g.sentence IS NULL)
     ORDER BY d.change LIMIT ?3";

/// Derivations of a space without vectors in the second place.
const DERIVED_WITHOUT_SECOND: &str = "SELECT d.change, d.document, p.tenant, p.name
     FROM derivations d JOIN spaces p ON p.id = d.space
     WHERE d.space = ?1 AND d.change > ?2 AND d.known_until IS NULL AND NOT EXISTS (
         SELECT 1 FROM second_vectors v WHERE v.key = (d.space << 32) + d.passage)
     ORDER BY d.change LIMIT ?3";

/// Turns without vectors in `space`, of any tenant.
pub async fn missing(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<MissingVectors> {
    let mut missing = MissingVectors::default();
    let queries = [WITHOUT_FIRST, WITHOUT_SECOND];
    for (watched, rows) in rows_without(connection, space, limit, queries).await? {
        let next = rows.first().map(|row| row.try_get(BEHIND_TURN + 4));
        for row in &rows {
            missing
                .turns
                .push(unembedded(connection, watched.space, row).await?);
        }
        if is_outdated(watched.after, next.transpose()?) {
            missing.done.push(watched);
        }
    }
    Ok(missing)
}

/// Up to `limit` rows of the places of an embedding space, each by the query of its slot.
async fn rows_without(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
    limit: u32,
    [first, second]: [&'static str; 2],
) -> Outcome<Vec<(WatchedPlace, Vec<SqliteRow>)>> {
    let embedding = find_embedding_space(connection, space).await?.unwrap_or(0);
    let mut round = PlaceRound::new(limit, watched(connection, embedding).await?);
    let mut found = Vec::new();
    while let Some((watched, most)) = round.next_place() {
        let query = match watched.slot {
            VectorSlot::First => first,
            VectorSlot::Second => second,
        };
        let rows = sqlx::query(query)
            .bind(watched.space)
            .bind(watched.after)
            .bind(most)
            .fetch_all(&mut *connection)
            .await?;
        round.count(rows.len());
        found.push((watched, rows));
    }
    Ok(found)
}

/// The spaces that may lack vectors in an embedding space, in any order, those where searches use
/// them first. One without any takes those of every.
async fn watched(connection: &mut SqliteConnection, embedding: i64) -> Outcome<Vec<WatchedPlace>> {
    let rows = sqlx::query(
        "SELECT * FROM (
             SELECT id, embedded, 0, NOT serves_second AS is_served FROM spaces WHERE embedded IS NOT NULL AND embedding = ?1
             UNION ALL SELECT id, embedded, 0, true FROM spaces
                 WHERE embedded IS NOT NULL AND embedding IS NULL AND second_embedding IS NULL
             UNION ALL SELECT id, second_embedded, 1, serves_second FROM spaces
                 WHERE second_embedded IS NOT NULL AND second_embedding = ?1)
         ORDER BY is_served DESC, random()",
    )
    .bind(embedding)
    .fetch_all(connection)
    .await?;
    let watched = rows.iter().map(|row| {
        Ok(WatchedPlace {
            space: row.try_get(0)?,
            after: row.try_get(1)?,
            slot: VectorSlot::from_flag(row.try_get(2)?),
        })
    });
    watched.collect()
}

async fn unembedded(
    connection: &mut SqliteConnection,
    space: i64,
    row: &SqliteRow,
) -> Outcome<Unembedded> {
    let first = row.try_get(BEHIND_TURN + 2)?;
    let count = row.try_get(BEHIND_TURN + 3)?;
    Ok(Unembedded {
        scope: Scope {
            tenant: name(TenantId::new(row.try_get::<&str, _>(BEHIND_TURN)?))?,
            space: name(SpaceId::new(row.try_get::<&str, _>(BEHIND_TURN + 1)?))?,
        },
        turn: rows::turn(row)?,
        first_passage: first,
        ranges: ranges(connection, space, first, count).await?,
    })
}

/// Derivations that lack vectors in `space`, of any tenant.
pub async fn missing_derivations(
    connection: &mut SqliteConnection,
    space: &EmbeddingSpace,
    limit: u32,
) -> Outcome<Vec<UnembeddedDerivation>> {
    let queries = [DERIVED_WITHOUT_FIRST, DERIVED_WITHOUT_SECOND];
    let found = rows_without(connection, space, limit, queries).await?;
    let rows = found.iter().flat_map(|(_, rows)| rows);
    let derivations = rows.map(|row| {
        Ok(UnembeddedDerivation {
            scope: Scope {
                tenant: name(TenantId::new(row.try_get::<&str, _>(2)?))?,
                space: name(SpaceId::new(row.try_get::<&str, _>(3)?))?,
            },
            derivation: json(row.try_get(1)?)?,
        })
    });
    derivations.collect()
}

/// Moves the notes of what spaces lack to the first thing that lacks something, or takes them off.
pub async fn advance(connection: &mut SqliteConnection, spaces: &[WatchedPlace]) -> Outcome<()> {
    for watched in spaces {
        let (turns, derived, update) = match watched.slot {
            VectorSlot::First => (
                WITHOUT_FIRST,
                DERIVED_WITHOUT_FIRST,
                "UPDATE spaces SET embedded = ? WHERE id = ? AND embedded = ?",
            ),
            VectorSlot::Second => (
                WITHOUT_SECOND,
                DERIVED_WITHOUT_SECOND,
                "UPDATE spaces SET second_embedded = ? WHERE id = ? AND second_embedded = ?",
            ),
        };
        let mut next: Option<i64> = None;
        for (query, column) in [(turns, BEHIND_TURN + 4), (derived, 0)] {
            let row = sqlx::query(query)
                .bind(watched.space)
                .bind(watched.after)
                .bind(1)
                .fetch_optional(&mut *connection)
                .await?;
            if let Some(row) = row {
                let change: i64 = row.try_get(column)?;
                next = Some(next.map_or(change, |next| next.min(change)));
            }
        }
        sqlx::query(update)
            .bind(next.map(|next| next - 1))
            .bind(watched.space)
            // A note that changed since says more than was looked at.
            .bind(watched.after)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

async fn ranges(
    connection: &mut SqliteConnection,
    space: i64,
    first: u32,
    count: u32,
) -> Outcome<Vec<(u32, u32)>> {
    let first = passages::key(space, first);
    let rows =
        sqlx::query("SELECT start, length FROM passages WHERE key >= ? AND key < ? ORDER BY key")
            .bind(first)
            .bind(first + i64::from(count))
            .fetch_all(connection)
            .await?;
    rows.iter()
        .map(|row| {
            let (start, length): (u32, u32) = (row.try_get(0)?, row.try_get(1)?);
            Ok((start, start + length))
        })
        .collect()
}

/// Adds the vectors of texts and lets the feed bring them again.
pub async fn attach(
    connection: &mut SqliteConnection,
    scope: &Scope,
    embedding: &EmbeddingSpace,
    texts: &[TextVectors],
) -> Outcome<()> {
    let Some(mut space) = scope::find(connection, scope).await? else {
        return Ok(());
    };
    let embedding = embedding_space(connection, embedding).await?;
    let Some(slot) = space.slots.place(embedding) else {
        return Ok(());
    };
    let stored = stored(connection, space.id, texts).await?;
    let mut attached = AttachedVectors::new(texts, stored, space.head)?;
    if attached.head == space.head {
        return Ok(());
    }
    let numbered = attached.vectors.drain(..);
    let keyed = numbered.map(|(number, vectors)| (passages::key(space.id, number), vectors));
    passages::put_vectors(connection, &keyed.collect::<Vec<_>>(), slot).await?;
    // Indexes do not follow a place while it is filled, so its changes are not announced.
    if space.slots.is_read(slot) {
        let named = Some(embedding).filter(|_| space.slots.served() == Some(slot));
        announce(connection, space.id, named, &attached).await?;
        space.head = attached.head;
    }
    sqlx::query("UPDATE spaces SET head = ?, embedding = ? WHERE id = ?")
        .bind(space.head)
        .bind(space.slots.first)
        .bind(space.id)
        .execute(connection)
        .await?;
    Ok(())
}

/// The passages of those turns that are there, and of the current versions of the derivations.
async fn stored(
    connection: &mut SqliteConnection,
    space: i64,
    texts: &[TextVectors],
) -> Outcome<StoredTexts> {
    let (mut turns, mut derivations) = (Vec::new(), Vec::new());
    for text in texts {
        match &text.owner {
            TextOwner::Turn(turn) => turns.push(turn),
            TextOwner::Derivation(id, _) => derivations.push(id),
        }
    }
    let rows = sqlx::query(
        "SELECT id, first_passage, passages FROM turns
         WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?))",
    )
    .bind(space)
    .bind(to_json(&turns))
    .fetch_all(&mut *connection)
    .await?;
    let turns = rows.iter().map(|row| {
        let first: u32 = row.try_get(1)?;
        let passages = first..first + row.try_get::<u32, _>(2)?;
        Ok((TextOwner::Turn(to_turn_id(row.try_get(0)?)?), passages))
    });
    let rows = sqlx::query(
        "SELECT id, version, passage FROM derivations
         WHERE space = ? AND id IN (SELECT unhex(value, '-') FROM json_each(?)) AND known_until IS NULL",
    )
    .bind(space)
    .bind(to_json(&derivations))
    .fetch_all(connection)
    .await?;
    let derivations = rows.iter().map(|row| {
        let (id, version) = (to_derivation_id(row.try_get(0)?)?, row.try_get(1)?);
        let passage: u32 = row.try_get(2)?;
        Ok((TextOwner::Derivation(id, version), passage..passage + 1))
    });
    turns.chain(derivations).collect()
}

/// Moves texts to the end of the feed; turns name the embedding space that searches use.
async fn announce(
    connection: &mut SqliteConnection,
    space: i64,
    named: Option<i64>,
    attached: &AttachedVectors<'_>,
) -> Outcome<()> {
    sqlx::query(
        "UPDATE turns SET embedding = coalesce(?3, embedding), change = new.value ->> 1 FROM json_each(?2) new
         WHERE space = ?1 AND turns.id = unhex(new.value ->> 0, '-')",
    )
    .bind(space)
    .bind(to_json(&attached.turns))
    .bind(named)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "UPDATE derivations SET change = new.value ->> 1 FROM json_each(?2) new
         WHERE space = ?1 AND derivations.id = unhex(new.value ->> 0, '-') AND known_until IS NULL",
    )
    .bind(space)
    .bind(to_json(&attached.derivations))
    .execute(connection)
    .await?;
    Ok(())
}
