//! The whole way: choose, render, count as a whole, and give up the least until the budget holds.

use crate::block::{Block, Item, LeftOut, Reason};
use crate::candidate::Candidate;
use crate::options::Options;
use crate::render::{self, Line};
use crate::selection::{Chosen, Selection};

/// Chooses and renders the memory that belongs in a prompt.
///
/// The same candidates in any order, with the same options, give the same text. `Block::tokens` is the count of the whole text and
/// never exceeds the budget.
pub fn assemble(candidates: &[Candidate<'_>], options: &Options<'_>) -> Block {
    if options.budget_tokens == 0 {
        return Block {
            left_out: all_left_out(candidates),
            ..Block::default()
        };
    }
    let Selection {
        mut chosen,
        mut left_out,
        ..
    } = Selection::of(candidates, options);
    let mut dropped = Vec::new();
    while !chosen.is_empty() {
        let mut shown: Vec<Shown<'_>> = chosen
            .iter()
            .map(|chosen| Shown::new(chosen, candidates))
            .collect();
        let text = render::block(&mut shown, options);
        let tokens = options.tokenizer.count(&text);
        if tokens <= options.budget_tokens {
            let items = shown.iter().map(Shown::item).collect();
            dropped.append(&mut left_out);
            dropped.sort_by(|left, right| {
                candidates[left.candidate].by_rank(&candidates[right.candidate])
            });
            return Block {
                text,
                tokens,
                items,
                left_out: dropped,
            };
        }
        give_up(&mut chosen, &mut dropped, tokens - options.budget_tokens);
    }
    dropped.append(&mut left_out);
    dropped.sort_by(|left, right| candidates[left.candidate].by_rank(&candidates[right.candidate]));
    Block {
        left_out: dropped,
        ..Block::default()
    }
}

/// Drops the chosen of the lowest ranks that make up for `excess` tokens: token counts of lines do not add up exactly, so the next
/// count decides.
fn give_up(chosen: &mut Vec<Chosen>, dropped: &mut Vec<LeftOut>, excess: usize) {
    let mut freed = 0;
    while freed < excess
        && let Some(last) = chosen.pop()
    {
        freed += last.tokens.max(1);
        dropped.push(LeftOut {
            candidate: last.candidate,
            reason: Reason::Budget,
        });
    }
}

fn all_left_out(candidates: &[Candidate<'_>]) -> Vec<LeftOut> {
    let mut all: Vec<usize> = (0..candidates.len()).collect();
    all.sort_by(|&left, &right| candidates[left].by_rank(&candidates[right]));
    all.into_iter()
        .map(|candidate| LeftOut {
            candidate,
            reason: Reason::Budget,
        })
        .collect()
}

/// A chosen turn with its line.
struct Shown<'c> {
    chosen: &'c Chosen,
    line: Line<'c>,
}

impl<'c> Shown<'c> {
    fn new(chosen: &'c Chosen, candidates: &'c [Candidate<'c>]) -> Self {
        Self {
            chosen,
            line: Line {
                candidate: &candidates[chosen.candidate],
                text: &chosen.line,
            },
        }
    }

    fn item(&self) -> Item {
        Item {
            candidate: self.chosen.candidate,
            extent: self.chosen.extent.clone(),
            tokens: self.chosen.tokens,
        }
    }
}

impl<'c> AsRef<Line<'c>> for Shown<'c> {
    fn as_ref(&self) -> &Line<'c> {
        &self.line
    }
}

#[cfg(test)]
mod tests;
