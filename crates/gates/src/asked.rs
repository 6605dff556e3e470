//! Finder of the question of a message. Who pastes a log, a file or a mail puts it before or behind
//! it: memory is searched for the question. Told by the shape of the lines alone.

use std::borrow::Cow;
use std::collections::HashMap;

use memfleet_language::sentences;

use crate::rules::{asks, is_code, is_punctuation, is_word};

/// A message of no more bytes without a pasted line is searched for as it stands.
const SHORT: usize = 1_000;
/// Bytes of a paragraph, or of a line, that are taken as a whole.
const PARAGRAPH: usize = 400;
/// Bytes that are looked at, at the beginning and at the end of a message.
const SEEN: usize = 1 << 16;
/// So many lines of one shape come from a machine.
const REPEATED: usize = 3;
/// So many of a hundred visible characters are digits and signs in a line that no person types.
const SIGNS: usize = 25;

/// The part of a message that asks, at most `limit` bytes: the message itself where it is short and
/// nothing in it is pasted; else the paragraphs at its edges that ask, else others that ask, else
/// the edges with the beginning of what is pasted.
pub fn question(text: &str, limit: usize) -> Cow<'_, str> {
    let seen = seen(text);
    let lines = lines(&seen);
    let is_pasted = lines.iter().any(|line| line.is_pasted);
    if seen.len() <= SHORT && !is_pasted {
        return Cow::Borrowed(end(text, limit));
    }
    let paragraphs = paragraphs(&lines);
    let (Some(first), Some(last)) = (paragraphs.first(), paragraphs.last()) else {
        return Cow::Borrowed(end(text, limit));
    };
    let edges = match paragraphs.len() {
        1 => vec![first],
        _ => vec![first, last],
    };
    let asking = |paragraph: &&Paragraph<'_>| paragraph.iter().any(|line| asks(line));
    let mut chosen: Vec<&Paragraph<'_>> = edges.iter().copied().filter(asking).collect();
    if chosen.is_empty() {
        chosen.extend(paragraphs.iter().filter(asking));
    }
    let mut parts: Vec<String> = chosen.into_iter().map(|it| shortened(it)).collect();
    if parts.is_empty() {
        parts.extend(edges.into_iter().map(|it| shortened(it)));
        parts.extend(paste(&lines));
    }
    Cow::Owned(end(&parts.join("\n"), limit).to_owned())
}

/// The end of a text that is too long.
fn end(text: &str, limit: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(limit))..]
}

/// Both ends of a text.
fn seen(text: &str) -> Cow<'_, str> {
    if text.len() <= 2 * SEEN {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(SEEN)];
    Cow::Owned([head, end(text, SEEN)].join("\n"))
}

/// A line, or a sentence of a long one.
struct Line<'t> {
    text: &'t str,
    is_pasted: bool,
    /// A blank line stands before it.
    is_apart: bool,
}

type Paragraph<'t> = Vec<&'t str>;

fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let (mut is_fenced, mut is_apart) = (false, true);
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if line.trim().is_empty() {
            is_apart = true;
            continue;
        }
        let is_pasted = is_fenced || is_fence || is_quoted(line) || is_machine_made(line);
        let pieces = match line.len() > PARAGRAPH && !is_pasted {
            true => sentences(line),
            false => std::iter::once(0..line.len()).collect(),
        };
        for piece in pieces {
            let text = &line[piece];
            lines.push(Line {
                text,
                is_pasted: is_pasted || is_machine_made(text),
                is_apart,
            });
            is_apart = false;
        }
    }
    let mut shapes: HashMap<String, usize> = HashMap::new();
    let shaped: Vec<Option<String>> = lines.iter().map(|line| shape(line.text)).collect();
    for shape in shaped.iter().flatten() {
        *shapes.entry(shape.clone()).or_default() += 1;
    }
    for (line, shape) in lines.iter_mut().zip(&shaped) {
        let times = shape.as_ref().and_then(|shape| shapes.get(shape));
        line.is_pasted |= times.is_some_and(|times| *times >= REPEATED);
    }
    lines
}

/// Quoted, indented like code, or a row of a table.
fn is_quoted(line: &str) -> bool {
    line.starts_with(['\t', '>', '|']) || line.starts_with("    ")
}

/// A line of a log, a trace or a program, unless it asks.
fn is_machine_made(line: &str) -> bool {
    if asks(line) {
        return false;
    }
    let visible = line.chars().filter(|letter| !letter.is_whitespace());
    let signs = visible
        .clone()
        .filter(|&it| !is_word(it) && !is_punctuation(it) || it.is_numeric());
    is_code(line) || 100 * signs.count() >= SIGNS * visible.count()
}

/// Shape that lines share which differ in words and figures only; none of one without figures and
/// signs, as poems and lists have.
fn shape(line: &str) -> Option<String> {
    let kind = |letter: char| match letter {
        it if it.is_numeric() => '0',
        it if is_word(it) => 'a',
        it if it.is_whitespace() => ' ',
        it => it,
    };
    let mut shape: Vec<char> = line.trim().chars().map(kind).collect();
    shape.dedup();
    let is_plain = |it: &char| matches!(it, 'a' | ' ') || is_punctuation(*it);
    (!shape.iter().all(is_plain)).then(|| shape.into_iter().collect())
}

