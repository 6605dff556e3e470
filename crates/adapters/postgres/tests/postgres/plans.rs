//! The statements that run all the time find their rows by index, however large the tables are.

use memfleet_ports::conformance::samples::{batch_in, indexed, instant, scope, turn_in, without_vectors};
use memfleet_ports::ledger::Ledger;
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use crate::database::Database;
