//! One person in every space of a tenant.

use memfleet_domain::ids::Speaker;
use memfleet_ports::subject::{InSpace, Subject, SubjectForget, SubjectProgress, SubjectTotal};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{dependents, forgotten, hold, named, space_name};

pub(crate) fn subject_forget() -> impl Strategy<Value = SubjectForget> {
    let aliases = vec(named(Speaker::new), 0..3);
    (named(Speaker::new), aliases, any::<bool>()).prop_map(|(name, aliases, dry_run)| {
        SubjectForget {
            subject: Subject { name, aliases },
            dry_run,
        }
    })
}

pub(crate) fn progress() -> impl Strategy<Value = SubjectProgress> {
    let done = prop_oneof![
        forgotten().prop_map(InSpace::Forgotten),
        (hold(), any::<u64>()).prop_map(|(hold, turns)| InSpace::Held { hold, turns }),
    ];
    let counts = (any::<[u64; 9]>(), any::<[u64; 7]>(), any::<bool>());
    let total = counts.prop_map(|(counts, with_them, dry_run)| SubjectTotal {
        spaces: counts[0],
        changed_spaces: counts[1],
        turns: counts[2],
        sessions: counts[3],
        passages: counts[4],
        undelivered: counts[5],
        unreadable: counts[6],
        held_spaces: counts[7],
        held_turns: counts[8],
        dry_run,
        dependents: dependents(with_them),
    });
    prop_oneof![
        (space_name(), done).prop_map(|(space, done)| SubjectProgress::Space(space, done)),
        total.prop_map(SubjectProgress::Total),
    ]
}
