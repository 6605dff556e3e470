//! What every store of injections does.

mod forgetting;

use memfleet_domain::ids::{ExchangeName, InjectionId, SpaceId, TenantId, TurnId};
use memfleet_domain::time::TimeRange;

use super::samples::{TEXTS, home, instant, scope, session, turn};
use crate::exchanges::TURN_LIMIT;
use crate::injections::{
    BLOCK_LIMIT, Injection, InjectionFilter, Injections, RECORD_LIMIT, SPACE_LIMIT,
};
use crate::ledger::PageToken;
use crate::store::StoreError;

pub use self::forgetting::*;

/// Runs every case on a store that is also ledger, catalogue and erasure.
#[macro_export]
macro_rules! injections_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            injections,
            [
                an_injection_reads_back_as_it_was_added,
                what_is_added_again_stays_as_it_is,
                injections_are_added_all_or_none,
                injections_are_listed_newest_first_in_pages,
                a_page_of_large_injections_ends_before_its_limit,
                a_filter_selects_what_meets_all_of_it,
                the_turns_of_the_newest_are_told_alone,
                injections_beyond_a_number_go_the_oldest_first,
                another_tenant_sees_no_injection,
                blocks_of_any_script_read_back_byte_by_byte,
                an_injection_has_a_largest_size,
                a_forgotten_turn_takes_the_blocks_that_name_it,
                a_forgotten_space_takes_the_blocks_that_name_it,
                what_is_added_after_a_forget_comes_without_its_block,
                a_forget_leaves_no_block_whoever_adds_meanwhile,
                only_injections_past_their_time_are_removed,
                an_injection_of_a_space_on_hold_is_kept_until_that_is_lifted,
            ]
        );
    };
}

fn acme() -> TenantId {
    home().tenant
}

fn id(number: u8) -> InjectionId {
    InjectionId::from_bytes([number; 16])
}

fn in_home(called: &str) -> (SpaceId, TurnId) {
    (home().space, turn(called, "x").id)
}

/// The n-th, at the n-th second, with words of a turn.
pub(super) fn injection(number: u8) -> Injection {
    Injection {
        id: id(number),
        at: instant(number.into()),
        caller: "somebody".into(),
        request_id: "r-1".into(),
        session: Some(session("s1")),
        exchange: Some(ExchangeName::new("e").expect("a valid sample")),
        spaces: vec![scope("acme", "bob").space, home().space],
        decision: "INJECTED".into(),
        block: Some("what was said".into()),
        block_hash: Some([number; 32]),
        record: "{}".into(),
        turns: vec![in_home("a")],
        expires_at: Some(instant(1_000)),
        forgotten: false,
    }
}

async fn append(store: &impl Injections, injections: &[Injection]) {
    let added = Injections::append(store, &acme(), injections).await;
    added.expect("append");
}

async fn get(store: &impl Injections, number: u8) -> Injection {
    let found = Injections::get(store, &acme(), id(number)).await;
    found.expect("get").expect("an injection")
}

async fn listed(store: &impl Injections, filter: &InjectionFilter) -> Vec<InjectionId> {
    let page = Injections::list(store, &acme(), filter, 100, None).await;
    let items = page.expect("list").items.into_iter();
    items.map(|injection| injection.id).collect()
}

/// As they are named, of as many injections as are asked for.
pub async fn the_turns_of_the_newest_are_told_alone(store: &impl Injections) {
    let named = |number: u8, called: &[&str]| Injection {
        turns: called.iter().map(|name| in_home(name)).collect(),
        ..injection(number)
    };
    let elsewhere = Injection {
        session: Some(session("s2")),
        ..named(4, &["d"])
    };
    let all = [
        named(1, &["a"]),
        named(2, &["b", "a"]),
        named(3, &[]),
        elsewhere,
    ];
    append(store, &all).await;
    let filter = InjectionFilter {
        session: Some(session("s1")),
        ..InjectionFilter::default()
    };
    for (limit, called) in [(0, vec![]), (2, vec!["b", "a"]), (9, vec!["b", "a", "a"])] {
        let given = store.turns_given(&acme(), &filter, limit).await;
        let called = called.into_iter().map(in_home).collect();
        assert_eq!(given, Ok(called));
    }
    let other = scope("other", "x").tenant;
    assert_eq!(store.turns_given(&other, &filter, 9).await, Ok(vec![]));
}

/// Be it of a skip, of which there is next to nothing.
pub async fn an_injection_reads_back_as_it_was_added(store: &impl Injections) {
    let full = Injection {
        turns: ["b", "a", "b"].map(in_home).to_vec(),
        ..injection(1)
    };
    let skip = Injection {
        session: None,
        exchange: None,
        spaces: Vec::new(),
        decision: "SKIPPED".into(),
        block: None,
        block_hash: None,
        turns: Vec::new(),
        expires_at: None,
        ..injection(2)
    };
    let redacted = Injection {
        block: None,
        ..injection(3)
    };
    append(store, &[full.clone(), skip.clone(), redacted.clone()]).await;
    for injection in [full, skip, redacted] {
        let found = Injections::get(store, &acme(), injection.id).await;
        assert_eq!(found, Ok(Some(injection)));
    }
    let found = Injections::get(store, &acme(), id(9)).await;
    assert_eq!(found, Ok(None));
}

