//! A tenant's rows are its own whatever a statement says, in every table that there is.

use memfleet_domain::Scope;
use memfleet_domain::access::{Grant, KeyHash, Quota};
use memfleet_domain::embedding::PassageVectors;
use memfleet_domain::ids::{ChangeId, ExchangeName, InjectionId, KeyId, SettingName, TenantId};
use memfleet_domain::space::SpaceSettings;
use memfleet_domain::turn::AcceptedTurn;
use memfleet_ports::audit::{AuditKind, AuditRecord};
use memfleet_ports::conformance::knowledge::{conflict, deriving, fact};
use memfleet_ports::conformance::samples::{
    batch_in, conversation, embedding_space, indexed, instant, scope, session, turn_in, vectors,
};
use memfleet_ports::erasure::Erasure;
use memfleet_ports::exchanges::{Entry, Exchange, Exchanges};
use memfleet_ports::filter::TurnFilter;
use memfleet_ports::injections::{Injection, Injections};
use memfleet_ports::keys::{Key, KeyRing};
use memfleet_ports::knowledge::{ChangeFilter, Knowledge, Question, Staging, Work};
use memfleet_ports::ledger::{Ledger, TextVectors};
use memfleet_ports::model_switch::{
    ModelSwitches, NextStep, OrderGiver, SpaceComparison, SwitchGoal, SwitchOrder, SwitchStep,
};
use memfleet_ports::settings::{Revised, SettingKey, SettingKind, Settings};
use memfleet_ports::spaces::SpaceCatalog;
use memfleet_ports::tenants::TenantCatalog;
use memfleet_ports::testing::NothingWaits;
use memfleet_ports::usage::{Amount, Limits, UsageLedger};
use memfleet_postgres::{PostgresErasure, PostgresStore};
use sqlx::error::DatabaseError;
use sqlx::{AssertSqlSafe, Executor, PgConnection, Row};

use crate::database::Database;

/// The book of migrations holds nothing of a tenant.
const BOOK: &str = "_sqlx_migrations";

/// Every table and partition that holds what tenants have, as the catalogue of the server has it.
/// Names of models are of no tenant.
async fn tables(connection: &mut PgConnection) -> Vec<String> {
    let names =
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'memfleet' AND tablename <> $1
                     AND tablename NOT IN ('embedding_spaces', 'model_switch') ORDER BY 1";
    let tables = sqlx::query_scalar(names).bind(BOOK);
    let tables: Vec<String> = tables.fetch_all(connection).await.expect("tables");
    assert!(tables.len() > 40, "{tables:?}");
    tables
}

/// Rows of two tenants in every table.
async fn fill(store: &PostgresStore) {
    for tenant in ["acme", "globex"] {
        let here = scope(tenant, "ada");
        let labelled = |name: &str| AcceptedTurn {
            metadata: [("k".to_owned(), "v".to_owned())].into(),
            ..turn_in(&here, "s1", name, "a text of more than twenty bytes")
        };
        let told = batch_in(&here, "k", vec![labelled("a"), labelled("b")]);
        let committed = store.commit(vec![indexed(told, 1)]).await.expect("commit");
        let gone = TurnFilter {
            turns: vec![committed[0].turns[0].id],
            ..TurnFilter::default()
        };
        let queue = std::sync::Arc::new(NothingWaits);
        let erasure = PostgresErasure::new(store.clone(), queue);
        erasure.remove(&here, &gone).await.expect("remove");
        fill_second(store, &here).await;
        fill_access(store, &here.tenant).await;
        fill_knowledge(store, &here, &labelled("b")).await;
        fill_prompts(store, &here, &labelled("b")).await;
        expire(store, &erasure, &here, &labelled("b")).await;
    }
}

/// Vectors of a second model.
async fn fill_second(store: &PostgresStore, scope: &Scope) {
    let order = SwitchOrder {
        target: embedding_space("2"),
        goal: SwitchGoal::Compare,
        drops: false,
        forced: false,
        every_language: false,
        giver: OrderGiver::Operator,
    };
    store.set_order(&order).await.expect("order");
    let build = NextStep {
        scope: scope.clone(),
        order: order.clone(),
        is_for_language: false,
        step: SwitchStep::Build,
    };
    let built = store.take(&build, SpaceComparison::default());
    built.await.expect("build");
    let waiting = store.without_vectors(&order.target, 10).await;
    for turn in waiting.expect("waiting") {
        let made = turn.ranges.iter().map(|_| vectors("x")).collect();
        let id = turn.turn.accepted.id;
        let made = [TextVectors::of_turn(id, made)];
        let attached = store.attach_vectors(&turn.scope, &order.target, &made);
        attached.await.expect("attach");
    }
}

