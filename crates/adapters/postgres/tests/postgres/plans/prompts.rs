//! The same of what is kept for prompts.

use memfleet_domain::ids::{ExchangeName, InjectionId, SettingName, SpaceId, TenantId, TurnId};
use memfleet_ports::conformance::samples::{conversation, instant, session};
use memfleet_ports::conversations::{Conversation, Owner, Sought};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::{Injection, InjectionFilter, Injections};
use memfleet_ports::settings::{Revised, SettingKey, SettingKind, Settings};
use memfleet_ports::testing::NothingWaits;
use memfleet_postgres::{PostgresErasure, PostgresStore};

use super::{OTHERS, TURNS, home, told};

/// Exchanges and injections of the tenant that is asked about; as many of all others.
const OWN: usize = 2_000;

fn tenant(number: usize) -> TenantId {
    TenantId::new(format!("tenant {number}")).expect("a short name")
}

/// One of the turns that stay when the others are forgotten.
fn named(number: usize) -> (SpaceId, TurnId) {
    let number = number * 2 % TURNS + 1;
    (home().space, told(&home(), number).id)
}

fn exchange(number: usize) -> Exchange {
    Exchange {
        session: session(&format!("s{}", number / 4)),
        name: ExchangeName::new(number.to_string()).expect("a short name"),
        state: "x".repeat(500),
        tally: "{}".into(),
        tokens: 1,
        turns: vec![named(number)],
        updated_at: instant(number as i64),
        expires_at: instant(10_000 + number as i64),
    }
}

/// One of four that a caller holds in a space.
fn heard(number: usize) -> Conversation {
    let space = SpaceId::new(format!("space {}", number % 50)).expect("a short name");
    let told = conversation(&space, &format!("c{number}"), number as i64);
    Conversation {
        owner: Owner {
            caller: format!("caller {}", number / 200),
            ..told.owner
        },
        key: format!("key {number}"),
        expires_at: instant(10_000 + number as i64),
        ..told
    }
}

fn injection(number: usize) -> Injection {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.to_be_bytes());
    Injection {
        id: InjectionId::from_bytes(id),
        at: instant(number as i64),
        caller: "somebody".into(),
        request_id: "r-1".into(),
        session: Some(exchange(number).session),
        exchange: None,
        spaces: vec![SpaceId::new(format!("space {}", number % 50)).expect("a short name")],
        decision: "INJECTED".into(),
        block: Some("x".repeat(500)),
        block_hash: Some([0; 32]),
        record: "{}".into(),
        turns: vec![named(number)],
        expires_at: Some(instant(10_000 + number as i64)),
        forgotten: false,
    }
}

fn key(number: usize) -> SettingKey {
    SettingKey {
        kind: SettingKind::Policy,
        space: None,
        name: SettingName::new(number.to_string()).expect("a short name"),
    }
}

fn revised(number: usize) -> Revised {
    Revised {
        body: Some(format!("{number} {}", "x".repeat(200))),
        by: "somebody".into(),
        at: instant(number as i64),
        expected: None,
    }
}

pub async fn fill(store: &PostgresStore) {
    let own = home().tenant;
    for number in 0..OWN * 2 {
        let (other, number) = (tenant(number % OTHERS), number / 2);
        let tenant = if number.is_multiple_of(2) {
            &own
        } else {
            &other
        };
        let (conversation, exchange) = (heard(number), exchange(number));
        let entry = Entry {
            conversation: Some(&conversation),
            injection: Some(&injection(number)),
            ..Entry::of(&exchange, None)
        };
        let put = Exchanges::keep(store, tenant, entry).await;
        put.expect("an entry");
    }
    for number in 0..OTHERS * 3 {
        let put = Settings::put(store, &tenant(number % OTHERS), &key(number), &revised(1)).await;
        put.expect("a setting");
    }
    for number in 0..30 {
        let put = Settings::put(store, &own, &key(number % 3), &revised(number)).await;
        put.expect("a setting");
    }
}

/// What is asked or told again and again.
pub const CALLS: [&str; 15] = [
    "put setting",
    "current",
    "revision",
    "settings history",
    "exchange",
    "put exchange",
    "hear",
    "conversations",
    "session_tokens",
    "expire exchanges",
    "append injection",
    "injection",
    "injections",
    "expire injections",
    "forget a turn of prompts",
];

pub async fn call(store: &PostgresStore, name: &str, round: usize) {
    let own = home().tenant;
    let early = instant(10_000 + round as i64);
    match name {
        "put setting" => {
            let put = Settings::put(store, &own, &key(0), &revised(100 + round)).await;
            put.expect(name);
        }
        "current" => drop(store.current(&own).await.expect(name)),
        "revision" => drop(store.revision(&own).await.expect(name)),
        "settings history" => {
            let history = Settings::history(store, &own, &key(0), 5, None).await;
            drop(history.expect(name));
        }
        "exchange" => {
            let Exchange {
                session,
                name: called,
                ..
            } = exchange(200);
            let found = Exchanges::get(store, &own, &session, &called, instant(0)).await;
            assert!(found.expect(name).is_some());
        }
        "put exchange" => {
            let changed = Exchange {
                tokens: 10 + round as u32,
                ..exchange(300)
            };
            let put =
                Exchanges::keep(store, &own, Entry::of(&changed, Some(1 + round as u64))).await;
            put.expect(name);
        }
        "hear" => {
            let later = Conversation {
                key: format!("later {round}"),
                ..heard(300)
            };
            let heard = Exchanges::keep(store, &own, Entry::heard(&later)).await;
            heard.expect(name);
        }
        "conversations" => {
            let told = heard(400);
            let sought = Sought {
                owner: told.owner,
                opening: told.opening,
                keys: vec![told.key],
            };
            let found = store.conversations(&own, &sought, instant(0)).await;
            assert_eq!(found.expect(name).len(), 4);
        }
        "session_tokens" => {
            let tokens = store
                .session_tokens(&own, &session("s50"), instant(0))
                .await;
            assert!(tokens.expect(name) > 0);
        }
        "expire exchanges" => drop(Exchanges::expire(store, early).await.expect(name)),
        "append injection" => {
            let added = Injections::append(store, &own, &[injection(OWN * 3 + round)]).await;
            added.expect(name);
        }
        "injection" => {
            let found = Injections::get(store, &own, injection(200).id).await;
            assert!(found.expect(name).is_some());
        }
        "injections" => list(store, &own).await,
        "expire injections" => drop(Injections::expire(store, early).await.expect(name)),
        _ => {
            let erasure = PostgresErasure::new(store.clone(), std::sync::Arc::new(NothingWaits));
            let filter = TurnFilter {
                turns: vec![named(500 + round * 2).1],
                ..TurnFilter::default()
            };
            drop(erasure.remove(&home(), &filter).await.expect(name));
        }
    }
}

async fn list(store: &PostgresStore, own: &TenantId) {
    let all = InjectionFilter::default;
    let filters = [
        all(),
        InjectionFilter {
            session: Some(session("s50")),
            ..all()
        },
        InjectionFilter {
            space: Some(SpaceId::new("space 8").expect("a short name")),
            ..all()
        },
        InjectionFilter {
            turn: Some(named(200)),
            ..all()
        },
    ];
    for filter in filters {
        let page = Injections::list(store, own, &filter, 5, None).await;
        assert!(!page.expect("injections").items.is_empty(), "{filter:?}");
    }
}
