//! How long writers of an old version stand still while a large database is migrated.

use std::time::{Duration, Instant};

use memfleet_postgres::{migrate, migrate_to};
use sqlx::{Connection, Executor};
use tokio::sync::watch;

use crate::contents::{OWNER, prepare};
use crate::database::Database;

/// The first version with derived memory: every index that came later is made.
const BEFORE: i64 = 4;

/// A million turns and half as many facts of 8 tenants in 2,000 spaces.
const MEMORY: &str = "
    SET synchronous_commit = off;
    INSERT INTO memfleet.spaces (tenant, key, name, settings, created_at, head)
        SELECT 'tenant ' || n % 8, n::text::bytea, 'space ' || n, '{}', 0, 1 FROM generate_series(1, 2000) n;
    INSERT INTO memfleet.sessions (tenant, space, name, turns, started_at, first_at, last_at)
        SELECT tenant, id, 's', 500, 0, 0, 0 FROM memfleet.spaces;
    INSERT INTO memfleet.turns (tenant, space, id, session, acceptance, position, change, recorded_at, ordinal, first_passage, passages,
            role, trust, content_hash, lengths, speaker, text)
        SELECT s.tenant, s.space, gen_random_uuid(), s.id, n, n, 1, n, 0, n, 1, 0, 0, '\\x00', '\\x00', 'Ada',
            convert_to('turn number ' || n || repeat(' and more', 20), 'UTF8')
        FROM memfleet.sessions s, generate_series(1, 500) n;
    INSERT INTO memfleet.derivations (tenant, space, id, first, change, known_from, known_until, valid_from, valid_until, subject, attribute,
            written_by, version, passage, kind, document)
        SELECT s.tenant, s.id, gen_random_uuid(), n, n, n, CASE WHEN n % 4 = 0 THEN n + 1 END, n, CASE WHEN n % 5 = 0 THEN n + 9 END, n, n,
            gen_random_uuid(), 1, n, 0, '{}'
        FROM memfleet.spaces s, generate_series(1, 250) n;
    ANALYZE";

/// A turn of a space, as builds of the old version write it.
const WRITE: &str = "BEGIN;
    SELECT set_config('role', 'memfleet_app', true), set_config('memfleet.tenant', 'tenant 1', true);
    UPDATE memfleet.spaces SET head = head + 1
        WHERE tenant = 'tenant 1' AND id = (SELECT id FROM memfleet.spaces WHERE tenant = 'tenant 1' ORDER BY random() LIMIT 1);
    INSERT INTO memfleet.turns (tenant, space, id, session, acceptance, position, change, recorded_at, ordinal, first_passage, passages,
            role, trust, content_hash, lengths, speaker, text)
        SELECT tenant, space, gen_random_uuid(), id, 501, 501, 2, 1, 0, 501, 1, 0, 0, '\\x00', '\\x00', 'Ada', '\\x00'
        FROM memfleet.sessions WHERE tenant = 'tenant 1' ORDER BY random() LIMIT 1;
    UPDATE memfleet.derivations SET passage = passage WHERE tenant = 'tenant 1' AND (space, id, version) IN
        (SELECT space, id, version FROM memfleet.derivations WHERE tenant = 'tenant 1' LIMIT 1);
    COMMIT";

/// Writes until it is stopped; how often, and how long the longest write took.
async fn write(database: &Database, stop: &watch::Receiver<bool>) -> (u32, Duration) {
    let mut connection = database.connect().await;
    let (mut count, mut longest) = (0, Duration::ZERO);
    while !*stop.borrow() {
        let asked = Instant::now();
        connection.execute(WRITE).await.expect("a write");
        longest = longest.max(asked.elapsed());
        count += 1;
    }
    connection.close().await.expect("close");
    (count, longest)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes a million turns, takes minutes"]
async fn writers_go_on_while_a_million_turns_are_migrated() {
    let database = Database::empty().await;
    prepare(&database).await;
    let url = database.url_as(OWNER);
    migrate_to(&url, BEFORE).await.expect("the old version");
    let mut connection = database.connect().await;
    connection.execute(MEMORY).await.expect("a million turns");
    let quiet = {
        let (stop, stopped) = watch::channel(false);
        let pause = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            stop.send_replace(true);
        };
        tokio::join!(write(&database, &stopped), pause).0
    };
    let (stop, stopped) = watch::channel(false);
    let migrating = async {
        let begun = Instant::now();
        let migrated = migrate(&url).await;
        stop.send_replace(true);
        (migrated, begun.elapsed())
    };
    let (one, two, (migrated, took)) = tokio::join!(
        write(&database, &stopped),
        write(&database, &stopped),
        migrating
    );
    let migrated = migrated.expect("migrate");
    let longest = one.1.max(two.1);
    println!(
        "versions {} to {} in {took:.1?}; {} writes meanwhile, the longest {longest:.0?} ({:.0?} without a migration)",
        migrated.from,
        migrated.to,
        one.0 + two.0,
        quiet.1,
    );
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}