/// A fact that ended long ago, removed by retention.
async fn expire(
    store: &PostgresStore,
    erasure: &PostgresErasure,
    scope: &Scope,
    turn: &AcceptedTurn,
) {
    let mut ended = fact(turn, "Ben", "Rome", instant(1));
    ended.valid.end = Some(instant(2));
    ended.change = ChangeId::of("test", &[b"ended"]);
    let work = Work {
        rewrites: vec![deriving(&[&ended])],
        ..Work::default()
    };
    store.apply(scope, work).await.expect("apply");
    let settings = SpaceSettings {
        retention_superseded_days: Some(1),
        ..SpaceSettings::default()
    };
    let put = SpaceCatalog::put(store, scope, &settings, instant(0)).await;
    put.expect("put");
    let later = instant(9 * 86_400);
    let expired = erasure.expire(scope, later, 10).await.expect("expire");
    assert_eq!(expired.versions, 1);
}

/// Two facts of a turn, in conflict.
async fn fill_knowledge(store: &PostgresStore, scope: &Scope, turn: &AcceptedTurn) {
    let [rome, oslo] = ["Rome", "Oslo"].map(|value| fact(turn, "Ada", value, instant(1)));
    let work = Work {
        rewrites: vec![deriving(&[&rome, &oslo])],
        found: vec![conflict(&rome, &oslo)],
        staging: Staging {
            new: Vec::new(),
            confirmed: vec![rome.id],
        },
        ..Work::default()
    };
    store.apply(scope, work).await.expect("apply");
    let (day, limits) = (
        chrono::NaiveDate::from_yo_opt(2026, 1).expect("a day"),
        Limits::default(),
    );
    let reserved = store.reserve(&scope.tenant, day, Amount::default(), &limits);
    reserved.await.expect("reserve");
}

/// A document, an exchange and an injection of a turn.
async fn fill_prompts(store: &PostgresStore, scope: &Scope, turn: &AcceptedTurn) {
    let key = SettingKey {
        kind: SettingKind::Policy,
        space: None,
        name: SettingName::new("default").expect("a short name"),
    };
    let revised = Revised {
        body: Some("{}".into()),
        by: "config".into(),
        at: instant(1),
        expected: None,
    };
    let put = Settings::put(store, &scope.tenant, &key, &revised).await;
    put.expect("put");
    let turns = vec![(scope.space.clone(), turn.id)];
    let exchange = Exchange {
        session: session("s1"),
        name: ExchangeName::new("e").expect("a short name"),
        state: "{}".into(),
        tally: "{}".into(),
        tokens: 1,
        turns: turns.clone(),
        updated_at: instant(1),
        expires_at: instant(2),
    };
    let told = conversation(&scope.space, "s1", 1);
    let entry = Entry {
        conversation: Some(&told),
        ..Entry::of(&exchange, None)
    };
    let written = Exchanges::keep(store, &scope.tenant, entry).await;
    written.expect("write");
    let injection = Injection {
        id: InjectionId::from_bytes([1; 16]),
        at: instant(1),
        caller: "config".into(),
        request_id: String::new(),
        session: Some(exchange.session),
        exchange: Some(exchange.name),
        spaces: vec![scope.space.clone()],
        decision: "INJECTED".into(),
        block: Some("a block".into()),
        block_hash: Some([1; 32]),
        record: "{}".into(),
        turns,
        expires_at: Some(instant(2)),
        forgotten: false,
    };
    let added = Injections::append(store, &scope.tenant, &[injection]).await;
    added.expect("append");
    let secret = store.secret(&scope.tenant, Some(&scope.space)).await;
    secret.expect("a secret");
}

