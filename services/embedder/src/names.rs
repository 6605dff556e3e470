//! Names of the metrics this service keeps. Those of the embedder carry the label `lane`: `query`
//! or `passage`; those of the reader of turns, too: `need` or `turn`.

/// Counter: texts that were embedded.
pub const TEXTS: &str = "memfleet_embedder_texts_total";
/// Counter: word pieces that were embedded.
pub const TOKENS: &str = "memfleet_embedder_tokens_total";

/// Counter: turns, pairs of turns, prompts and remembered lines that were read; lines whose vectors
/// were known are left out.
pub const READ_TEXTS: &str = "memfleet_reader_texts_total";
/// Counter: remembered lines whose vectors were known.
pub const KNOWN_LINES: &str = "memfleet_reader_known_lines_total";

/// Names of a queue and its workers in metrics, faults and logs.
pub(crate) struct QueueNames {
    /// Labels of the lane for calls and of that for background work.
    pub lanes: [&'static str; 2],
    /// Beginning of the threads' names.
    pub threads: &'static str,
    /// Name of the model in messages.
    pub model: &'static str,
    /// Reason of the fault of a full queue.
    pub overloaded: &'static str,
    /// Reason of the fault of a model that failed or has stopped.
    pub unavailable: &'static str,
    /// Counter: requests refused because the queue was full.
    pub shed: &'static str,
    /// Counter: requests dropped before they were computed because the caller had left.
    pub abandoned: &'static str,
    /// Gauge: texts that wait.
    pub queued: &'static str,
    /// Histogram: time a request waited before its computation began, in seconds.
    pub queue_seconds: &'static str,
    /// Histogram: time the model took for a batch, in seconds.
    pub inference_seconds: &'static str,
}

/// Names of the embedder.
pub(crate) const EMBEDDING: QueueNames = QueueNames {
    lanes: ["query", "passage"],
    threads: "embed",
    model: "embedding model",
    overloaded: "EMBEDDER_OVERLOADED",
    unavailable: "EMBEDDER_UNAVAILABLE",
    shed: "memfleet_embedder_shed_total",
    abandoned: "memfleet_embedder_abandoned_total",
    queued: "memfleet_embedder_queued_texts",
    queue_seconds: "memfleet_embedder_queue_duration_seconds",
    inference_seconds: "memfleet_embedder_inference_duration_seconds",
};

/// Names of the reader of turns.
pub(crate) const READING: QueueNames = QueueNames {
    lanes: ["need", "turn"],
    threads: "read",
    model: "reader of turns",
    overloaded: "READER_OVERLOADED",
    unavailable: "READER_UNAVAILABLE",
    shed: "memfleet_reader_shed_total",
    abandoned: "memfleet_reader_abandoned_total",
    queued: "memfleet_reader_queued_texts",
    queue_seconds: "memfleet_reader_queue_duration_seconds",
    inference_seconds: "memfleet_reader_inference_duration_seconds",
};
