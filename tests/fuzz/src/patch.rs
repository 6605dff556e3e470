//! Requests with memory in them: what an edit names is changed, and every other byte is what it was.

use memfleet_provider::placement::{Profile, Strategy, place};
use memfleet_provider::{Edit, Format, Request};

use crate::choices::Choices;

/// The number of a format, one of a strategy and one of a message; a block, a separator and a body.
pub fn patch(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let format = choices.one(Format::ALL);
    let strategy = choices.one(&[Strategy::Append, Strategy::System, Strategy::Tool]);
    let message = choices.number();
    let block = choices.part().unwrap_or_default();
    let (Ok(block), Ok(request)) = (
        std::str::from_utf8(block),
        Request::parse(format, choices.rest()),
    ) else {
        return;
    };
    placed(&request, choices.rest(), strategy, block);
    driven(&request, message, block);
}

/// What an edit plan does.
fn placed(request: &Request<'_>, body: &[u8], strategy: Strategy, block: &str) {
    let format = request.format();
    let conversation = request.conversation();
    let Ok(placement) = place(conversation, &[strategy], Profile::default(), true) else {
        return;
    };
    let edits = placement.edits(Some(format), block);
    let after = request.apply(&edits).expect("a placement can be made");
    assert!(
        only_gained(body, &after),
        "{}",
        String::from_utf8_lossy(&after)
    );
    let reread = Request::parse(format, &after).expect("a patched request is one");
    let expected = conversation
        .edited(Some(format), &edits)
        .expect("an edit of bytes is one of messages");
    let reread = reread.conversation();
    assert_eq!(reread.messages, expected.messages);
    assert_eq!(reread.system, expected.system);
    assert_eq!(reread.tools.len(), expected.tools.len());
    assert_eq!(reread.hints, expected.hints);
}

/// What whoever drives the calls of a model does: whatever can be done leaves a request.
fn driven(request: &Request<'_>, at: usize, text: &str) {
    let format = request.format();
    let message = match format {
        Format::Gemini => r#"{"role":"user","parts":[{"text":"new"}]}"#,
        _ => r#"{"role":"user","content":"new"}"#,
    };
    let part = match format {
        Format::Gemini => r#"{"text":"new"}"#,
        Format::OpenaiResponses => r#"{"type":"input_text","text":"new"}"#,
        _ => r#"{"type":"text","text":"new"}"#,
    };
    let messages = vec![message.to_owned(); at % 3];
    let index = at / 3;
    let tool = request.conversation().tools.first();
    let single = [
        Some(Edit::InsertMessages {
            at: index,
            messages: messages.clone(),
        }),
        Some(Edit::ReplaceMessage {
            at: index,
            messages,
        }),
        Some(Edit::PrependParts {
            message: index,
            parts: vec![part.to_owned(); at % 3],
        }),
        Some(Edit::InsertSystem {
            text: text.to_owned(),
        }),
        Some(Edit::ForbidTools),
        tool.map(|tool| Edit::RemoveTool {
            name: tool.name.clone().into_owned(),
        }),
    ];
    let single: Vec<Edit> = single.into_iter().flatten().collect();
    for edits in single.iter().map(std::slice::from_ref).chain([&*single]) {
        if let Ok(after) = request.apply(edits) {
            let read = Request::parse(format, &after);
            assert!(
                read.is_ok(),
                "{edits:?}: {}",
                String::from_utf8_lossy(&after)
            );
        }
    }
}

/// Whether something was put in and nothing else changed, except that one `null` may have given way.
fn only_gained(before: &[u8], after: &[u8]) -> bool {
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let rest = &before[same..];
    let without_null = rest.strip_prefix(b"null").unwrap_or(rest);
    let after = &after[same..];
    after.ends_with(rest) || after.ends_with(without_null)
}