/// A key, a quota and a record of a tenant.
async fn fill_access(store: &PostgresStore, tenant: &TenantId) {
    let hash = KeyHash::of(tenant.as_str());
    let key = Key {
        id: KeyId::of(&hash),
        tenant: tenant.clone(),
        label: "backend".into(),
        grant: Grant::ALL,
        is_operator: false,
        calls_per_minute: None,
        created_at: instant(1),
        expires_at: None,
        last_used_at: None,
        revoked_at: None,
        replaced_by: None,
    };
    let record = AuditRecord {
        at: instant(1),
        tenant: tenant.clone(),
        kind: AuditKind::KeyCreated,
        caller: "config".into(),
        request_id: String::new(),
        space: None,
        key: Some(key.id),
        turns: Vec::new(),
        detail: std::collections::BTreeMap::new(),
    };
    store.add(&key, &hash, &[record]).await.expect("add");
    let put = store.put_quota(tenant, &Quota::default(), &[]).await;
    put.expect("put");
}

async fn count(connection: &mut PgConnection, table: &str, condition: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM memfleet.{table} WHERE {condition}");
    let count = sqlx::query_scalar(AssertSqlSafe(statement));
    count.fetch_one(connection).await.expect(table)
}

async fn run(connection: &mut PgConnection, statement: &str) -> sqlx::Result<u64> {
    let done = connection.execute(AssertSqlSafe(statement.to_owned()));
    Ok(done.await?.rows_affected())
}

fn is_refused(outcome: &sqlx::Result<u64>) -> bool {
    let error = outcome
        .as_ref()
        .err()
        .and_then(sqlx::Error::as_database_error);
    error.and_then(DatabaseError::code).as_deref() == Some("42501")
}

/// The statements of the app's role are tried with rights to the partitions too, which it does not have.
async fn filled() -> (Database, PgConnection, Vec<String>) {
    let database = Database::migrated().await;
    fill(&database.store().await).await;
    let mut connection = database.connect().await;
    let tables = tables(&mut connection).await;
    let grant = "GRANT ALL ON ALL TABLES IN SCHEMA memfleet TO memfleet_app";
    run(&mut connection, grant).await.expect("grant");
    for table in [
        "turns",
        "passages",
        "token_vectors",
        "second_vectors",
        "postings",
        "labels",
        "batches",
        "forgotten",
        "outbox",
        "sessions",
        "spaces",
        "keys",
        "quotas",
        "audit",
        "derivations",
        "derivation_turns",
        "changes",
        "conflicts",
        "progress",
        "staged",
        "model_use",
        "removed_derivations",
        "settings",
        "setting_revisions",
        "exchanges",
        "exchange_turns",
        "conversations",
        "secrets",
        "injections",
        "injection_spaces",
        "injection_turns",
    ] {
        let whole = count(&mut connection, table, "true").await;
        let own = count(&mut connection, table, "tenant = 'acme'").await;
        assert!(own > 0 && whole > own, "{table}");
    }
    run(&mut connection, "SET ROLE memfleet_app")
        .await
        .expect("role");
    (database, connection, tables)
}

#[tokio::test]
async fn every_table_has_a_tenant_and_forced_row_security_with_one_policy_for_the_app() {
    let database = Database::migrated().await;
    let mut connection = database.connect().await;
    for table in tables(&mut connection).await {
        let row = sqlx::query(
            "SELECT c.relrowsecurity, c.relforcerowsecurity,
                 EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant' AND a.attnotnull),
                 ARRAY(SELECT pg_get_expr(p.polqual, p.polrelid) FROM pg_policy p
                       WHERE p.polrelid = c.oid AND (p.polroles = '{0}' OR 'memfleet_app'::regrole = ANY (p.polroles))),
                 pg_get_userbyid(c.relowner) = 'memfleet_app'
             FROM pg_class c WHERE c.oid = to_regclass('memfleet.' || $1)",
        );
        let row = row
            .bind(&table)
            .fetch_one(&mut connection)
            .await
            .expect("a table");
        let [enabled, forced, has_tenant, is_owner] =
            [0, 1, 2, 4].map(|index| row.get::<bool, _>(index));
        assert!(enabled && forced && has_tenant && !is_owner, "{table}");
        let policies: Vec<String> = row.get(3);
        let [policy] = &policies[..] else {
            panic!("{table}: {policies:?}");
        };
        assert!(
            policy.contains("tenant = NULLIF(current_setting('memfleet.tenant'"),
            "{policy}"
        );
    }
}

