//! Random domain values for the property tests.

mod assembly;
mod records;
mod subject;
mod tools;

use memfleet_domain::Timestamp;
use memfleet_domain::embedding::EmbeddingSpace;
use memfleet_domain::ids::{
    BatchId, ExternalId, IdempotencyKey, SessionId, SpaceId, Speaker, TenantId, TurnId,
};
use memfleet_domain::ingestion::{Batch, Receipt, TurnReceipt, TurnState};
use memfleet_domain::intent::Intent;
use memfleet_domain::quality::SearchQuality;
use memfleet_domain::space::{LegalHold, Session, Space, SpaceSettings};
use memfleet_domain::time::{AsOf, TimeRange};
use memfleet_domain::turn::{
    AcceptedTurn, Content, Echo, Media, Metadata, Replacement, Role, Trust, Turn,
};
use memfleet_domain::{Fault, Scope};
use memfleet_ports::erasure::{DependentCounts, Erased};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::ledger::{Page, PageToken};
use memfleet_ports::maintenance::{Part, Status};
use memfleet_ports::memory::{
    AnswerEnd, AnswerMode, AnswerPart, AnswerRequest, AnsweringModel, Citation, HitGranularity,
    NewTurn, Outcome, RecallRequest, Record, RememberRequest,
};
use memfleet_ports::queue::{DeadLetter, Depth};
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::retriever::{
    CandidateTrace, Found, Hit, Query, SearchExplanation, SignalScore, StageRank,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

pub(crate) use assembly::{assemble, assembled, gate, gated, render};
pub(crate) use records::{
    decided, document, injection_filter, key, listing, new_document, new_policy, past_injection,
    policy_in_force, rules,
};
pub(crate) use subject::{progress, subject_forget};
pub(crate) use tools::{
    close, closed, record_turn, recorded, schema_request, tool_call, tool_result, tool_schemas,
};

fn named<T: std::fmt::Debug>(
    make: fn(String) -> Result<T, memfleet_domain::ids::NameError>,
) -> impl Strategy<Value = T> {
    "[\\p{L}\\p{N} ._-]{0,12}[\\p{L}\\p{N}]".prop_map(move |text| make(text).unwrap())
}

fn space_name() -> impl Strategy<Value = SpaceId> {
    named(SpaceId::new)
}

fn turn_id() -> impl Strategy<Value = TurnId> {
    any::<[u8; 16]>().prop_map(TurnId::from_bytes)
}

fn batch_id() -> impl Strategy<Value = BatchId> {
    any::<[u8; 16]>().prop_map(BatchId::from_bytes)
}

fn words() -> impl Strategy<Value = String> {
    any::<String>().prop_map(|text| text + "x")
}

/// Any microsecond of the years 1 to 9999.
fn instant() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800_000_000_i64..253_402_300_800_000_000)
        .prop_map(|microseconds| Timestamp::from_timestamp_micros(microseconds).unwrap())
}

fn role() -> impl Strategy<Value = Role> {
    prop::sample::select(vec![Role::User, Role::Assistant, Role::System, Role::Tool])
}

fn trust() -> impl Strategy<Value = Trust> {
    prop::sample::select(vec![Trust::User, Trust::Assistant, Trust::Tool, Trust::Web])
}

fn metadata() -> impl Strategy<Value = Metadata> {
    btree_map(".{1,8}", any::<String>(), 0..4)
}

fn content() -> impl Strategy<Value = Content> {
    let media =
        (words(), any::<String>(), any::<String>()).prop_map(|(uri, mime_type, caption)| Media {
            uri,
            mime_type,
            caption,
        });
    (words(), vec(media, 0..3)).prop_map(|(text, media)| Content { text, media })
}

