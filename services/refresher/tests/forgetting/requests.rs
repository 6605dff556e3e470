//! What can be asked for, what the receipt says, and what is refused.

use memfleet_domain::FaultKind;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::time::TimeRange;
use memfleet_ports::conformance::samples::{instant, scope, session, speaker};
use memfleet_ports::erasure::{DependentCounts, Erased};
use memfleet_ports::events::Event;
use memfleet_ports::feed::IndexFeed;
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::refresher::{ForgetReceipt, ForgetRequest};
use memfleet_ports::spaces::SpaceCatalog;

use crate::bench::{bench, conversation, everything, home, matching, of_session};

/// Each way to name turns, with the numbers of those it means, their sessions that are left empty, and whether the space
/// goes too.
fn ways() -> Vec<(ForgetRequest, Vec<usize>, Vec<&'static str>, bool)> {
    let none = TurnFilter::default;
    let turns = conversation(&home());
    let by_turn = matching(TurnFilter {
        turns: vec![turns[1].id, turns[4].id],
        ..none()
    });
    let by_speaker = matching(TurnFilter {
        speakers: vec![speaker("Ben")],
        ..none()
    });
    let by_time = matching(TurnFilter {
        time: TimeRange {
            start: Some(instant(100)),
            end: Some(instant(400)),
        },
        ..none()
    });
    let by_both = matching(TurnFilter {
        sessions: vec![session("s0"), session("s1")],
        speakers: vec![speaker("Ada")],
        ..none()
    });
    vec![
        (by_turn, vec![1, 4], vec![], false),
        (of_session("s1"), vec![2, 3], vec!["s1"], false),
        (by_speaker, vec![1, 3, 5], vec![], false),
        (by_time, vec![1, 2, 3], vec!["s1"], false),
        (by_both, vec![0, 2], vec![], false),
        (of_session("s7"), vec![], vec![], false),
        (
            everything(),
            vec![0, 1, 2, 3, 4, 5],
            vec!["s0", "s1", "s2"],
            true,
        ),
    ]
}

#[tokio::test]
async fn a_dry_run_says_what_goes_and_the_deed_does_just_that() {
    for (request, gone, emptied, space) in ways() {
        let bench = bench().await;
        let turns = conversation(&home());
        bench.commit(&home(), 1, turns.clone()).await;
        let expected = Erased {
            versions: 0,
            turns: gone.iter().map(|n| turns[*n].id).collect(),
            emptied_sessions: emptied.iter().map(|name| session(name)).collect(),
            // The samples cut every one of these turns in two.
            passages: gone.len() as u64 * 2,
            undelivered: 0,
            unreadable: 0,
            dependents: DependentCounts::default(),
            space,
        };
        let dry = ForgetRequest {
            dry_run: true,
            ..request.clone()
        };
        let head = bench.store.head(&home()).await.unwrap();
        let planned = ForgetReceipt::of(expected.clone(), true);
        assert_eq!(bench.forget(&dry).await.unwrap(), planned, "{request:?}");
        assert_eq!(bench.left(&home()).await.len(), 6);
        assert_eq!(bench.store.head(&home()).await.unwrap(), head);
        let done = ForgetReceipt::of(expected, false);
        assert_eq!(bench.forget(&request).await.unwrap(), done, "{request:?}");
        let kept = (0..6).filter(|n| !gone.contains(n));
        let kept: Vec<_> = kept.map(|n| n.to_string()).collect();
        assert_eq!(bench.left(&home()).await, kept, "{request:?}");
    }
}

#[tokio::test]
async fn forgetting_a_space_takes_its_settings_and_no_other_space() {
    let bench = bench().await;
    let others = [scope("acme", "bob"), scope("globex", "ada")];
    for (position, scope) in [home()].iter().chain(&others).enumerate() {
        bench
            .commit(scope, position as u64 + 1, conversation(scope))
            .await;
        let settings = SpaceSettings {
            retention_days: Some(9),
            ..SpaceSettings::default()
        };
        bench.store.put(scope, &settings, instant(0)).await.unwrap();
    }
    let receipt = bench.forget(&everything()).await.unwrap();
    assert!(receipt.erased.space);
    assert_eq!(bench.store.get(&home()).await.unwrap(), None);
    for other in &others {
        assert_eq!(bench.left(other).await.len(), 6);
        let space = bench.store.get(other).await.unwrap().unwrap();
        assert_eq!(space.settings.retention_days, Some(9));
    }
    let again = bench.forget(&everything()).await.unwrap_err();
    assert_eq!(again.kind, FaultKind::NotFound);
}

#[tokio::test]
async fn a_forget_must_say_what_it_means() {
    let bench = bench().await;
    bench.commit(&home(), 1, conversation(&home())).await;
    let nothing_named = matching(TurnFilter {
        include_replaced: true,
        ..TurnFilter::default()
    });
    let both = ForgetRequest {
        everything: true,
        ..of_session("s1")
    };
    for (request, field) in [(nothing_named, "filter"), (both, "everything")] {
        let fault = bench.forget(&request).await.unwrap_err();
        assert_eq!(fault.kind, FaultKind::InvalidArgument);
        assert_eq!(fault.fields[0].field, field);
    }
    assert_eq!(bench.left(&home()).await.len(), 6);
}

#[tokio::test]
async fn the_space_of_another_tenant_does_not_exist() {
    let bench = bench().await;
    let theirs = scope("globex", "secret");
    bench.commit(&theirs, 1, conversation(&theirs)).await;
    let fault_of = async |name: &str| {
        let request = ForgetRequest {
            space: SpaceId::new(name).unwrap(),
            ..everything()
        };
        bench.forget(&request).await.unwrap_err()
    };
    let (known, unknown) = (fault_of("secret").await, fault_of("nobody").await);
    assert_eq!(known.kind, FaultKind::NotFound);
    assert_eq!(known.message.replace("secret", "nobody"), unknown.message);
    assert_eq!(bench.left(&theirs).await.len(), 6);
}

#[tokio::test]
async fn a_forget_is_announced_and_a_dry_run_is_not() {
    let bench = bench().await;
    bench.commit(&home(), 1, conversation(&home())).await;
    let mut heard = bench.refresher.events.listen();
    let dry = ForgetRequest {
        dry_run: true,
        ..of_session("s1")
    };
    bench.forget(&dry).await.unwrap();
    assert!(heard.try_recv().is_err());
    bench.forget(&of_session("s1")).await.unwrap();
    assert_eq!(
        heard.try_recv().unwrap(),
        Event::Forgotten { scope: home() }
    );
}
