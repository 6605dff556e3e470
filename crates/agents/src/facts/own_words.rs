//! The words of a message that are its speaker's own. Quoted, pasted and dictated text is masked: it has
//! the grammar of a statement and states nothing about whoever sent it.

use std::ops::Range;

/// Quotation marks that open a passage, each with the marks that close it.
const QUOTATION_MARKS: [(char, &[char]); 9] = [
    ('"', &['"']),
    ('“', &['”', '"']),
    ('„', &['“', '”', '"']),
    ('«', &['»']),
    ('»', &['«']),
    ('‹', &['›']),
    ('「', &['」']),
    ('『', &['』']),
    ('`', &['`']),
];

/// Longest label of a line ("From: …", "Mentor, 10:02: …"), in characters.
const MAX_LABEL_CHARS: usize = 40;

/// A message with everything masked by spaces that is quoted, or stands behind a colon; bytes keep
/// their places. Absent where the message has the shape of something pasted: several paragraphs, code,
/// quoted lines, a log, a mail or a chat with labels.
pub fn own_words(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    let is_pasted = lines
        .iter()
        .any(|line| line.is_empty() || is_foreign_line(line))
        || lines.len() > 1 && lines.iter().filter(|line| has_label(line)).count() > 1;
    (!is_pasted).then(|| mask(text))
}

/// Whether a line is marked as a quotation, as code, or with the time of a log.
fn is_foreign_line(line: &str) -> bool {
    let first_word = line.split_whitespace().next().unwrap_or_default();
    let is_stamp = {
        let stamp = first_word.trim_matches(['[', ']', '(', ')', ',']);
        let mut parts = stamp.split([':', '-', '/', '.', 'T']);
        let is_number =
            |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
        parts
            .by_ref()
            .take(2)
            .filter(|part| is_number(part))
            .count()
            == 2
    };
    line.starts_with(['>', '|', '#', '<', '{', '}', '$'])
        || line.starts_with("```")
        || line.starts_with("~~~")
        || line.starts_with("//")
        || line.ends_with([';', '{'])
        || is_stamp
}

/// Whether a line begins with a short label and a colon.
fn has_label(line: &str) -> bool {
    let label = line
        .find(": ")
        .or_else(|| line.ends_with(':').then(|| line.len() - 1));
    label.is_some_and(|end| line[..end].chars().count() <= MAX_LABEL_CHARS)
}

fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for foreign in foreign_ranges(text) {
        masked.push_str(&text[masked.len()..foreign.start]);
        masked.extend(std::iter::repeat_n(' ', foreign.len()));
    }
    masked.push_str(&text[masked.len()..]);
    masked
}

/// The quoted passages in order, and all behind a colon that introduces something. A quotation that
/// is not closed goes on to the end.
fn foreign_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut open: Option<(usize, &[char])> = None;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let end = at + letter.len_utf8();
        match open {
            Some((start, closing)) if closing.contains(&letter) => {
                ranges.push(start..end);
                open = None;
            }
            Some(_) => {}
            None => {
                let mut marks = QUOTATION_MARKS.iter();
                open = marks
                    .find(|(mark, _)| *mark == letter)
                    .map(|(_, closing)| (at, *closing));
                let introduces = matches!(letter, ':' | '：')
                    && letters
                        .peek()
                        .is_none_or(|(_, next)| next.is_whitespace() || letter == '：');
                if introduces {
                    ranges.push(end..text.len());
                    return ranges;
                }
            }
        }
    }
    ranges.extend(open.map(|(start, _)| start..text.len()));
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_messages_stay_as_they_are() {
        for text in [
            "I live in Ghent.",
            "I get up at 6:30 and I'm 5'10 tall.",
            "See https://example.org, I wrote it.",
        ] {
            assert_eq!(own_words(text).as_deref(), Some(text));
        }
    }

    #[test]
    fn quotations_and_introduced_text_are_masked_in_place() {
        for (text, own) in [
            (
                "She said \"I live in Rome. I like it.\" yesterday",
                "She said  yesterday",
            ),
            ("Er sagte „Ich wohne in Rom“ gestern", "Er sagte  gestern"),
            ("Translate: I live in Rome.", "Translate:"),
            ("He wrote \"I live in Rome", "He wrote"),
        ] {
            let masked = own_words(text).unwrap();
            assert_eq!(masked.len(), text.len());
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(words(&masked), words(own), "{text}");
        }
    }

    #[test]
    fn pasted_messages_have_no_own_words() {
        for text in [
            "Summarise this\n\nI live in Denver now.",
            "> I live in Rome\nHaha",
            "```\n# I live in Rome\n```\nWhy?",
            "Mentor, 10:02: I moved to Lima\nme: congrats!",
            "2025-03-01 12:00:01 ERROR worker-3 is not responding",
            "From: Dana\nTo: me\nI live in Denver",
        ] {
            assert_eq!(own_words(text), None, "{text}");
        }
    }
}
