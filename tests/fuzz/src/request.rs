//! Requests of providers: any bytes are read or refused, and what is read is what stands there.

use memfleet_provider::session::{Transcript, asked, derived_id, given};
use memfleet_provider::{Format, Request, query};
use serde::de::IgnoredAny;

use crate::choices::Choices;

/// The number of a format, then a body.
pub fn request(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let format = choices.one(Format::ALL);
    let body = choices.rest();
    let Ok(request) = Request::parse(format, body) else {
        return;
    };
    let conversation = request.conversation();
    let untouched = request
        .apply(&[])
        .expect("no edit is in the way of another");
    assert_eq!(untouched, body);
    assert!(serde_json::from_slice::<IgnoredAny>(body).is_ok());

    let target = query::target(conversation);
    assert!(target.is_none_or(|index| conversation.messages[index].is_authored()));
    assert!(query::text(conversation).is_none_or(|text| !text.trim().is_empty()));
    assert!(target.is_some() || asked(conversation).is_empty());
    assert!(given(None, conversation).is_none_or(|(id, _)| !id.trim().is_empty()));
    let transcript = Transcript::of(&conversation.messages);
    let id = |owner| derived_id(&[owner], &transcript, "");
    assert_eq!(id("a"), id("a"));
    assert_ne!(id("a"), id("b"));
}
