//! The real servers that tests talk to, fetched and started on this machine without a container engine.
