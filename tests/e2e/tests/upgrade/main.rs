//! `memfleet migrate` as the composition and the chart run it: with an environment and nothing
//! else.
#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../../../crates/adapters/postgres/tests/postgres/database.rs"]
#[expect(dead_code, reason = "the adapter's own tests ask for more of it")]
mod database;

use std::process::{Command, Output};

use memfleet_postgres::{migrate_to, versions};
use sqlx::Executor;

use crate::database::Database;

/// The oldest version from which an upgrade once failed.
const OLD: i64 = 5;

const SPACE: &str = "INSERT INTO memfleet.spaces (tenant, key, name, settings, created_at, head)
    VALUES ('acme', '', 'ada', '{}', 0, 1)";

async fn old_database() -> Database {
    let database = Database::empty().await;
    migrate_to(&database.url(), OLD).await.unwrap();
    database.connect().await.execute(SPACE).await.unwrap();
    database
}

fn migrate(environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(memfleet_e2e::binary().unwrap());
    command.arg("migrate").env_clear();
    command.envs(environment.iter().copied()).output().unwrap()
}

fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// As helm/memfleet/templates/migrate.yaml has it: the address comes in a file.
#[tokio::test]
async fn a_fleet_with_memory_is_upgraded_by_the_hook_of_the_chart() {
    let database = old_database().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("owner-url");
    std::fs::write(&file, database.url()).unwrap();
    let environment = [
        ("MEMFLEET_STORE__OWNER_URL_FILE", file.to_str().unwrap()),
        ("MEMFLEET_TELEMETRY__FORMAT", "json"),
    ];
    let newest = versions().next_back().unwrap();
    let told = said(&migrate(&environment));
    assert!(
        told.contains(&format!("from schema version {OLD} to {newest}")),
        "{told}"
    );
    let told = said(&migrate(&environment));
    assert!(
        told.contains(&format!("version {newest} already")),
        "{told}"
    );
}

/// With the address that the roles use beside it, and without a queue, which a migration does not
/// open.
#[tokio::test]
async fn a_migration_needs_no_queue() {
    let database = old_database().await;
    let url = database.url();
    let environment = [
        ("MEMFLEET_STORE__URL", url.as_str()),
        ("MEMFLEET_STORE__OWNER_URL", url.as_str()),
    ];
    assert!(said(&migrate(&environment)).contains("migrated"));
}

#[tokio::test]
async fn the_schema_of_another_application_is_named_in_the_refusal() {
    let database = Database::empty().await;
    let notes = "CREATE SCHEMA memfleet; CREATE TABLE memfleet.notes (id bigint)";
    let mut connection = database.connect().await;
    sqlx::raw_sql(notes).execute(&mut connection).await.unwrap();
    let url = database.url();
    let output = migrate(&[("MEMFLEET_STORE__OWNER_URL", url.as_str())]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        told.contains(database.name()) && told.contains("notes"),
        "{told}"
    );
}
