//! What a user asks: the words that memory is searched for.

use crate::conversation::{Conversation, Message};
use std::borrow::Cow;
use std::collections::HashMap;

/// The opening of a block of memory up to its nonce. What a client sends back of an earlier request may hold such a block.
const OPEN: &str = "<memory nonce=\"";
/// The end of a block up to its nonce.
const CLOSE: &str = "</memory nonce=\"";
const LONGEST_NONCE: usize = 64;

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
    let mut openings = tags(text, OPEN).peekable();
    if openings.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let ends = ends(text);
    let mut kept = String::new();
    let mut from = 0;
    for (start, nonce) in openings.filter(|(_, nonce)| is_nonce(nonce)) {
        let Some(ends) = ends.get(nonce).filter(|_| start >= from) else {
            continue;
        };
        if let Some(end) = ends.get(ends.partition_point(|&end| end <= start)) {
            kept.push_str(text[from..start].trim_end_matches('\n'));
            from = *end;
        }
    }
    match from {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(kept + &text[from..]),
    }
}

/// Where the closing tags of each nonce end. All are looked up at once: a text may open many blocks and end none.
fn ends(text: &str) -> HashMap<&str, Vec<usize>> {
    let mut ends: HashMap<&str, Vec<usize>> = HashMap::new();
    for (start, nonce) in tags(text, CLOSE) {
        let end = start + CLOSE.len() + nonce.len();
        if text[end..].starts_with("\">") {
            ends.entry(nonce).or_default().push(end + 2);
        }
    }
    ends
}

/// Where a tag begins, and its nonce, of which no more is looked at than a nonce may have.
fn tags<'t>(text: &'t str, tag: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    text.match_indices(tag).filter_map(move |(start, _)| {
        let after = &text[start + tag.len()..];
        let end = after
            .bytes()
            .take(LONGEST_NONCE + 1)
            .position(|it| it == b'"')?;
        Some((start, &after[..end]))
    })
}

fn is_nonce(nonce: &str) -> bool {
    !nonce.is_empty() && nonce.bytes().all(|it| it.is_ascii_alphanumeric())
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
            "</memory nonce=\"a1\"> before <memory nonce=\"a1\">",
            "<memory nonce=\"é\"></memory nonce=\"é\">",
            "<memory nonce=\"\"></memory nonce=\"\">",
            "<memory nonce=\"",
            "a <memory>",
            "",
        ] {
            assert_eq!(without_blocks(text), text);
        }
    }

    #[test]
    fn blocks_that_do_not_end_cost_no_more_than_their_length() {
        let open = "<memory nonce=\"a1\">".repeat(500_000);
        assert_eq!(without_blocks(&open), open.as_str());
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