fn new_turn() -> impl Strategy<Value = NewTurn> {
    let who = (
        named(SessionId::new),
        option::of(named(ExternalId::new)),
        named(Speaker::new),
        role(),
        trust(),
    );
    (
        who,
        content(),
        option::of(instant()),
        metadata(),
        option::of(turn_id()),
    )
        .prop_map(
            |(
                (session, external_id, speaker, role, trust),
                content,
                event_time,
                metadata,
                replaces,
            )| NewTurn {
                session,
                external_id,
                speaker,
                role,
                content,
                event_time,
                metadata,
                trust,
                replaces,
            },
        )
}

fn accepted() -> impl Strategy<Value = AcceptedTurn> {
    let echo = (any::<u16>(), 1..1_000_u32, turn_id()).prop_map(|(start, length, of)| Echo {
        start: start.into(),
        end: u32::from(start) + length,
        of,
    });
    let parts = (new_turn(), turn_id(), instant(), vec(echo, 0..3));
    parts.prop_map(|(turn, id, recorded_at, echoes)| AcceptedTurn {
        id,
        session: turn.session,
        external_id: turn.external_id,
        speaker: turn.speaker,
        role: turn.role,
        content: turn.content,
        event_time: turn.event_time,
        recorded_at,
        metadata: turn.metadata,
        trust: turn.trust,
        replaces: turn.replaces,
        echoes,
        place: None,
    })
}

pub(crate) fn turn() -> impl Strategy<Value = Turn> {
    let replaced = option::of((turn_id(), instant()).prop_map(|(by, at)| Replacement { by, at }));
    (accepted(), any::<u32>(), replaced).prop_map(|(accepted, position, replaced)| Turn {
        accepted,
        position,
        replaced,
    })
}

pub(crate) fn remember() -> impl Strategy<Value = RememberRequest> {
    (
        space_name(),
        vec(new_turn(), 1..4),
        option::of(named(IdempotencyKey::new)),
    )
        .prop_map(|(space, turns, idempotency_key)| RememberRequest {
            space,
            turns,
            idempotency_key,
        })
}

pub(crate) fn filter() -> impl Strategy<Value = TurnFilter> {
    let names = (
        vec(turn_id(), 0..3),
        vec(named(SessionId::new), 0..3),
        vec(named(SessionId::new), 0..3),
        vec(named(Speaker::new), 0..3),
        vec(role(), 0..3),
    );
    let range = option::of((instant(), 1..1_000_000_i64)).prop_map(|range| match range {
        Some((start, length)) => TimeRange {
            start: Some(start),
            end: (start + chrono::TimeDelta::microseconds(length)).into(),
        },
        None => TimeRange::default(),
    });
    let within = range.prop_filter("ends in year 9999", |range| {
        range
            .end
            .is_none_or(|end| end.timestamp() <= 253_402_300_799)
    });
    let as_of =
        (option::of(instant()), option::of(instant())).prop_map(|(known_at, happened_by)| AsOf {
            known_at,
            happened_by,
        });
    (names, within, metadata(), as_of, any::<bool>()).prop_map(
        |(
            (turns, sessions, excluded_sessions, speakers, roles),
            time,
            metadata,
            as_of,
            include_replaced,
        )| TurnFilter {
            turns,
            sessions,
            excluded_sessions,
            speakers,
            roles,
            time,
            metadata: metadata.into_iter().collect(),
            as_of,
            include_replaced,
        },
    )
}

fn query() -> impl Strategy<Value = Query> {
    let reach = prop_oneof![(1..=1_000_u32, 0..=2_u32), (1..=238_u32, 0..=10_u32)];
    let amounts = (reach, any::<bool>());
    let qualities = [
        None,
        Some(SearchQuality::Fast),
        Some(SearchQuality::Balanced),
        Some(SearchQuality::Thorough),
    ];
    let amounts = (amounts, prop::sample::select(qualities.to_vec()));
    let intent = any::<[bool; 4]>().prop_map(|[fine, abstracted, event, atomic]| Intent {
        fine,
        abstracted,
        event,
        atomic,
    });
    (
        words(),
        vec(space_name(), 1..4),
        filter(),
        amounts,
        option::of(instant()),
        option::of(intent),
    )
        .prop_map(
            |(text, spaces, filter, (((k, neighbours), explain), quality), now, intent)| Query {
                text,
                spaces,
                filter,
                k,
                neighbours,
                now,
                session: None,
                intent,
                explain,
                quality,
                vectors: None,
            },
        )
}

