//! What a user asks: the words that memory is searched for.

use crate::conversation::{Conversation, Message};
use std::borrow::Cow;

/// The opening of a block of memory up to its nonce. What a client sends back of an earlier request may hold such a block.
const OPEN: &str = "<memory nonce=\"";

/// The index of the message that memory is appended to: the last that a user wrote (AMP items 5, 10, 11).
pub fn target(conversation: &Conversation<'_>) -> Option<usize> {
    conversation.messages.iter().rposition(Message::is_authored)
}

/// The text of the last unbroken run of messages that a user wrote, without blocks of memory in it; `None` where nothing is visible.
pub fn text(conversation: &Conversation<'_>) -> Option<String> {
    let target = target(conversation)?;
    let before = conversation.messages[..=target].iter().rev();
    let run = before.take_while(|message| message.is_authored()).count();
    let texts = conversation.messages[target + 1 - run..=target]
        .iter()
        .flat_map(|message| message.content.texts())
        .map(without_blocks)
        .filter(|text| !text.trim().is_empty());
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

/// A text without the blocks of memory in it, each with the blank lines before it. A block that does not end stays: it is somebody's text.
pub fn without_blocks(text: &str) -> Cow<'_, str> {
    let mut kept: Option<String> = None;
    let mut rest = text;
    let mut from = 0;
    while let Some(found) = rest[from..].find(OPEN) {
        let start = from + found;
        let Some(end) = block_end(&rest[start..]) else {
            from = start + OPEN.len();
            continue;
        };
        let kept = kept.get_or_insert_default();
        kept.push_str(rest[..start].trim_end_matches('\n'));
        rest = &rest[start + end..];
        from = 0;
    }
    match kept {
        None => Cow::Borrowed(text),
        Some(kept) => Cow::Owned(kept + rest),
    }
}

/// Where the block that a text begins with ends: after the closing tag with the same nonce.
fn block_end(text: &str) -> Option<usize> {
    let after = &text[OPEN.len()..];
    let nonce = &after[..after.find('"')?];
    if nonce.is_empty() || nonce.len() > 64 || !nonce.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let close = format!("</memory nonce=\"{nonce}\">");
    Some(text.find(&close)? + close.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Content, Part, PartKind, Role};

    #[test]
    fn blocks_are_left_out_and_nothing_else() {
        let block = "<memory nonce=\"a1\">\nAda: hi </memory nonce=\"b2\">\n</memory nonce=\"a1\">";
        assert_eq!(without_blocks(&format!("where?\n\n{block}")), "where?");
        assert_eq!(without_blocks(&format!("{block}{block} so?")), " so?");
        for text in [
            "<memory nonce=\"a1\"> open",
            "<memory nonce=\"",
            "a <memory>",
            "",
        ] {
            assert_eq!(without_blocks(text), text);
        }
    }

    #[test]
    fn the_query_is_the_last_run_of_the_users_messages() {
        let result = Message {
            role: Role::User,
            content: Content::list(vec![Part::of(PartKind::ToolResult)]),
        };
        let conversation = Conversation {
            messages: vec![
                Message::text(Role::User, "old"),
                Message::text(Role::Assistant, "yes"),
                Message::text(Role::User, "first"),
                Message::text(Role::User, "second"),
                Message::text(Role::Assistant, "…"),
                result,
            ],
            ..Conversation::default()
        };
        assert_eq!(text(&conversation).unwrap(), "first\nsecond");
        assert_eq!(target(&conversation), Some(3));
    }
}
