//! What the shell knows of one call: its id and how long it may take. Handlers find both in the request's extensions.

use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap};
use memfleet_trace::REQUEST_ID;
use tokio::time::Instant;
use uuid::Uuid;

use super::Options;

/// Longest id that is taken from a caller, in bytes.
const MAX_REQUEST_ID: usize = 128;

/// Name of a call: the caller's `x-request-id` if it sends a usable one, else a new UUID. It is in every log line of the
/// call and in the answer's headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// The caller's id, or a new one when it sent none that is safe to log.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let given = headers
            .get(REQUEST_ID)
            .and_then(|value| value.to_str().ok());
        let usable = given.filter(|id| {
            (1..=MAX_REQUEST_ID).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_graphic())
        });
        Self(usable.map_or_else(|| Uuid::now_v7().to_string().into(), Into::into))
    }
}

/// When a single call's answer is due. Handlers pass on what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

impl Deadline {
    /// The one of the call with these extensions; none of a stream without a deadline of its caller.
    pub fn of(extensions: &Extensions) -> Option<Instant> {
        extensions.get::<Self>().map(|deadline| deadline.0)
    }

    /// What is left; zero once it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }
}

/// How long the call may take: what the caller asks up to the limit, else the default. A stream without a deadline of
/// its caller has none.
pub(super) fn allowance(
    headers: &HeaderMap,
    streaming: bool,
    options: &Options,
) -> Option<Duration> {
    let asked = headers
        .get("grpc-timeout")
        .and_then(|value| grpc_timeout(value.to_str().ok()?));
    match (asked, streaming) {
        (Some(asked), true) => Some(less_travel(asked)),
        (Some(asked), false) => Some(less_travel(asked).min(options.max_deadline.get())),
        (None, true) => None,
        (None, false) => Some(options.default_deadline.get()),
    }
}

/// Leaves the answer time to travel: an answer that arrives after the caller gave up is of no use to it.
fn less_travel(asked: Duration) -> Duration {
    asked.saturating_sub((asked / 10).clamp(Duration::from_millis(2), Duration::from_millis(20)))
}

/// Reads the header's form: up to eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = plain.then(|| digits.parse().ok())??;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn a_usable_request_id_is_kept_and_any_other_replaced() {
        assert_eq!(
            &*RequestId::of(&headers(REQUEST_ID, "trace-7")).0,
            "trace-7"
        );
        for unusable in ["", "two words", &"x".repeat(200)] {
            assert!(Uuid::parse_str(&RequestId::of(&headers(REQUEST_ID, unusable)).0).is_ok());
        }
    }

    #[test]
    fn callers_deadlines_are_honoured_up_to_the_limit() {
        let options = Options::default();
        let allowed = |value| allowance(&headers("grpc-timeout", value), false, &options);
        assert_eq!(allowed("5S"), Some(Duration::from_millis(4980)));
        assert_eq!(allowed("1m"), Some(Duration::ZERO));
        assert_eq!(allowed("9H"), Some(options.max_deadline.get()));
        assert_eq!(allowed("nonsense"), Some(options.default_deadline.get()));
    }

    #[test]
    fn every_unit_of_a_timeout_is_read_and_what_is_malformed_says_nothing() {
        let read = grpc_timeout;
        assert_eq!(read("2H"), Some(Duration::from_hours(2)));
        assert_eq!(read("2M"), Some(Duration::from_mins(2)));
        assert_eq!(read("2S"), Some(Duration::from_secs(2)));
        assert_eq!(read("2m"), Some(Duration::from_millis(2)));
        assert_eq!(read("2u"), Some(Duration::from_micros(2)));
        assert_eq!(read("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for malformed in ["", "S", "5", "-1S", "123456789S", "5x", "1.5S"] {
            assert_eq!(read(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn only_single_calls_get_a_deadline_by_default() {
        let options = Options::default();
        assert_eq!(
            allowance(&HeaderMap::new(), false, &options),
            Some(options.default_deadline.get())
        );
        assert_eq!(allowance(&HeaderMap::new(), true, &options), None);
    }

    proptest! {
        #[test]
        fn any_header_is_read_without_a_panic(text in ".{0,12}") {
            let _ = grpc_timeout(&text);
        }
    }
}