pub(crate) fn recall() -> impl Strategy<Value = RecallRequest> {
    let granularities = vec![HitGranularity::Turn, HitGranularity::Statement];
    (
        query(),
        vec(batch_id(), 0..3),
        option::of(0.0..=1.0_f32),
        prop::sample::select(granularities),
    )
        .prop_map(
            |(query, wait_for, min_relevance, granularity)| RecallRequest {
                query,
                wait_for,
                min_relevance,
                granularity,
            },
        )
}

pub(crate) fn question() -> impl Strategy<Value = AnswerRequest> {
    let modes = [AnswerMode::Auto, AnswerMode::Rules, AnswerMode::Model];
    let modes = prop::sample::select(modes.to_vec());
    (query(), 1..=100_u32, vec(batch_id(), 0..3), modes).prop_map(|(query, k, wait_for, mode)| {
        AnswerRequest {
            query: Query {
                k,
                neighbours: 0,
                explain: false,
                ..query
            },
            wait_for,
            mode,
        }
    })
}

pub(crate) fn answer_part() -> impl Strategy<Value = AnswerPart> {
    let place = (space_name(), turn_id(), named(SessionId::new));
    let said = (named(Speaker::new), instant(), any::<(u32, u32)>(), words());
    let citation = (place, said).prop_map(
        |((space, turn, session), (speaker, time, evidence, quote))| {
            AnswerPart::Citation(Box::new(Citation {
                space,
                turn,
                session,
                speaker,
                time,
                evidence,
                quote,
            }))
        },
    );
    let model = (words(), words()).prop_map(|(model, prompt)| AnsweringModel { model, prompt });
    let outcome = prop::sample::select(vec![Outcome::Answered, Outcome::Abstained]);
    let degraded = vec(any::<String>(), 0..2);
    let end = (
        outcome,
        option::of(model),
        degraded,
        option::of(words()),
        any::<[u32; 3]>(),
        any::<bool>(),
    );
    let end = end.prop_map(
        |(outcome, model, degraded, understood, counts, is_uncertain)| {
            let [looked_at, dropped_citations, retries] = counts;
            AnswerPart::End(AnswerEnd {
                outcome,
                model,
                degraded,
                looked_at,
                dropped_citations,
                understood,
                retries,
                is_uncertain,
            })
        },
    );
    prop_oneof![words().prop_map(AnswerPart::Text), citation, end]
}

pub(crate) fn forget() -> impl Strategy<Value = ForgetRequest> {
    (space_name(), filter(), any::<bool>()).prop_map(|(space, filter, dry_run)| ForgetRequest {
        space,
        everything: filter.is_everything(),
        filter,
        dry_run,
    })
}

pub(crate) fn dependents(numbers: [u64; 7]) -> DependentCounts {
    let [
        facts,
        episodes,
        fragments,
        narratives,
        identities,
        blocks,
        exchanges,
    ] = numbers;
    DependentCounts {
        facts,
        episodes,
        fragments,
        narratives,
        identities,
        blocks,
        exchanges,
    }
}

pub(crate) fn forgotten() -> impl Strategy<Value = ForgetReceipt> {
    let counts = (any::<[u64; 3]>(), any::<[u64; 7]>(), any::<[bool; 2]>());
    (
        vec(turn_id(), 0..4),
        vec(named(SessionId::new), 0..4),
        counts,
    )
        .prop_map(
            |(turns, emptied_sessions, (counts, with_them, [space, dry_run]))| {
                let [passages, undelivered, unreadable] = counts;
                let erased = Erased {
                    turns,
                    emptied_sessions,
                    passages,
                    undelivered,
                    unreadable,
                    versions: 0,
                    dependents: dependents(with_them),
                    space,
                };
                ForgetReceipt::of(erased, dry_run)
            },
        )
}

