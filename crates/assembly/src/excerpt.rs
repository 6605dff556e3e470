//! Excerpts: the most relevant sentences of a long turn, in their order, within a number of tokens.

use crate::candidate::Candidate;
use crate::tokenizer::Tokenizer;
use memfleet_language::{passages, sentences};
use std::cell::OnceCell;
use std::ops::Range;

/// Stands for what was left out.
pub(crate) const MARKER: &str = "[…]";
/// The tokens a marker is reckoned at; the excerpt is counted as a whole by the caller.
const MARKER_TOKENS: usize = 4;
/// Sentences are cut at word bounds into units of at most this many characters.
const UNIT_CHARS: usize = 300;

/// A piece of text that is shown or left out as one; its tokens are counted when it is considered.
struct Unit {
    range: Range<usize>,
    score: f32,
    tokens: OnceCell<usize>,
}

/// A turn in pieces; cut once, excerpted for any size.
pub(crate) struct Pieces<'a> {
    text: &'a str,
    tokenizer: &'a Tokenizer,
    units: Vec<Unit>,
}

impl<'a> Pieces<'a> {
    /// The pieces of a turn; `None` where its sentences have no scores, or there is nothing to choose.
    pub(crate) fn of(candidate: &Candidate<'a>, tokenizer: &'a Tokenizer) -> Option<Self> {
        let scores = candidate.sentence_scores?;
        let text = candidate.text;
        let sentences = sentences(text);
        if sentences.len() != scores.len() {
            return None;
        }
        let mut units = Vec::with_capacity(sentences.len());
        for (sentence, &score) in sentences.into_iter().zip(scores) {
            // Adding 0 makes −0, which sorts before 0, the same as 0.
            let score = if score.is_nan() {
                f32::NEG_INFINITY
            } else {
                score + 0.0
            };
            for part in passages(&text[sentence.clone()], UNIT_CHARS) {
                let range = sentence.start + part.start..sentence.start + part.end;
                units.push(Unit {
                    range,
                    score,
                    tokens: OnceCell::new(),
                });
            }
        }
        (units.len() > 1).then_some(Self {
            text,
            tokenizer,
            units,
        })
    }

    /// The bytes to show in about `room` tokens, markers included: the best pieces until one does not fit, joined where they
    /// adjoin. Empty if none fits.
    pub(crate) fn choose(&self, room: usize) -> Vec<Range<usize>> {
        let mut chosen = vec![false; self.units.len()];
        // One marker is certain; a piece that adjoins no other brings one more.
        let mut used = MARKER_TOKENS;
        for index in self.by_relevance() {
            let adjoins = (index > 0 && chosen[index - 1]) || chosen.get(index + 1) == Some(&true);
            let tokens = self.tokens(index) + if adjoins { 0 } else { MARKER_TOKENS };
            if used + tokens <= room {
                used += tokens;
                chosen[index] = true;
            } else if chosen.contains(&true) {
                // Smaller pieces behind it say less, and would fray the excerpt.
                break;
            }
        }
        let shown = self
            .units
            .iter()
            .zip(&chosen)
            .filter(|(_, chosen)| **chosen);
        let ranges = join(shown.map(|(unit, _)| unit.range.clone()));
        let blank = ranges
            .iter()
            .all(|range| self.text[range.clone()].trim().is_empty());
        if blank { Vec::new() } else { ranges }
    }

    fn tokens(&self, index: usize) -> usize {
        let unit = &self.units[index];
        *unit
            .tokens
            .get_or_init(|| self.tokenizer.count(&self.text[unit.range.clone()]) + 1)
    }

    /// The pieces, best first; of equals the nearer to the best, so that an excerpt hangs together.
    fn by_relevance(&self) -> Vec<usize> {
        let score = |index: usize| self.units[index].score;
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by(|&left, &right| score(right).total_cmp(&score(left)));
        let Some(&best) = order.first() else {
            return order;
        };
        order.sort_by(|&left, &right| {
            let nearer = left.abs_diff(best).cmp(&right.abs_diff(best));
            score(right).total_cmp(&score(left)).then(nearer)
        });
        order
    }
}

/// Joins ranges that adjoin.
fn join(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}

/// The text of an excerpt, with a marker for every part that was left out. A code fence that it opens is closed.
pub(crate) fn text(text: &str, ranges: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut end = 0;
    for range in ranges {
        if !text[end..range.start].trim().is_empty() {
            out.push_str(MARKER);
            out.push(' ');
        }
        out.push_str(text[range.clone()].trim_end());
        out.push(' ');
        end = range.end;
    }
    let open_fence = open_fence(&out);
    if !text[end..].trim().is_empty() {
        out.push_str(MARKER);
    }
    if let Some(fence) = open_fence {
        out.push('\n');
        out.push_str(&fence);
    }
    out
}

/// The fence that closes a block of code that a text leaves open.
fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<(char, usize)> = None;
    for line in text.lines() {
        let line = line.trim_start();
        let Some(sign) = line.chars().next().filter(|sign| matches!(sign, '`' | '~')) else {
            continue;
        };
        let length = line.chars().take_while(|letter| *letter == sign).count();
        open = match open {
            None if length >= 3 => Some((sign, length)),
            Some((opened, least)) if opened == sign && length >= least => None,
            other => other,
        };
    }
    open.map(|(sign, length)| sign.to_string().repeat(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "One dog barks. Two cats sleep. Three birds sing. Four fish swim.";

    fn candidate(scores: &[f32]) -> Candidate<'_> {
        Candidate {
            speaker: "A",
            text: TEXT,
            sentence_scores: Some(scores),
            ..Candidate::default()
        }
    }

    #[test]
    fn the_best_sentences_are_kept_in_order_with_markers_for_the_rest() {
        let bytes = Tokenizer::named("bytes").unwrap();
        let pieces = Pieces::of(&candidate(&[0.0, 3.0, 0.0, 2.0]), &bytes).unwrap();
        assert_eq!(
            text(TEXT, &pieces.choose(50)).trim(),
            "[…] Two cats sleep. […] Four fish swim."
        );
        assert_eq!(
            text(TEXT, &pieces.choose(30)).trim(),
            "[…] Two cats sleep. […]"
        );
        assert!(pieces.choose(10).is_empty());
    }

    #[test]
    fn amp_073_a_code_fence_that_an_excerpt_opens_is_closed() {
        let code = "Look:\n```rust\nlet a = 1;\nlet b = 2;\n```\nDone.";
        let cut = code.find("let b").unwrap();
        let beginning = |end: usize| text(code, std::slice::from_ref(&(0..end)));
        assert!(beginning(cut).ends_with("let a = 1; […]\n```"));
        assert!(!beginning(code.len() - 5).ends_with("```"));
        assert_eq!(open_fence("~~~~\n```\n~~~"), Some("~~~~".to_owned()));
    }

    #[test]
    fn without_a_score_for_every_sentence_nothing_is_cut() {
        let bytes = Tokenizer::named("bytes").unwrap();
        assert!(Pieces::of(&candidate(&[1.0]), &bytes).is_none());
        let unscored = Candidate {
            sentence_scores: None,
            ..candidate(&[])
        };
        assert!(Pieces::of(&unscored, &bytes).is_none());
    }
}
