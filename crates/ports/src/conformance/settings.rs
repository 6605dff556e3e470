//! What every store of settings does.

use futures::future::join_all;
use memfleet_domain::ids::{SettingName, TenantId};

use super::samples::{TEXTS, batch, home, indexed, instant, scope, turn};
use crate::erasure::Erasure;
use crate::filter::TurnFilter;
use crate::ledger::Ledger;
use crate::settings::{BODY_LIMIT, Put, Revised, Setting, SettingKey, SettingKind, Settings};
use crate::store::{Result, StoreError};

/// Runs every case on a store that is also ledger and erasure.
#[macro_export]
macro_rules! settings_conformance {
    ($fresh:ident) => {
        $crate::conformance_cases!(
            $fresh,
            settings,
            [
                a_document_is_kept_in_versions,
                what_says_the_same_is_no_new_version,
                a_write_that_expected_another_version_is_refused,
                a_removed_document_keeps_its_history,
                removing_what_is_not_there_changes_nothing,
                writes_at_the_same_time_are_all_kept,
                of_writes_that_expect_the_same_version_one_is_made,
                first_writes_of_a_document_follow_each_other,
                the_revision_grows_with_changes_alone,
                another_tenant_has_documents_of_its_own,
                documents_are_listed_by_kind_space_and_name,
                documents_of_any_script_read_back_byte_by_byte,
                a_document_has_a_largest_size,
                a_history_goes_on_where_its_page_ended,
                a_forgotten_space_takes_its_documents_along,
            ]
        );
    };
}

fn acme() -> TenantId {
    home().tenant
}

fn key(name: &str) -> SettingKey {
    SettingKey {
        kind: SettingKind::Policy,
        space: None,
        name: SettingName::new(name).expect("a valid sample"),
    }
}

fn of_space(space: &str) -> SettingKey {
    SettingKey {
        space: Some(scope("acme", space).space),
        ..key("default")
    }
}

fn says(body: &str) -> Revised {
    Revised {
        body: Some(body.to_owned()),
        by: "somebody".into(),
        at: instant(1),
        expected: None,
    }
}

fn removal() -> Revised {
    Revised {
        body: None,
        ..says("")
    }
}

fn expecting(version: u32, revised: Revised) -> Revised {
    Revised {
        expected: Some(version),
        ..revised
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is compared with what a write came to"
)]
fn made(version: u32) -> Result<Put> {
    let changed = true;
    Ok(Put { version, changed })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it is compared with what a write came to"
)]
fn unchanged(version: u32) -> Result<Put> {
    let changed = false;
    Ok(Put { version, changed })
}

fn stale(expected: u64, current: u64) -> Result<Put> {
    Err(StoreError::Stale {
        what: "the setting",
        expected,
        current,
    })
}

async fn put(store: &impl Settings, name: &str, revised: Revised) -> Result<Put> {
    store.put(&acme(), &key(name), &revised).await
}

async fn bodies(store: &impl Settings, tenant: &TenantId) -> Vec<String> {
    let current = store.current(tenant).await.expect("current");
    let bodies = current.into_iter().map(|setting| setting.body);
    bodies
        .map(|body| body.expect("it is not removed"))
        .collect()
}

/// The latest one is current, and each is there as it was.
pub async fn a_document_is_kept_in_versions(store: &impl Settings) {
    assert_eq!(store.current(&acme()).await, Ok(vec![]));
    assert_eq!(put(store, "default", says("one")).await, made(1));
    let later = Revised {
        by: "somebody else".into(),
        at: instant(2),
        ..says("two")
    };
    assert_eq!(put(store, "default", later.clone()).await, made(2));
    let second = Setting {
        key: key("default"),
        version: 2,
        body: later.body,
        by: later.by,
        at: later.at,
    };
    assert_eq!(store.current(&acme()).await, Ok(vec![second.clone()]));
    let get = async |version| store.get(&acme(), &key("default"), version).await;
    assert_eq!(get(2).await, Ok(Some(second)));
    let first = get(1).await.expect("get").expect("it stays");
    assert_eq!((first.body.as_deref(), first.version), (Some("one"), 1));
    for version in [0, 3, u32::MAX] {
        assert_eq!(get(version).await, Ok(None), "{version}");
    }
}

/// Whatever was expected: so a write that is sent again, since its answer was lost, finds its own version.
pub async fn what_says_the_same_is_no_new_version(store: &impl Settings) {
    for _ in 0..2 {
        let first = put(store, "default", expecting(0, says("one"))).await;
        assert_eq!(first.map(|put| put.version), Ok(1));
    }
    assert_eq!(put(store, "default", says("one")).await, unchanged(1));
    let next = expecting(1, says("two"));
    assert_eq!(put(store, "default", next.clone()).await, made(2));
    assert_eq!(put(store, "default", next).await, unchanged(2));
    // What was said before is a change once more.
    assert_eq!(put(store, "default", says("one")).await, made(3));
    assert_eq!(store.revision(&acme()).await, Ok(3));
}