pub(crate) fn found() -> impl Strategy<Value = Found> {
    let signal =
        ("[a-z_]{1,9}", -9.0..9.0_f32, -9.0..9.0_f32).prop_map(|(signal, value, contribution)| {
            SignalScore {
                signal: signal.into(),
                value,
                contribution,
            }
        });
    let hit = (
        space_name(),
        turn(),
        (-9.0..9.0_f32, option::of(0.0..1.0_f32)),
        any::<(u32, u32)>(),
        vec(signal, 0..3),
        vec(turn(), 0..2),
    )
        .prop_map(
            |(space, turn, (score, relevance), passage, signals, neighbours)| Hit {
                space,
                turn,
                score,
                relevance,
                passage,
                signals,
                neighbours,
                facts: Vec::new(),
                outdated: None,
            },
        );
    let scorer = "[a-z0-9-]{0,9}";
    (
        vec(hit, 0..3),
        vec(any::<String>(), 0..2),
        any::<u64>(),
        scorer,
        option::of(explanation()),
    )
        .prop_map(|(hits, degraded, searched, scorer, explanation)| Found {
            hits,
            degraded,
            searched,
            scorer,
            understood: None,
            explanation,
        })
}

fn explanation() -> impl Strategy<Value = SearchExplanation> {
    let ranks = || {
        let rank = ("[a-z_]{1,9}", any::<u32>(), option::of(-9.0..9.0_f32));
        let rank = rank.prop_map(|(stage, rank, score)| StageRank {
            stage: stage.into(),
            rank,
            score,
        });
        vec(rank, 0..3)
    };
    let place = (space_name(), turn_id(), named(SessionId::new));
    let place = (place, named(Speaker::new), words());
    let standing = (any::<u32>(), -9.0..9.0_f32, option::of(0.0..1.0_f32));
    let fate = (option::of(1..1_000_u32), any::<bool>());
    let candidate = (place, standing, fate, ranks(), ranks()).prop_map(
        |(place, (rank, score, relevance), (hit, is_copy), sources, stages)| {
            let ((space, turn, session), speaker, excerpt) = place;
            CandidateTrace {
                space,
                turn,
                session,
                speaker,
                excerpt,
                rank,
                score,
                relevance,
                hit,
                is_copy,
                sources,
                stages,
                signals: Vec::new(),
            }
        },
    );
    (any::<u32>(), any::<bool>(), vec(candidate, 0..3)).prop_map(
        |(candidates, is_exhaustive, shown)| SearchExplanation {
            candidates,
            is_exhaustive,
            shown,
        },
    )
}

fn turn_receipt() -> impl Strategy<Value = TurnReceipt> {
    let states = vec![
        TurnState::Queued,
        TurnState::Stored,
        TurnState::DeadLettered,
        TurnState::Forgotten,
    ];
    (turn_id(), prop::sample::select(states), option::of(words()))
        .prop_map(|(id, state, reason)| TurnReceipt { id, state, reason })
}

pub(crate) fn receipt() -> impl Strategy<Value = Receipt> {
    (batch_id(), vec(turn_receipt(), 0..4), any::<bool>()).prop_map(|(batch, turns, duplicate)| {
        Receipt {
            batch,
            turns,
            duplicate,
        }
    })
}

fn settings() -> impl Strategy<Value = SpaceSettings> {
    let zones = prop::sample::select(vec![
        "UTC",
        "Europe/Zurich",
        "America/Argentina/Ushuaia",
        "Asia/Kolkata",
    ]);
    let days = || option::of(1..=36_525_u32);
    let turns = option::of(1..=1_000_000_000_u32);
    (option::of("[a-z]{2}"), zones, (days(), turns, days())).prop_map(
        |(language, zone, (retention_days, retention_turns, retention_superseded_days))| {
            SpaceSettings {
                language,
                time_zone: zone.parse().unwrap(),
                retention_days,
                retention_turns,
                retention_superseded_days,
            }
        },
    )
}

