//! What the rules of the grammar look at: the items of a text, and small questions about them.

use crate::time::lexicon::{Lexicon, Meaning, Unit, key};
use crate::time::tokens::{Kind, tokens};
use std::ops::Range;

/// A phrase with its meanings, a number, or a sign.
#[derive(Debug)]
pub(super) struct Item<'l> {
    pub(super) kind: Kind,
    pub(super) meanings: &'l [Meaning],
    pub(super) span: Range<usize>,
}

/// Looks at the items around a place.
pub(super) struct Reader<'l> {
    pub(super) items: Vec<Item<'l>>,
    pub(super) month_first: bool,
}

impl<'l> Reader<'l> {
    pub(super) fn new(text: &str, lexicon: &'l Lexicon) -> Self {
        Self {
            items: items(text, lexicon),
            month_first: lexicon.month_first,
        }
    }

    pub(super) fn meanings(&self, at: usize) -> &[Meaning] {
        self.items.get(at).map_or(&[], |item| item.meanings)
    }

    pub(super) fn means(&self, at: usize, meaning: Meaning) -> bool {
        self.meanings(at).contains(&meaning)
    }

    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.items.get(at)?.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub(super) fn month(&self, at: usize) -> Option<(u32, bool)> {
        self.meanings(at).iter().find_map(|meaning| match *meaning {
            Meaning::Month(month, everyday) => Some((month, everyday)),
            _ => None,
        })
    }

    pub(super) fn unit(&self, at: usize) -> Option<Unit> {
        self.meanings(at).iter().find_map(|meaning| match *meaning {
            Meaning::Unit(unit) => Some(unit),
            _ => None,
        })
    }

    pub(super) fn is_unit(&self, at: usize) -> bool {
        self.unit(at).is_some()
    }

    pub(super) fn shift(&self, at: usize) -> Option<(i32, usize)> {
        self.meanings(at).iter().find_map(|meaning| match *meaning {
            Meaning::Shift(shift) => Some((shift, at + 1)),
            _ => None,
        })
    }

    /// A number in digits or words.
    pub(super) fn count(&self, at: usize) -> Option<(u32, usize)> {
        if let Kind::Number { value, .. } = self.items.get(at)?.kind {
            return Some((value, at + 1));
        }
        self.meanings(at).iter().find_map(|meaning| match *meaning {
            Meaning::Number(value) => Some((value, at + 1)),
            _ => None,
        })
    }

    /// A day of the month in one or two digits, with its ordinal sign.
    pub(super) fn day(&self, at: usize) -> Option<(u32, usize)> {
        let Kind::Number {
            value: day @ 1..=31,
            digits: 1..=2,
        } = self.items.get(at)?.kind
        else {
            return None;
        };
        let ordinal = self.means(at + 1, Meaning::Ordinal)
            || matches!(self.sign(at + 1), Some('.' | 'º' | '°'));
        Some((day, at + 1 + usize::from(ordinal)))
    }

    /// The year behind a month or season, after a comma or "of", and where it ends; else where we were.
    pub(super) fn year_after(&self, at: usize) -> (Option<i32>, usize) {
        let mut year_at = self.skip_links(at);
        if matches!(self.sign(year_at), Some(',' | '.')) {
            year_at += 1;
        }
        match self.year(year_at) {
            Some(year) => (Some(year), year_at + 1),
            None => (None, at),
        }
    }

    pub(super) fn skip_links(&self, mut at: usize) -> usize {
        while self.means(at, Meaning::Link) {
            at += 1;
        }
        at
    }

    /// The end of an expression with a part of the day behind it.
    pub(super) fn part(&self, end: usize) -> usize {
        end + usize::from(self.means(end, Meaning::Part))
    }

    pub(super) fn after_preposition(&self, at: usize) -> bool {
        at > 0 && (self.means(at - 1, Meaning::Preposition) || self.means(at - 1, Meaning::Ahead))
    }
}

fn items<'l>(text: &str, lexicon: &'l Lexicon) -> Vec<Item<'l>> {
    let tokens = tokens(text);
    let keys: Vec<String> = tokens.iter().map(|token| key(&token.kind)).collect();
    let mut out = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let (length, meanings) = lexicon.longest(&keys[at..]).unwrap_or((1, &[]));
        let span = tokens[at].span.start..tokens[at + length - 1].span.end;
        out.push(Item {
            kind: tokens[at].kind.clone(),
            meanings,
            span,
        });
        at += length;
    }
    out
}
