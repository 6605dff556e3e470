//! The adapter on a real server.

mod concurrency;
mod conformance;
mod connection;
mod database;
mod isolation;
mod migrations;
mod outbox;
mod plans;
mod undelivered;