/// Also where something else has its id.
pub async fn what_is_added_again_stays_as_it_is(store: &impl Injections) {
    append(store, &[injection(1)]).await;
    let other = Injection {
        at: instant(77),
        block: Some("something else".into()),
        turns: vec![in_home("z")],
        ..injection(1)
    };
    append(store, &[injection(1), other, injection(2), injection(2)]).await;
    assert_eq!(get(store, 1).await, injection(1));
    let all = listed(store, &InjectionFilter::default()).await;
    assert_eq!(all, [id(2), id(1)]);
    let by_turn = InjectionFilter {
        turn: Some(in_home("z")),
        ..InjectionFilter::default()
    };
    assert_eq!(listed(store, &by_turn).await, []);
}

/// What is too large takes the others along.
pub async fn injections_are_added_all_or_none(store: &impl Injections) {
    let larger = Injection {
        record: "x".repeat(RECORD_LIMIT + 1),
        ..injection(2)
    };
    let refused = Injections::append(store, &acme(), &[injection(1), larger]).await;
    assert!(matches!(refused, Err(StoreError::Oversized { .. })));
    assert_eq!(listed(store, &InjectionFilter::default()).await, []);
    assert_eq!(Injections::append(store, &acme(), &[]).await, Ok(()));
}

/// Of one tenant, and no others.
pub async fn injections_beyond_a_number_go_the_oldest_first(store: &impl Injections) {
    let injections: Vec<_> = (0..8).map(|number| injection(number * 7 % 8)).collect();
    append(store, &injections).await;
    let other = scope("other", "space").tenant;
    let theirs = Injections::append(store, &other, &[injection(0)]).await;
    theirs.expect("append");
    assert_eq!(Injections::bound(store, &acme(), 8).await, Ok(0));
    assert_eq!(Injections::bound(store, &acme(), 3).await, Ok(5));
    assert_eq!(Injections::bound(store, &acme(), 3).await, Ok(0));
    let all = InjectionFilter::default();
    assert_eq!(listed(store, &all).await, [id(7), id(6), id(5)]);
    let found = Injections::get(store, &other, id(0)).await;
    assert!(found.expect("get").is_some());
}

