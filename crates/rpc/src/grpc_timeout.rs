//! The `grpc-timeout` header: how long a caller waits.

use std::time::Duration;

use http::HeaderMap;

/// What the header says; `None` without one, or with one that is malformed.
pub(crate) fn read(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
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
    use super::*;

    fn header(text: &str) -> Option<Duration> {
        let name = http::HeaderName::from_static("grpc-timeout");
        read(&HeaderMap::from_iter([(name, text.parse().unwrap())]))
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(header("2H"), Some(Duration::from_hours(2)));
        assert_eq!(header("2M"), Some(Duration::from_mins(2)));
        assert_eq!(header("2S"), Some(Duration::from_secs(2)));
        assert_eq!(header("2m"), Some(Duration::from_millis(2)));
        assert_eq!(header("2u"), Some(Duration::from_micros(2)));
        assert_eq!(header("99999999n"), Some(Duration::from_nanos(99_999_999)));
    }

    #[test]
    fn a_malformed_header_says_nothing() {
        for text in ["", "S", "5", "-1S", "123456789S", "5x", "1.5S"] {
            assert_eq!(header(text), None, "{text}");
        }
        assert_eq!(read(&HeaderMap::new()), None);
    }
}
