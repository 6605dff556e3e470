//! Random policies, documents and past injections.

use memfleet_domain::derivation::{
    Body, Change, ChangeKind, DecidedMemory, Derivation, Origin, WrittenVersion,
};
use memfleet_domain::graph::{Entity, Identity};
use memfleet_domain::ids::{
    ChangeId, DerivationId, ExchangeName, InjectionId, SessionId, SettingName, SpaceId,
};
use memfleet_domain::policy::Policy;
use memfleet_domain::time::TimeRange;
use memfleet_ports::injections::InjectionFilter;
use memfleet_ports::injections_api::PastInjection;
use memfleet_ports::memory::SpaceRules;
use memfleet_ports::policies::{Listing, NewDocument, PolicyInForce};
use memfleet_ports::settings::{Setting, SettingKey, SettingKind};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::assembly::{assembled, policy};
use super::{hold, instant, named, space_name, turn_id, words};

pub(crate) fn rules() -> impl Strategy<Value = SpaceRules> {
    (option::of(hold()), option::of(policy()))
        .prop_map(|(hold, policy)| SpaceRules { hold, policy })
}

/// A naming in two versions.
pub(crate) fn decided() -> impl Strategy<Value = DecidedMemory> {
    let names = ("[a-z]{1,9}", words(), "[a-z]{1,9}", words());
    (names, vec(turn_id(), 1..3), instant(), any::<[u8; 16]>()).prop_map(
        |((key, name, other, other_name), turns, at, change)| {
            let entity = Entity::new(&key, &name);
            let other = Entity::new(&other, &other_name);
            let id = DerivationId::of_identity(entity.id, other.id);
            let version = |version: u32, same: bool| {
                let change =
                    ChangeId::from_bytes(change.map(|byte| byte.wrapping_add(version as u8)));
                let identity = Identity {
                    entity: entity.clone(),
                    other: other.clone(),
                    same,
                };
                WrittenVersion {
                    derivation: Derivation {
                        id,
                        version,
                        body: Body::Identity(Box::new(identity)),
                        turns: turns.clone(),
                        valid: TimeRange::default(),
                        known: TimeRange {
                            start: Some(at),
                            end: (version == 1).then_some(at),
                        },
                        origin: Origin::Corrected,
                        change,
                        succeeded_by: None,
                    },
                    change: Change {
                        id: change,
                        kind: ChangeKind::Corrected,
                        at,
                        reason: "said".into(),
                        conflict: None,
                        reverts: None,
                    },
                }
            };
            DecidedMemory {
                versions: vec![version(1, true), version(2, false)],
                conflicts: Vec::new(),
            }
        },
    )
}

pub(crate) fn new_policy() -> impl Strategy<Value = (Option<SpaceId>, Policy, Option<u32>)> {
    (option::of(space_name()), policy(), option::of(any::<u32>()))
}

pub(crate) fn policy_in_force() -> impl Strategy<Value = PolicyInForce> {
    let versions = (any::<u32>(), any::<u32>());
    let policies = (policy(), policy(), policy(), policy());
    (policies, versions).prop_map(
        |((in_force, of_node, of_tenant, of_space), (tenant_version, space_version))| {
            PolicyInForce {
                in_force,
                of_node,
                of_tenant,
                tenant_version,
                of_space,
                space_version,
            }
        },
    )
}

pub(crate) fn key() -> impl Strategy<Value = SettingKey> {
    let kind = select(SettingKind::ALL);
    (kind, option::of(space_name()), named(SettingName::new))
        .prop_map(|(kind, space, name)| SettingKey { kind, space, name })
}

pub(crate) fn new_document() -> impl Strategy<Value = NewDocument> {
    let expected = option::of(any::<u32>());
    (key(), words(), expected).prop_map(|(key, body, expected)| NewDocument {
        kind: key.kind,
        name: key.name,
        body,
        expected,
    })
}

pub(crate) fn listing() -> impl Strategy<Value = Listing> {
    prop_oneof![
        option::of(select(SettingKind::ALL)).prop_map(Listing::Present),
        key().prop_map(Listing::History),
    ]
}

pub(crate) fn document() -> impl Strategy<Value = Setting> {
    let written = (any::<String>(), instant());
    (key(), any::<u32>(), option::of(words()), written).prop_map(
        |(key, version, body, (by, at))| Setting {
            key,
            version,
            body,
            by,
            at,
        },
    )
}

pub(crate) fn injection_filter() -> impl Strategy<Value = InjectionFilter> {
    let session = option::of(named(SessionId::new));
    let space = option::of((space_name(), option::of(turn_id())));
    (session, space, option::of(instant())).prop_map(|(session, space, start)| {
        let (space, turn) = space.unzip();
        InjectionFilter {
            session,
            turn: space.clone().zip(turn.flatten()),
            space,
            time: TimeRange { start, end: None },
        }
    })
}

pub(crate) fn past_injection() -> impl Strategy<Value = PastInjection> {
    let id = any::<[u8; 16]>().prop_map(InjectionId::from_bytes);
    let of = (
        option::of(named(SessionId::new)),
        option::of(named(ExchangeName::new)),
        vec(space_name(), 0..3),
    );
    let by = (any::<String>(), any::<String>());
    let block = (option::of(words()), option::of(any::<[u8; 32]>()));
    (id, instant(), of, by, assembled(), block, any::<bool>()).prop_map(
        |(id, at, of, by, answer, block, forgotten)| PastInjection {
            id,
            at,
            caller: by.0,
            request_id: by.1,
            session: of.0,
            exchange: of.1,
            spaces: of.2,
            answer,
            block: block.0,
            block_hash: block.1,
            forgotten,
        },
    )
}
