//! The rows of turns, and their labels.

use std::collections::{HashMap, HashSet};

use memfleet_columns::{from_lengths, from_role, from_trust, label, some_json};
use memfleet_domain::ids::{ExternalId, TurnId};
use memfleet_ports::feed::words;
use memfleet_ports::ledger::Passage;
use sqlx::PgConnection;

use super::{SessionIds, Target};
use crate::failure::Outcome;
use crate::ledger::commit::plan::{NewTurn, Plan};
use crate::rows::{from_turn_id, from_u32};

pub async fn store(
    connection: &mut PgConnection,
    target: Target<'_>,
    plan: &Plan<'_>,
    sessions: &SessionIds,
) -> Outcome<()> {
    let places = plan.sessions.values().flat_map(|session| &session.places);
    let positions: HashMap<TurnId, u32> = places.map(|place| (place.id, place.position)).collect();
    let turns = || plan.turns.iter();
    let accepted = || turns().map(|new| new.turn);
    let replaced = || turns().map(|new| new.replaced);
    sqlx::query(
        "INSERT INTO turns (tenant, space, id, session, acceptance, position, change, event_time, recorded_at, replaced_at,
             embedding, ordinal, first_passage, passages, role, trust, replaces, replaced_by, content_hash, external_id,
             speaker, text, media, metadata, lengths, echoes)
         SELECT $1, $2, * FROM unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
             $9::bigint[], $10::bigint[], $11::bigint[], $12::integer[], $13::integer[], $14::integer[], $15::smallint[],
             $16::smallint[], $17::uuid[], $18::uuid[], $19::bytea[], $20::text[], $21::text[], $22::bytea[], $23::text[],
             $24::text[], $25::bytea[], $26::text[])",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(column(accepted(), |turn| from_turn_id(&turn.id)))
    .bind(column(accepted(), |turn| sessions[turn.session.as_str()]))
    .bind(column(turns(), |new| new.acceptance))
    .bind(column(accepted(), |turn| i64::from(positions[&turn.id])))
    .bind(column(turns(), |new| new.change))
    .bind(column(accepted(), |turn| turn.event_time.map(|time| time.timestamp_micros())))
    .bind(column(accepted(), |turn| turn.recorded_at.timestamp_micros()))
    .bind(column(replaced(), |replaced| replaced.map(|by| by.at.timestamp_micros())))
    .bind(column(turns(), |new| new.embedding))
    .bind(from_u32(turns().map(|new| new.ordinal)))
    .bind(from_u32(turns().map(|new| new.first_passage)))
    .bind(from_u32(turns().map(|new| new.passages.len() as u32)))
    .bind(column(accepted(), |turn| from_role(turn.role) as i16))
    .bind(column(accepted(), |turn| from_trust(turn.trust) as i16))
    .bind(column(turns(), |new| new.replaces.as_ref().map(from_turn_id)))
    .bind(column(replaced(), |replaced| replaced.map(|by| from_turn_id(&by.by))))
    .bind(column(turns(), |new| new.hash.0.to_vec()))
    .bind(column(accepted(), |turn| turn.external_id.as_ref().map(ExternalId::as_str)))
    .bind(column(accepted(), |turn| turn.speaker.as_str()))
    .bind(column(accepted(), |turn| turn.content.text.as_bytes()))
    .bind(column(accepted(), |turn| {
        some_json(&turn.content.media, turn.content.media.is_empty())
    }))
    .bind(column(accepted(), |turn| {
        some_json(&turn.metadata, turn.metadata.is_empty())
    }))
    .bind(column(turns(), |new| {
        let length = |passage: &Passage| (passage.end - passage.start, words(&passage.terms));
        from_lengths(new.passages.iter().map(length))
    }))
    .bind(column(accepted(), |turn| {
        some_json(&turn.echoes, turn.echoes.is_empty())
    }))
    .execute(connection)
    .await?;
    Ok(())
}

fn column<S, T>(rows: impl Iterator<Item = S>, value: impl Fn(S) -> T) -> Vec<T> {
    rows.map(value).collect()
}

pub async fn store_labels(
    connection: &mut PgConnection,
    target: Target<'_>,
    plan: &Plan<'_>,
) -> Outcome<()> {
    let labels = plan.turns.iter().flat_map(labels_of);
    // Two labels of a turn may have one hash.
    let labels: HashSet<_> = labels.collect();
    if labels.is_empty() {
        return Ok(());
    }
    let (labels, turns): (Vec<_>, Vec<_>) = labels.into_iter().unzip();
    sqlx::query(
        "INSERT INTO labels (tenant, space, label, turn) SELECT $1, $2, * FROM unnest($3::bigint[], $4::uuid[])",
    )
    .bind(target.tenant)
    .bind(target.space)
    .bind(labels)
    .bind(turns)
    .execute(connection)
    .await?;
    Ok(())
}

fn labels_of<'n>(new: &'n NewTurn<'_>) -> impl Iterator<Item = (i64, uuid::Uuid)> + 'n {
    let labels = new.turn.metadata.iter();
    labels.map(|(key, value)| (label(key, value), from_turn_id(&new.turn.id)))
}
