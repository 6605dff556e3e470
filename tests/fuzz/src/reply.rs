//! Replies of providers: any bytes are read or refused, and a client sees nothing of memory's tools.

use memfleet_provider::Format;
use memfleet_provider::reply::{Calls, Reply, Usage, visible, with_hidden};
use memfleet_provider::tools::Names;
use serde::de::IgnoredAny;

use crate::choices::Choices;

/// The number of a format, then a body.
pub fn reply(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let format = choices.one(Format::ALL);
    let body = choices.rest();
    let names = Names::default();
    let Ok(reply) = Reply::parse(format, body) else {
        return;
    };
    for message in &reply.messages {
        is_json(message.as_bytes());
    }
    if let Ok(seen) = visible(format, body, &names) {
        is_json(&seen);
        let seen = Reply::parse(format, &seen).expect("what a client sees is a reply");
        assert!(!matches!(
            seen.calls_of(&names),
            Calls::Memory | Calls::Mixed
        ));
        assert_eq!(seen.text, reply.text);
    }
    let hidden = Usage {
        input: 7,
        cached: 0,
        output: 3,
    };
    if let Ok(counted) = with_hidden(format, body, hidden) {
        is_json(&counted);
        let counted = Reply::parse(format, &counted).expect("a reply stays one");
        assert_eq!(counted.calls, reply.calls);
    }
}

fn is_json(bytes: &[u8]) {
    let read = serde_json::from_slice::<IgnoredAny>(bytes);
    assert!(read.is_ok(), "{}", String::from_utf8_lossy(bytes));
}