#[tokio::test]
async fn without_a_tenant_no_row_is_seen_and_none_can_be_inserted() {
    let (_database, mut connection, tables) = filled().await;
    for tenant in ["", "nobody"] {
        // As a session has it that had a tenant in an earlier transaction.
        run(
            &mut connection,
            &format!("SET memfleet.tenant = '{tenant}'"),
        )
        .await
        .expect("set");
        for table in &tables {
            assert_eq!(count(&mut connection, table, "true").await, 0, "{table}");
            for other in ["acme", ""] {
                let insert = format!("INSERT INTO memfleet.{table} (tenant) VALUES ('{other}')");
                let outcome = run(&mut connection, &insert).await;
                assert!(outcome.is_err(), "{table}");
                let parent = !table.ends_with(|last: char| last.is_ascii_digit());
                assert!(!parent || is_refused(&outcome), "{table}: {outcome:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_tenant_sees_and_changes_its_own_rows_alone() {
    let (_database, mut connection, tables) = filled().await;
    run(&mut connection, "SET memfleet.tenant = 'acme'")
        .await
        .expect("set");
    let mut seen = 0;
    for table in &tables {
        let own = count(&mut connection, table, "tenant = 'acme'").await;
        assert_eq!(count(&mut connection, table, "true").await, own, "{table}");
        seen += own;
        for statement in [
            format!("UPDATE memfleet.{table} SET tenant = tenant WHERE tenant = 'globex'"),
            format!("DELETE FROM memfleet.{table} WHERE tenant = 'globex'"),
        ] {
            assert_eq!(
                run(&mut connection, &statement).await.expect("runs"),
                0,
                "{statement}"
            );
        }
        let give = format!("UPDATE memfleet.{table} SET tenant = 'globex'");
        let given = run(&mut connection, &give).await;
        assert!(given.is_err() || own == 0, "{table}: {given:?}");
        let insert = format!("INSERT INTO memfleet.{table} (tenant) VALUES ('globex')");
        assert!(run(&mut connection, &insert).await.is_err(), "{table}");
    }
    assert!(seen > 0);
    run(&mut connection, "RESET ROLE").await.expect("role");
    for table in &tables {
        let others = count(&mut connection, table, "tenant = 'globex'").await;
        let partition = table.ends_with(|last: char| last.is_ascii_digit());
        assert!(partition || others > 0, "{table}");
    }
}

#[tokio::test]
async fn the_app_cannot_write_the_book_of_migrations_nor_become_the_role_that_sees_all() {
    let database = Database::migrated().await;
    let mut connection = database.connect().await;
    run(&mut connection, "SET SESSION AUTHORIZATION memfleet_app")
        .await
        .expect("role");
    let writing = run(&mut connection, "DELETE FROM memfleet._sqlx_migrations").await;
    assert!(is_refused(&writing), "{writing:?}");
    let becoming = run(&mut connection, "SET ROLE memfleet_sweep").await;
    assert!(is_refused(&becoming), "{becoming:?}");
    let making = run(&mut connection, "CREATE TABLE memfleet.mine (tenant text)").await;
    assert!(is_refused(&making), "{making:?}");
}

#[tokio::test]
async fn the_app_cannot_change_what_was_recorded_nor_give_a_key_more() {
    let database = Database::migrated().await;
    fill(&database.store().await).await;
    let mut connection = database.connect().await;
    for setting in [
        "SET SESSION AUTHORIZATION memfleet_app",
        "SET memfleet.tenant = 'acme'",
    ] {
        run(&mut connection, setting).await.expect("set");
    }
    for statement in [
        "UPDATE memfleet.audit SET caller = 'nobody'",
        "DELETE FROM memfleet.audit",
        "DELETE FROM memfleet.injections",
        "UPDATE memfleet.injections SET record = ''",
        "DELETE FROM memfleet.injection_turns",
        "UPDATE memfleet.settings SET body = ''",
        "DELETE FROM memfleet.keys",
        "UPDATE memfleet.keys SET rights = 7",
        "UPDATE memfleet.keys SET operator = true",
        "UPDATE memfleet.keys SET hash = ''",
    ] {
        let outcome = run(&mut connection, statement).await;
        assert!(is_refused(&outcome), "{statement}: {outcome:?}");
    }
}

#[tokio::test]
async fn the_functions_across_tenants_tell_of_no_words() {
    let database = Database::migrated().await;
    let mut connection = database.connect().await;
    let functions = sqlx::query_scalar(
        "SELECT p.oid::regprocedure::text || ': ' || pg_get_function_result(p.oid) FROM pg_proc p
         WHERE p.pronamespace = 'memfleet'::regnamespace AND p.prosecdef ORDER BY 1",
    );
    let functions: Vec<String> = functions
        .fetch_all(&mut connection)
        .await
        .expect("functions");
    assert_eq!(
        functions,
        [
            "memfleet.bound_conversations(bigint): bigint",
            "memfleet.bound_exchanges(bigint): bigint",
            "memfleet.bound_injections(bigint): bigint",
            "memfleet.expire_audit(bigint,bigint): bigint",
            "memfleet.expire_conversations(bigint,bigint): bigint",
            "memfleet.expire_exchanges(bigint,bigint): bigint",
            "memfleet.expire_injections(bigint,bigint): bigint",
            "memfleet.find_key(bytea): TABLE(tenant text, id uuid, label text, rights smallint, spaces text, operator boolean, calls_per_minute bigint, created_at bigint, expires_at bigint, last_used_at bigint, revoked_at bigint, replaced_by uuid)",
            "memfleet.has_keys(): boolean",
            "memfleet.highest_acceptance(): bigint",
            "memfleet.left_over_spaces(bigint): TABLE(tenant text, name text)",
            "memfleet.outbox_backlog(): TABLE(events bigint, oldest bigint)",
            "memfleet.outbox_told(bigint[]): void",
            "memfleet.outbox_waiting(bigint): TABLE(number bigint, tenant text, space text, kind text, after bigint, change bigint, happened_at bigint)",
            "memfleet.spaces_behind(text,bigint): TABLE(tenant text, name text)",
            "memfleet.spaces_to_expire(): TABLE(tenant text, name text, retention_days bigint, retention_turns bigint, retention_superseded_days bigint, oldest bigint, turns bigint)",
            "memfleet.spaces_unembedded(bigint): TABLE(tenant text, name text, after bigint, is_second boolean, is_served boolean)",
            "memfleet.spaces_with_retention(): TABLE(tenant text, name text, retention_days bigint, oldest bigint)",
            "memfleet.tenants_after(text,bigint): TABLE(tenant text)",
            "memfleet.turns_without_vectors(bigint,bigint): TABLE(tenant text, space bigint, id uuid)",
        ]
    );
}

/// Vectors of every value that a component can have.
#[tokio::test]
async fn vectors_read_back_exactly_and_stay_with_their_tenant() {
    use memfleet_ports::feed::{Change, IndexFeed};
    let database = Database::migrated().await;
    let store = database.store().await;
    let sentence: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    let here = scope("acme", "ada");
    let mut told = indexed(batch_in(&here, "k", vec![turn_in(&here, "s", "a", "x")]), 1);
    told.passages[0][0].vectors = Some(PassageVectors {
        sentence: sentence.clone(),
        ..PassageVectors::default()
    });
    store.commit(vec![told]).await.expect("commit");
    let changes = store.changes_after(&here, 0, 10).await.expect("changes");
    let [Change::Stored(turn)] = &changes.changes[..] else {
        panic!("{changes:?}");
    };
    assert_eq!(turn.passages[0].sentence, Some(sentence));
    let there = store.changes_after(&scope("globex", "ada"), 0, 10).await;
    assert_eq!(there.expect("changes").changes, []);
}

/// Every question of the port, asked by somebody else in a space of the same name.
#[tokio::test]
async fn what_is_derived_stays_with_its_tenant() {
    let database = Database::migrated().await;
    let store = database.store().await;
    fill(&store).await;
    let (there, filter) = (scope("initech", "ada"), ChangeFilter::default());
    let question = Question {
        withdrawn: true,
        ..Question::default()
    };
    let here = scope("acme", "ada");
    let own = store.derivations(&here, &question, 9, None).await;
    let own = own.expect("derivations").items;
    assert_eq!(own.len(), 2);
    let derivations = store.derivations(&there, &question, 9, None).await;
    assert_eq!(derivations.expect("derivations").items, []);
    assert_eq!(store.versions(&there, own[0].id).await, Ok(Vec::new()));
    let changes = store.changes(&there, &filter, 9, None).await;
    assert_eq!(changes.expect("changes").items, []);
    let conflicts = store.conflicts(&there, &[], 9, None).await;
    assert_eq!(conflicts.expect("conflicts").items, []);
}
