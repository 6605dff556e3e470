//! The adapter on a real server.

mod backup;
mod concurrency;
mod conformance;
mod connection;
mod contents;
mod database;
mod derived;
mod forgotten;
mod isolation;
mod leftover;
mod migrations;
mod near;
mod outbox;
mod plans;
mod stalls;
mod switching;
mod undelivered;
mod upgrades;
