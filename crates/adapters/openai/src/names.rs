//! Names of the metrics this adapter keeps. Label `agent`: who asked.

/// Counter, with `outcome`: calls that ended, by `ok`, `cached`, the cause of the fault, or `left` by their callers.
pub const CALLS: &str = "memfleet_model_calls_total";
/// Counter: requests that were sent again.
pub const RETRIES: &str = "memfleet_model_retries_total";
/// Counter, with `direction` (`in`, `out`): tokens.
pub const TOKENS: &str = "memfleet_model_tokens_total";
/// Counter: money, in millionths of the currency that prices are given in.
pub const COST: &str = "memfleet_model_cost_micros_total";
/// Histogram: time of a call with its retries, in seconds; cached ones are left out.
pub const SECONDS: &str = "memfleet_model_call_duration_seconds";
/// Gauge, without labels: the circuit breaker; 0 closed, 1 half open, 2 open.
pub const BREAKER: &str = "memfleet_model_breaker_state";
/// Gauge, without labels: calls that wait for a place.
pub const WAITING: &str = "memfleet_model_waiting_calls";
