//! Names of the metrics this service keeps; all carry the label `lane`: `query` or `passage`.

/// Counter: texts that were embedded.
pub const TEXTS: &str = "memfleet_embedder_texts_total";
/// Counter: word pieces that were embedded.
pub const TOKENS: &str = "memfleet_embedder_tokens_total";
/// Counter: requests refused because the queue was full.
pub const SHED: &str = "memfleet_embedder_shed_total";
/// Counter: requests dropped before they were computed because the caller had left.
pub const ABANDONED: &str = "memfleet_embedder_abandoned_total";
/// Histogram: time a request waited before its computation began, in seconds.
pub const QUEUE_SECONDS: &str = "memfleet_embedder_queue_duration_seconds";
/// Histogram: time the model took for a batch, in seconds.
pub const INFERENCE_SECONDS: &str = "memfleet_embedder_inference_duration_seconds";
/// Gauge: texts that wait.
pub const QUEUED_TEXTS: &str = "memfleet_embedder_queued_texts";
