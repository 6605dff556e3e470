//! What an operator may set about serving.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{ByteSize, HumanDuration, Problem, Validate};

/// The gRPC server of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Where calls are answered; port 0 takes a free one. Default `127.0.0.1:9460`.
    pub address: SocketAddr,
    /// Says that an address which other machines reach needs neither authentication nor encryption. Default false.
    pub insecure: bool,
    /// Says that calls may cross a network in the clear: it is private, or something before this process ends TLS. Default false.
    pub plaintext: bool,
    /// Connections at a time; one more is closed at once. Default 512.
    pub max_connections: usize,
    /// The same of one address (of the 64 bits before an IPv6 address's own), which never has more than half of what the others
    /// leave. Default 256.
    pub max_connections_per_address: usize,
    /// Time that a connection's encryption may take, and its first bytes of HTTP/2 after it. Default 5 s.
    pub handshake_timeout: HumanDuration,
    /// Largest message that is accepted. Default 16 MiB.
    pub max_request_size: ByteSize,
    /// The same for calls that bring a whole prompt, with its pictures (`Assembly`, `Capture`), where that is more. Default 32 MiB.
    pub max_prompt_size: ByteSize,
    /// Largest message that is sent; no smaller than one that is accepted. Default 64 MiB.
    pub max_response_size: ByteSize,
    /// Calls worked on at once, by callers who are known. A tenant may have half of what the others leave, each credential of it
    /// half of what the tenant's others leave of that; one more is refused at once with `RESOURCE_EXHAUSTED`. Default 512.
    pub max_concurrent_calls: usize,
    /// The same for streams, which count until they end. Default 512.
    pub max_concurrent_streams: usize,
    /// Calls at once whose caller is not known: before their authentication, and single calls of health.
    /// Streams of health and reflection have a quarter as many places of their own. An address may have half
    /// of what the others leave. Default 1024.
    pub max_unauthenticated_calls: usize,
    /// Refusals that a credential (without one an address) gets a second before they are held back,
    /// each by a quarter of a second at most; twice as many may come at once. 0 holds none back.
    /// Default 200.
    pub max_refusals_per_second: u32,
    /// Bytes of requests in progress, counted as they arrive, given out to tenants and credentials as calls are; four
    /// times the largest request where that is more, so that it has room in a credential's share. Default 512 MiB.
    pub max_request_memory: ByteSize,
    /// Time that the body of a single call may take to arrive; a second more for each 64 KiB of it. Default 10 s.
    pub request_timeout: HumanDuration,
    /// Time that a single call gets when its caller sets no deadline. Default 30 s.
    pub default_deadline: HumanDuration,
    /// Longest time that a single call gets, whatever its caller asks. Default 10 min.
    pub max_deadline: HumanDuration,
    /// Pause after which an idle connection is probed. Default 30 s.
    pub keep_alive_interval: HumanDuration,
    /// Time that a probe's answer may take before the connection is closed. Default 20 s.
    pub keep_alive_timeout: HumanDuration,
    /// How long a stream may wait for its caller to send or to take the next message; then it ends with `DEADLINE_EXCEEDED`. A
    /// stream that waits for the server is not idle. Default 5 min.
    pub stream_idle: HumanDuration,
    /// Time that open streams get to end once the process stops; then they end with `UNAVAILABLE`. Default 5 s.
    pub stream_drain: HumanDuration,
    /// The same for single calls. Default 12 s.
    pub call_drain: HumanDuration,
}

impl Options {
    /// Whether only this machine can reach the address. Serving on any other without authentication or in the clear is for the
    /// caller to refuse.
    pub fn is_local(&self) -> bool {
        self.address.ip().to_canonical().is_loopback()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 9460)),
            insecure: false,
            plaintext: false,
            max_connections: 512,
            max_connections_per_address: 256,
            handshake_timeout: HumanDuration::seconds(5),
            max_request_size: ByteSize::mebibytes(16),
            max_prompt_size: ByteSize::mebibytes(32),
            max_response_size: ByteSize::mebibytes(64),
            max_concurrent_calls: 512,
            max_concurrent_streams: 512,
            max_unauthenticated_calls: 1024,
            max_refusals_per_second: 200,
            max_request_memory: ByteSize::mebibytes(512),
            request_timeout: HumanDuration::seconds(10),
            default_deadline: HumanDuration::seconds(30),
            max_deadline: HumanDuration::seconds(600),
            keep_alive_interval: HumanDuration::seconds(30),
            keep_alive_timeout: HumanDuration::seconds(20),
            stream_idle: HumanDuration::seconds(300),
            stream_drain: HumanDuration::seconds(5),
            call_drain: HumanDuration::seconds(12),
        }
    }
}

