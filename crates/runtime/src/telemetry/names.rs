//! Names of metrics, in one place so that dashboards and code cannot drift apart. All begin with `memfleet_`; durations are
//! histograms in seconds.

/// Calls that ended, by `method` and `code` (counter).
pub const GRPC_CALLS: &str = "memfleet_grpc_calls_total";
/// Time from a call's arrival to the end of its answer, by `method` (histogram).
pub const GRPC_SECONDS: &str = "memfleet_grpc_call_duration_seconds";
/// Calls being worked on, by `method` (gauge).
pub const GRPC_IN_FLIGHT: &str = "memfleet_grpc_calls_in_flight";
/// Refusals that were held back, as their caller collects them too fast (counter).
pub const REFUSALS_HELD: &str = "memfleet_refusals_held_back_total";
/// Tasks that ended with an error or a panic, by `task`; those that must go on were started again (counter).
pub const TASK_FAILURES: &str = "memfleet_task_failures_total";
/// Connections that are open (gauge).
pub const CONNECTIONS: &str = "memfleet_connections";
/// Connections that were closed before a call, by `reason`: `full`, `address`, `silent` (counter).
pub const CONNECTIONS_REFUSED: &str = "memfleet_connections_refused_total";
/// Connections that could not be accepted, for want of a file descriptor as a rule (counter).
pub const ACCEPT_ERRORS: &str = "memfleet_accept_errors_total";
