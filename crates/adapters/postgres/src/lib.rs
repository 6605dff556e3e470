//! Storage of a fleet: PostgreSQL with pgvector behind the ports ledger, feed, erasure and spaces.