impl Validate for Options {
    fn problems(&self) -> Vec<Problem> {
        let positive = "must be longer than 0s";
        let rules = [
            (
                "max_request_size",
                self.max_request_size < ByteSize::kibibytes(1),
                "must be at least 1KiB",
            ),
            (
                "max_response_size",
                self.max_response_size < ByteSize::kibibytes(64),
                "must be at least 64KiB: a turn comes back with more about it than it went in with",
            ),
            (
                "max_response_size",
                self.max_response_size < self.max_request_size,
                "is less than `server.max_request_size`, so that what is remembered could not be read: raise it to that at least, or lower the other",
            ),
            (
                "max_response_size",
                self.max_response_size < self.max_prompt_size,
                "is less than `server.max_prompt_size`, so that a prompt could not be given back with memory in it: raise it to that at least, or lower the other",
            ),
            (
                "max_concurrent_calls",
                self.max_concurrent_calls == 0,
                "must be at least 1",
            ),
            (
                "max_concurrent_streams",
                self.max_concurrent_streams == 0,
                "must be at least 1",
            ),
            (
                "max_connections",
                self.max_connections == 0,
                "must be at least 1",
            ),
            (
                "max_connections_per_address",
                self.max_connections_per_address == 0,
                "must be at least 1",
            ),
            (
                "handshake_timeout",
                self.handshake_timeout.get() == Duration::ZERO,
                positive,
            ),
            (
                "max_unauthenticated_calls",
                self.max_unauthenticated_calls == 0,
                "must be at least 1",
            ),
            (
                "request_timeout",
                self.request_timeout.get() == Duration::ZERO,
                positive,
            ),
            (
                "stream_idle",
                self.stream_idle.get() == Duration::ZERO,
                positive,
            ),
            (
                "default_deadline",
                self.default_deadline.get() == Duration::ZERO,
                positive,
            ),
            (
                "max_deadline",
                self.max_deadline < self.default_deadline,
                "must not be shorter than default_deadline",
            ),
            (
                "keep_alive_interval",
                self.keep_alive_interval.get() == Duration::ZERO,
                positive,
            ),
            (
                "keep_alive_timeout",
                self.keep_alive_timeout.get() == Duration::ZERO,
                positive,
            ),
        ];
        rules
            .into_iter()
            .filter(|(_, broken, _)| *broken)
            .map(|(key, _, message)| Problem::new(key, message))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_loopback() {
        assert!(Options::default().problems().is_empty());
        assert!(Options::default().is_local());
    }

    #[test]
    fn loopback_is_told_from_every_other_address() {
        let at = |address: &str| {
            Options {
                address: address.parse().unwrap(),
                ..Options::default()
            }
            .is_local()
        };
        assert!(at("127.9.9.9:1") && at("[::1]:1") && at("[::ffff:127.0.0.1]:1"));
        assert!(!at("0.0.0.0:1") && !at("[::]:1") && !at("192.168.0.1:1"));
    }

    #[test]
    fn what_may_come_in_may_go_out() {
        let options = |response| Options {
            max_request_size: ByteSize::mebibytes(8),
            max_prompt_size: ByteSize::mebibytes(8),
            max_response_size: ByteSize::mebibytes(response),
            ..Options::default()
        };
        assert_eq!(options(8).problems(), []);
        let problems = options(7).problems();
        assert_eq!(problems[0].key, "max_response_size");
        assert!(problems[0].message.contains("`server.max_request_size`"));
    }

    #[test]
    fn every_broken_rule_is_reported() {
        let options = Options {
            max_concurrent_calls: 0,
            max_deadline: HumanDuration::seconds(1),
            ..Options::default()
        };
        let keys: Vec<_> = options
            .problems()
            .into_iter()
            .map(|problem| problem.key)
            .collect();
        assert_eq!(keys, ["max_concurrent_calls", "max_deadline"]);
    }
}
