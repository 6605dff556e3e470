//! What every catalogue of spaces does.

use memfleet_domain::ids::TenantId;
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;

use super::samples::{batch_in, home, indexed, instant, scope, session, turn_in};
use crate::ledger::{IndexedBatch, Ledger, PageToken};
use crate::spaces::SpaceCatalog;
use crate::store::StoreError;

/// Runs every case on a store that is ledger and catalogue.
#[macro_export]
macro_rules! spaces_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            spaces,
            [
                a_space_exists_from_its_first_put,
                a_space_exists_from_its_first_turn,
                settings_change_and_nothing_else_does,
                the_first_language_stays_unless_the_owner_sets_another,
                spaces_are_listed_by_name_in_pages,
                another_tenant_sees_nothing,
                sessions_are_listed_by_their_first_turn_in_pages,
            ]
        );
    };
}

fn settings(language: &str) -> SpaceSettings {
    SpaceSettings {
        language: Some(language.into()),
        time_zone: "Europe/Zurich".parse().expect("a valid sample"),
        retention_days: Some(90),
        retention_turns: Some(1_000),
        retention_superseded_days: Some(30),
    }
}

async fn tell(store: &impl Ledger, name: &str, text: &str, second: i64, dated: Option<i64>) {
    let told = AcceptedTurn {
        recorded_at: instant(second),
        event_time: dated.map(instant),
        ..turn_in(&home(), name, text, text)
    };
    let batch = batch_in(&home(), text, vec![told]);
    store
        .commit(vec![indexed(batch, second as u64)])
        .await
        .expect("commit");
}

/// Without turns.
pub async fn a_space_exists_from_its_first_put(store: &(impl SpaceCatalog + Ledger)) {
    assert_eq!(store.get(&home()).await, Ok(None));
    let put = store
        .put(&home(), &settings("de"), instant(5))
        .await
        .expect("put");
    assert_eq!(
        (&put.id, &put.settings, put.created_at),
        (&home().space, &settings("de"), instant(5))
    );
    assert_eq!((put.sessions, put.turns, put.last_turn_at), (0, 0, None));
    assert_eq!(store.get(&home()).await, Ok(Some(put)));
}

/// With default settings.
pub async fn a_space_exists_from_its_first_turn(store: &(impl SpaceCatalog + Ledger)) {
    tell(store, "s1", "a", 5, None).await;
    tell(store, "s2", "b", 6, Some(-100)).await;
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(
        (space.settings, space.created_at),
        (SpaceSettings::default(), instant(5))
    );
    assert_eq!(
        (space.sessions, space.turns, space.last_turn_at),
        (2, 2, Some(instant(5)))
    );
}

/// The age and the turns stay.
pub async fn settings_change_and_nothing_else_does(store: &(impl SpaceCatalog + Ledger)) {
    tell(store, "s1", "a", 5, None).await;
    store
        .put(&home(), &settings("de"), instant(50))
        .await
        .expect("put");
    let space = store
        .put(&home(), &settings("fr"), instant(60))
        .await
        .expect("put");
    assert_eq!(
        (&space.settings, space.created_at, space.turns),
        (&settings("fr"), instant(5), 1)
    );
    tell(store, "s1", "b", 70, None).await;
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!((space.settings, space.turns), (settings("fr"), 2));
}

/// Whatever later batches are in.
pub async fn the_first_language_stays_unless_the_owner_sets_another(
    store: &(impl SpaceCatalog + Ledger),
) {
    for (acceptance, language) in [(1, None), (2, Some("pt")), (3, Some("en"))] {
        let told = turn_in(&home(), "s1", &acceptance.to_string(), "a");
        let batch = IndexedBatch {
            language: language.map(str::to_owned),
            ..indexed(
                batch_in(&home(), &acceptance.to_string(), vec![told]),
                acceptance,
            )
        };
        store.commit(vec![batch]).await.expect("commit");
    }
    let space = store.get(&home()).await.expect("get").expect("exists");
    assert_eq!(space.language(), Some("pt"));
    let space = store
        .put(&home(), &settings("de"), instant(9))
        .await
        .expect("put");
    assert_eq!(space.language(), Some("de"));
    assert_eq!(space.first_language.as_deref(), Some("pt"));
    let locale = store.locale(&home()).await.expect("locale");
    assert_eq!(locale, Some(space.locale()));
    assert_eq!(store.locale(&scope("nowhere", "s")).await, Ok(None));
}

/// Every one once.
pub async fn spaces_are_listed_by_name_in_pages(store: &(impl SpaceCatalog + Ledger)) {
    let mut names: Vec<String> = (0..23)
        .map(|n| format!("space {:02}", (n * 7) % 23))
        .collect();
    names.extend(["Ünï".into(), "東京".into(), "a%_'\"b".into()]);
    for name in &names {
        store
            .put(&scope("acme", name), &settings("de"), instant(0))
            .await
            .expect("put");
    }
    let (mut listed, mut after) = (Vec::new(), None::<PageToken>);
    loop {
        let page = SpaceCatalog::list(store, &home().tenant, 5, after.as_ref())
            .await
            .expect("list");
        listed.extend(page.items.into_iter().map(|space| space.id.to_string()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    names.sort();
    assert_eq!(listed, names);
}

/// Not even that it exists.
pub async fn another_tenant_sees_nothing(store: &(impl SpaceCatalog + Ledger)) {
    tell(store, "s1", "a", 5, None).await;
    let globex = scope("globex", "ada");
    assert_eq!(store.get(&globex).await, Ok(None));
    let tenant = TenantId::new("globex").expect("a valid sample");
    let page = SpaceCatalog::list(store, &tenant, 10, None)
        .await
        .expect("list");
    assert_eq!((page.items, page.next), (vec![], None));
    let page = store.sessions(&globex, 10, None).await.expect("sessions");
    assert_eq!((page.items, page.next), (vec![], None));
}

/// By event time where it is known.
pub async fn sessions_are_listed_by_their_first_turn_in_pages(
    store: &(impl SpaceCatalog + Ledger),
) {
    tell(store, "late", "a", 300, None).await;
    tell(store, "early", "b", 400, Some(10)).await;
    tell(store, "middle", "c", 200, None).await;
    tell(store, "early", "d", 500, None).await;
    let first = store.sessions(&home(), 2, None).await.expect("sessions");
    let names: Vec<_> = first
        .items
        .iter()
        .map(|session| session.id.clone())
        .collect();
    assert_eq!(names, ["early", "middle"].map(session));
    let early = &first.items[0];
    assert_eq!(
        (early.turns, early.first_turn_at, early.last_turn_at),
        (2, instant(10), instant(500))
    );
    let second = store
        .sessions(&home(), 2, first.next.as_ref())
        .await
        .expect("sessions");
    assert_eq!(second.items.len(), 1);
    assert_eq!(
        (second.items[0].id.clone(), second.next),
        (session("late"), None)
    );
    let foreign = PageToken("elsewhere".into());
    assert_eq!(
        store.sessions(&home(), 2, Some(&foreign)).await,
        Err(StoreError::PageToken)
    );
}