fn hold() -> impl Strategy<Value = LegalHold> {
    (instant(), ".{1,20}").prop_map(|(since, reason)| LegalHold { since, reason })
}

pub(crate) fn space() -> impl Strategy<Value = Space> {
    (
        space_name(),
        settings(),
        option::of(hold()),
        instant(),
        any::<(u64, u64)>(),
        option::of(instant()),
    )
        .prop_map(
            |(id, settings, hold, created_at, (sessions, turns), last_turn_at)| Space {
                id,
                settings,
                hold,
                first_language: None,
                created_at,
                sessions,
                turns,
                last_turn_at,
            },
        )
}

pub(crate) fn session() -> impl Strategy<Value = Session> {
    (named(SessionId::new), any::<u64>(), instant(), instant()).prop_map(
        |(id, turns, first_turn_at, last_turn_at)| Session {
            id,
            turns,
            first_turn_at,
            last_turn_at,
        },
    )
}

pub(crate) fn record() -> impl Strategy<Value = Record> {
    prop_oneof![
        (space_name(), settings()).prop_map(|(name, settings)| Record::Space(name, settings)),
        turn().prop_map(|turn| Record::Turn(Box::new(turn))),
        rules().prop_map(|rules| Record::Rules(Box::new(rules))),
        decided().prop_map(|memory| Record::Decided(Box::new(memory))),
    ]
}

pub(crate) fn status() -> impl Strategy<Value = Status> {
    let part = (words(), option::of((words(), instant()))).prop_map(|(name, trouble)| {
        let (trouble, since) = trouble.unzip();
        Part {
            name,
            trouble,
            since,
        }
    });
    let queue = (any::<[u64; 4]>(), option::of(instant())).prop_map(
        |([batches, turns, bytes, dead_letters], oldest)| Depth {
            batches,
            turns,
            bytes,
            oldest,
            dead_letters,
        },
    );
    (any::<[String; 5]>(), vec(part, 0..3), queue).prop_map(
        |([version, model, revision, recipe, projection], parts, queue)| Status {
            version,
            embedding_space: Some(EmbeddingSpace {
                model,
                revision,
                recipe,
                projection,
            }),
            parts,
            queue,
        },
    )
}

/// A letter of the tenant `default`.
pub(crate) fn dead_letter() -> impl Strategy<Value = DeadLetter> {
    (
        space_name(),
        batch_id(),
        vec(accepted(), 0..3),
        any::<(u64, u32, String)>(),
        instant(),
    )
        .prop_map(
            |(space, id, turns, (acceptance, attempts, reason), failed_at)| DeadLetter {
                acceptance,
                batch: Batch {
                    id,
                    scope: Scope {
                        tenant: TenantId::new("default").unwrap(),
                        space,
                    },
                    turns,
                },
                reason,
                failed_at,
                attempts,
            },
        )
}

pub(crate) fn page<T: std::fmt::Debug + Clone>(
    item: impl Strategy<Value = T>,
) -> impl Strategy<Value = Page<T>> {
    (vec(item, 0..3), option::of(words().prop_map(PageToken)))
        .prop_map(|(items, next)| Page { items, next })
}

pub(crate) fn fault() -> impl Strategy<Value = Fault> {
    let fields = vec((any::<String>(), any::<String>()), 0..4);
    let kind = prop::sample::select(crate::status::KINDS.to_vec());
    let wait = option::of((0..100_000_u64, 0..1_000_000_000_u32));
    (
        kind,
        "[A-Z_]{1,20}",
        any::<String>(),
        fields,
        metadata(),
        wait,
    )
        .prop_map(|(kind, reason, message, fields, metadata, wait)| Fault {
            fields: fields
                .into_iter()
                .map(
                    |(field, description)| memfleet_domain::fault::FieldViolation {
                        field,
                        description,
                    },
                )
                .collect(),
            metadata,
            retry_after: wait.map(|(seconds, nanos)| std::time::Duration::new(seconds, nanos)),
            ..Fault::new(kind, reason, message)
        })
}