/// And nothing is written.
pub async fn a_write_that_expected_another_version_is_refused(store: &impl Settings) {
    let first = put(store, "default", expecting(1, says("one"))).await;
    assert_eq!(first, stale(1, 0));
    assert_eq!(put(store, "default", says("one")).await, made(1));
    for (expected, revised) in [(0, says("two")), (2, says("two")), (0, removal())] {
        let refused = put(store, "default", expecting(expected, revised)).await;
        assert_eq!(refused, stale(expected.into(), 1));
    }
    assert_eq!(bodies(store, &acme()).await, ["one"]);
    assert_eq!(store.revision(&acme()).await, Ok(1));
}

/// And may be written again.
pub async fn a_removed_document_keeps_its_history(store: &impl Settings) {
    assert_eq!(put(store, "default", says("one")).await, made(1));
    let removed = put(store, "default", expecting(1, removal())).await;
    assert_eq!(removed, made(2));
    assert_eq!(store.current(&acme()).await, Ok(vec![]));
    assert_eq!(put(store, "default", removal()).await, unchanged(2));
    assert_eq!(put(store, "default", says("one")).await, made(3));
    assert_eq!(bodies(store, &acme()).await, ["one"]);
    let history = store.history(&acme(), &key("default"), 10, None).await;
    let history = history.expect("history").items.into_iter();
    let history: Vec<_> = history.map(|it| (it.version, it.body)).collect();
    let one = Some("one".to_owned());
    assert_eq!(history, [(3, one.clone()), (2, None), (1, one)]);
}

/// Nor does it leave a version.
pub async fn removing_what_is_not_there_changes_nothing(store: &impl Settings) {
    assert_eq!(put(store, "default", removal()).await, unchanged(0));
    assert_eq!(store.revision(&acme()).await, Ok(0));
    let history = store.history(&acme(), &key("default"), 10, None).await;
    assert_eq!(history.expect("history").items, []);
}

/// One after the other.
pub async fn writes_at_the_same_time_are_all_kept(store: &impl Settings) {
    let writes = (0..20).map(|number| put(store, "default", says(&format!("number {number}"))));
    let written = join_all(writes).await.into_iter();
    let mut versions: Vec<_> = written.map(|put| put.expect("put").version).collect();
    versions.sort_unstable();
    assert_eq!(versions, (1..=20).collect::<Vec<_>>());
    let history = store.history(&acme(), &key("default"), 100, None).await;
    let history = history.expect("history").items.into_iter();
    let mut bodies: Vec<_> = history.filter_map(|it| it.body).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 20);
    assert_eq!(store.revision(&acme()).await, Ok(20));
}

/// The others hear of it.
pub async fn of_writes_that_expect_the_same_version_one_is_made(store: &impl Settings) {
    assert_eq!(put(store, "default", says("one")).await, made(1));
    let next = |number| expecting(1, says(&format!("number {number}")));
    let writes = (0..10).map(|number| put(store, "default", next(number)));
    let outcomes = join_all(writes).await;
    let won = outcomes.iter().filter(|outcome| **outcome == made(2));
    assert_eq!(won.count(), 1);
    let lost = outcomes.iter().filter(|outcome| **outcome == stale(1, 2));
    assert_eq!(lost.count(), 9);
}

/// Where there was none before, too.
pub async fn first_writes_of_a_document_follow_each_other(store: &impl Settings) {
    let next = |number| expecting(0, says(&format!("number {number}")));
    let writes = (0..10).map(|number| put(store, "default", next(number)));
    let outcomes = join_all(writes).await;
    let won = outcomes.iter().filter(|outcome| **outcome == made(1));
    assert_eq!(won.count(), 1, "{outcomes:?}");
}

/// Each of them counts.
pub async fn the_revision_grows_with_changes_alone(store: &impl Settings) {
    let mut last = 0;
    for (name, revised) in [
        ("a", says("one")),
        ("b", says("one")),
        ("a", says("two")),
        ("a", removal()),
        ("a", says("two")),
    ] {
        put(store, name, revised).await.expect("put");
        let revision = store.revision(&acme()).await.expect("revision");
        assert!(revision > last, "{name}");
        last = revision;
        store.current(&acme()).await.expect("current");
        assert_eq!(store.revision(&acme()).await, Ok(last));
    }
}