/// Lines of a person that stand together.
fn paragraphs<'t>(lines: &[Line<'t>]) -> Vec<Paragraph<'t>> {
    let mut paragraphs: Vec<Paragraph<'t>> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        match paragraphs.last_mut().filter(|_| goes_on && !line.is_apart) {
            _ if line.is_pasted => {}
            Some(paragraph) => paragraph.push(line.text),
            None => paragraphs.push(vec![line.text]),
        }
        goes_on = !line.is_pasted;
    }
    paragraphs
}

/// A paragraph; of a long one the lines that ask, else its beginning.
fn shortened(paragraph: &Paragraph<'_>) -> String {
    let whole = paragraph.join("\n");
    if whole.len() <= PARAGRAPH {
        return whole;
    }
    let asking: Vec<&str> = paragraph
        .iter()
        .copied()
        .filter(|line| asks(line))
        .collect();
    match asking.is_empty() {
        false => asking.join("\n"),
        true => whole[..whole.floor_char_boundary(PARAGRAPH)].to_owned(),
    }
}

/// The beginning of what is pasted.
fn paste(lines: &[Line<'_>]) -> Option<String> {
    let first = lines.iter().find(|line| line.is_pasted)?.text;
    Some(first[..first.floor_char_boundary(PARAGRAPH)].to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 8_192;
    const LOG: &str = "2025-03-01T12:00:01Z ERROR worker-3 connection refused to 10.0.0.7:5432\n";
    const QUESTION: &str = "Where is the safe code?";

    fn asked(text: &str) -> String {
        question(text, LIMIT).trim().to_owned()
    }

    #[test]
    fn the_question_is_found_before_and_behind_what_is_pasted() {
        let trace =
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    run()\n";
        let odd: Vec<_> = (0..40)
            .map(|number| {
                format!(
                    "[{number}] peer {}.{number} said {{retry: {number}}}\n",
                    number % 7
                )
            })
            .collect();
        let odd = odd.concat();
        let mail = "> Dear team,\n> when does the ship leave?\n> Yours, Ana\n";
        let fenced = "```\nDear team, is the ship there?\n```\n";
        for paste in [
            &*LOG.repeat(10),
            &*LOG.repeat(500),
            trace,
            &*odd,
            mail,
            fenced,
        ] {
            for text in [
                format!("{QUESTION}\n{paste}"),
                format!("{QUESTION}\n\n{paste}"),
                format!("{paste}\n\n{QUESTION}"),
                format!("{paste}{QUESTION}"),
                format!("{paste}\n{QUESTION}\n\n{paste}"),
            ] {
                assert_eq!(asked(&text), QUESTION, "{text:.200}");
            }
        }
    }

    #[test]
    fn of_what_is_too_large_to_be_read_both_ends_are_looked_at() {
        let paste = LOG.repeat(5_000);
        for text in [
            format!("{QUESTION}\n{paste}"),
            format!("{paste}\n{QUESTION}"),
        ] {
            assert_eq!(asked(&text), QUESTION);
        }
    }

    #[test]
    fn a_question_keeps_the_lines_that_it_stands_with() {
        let said = "I met Ana at the harbour.\nWhat was her address?";
        assert_eq!(asked(&format!("{said}\n{}", LOG.repeat(20))), said);
        let chinese = "保险箱的密码在哪里？";
        assert_eq!(asked(&format!("{}{chinese}", LOG.repeat(20))), chinese);
    }

    #[test]
    fn of_a_long_text_the_edge_that_asks_is_searched_for() {
        let letter = "Dear team, is the ship there yet? We wait for it. It rains.\n\n".repeat(60);
        assert_eq!(
            asked(&format!("{letter}{QUESTION}")).lines().last(),
            Some(QUESTION)
        );
        let line = "It rained for days and the ship did not leave. ".repeat(60);
        assert_eq!(asked(&format!("{line}{QUESTION}")), QUESTION);
    }

    #[test]
    fn a_short_message_without_a_paste_stays_as_it_is() {
        for text in [
            QUESTION,
            "I live in Rome.\n\nI work at Initech. Who is my boss?",
            "- milk\n- bread\n- eggs",
            "https://a.example/?q=1",
            "555 1234",
            "",
        ] {
            assert_eq!(question(text, LIMIT), text);
        }
    }

    #[test]
    fn what_asks_nothing_is_searched_for_with_the_beginning_of_its_paste() {
        let text = format!("Fix this please.\n{}", LOG.repeat(300));
        assert_eq!(
            asked(&text),
            format!("Fix this please.\n{}", LOG.trim_end())
        );
        let logs = LOG.repeat(300);
        assert_eq!(question(&logs, 100), &logs[logs.len() - 100..]);
    }

    proptest! {
        #[test]
        fn any_message_gives_at_most_so_much(text in "(\\PC|\n|\\?| ){0,200}", times in 1_usize..400, limit in 1_usize..2_000) {
            prop_assert!(question(&text.repeat(times), limit).len() <= limit);
        }
    }
}
