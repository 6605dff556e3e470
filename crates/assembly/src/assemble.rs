//! The whole way: choose, render, count as a whole, and give up the least until the budget holds.

use crate::block::{Block, Empty, Item, LeftOut, Reason, Trace};
use crate::candidate::Candidate;
use crate::options::Options;
use crate::render::{self, Line};
use crate::selection::{Chosen, Fitting, Selection};

/// Chooses and renders the memory that belongs in a prompt.
///
/// The same candidates in any order, with the same options, give the same text. `Block::tokens` is the count of the whole text, and
/// `Block::added_tokens` what the text before it grows by; neither ever exceeds the budget.
pub fn assemble(candidates: &[Candidate<'_>], options: &Options<'_>) -> Block {
    if options.budget_tokens == 0 {
        return without_budget(candidates, options);
    }
    let mut selection = Selection::of(candidates, options);
    let mut least = 0;
    while !selection.chosen.is_empty() {
        let mut shown: Vec<Shown<'_>> = selection
            .chosen
            .iter()
            .map(|chosen| Shown::new(chosen, candidates, &selection))
            .collect();
        let text = render::block(&mut shown, options);
        let (tokens, added_tokens) = count(&text, options);
        let excess = tokens
            .max(added_tokens)
            .saturating_sub(options.budget_tokens);
        if excess == 0 {
            return Block {
                items: items(&shown, candidates, options),
                text,
                tokens,
                added_tokens,
                left_out: in_rank_order(&mut selection),
                trace: selection.trace,
            };
        }
        // Twice as much at every further attempt: a block is counted a few times, however odd its tokens.
        least = excess.max(least * 2);
        give_up(&mut selection, least);
    }
    let left_out = in_rank_order(&mut selection);
    nothing(left_out, selection.trace)
}

fn without_budget(candidates: &[Candidate<'_>], options: &Options<'_>) -> Block {
    let ranking = crate::ranking::Ranking::of(candidates, options);
    let mut all: Vec<usize> = (0..candidates.len()).collect();
    all.sort_by_key(|&index| ranking.place(index));
    let left_out = all.into_iter().map(|candidate| LeftOut {
        candidate,
        reason: Reason::Budget,
    });
    Block {
        left_out: left_out.collect(),
        trace: Trace {
            empty: Some(Empty::BudgetZero),
            ..Trace::default()
        },
        ..Block::default()
    }
}

fn nothing(left_out: Vec<LeftOut>, trace: Trace) -> Block {
    Block {
        trace: Trace {
            empty: Some(Empty::of(&left_out)),
            ..trace
        },
        left_out,
        ..Block::default()
    }
}

/// The tokens of a block, and those that it adds to the text before it.
fn count(text: &str, options: &Options<'_>) -> (usize, usize) {
    let tokens = options.tokenizer.count(text);
    let place = options.place;
    if place.before.is_empty() && place.separator.is_empty() {
        return (tokens, tokens);
    }
    let addition = [place.separator, text].concat();
    (tokens, options.tokenizer.added(place.before, &addition))
}

/// Drops what was chosen last until that makes up for `excess` tokens: token counts of lines do not add up exactly, so the next
/// count decides.
fn give_up(selection: &mut Selection<'_>, excess: usize) {
    let mut freed = 0;
    while freed < excess
        && let Some(last) = selection.chosen.pop()
    {
        freed += last.tokens.max(1);
        selection.left_out.push(LeftOut {
            candidate: last.candidate,
            reason: Reason::Budget,
        });
    }
}

fn in_rank_order(selection: &mut Selection<'_>) -> Vec<LeftOut> {
    let mut left_out = std::mem::take(&mut selection.left_out);
    left_out.sort_by_key(|left| selection.ranking.place(left.candidate));
    left_out
}

fn items(shown: &[Shown<'_>], candidates: &[Candidate<'_>], options: &Options<'_>) -> Vec<Item> {
    let fitting = Fitting::new(candidates, options);
    let item = |(at, shown): (usize, &Shown<'_>)| {
        let chosen = shown.chosen;
        let mut item = Item {
            candidate: chosen.candidate,
            key: at as u32 + 1,
            rank: shown.line.rank,
            extent: chosen.extent.clone(),
            tokens: chosen.tokens,
            original_tokens: chosen.tokens,
            merged: chosen.merged.clone(),
        };
        if item.truncated() {
            let whole = fitting.whole(chosen.candidate);
            item.original_tokens = whole.map_or(item.tokens, |whole| whole.tokens);
        }
        item
    };
    shown.iter().enumerate().map(item).collect()
}

/// A chosen item with its line.
struct Shown<'c> {
    chosen: &'c Chosen,
    line: Line<'c>,
}

impl<'c> Shown<'c> {
    fn new(chosen: &'c Chosen, candidates: &'c [Candidate<'c>], selection: &Selection<'_>) -> Self {
        Self {
            chosen,
            line: Line {
                candidate: &candidates[chosen.candidate],
                text: &chosen.line,
                rank: selection.ranking.place(chosen.candidate),
            },
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