/// Of the same name, with the same history of changes, whatever it asks.
pub async fn another_tenant_has_documents_of_its_own(store: &impl Settings) {
    let other = scope("globex", "ada").tenant;
    assert_eq!(put(store, "default", says("one")).await, made(1));
    assert_eq!(store.current(&other).await, Ok(vec![]));
    assert_eq!(store.revision(&other).await, Ok(0));
    assert_eq!(store.get(&other, &key("default"), 1).await, Ok(None));
    let history = store.history(&other, &key("default"), 10, None).await;
    assert_eq!(history.expect("history").items, []);
    let removed = store.put(&other, &key("default"), &removal()).await;
    assert_eq!(removed, unchanged(0));
    let written = store.put(&other, &key("default"), &says("theirs")).await;
    assert_eq!(written, made(1));
    assert_eq!(bodies(store, &acme()).await, ["one"]);
    assert_eq!(bodies(store, &other).await, ["theirs"]);
}

/// What is for all of a tenant's comes first, and every kind has names of its own.
pub async fn documents_are_listed_by_kind_space_and_name(store: &impl Settings) {
    let mut keys: Vec<SettingKey> = Vec::new();
    for kind in SettingKind::ALL.iter().rev() {
        for space in [Some("bob"), None, Some("ada")] {
            for name in ["é", "b", "B", "名"] {
                keys.push(SettingKey {
                    kind: *kind,
                    space: space.map(|space| scope("acme", space).space),
                    name: SettingName::new(name).expect("a valid sample"),
                });
            }
        }
    }
    for key in &keys {
        let written = store.put(&acme(), key, &says("x")).await;
        assert_eq!(written, made(1), "{key:?}");
    }
    keys.sort();
    let current = store.current(&acme()).await.expect("current");
    let listed: Vec<_> = current.into_iter().map(|setting| setting.key).collect();
    assert_eq!(listed, keys);
}

/// The empty one too.
pub async fn documents_of_any_script_read_back_byte_by_byte(store: &impl Settings) {
    for (number, text) in TEXTS.into_iter().chain([""]).enumerate() {
        let name = number.to_string();
        assert_eq!(put(store, &name, says(text)).await, made(1));
        let read = store.get(&acme(), &key(&name), 1).await.expect("get");
        assert_eq!(read.and_then(|it| it.body).as_deref(), Some(text));
        assert_eq!(put(store, &name, says(text)).await, unchanged(1));
    }
}

/// Which it may have.
pub async fn a_document_has_a_largest_size(store: &impl Settings) {
    let largest = "é".repeat(BODY_LIMIT / 2);
    assert_eq!(put(store, "default", says(&largest)).await, made(1));
    assert_eq!(bodies(store, &acme()).await, std::slice::from_ref(&largest));
    let refused = put(store, "default", says(&(largest + "x"))).await;
    let Err(StoreError::Oversized { size, limit, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((size, limit), (BODY_LIMIT + 1, BODY_LIMIT));
}

/// Whatever is written meanwhile.
pub async fn a_history_goes_on_where_its_page_ended(store: &impl Settings) {
    for number in 1..=7 {
        let written = put(store, "default", says(&number.to_string())).await;
        assert_eq!(written, made(number));
    }
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = store
            .history(&acme(), &key("default"), 2, after.as_ref())
            .await;
        let page = page.expect("history");
        listed.extend(page.items.into_iter().map(|setting| setting.version));
        let more = format!("later {}", listed.len());
        put(store, "default", says(&more)).await.expect("put");
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, [7, 6, 5, 4, 3, 2, 1]);
    let foreign = crate::ledger::PageToken("elsewhere".into());
    let refused = store
        .history(&acme(), &key("default"), 2, Some(&foreign))
        .await;
    assert_eq!(refused, Err(StoreError::PageToken));
}

/// Those of other spaces and of the tenant stay, and whoever follows hears of it. A space that nobody wrote to has documents, too.
pub async fn a_forgotten_space_takes_its_documents_along(
    store: &(impl Settings + Ledger + Erasure),
) {
    let told = indexed(batch("k", vec![turn("a", "x")]), 1);
    store.commit(vec![told]).await.expect("commit");
    assert_eq!(put(store, "default", says("all")).await, made(1));
    for space in ["ada", "bob", "cleo"] {
        for body in [space, "later"] {
            let written = store.put(&acme(), &of_space(space), &says(body)).await;
            assert!(written.is_ok(), "{written:?}");
        }
    }
    let before = store.revision(&acme()).await.expect("revision");
    let one = TurnFilter {
        turns: vec![turn("a", "x").id],
        ..TurnFilter::default()
    };
    store.erase(&home(), &one).await.expect("erase");
    assert_eq!(store.revision(&acme()).await, Ok(before));
    for forgotten in [home(), scope("acme", "cleo")] {
        let everything = TurnFilter::default();
        store.erase(&forgotten, &everything).await.expect("erase");
    }
    assert_eq!(bodies(store, &acme()).await, ["all", "later"]);
    let history = Settings::history(store, &acme(), &of_space("ada"), 10, None).await;
    assert_eq!(history.expect("history").items, []);
    assert!(store.revision(&acme()).await.expect("revision") > before);
}