/// Each once, though others come in meanwhile, and some of the same instant.
pub async fn injections_are_listed_newest_first_in_pages(store: &impl Injections) {
    let injections: Vec<_> = (0..9)
        .map(|number| Injection {
            at: instant(i64::from(number) / 3),
            ..injection(number)
        })
        .collect();
    append(store, &injections).await;
    let by_space = InjectionFilter {
        space: Some(home().space),
        ..InjectionFilter::default()
    };
    let mut next = 100;
    for filter in [InjectionFilter::default(), by_space] {
        let (mut listed, mut after) = (Vec::new(), None::<PageToken>);
        loop {
            let page = Injections::list(store, &acme(), &filter, 2, after.as_ref()).await;
            let page = page.expect("list");
            listed.extend(page.items.into_iter().filter(|it| it.at < instant(100)));
            append(store, &[injection(next)]).await;
            next += 1;
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let mut expected = injections.clone();
        expected.reverse();
        assert_eq!(listed, expected);
    }
    for foreign in ["elsewhere", "1", "1.2", ""] {
        let token = PageToken(foreign.into());
        let all = InjectionFilter::default();
        let refused = Injections::list(store, &acme(), &all, 2, Some(&token)).await;
        assert_eq!(refused, Err(StoreError::PageToken), "{foreign}");
    }
}

/// None is missed for it.
pub async fn a_page_of_large_injections_ends_before_its_limit(store: &impl Injections) {
    const LARGE: u8 = 20;
    for number in 0..LARGE {
        let large = Injection {
            block: Some("x".repeat(BLOCK_LIMIT)),
            ..injection(number)
        };
        append(store, &[large]).await;
    }
    let (mut pages, mut after) = (Vec::new(), None::<PageToken>);
    loop {
        let all = InjectionFilter::default();
        let page = Injections::list(store, &acme(), &all, 1_000, after.as_ref()).await;
        let page = page.expect("list");
        pages.push(page.items.iter().map(|it| it.id).collect::<Vec<_>>());
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..LARGE).rev().map(id).collect();
    assert_eq!((pages.len(), pages.concat()), (2, expected));
}

/// Session, space, turn and time, alone and together.
pub async fn a_filter_selects_what_meets_all_of_it(store: &impl Injections) {
    let bob = scope("acme", "bob").space;
    let in_bob = (bob.clone(), in_home("a").1);
    let none = InjectionFilter::default;
    #[rustfmt::skip]
    let injections = [
        Injection { session: Some(session("s2")), spaces: vec![], turns: vec![], ..injection(1) },
        Injection { spaces: vec![home().space], turns: vec![in_home("a"), in_home("b")], ..injection(2) },
        // A space is named by a turn, too.
        Injection { session: None, spaces: vec![], turns: vec![in_bob.clone()], ..injection(3) },
        Injection { session: Some(session("s2")), spaces: vec![bob.clone(), bob.clone()], turns: vec![in_home("b")], ..injection(4) },
    ];
    append(store, &injections).await;
    let time = |start: Option<i64>, end: Option<i64>| TimeRange {
        start: start.map(instant),
        end: end.map(instant),
    };
    let (s2, s9) = (Some(session("s2")), Some(session("s9")));
    let (ada, bob) = (Some(home().space), Some(bob));
    let [a, b] = ["a", "b"].map(|called| Some(in_home(called)));
    #[rustfmt::skip]
    let cases: Vec<(InjectionFilter, Vec<u8>)> = vec![
        (none(), vec![4, 3, 2, 1]),
        (InjectionFilter { session: s2.clone(), ..none() }, vec![4, 1]),
        (InjectionFilter { session: s9, ..none() }, vec![]),
        (InjectionFilter { space: ada.clone(), ..none() }, vec![4, 2]),
        (InjectionFilter { space: bob.clone(), ..none() }, vec![4, 3]),
        (InjectionFilter { turn: a.clone(), ..none() }, vec![2]),
        (InjectionFilter { turn: Some(in_bob), ..none() }, vec![3]),
        (InjectionFilter { turn: b.clone(), ..none() }, vec![4, 2]),
        (InjectionFilter { time: time(Some(2), Some(4)), ..none() }, vec![3, 2]),
        (InjectionFilter { turn: b.clone(), space: bob.clone(), ..none() }, vec![4]),
        (InjectionFilter { session: s2.clone(), space: ada, time: time(None, Some(4)), ..none() }, vec![]),
        (InjectionFilter { session: s2, space: bob, turn: b, time: time(Some(4), None) }, vec![4]),
    ];
    for (filter, expected) in cases {
        let expected: Vec<_> = expected.into_iter().map(id).collect();
        assert_eq!(listed(store, &filter).await, expected, "{filter:?}");
    }
}

/// Whatever it asks, and has the same ids for its own.
pub async fn another_tenant_sees_no_injection(store: &impl Injections) {
    append(store, &[injection(1)]).await;
    let other = scope("globex", "ada").tenant;
    assert_eq!(Injections::get(store, &other, id(1)).await, Ok(None));
    let filters = [
        InjectionFilter::default(),
        InjectionFilter {
            session: Some(session("s1")),
            ..InjectionFilter::default()
        },
        InjectionFilter {
            space: Some(home().space),
            ..InjectionFilter::default()
        },
        InjectionFilter {
            turn: Some(in_home("a")),
            ..InjectionFilter::default()
        },
    ];
    for filter in &filters {
        let page = Injections::list(store, &other, filter, 10, None).await;
        assert_eq!(page.expect("list").items, [], "{filter:?}");
    }
    let theirs = Injection {
        block: Some("theirs".into()),
        ..injection(1)
    };
    let added = Injections::append(store, &other, std::slice::from_ref(&theirs)).await;
    assert_eq!(added, Ok(()));
    assert_eq!(get(store, 1).await, injection(1));
    for filter in &filters {
        let page = Injections::list(store, &other, filter, 10, None).await;
        assert_eq!(
            page.expect("list").items,
            std::slice::from_ref(&theirs),
            "{filter:?}"
        );
    }
}

/// Records too.
pub async fn blocks_of_any_script_read_back_byte_by_byte(store: &impl Injections) {
    for (number, text) in (0..).zip(TEXTS) {
        let injection = Injection {
            block: Some(text.into()),
            record: text.into(),
            ..injection(number)
        };
        append(store, std::slice::from_ref(&injection)).await;
        assert_eq!(get(store, number).await, injection);
    }
}

/// Which it may have.
pub async fn an_injection_has_a_largest_size(store: &impl Injections) {
    let many = |space: usize| scope("acme", &format!("space {space}")).space;
    let largest = Injection {
        block: Some("é".repeat(BLOCK_LIMIT / 2)),
        record: "x".repeat(RECORD_LIMIT),
        spaces: (0..SPACE_LIMIT).map(many).collect(),
        turns: vec![in_home("a"); TURN_LIMIT],
        ..injection(1)
    };
    append(store, std::slice::from_ref(&largest)).await;
    assert_eq!(get(store, 1).await, largest);
    let mut larger = [(); 3].map(|()| injection(2));
    larger[0].block = largest.block.map(|block| block + "x");
    larger[1].spaces = (0..=SPACE_LIMIT).map(many).collect();
    larger[2].turns = vec![in_home("a"); TURN_LIMIT + 1];
    for larger in larger {
        let refused = Injections::append(store, &acme(), &[larger]).await;
        assert!(matches!(refused, Err(StoreError::Oversized { .. })));
    }
}
