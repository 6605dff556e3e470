//! How large the parts of a request may be, as the protos document them. Lengths count bytes of UTF-8.

use std::time::Duration;

/// Turns of one `Remember`.
pub const TURNS: usize = 1_000;
/// Text of a turn or a message.
pub const TEXT: usize = 65_536;
/// Media of a turn.
pub const MEDIA: usize = 16;
/// `Media.uri`.
pub const URI: usize = 2_048;
/// `Media.mime_type`.
pub const MIME_TYPE: usize = 255;
/// `Media.caption`.
pub const CAPTION: usize = 4_096;
/// Labels of a turn or a filter.
pub const METADATA: usize = 32;
/// Key of a label.
pub const METADATA_KEY: usize = 64;
/// Value of a label.
pub const METADATA_VALUE: usize = 512;
/// Echoes of a turn.
pub const ECHOES: usize = memfleet_domain::turn::ECHOES;
/// Text of a query.
pub const QUERY: usize = 8_192;
/// Spaces of a query.
pub const SPACES: usize = 64;
/// Values of one condition of a filter, ids of a `Get`, dead letters of a replay.
pub const VALUES: usize = 1_000;
/// Consistency tokens of a read.
pub const WAIT_FOR: usize = 100;
/// Hits of a `Recall`, candidates of an `Assemble`.
pub const K: u32 = 1_000;
/// Turns that an `Answer` looks at.
pub const EVIDENCE: u32 = 100;
/// Neighbours on each side of a hit.
pub const NEIGHBOURS: u32 = 10;
/// Hits and their neighbours together: all of them are read at once.
pub const SHOWN: u32 = 5_000;
/// Items of a page.
pub const PAGE: u32 = 1_000;
/// `page_token`.
pub const PAGE_TOKEN: usize = 1_024;
/// Messages of an `Assemble`.
pub const MESSAGES: usize = 1_000;
/// Budget of an `Assemble`, in tokens.
pub const BUDGET_TOKENS: u32 = 1_000_000;
/// Name of a tokenizer.
pub const TOKENIZER: usize = 64;
/// Texts of a `CountTokens`.
pub const COUNTED_TEXTS: usize = 1_000;
/// One text of a `CountTokens`.
pub const COUNTED_TEXT: usize = 1_048_576;
/// `SpaceSettings.language`.
pub const LANGUAGE: usize = 16;
/// `SpaceSettings.retention_days` and `SpaceSettings.retention_superseded_days`.
pub const RETENTION_DAYS: u32 = 36_525;
/// `SpaceSettings.retention_turns`.
pub const RETENTION_TURNS: u32 = 1_000_000_000;
/// `SetLegalHoldRequest.reason`.
pub const HOLD_REASON: usize = 512;
/// Texts of one call to the embedder.
pub const EMBEDDED_TEXTS: usize = 1_000;
/// Turns, or pairs of turns, of one call to the reader of turns.
pub const READ_TURNS: usize = 1_000;
/// Statements of a turn that are compared.
pub const STATEMENTS: usize = 1_000;
/// Lines of one call to the reader of turns.
pub const NEED_LINES: usize = 1_000;
/// Rights of a key.
pub const RIGHTS: usize = 8;
/// `Key.label`.
pub const LABEL: usize = 128;
/// `RotateKeyRequest.grace`.
pub const GRACE: Duration = Duration::from_hours(90 * 24);
/// Name of a subject, key of an attribute.
pub const SUBJECT: usize = 256;
/// Pairs of names that a caller's word is about, and turns that name them.
pub const NAMINGS: usize = 1_000;
/// Triplets of a path.
pub const HOPS: u32 = 3;
/// Paths of an answer.
pub const PATHS: u32 = 100;
/// Narratives that a block is of.
pub const NARRATIVES: usize = 16;
/// `UpdateRequest.text`.
pub const FACT: usize = 4_000;
/// Name of a model.
pub const MODEL: usize = 256;
/// Name of a tool.
pub const TOOL_NAME: usize = 256;
/// `ExecuteToolRequest.call_id`.
pub const CALL_ID: usize = 256;
/// Candidates that a caller brings.
pub const CANDIDATES: usize = 5_000;
/// Id or source of such a candidate.
pub const CANDIDATE_NAME: usize = 256;
/// Bytes of a nonce.
pub const NONCE: usize = 64;

/// Bytes of what callers decided about one fact or naming, in a record of an export.
pub const DECIDED_BYTES: usize = 16 << 20;
