//! The ingestion queue of a fleet: NATS JetStream behind the ports queue and undelivered, and the events between processes.
