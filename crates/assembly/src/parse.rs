//! Reading a block back: what proves that no memory can forge an item or end the block (AMP item 107).

use crate::options::Nonce;
use crate::render::{AS_OF, PROFILE, UNTRUSTED};
use crate::template::Template;

/// An item as it stands in a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedItem {
    /// The number of its key; `None` where the template shows none.
    pub key: Option<u32>,
    /// The date that it stands under.
    pub date: Option<String>,
    /// Who said it; empty where only labels stand there.
    pub speaker: String,
    /// What stands in brackets.
    pub labels: Vec<String>,
    /// What became of it, as it stands in parentheses.
    pub mark: Option<String>,
    /// Whether it stands in the section of what tools and the web say.
    pub segregated: bool,
    /// True for a line of the section *who this is*; its mark is then the day.
    pub profile: bool,
    /// Its text, without indentation and marks of the block.
    pub text: String,
}

/// The items of a block, or of its section *who this is*, which has a nonce of its own. What has a
/// nonce may stand anywhere in a text; else the block is all of it. `None`: there is no such block,
/// or something in it is none of what a block has.
pub fn parse(text: &str, nonce: Option<Nonce<'_>>, template: &Template) -> Option<Vec<ParsedItem>> {
    let mut lines = within(text, nonce)?;
    if let Some(notice) = &template.notice {
        lines = lines.strip_prefix(notice.as_str())?;
        lines = lines.strip_prefix('\n').unwrap_or(lines);
    }
    let mut reader = Reader {
        template,
        mark: nonce.map(|nonce| nonce.mark() + " "),
        items: Vec::new(),
        date: None,
        segregated: false,
        profile: false,
        blanks: 0,
    };
    for (at, line) in lines.split('\n').enumerate() {
        let is_first = at == 0 || reader.ends_profile();
        let is_as_of = is_first && line.starts_with(AS_OF) && is_date(&line[AS_OF.len()..]);
        if !is_as_of {
            reader.read(line)?;
        }
    }
    Some(reader.finish())
}

/// What stands inside the enclosure, without the last line end.
fn within<'t>(text: &'t str, nonce: Option<Nonce<'_>>) -> Option<&'t str> {
    let Some(nonce) = nonce else {
        return Some(text);
    };
    let (open, close) = nonce.tags();
    let (_, rest) = text.split_once(&open)?;
    let (inside, _) = rest.split_once(&close)?;
    inside
        .strip_suffix('\n')
        .or(inside.is_empty().then_some(""))
}

fn is_date(text: &str) -> bool {
    let shape = |(at, letter): (usize, u8)| match at {
        4 | 7 => letter == b'-',
        _ => letter.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

struct Reader<'t> {
    template: &'t Template,
    mark: Option<String>,
    items: Vec<ParsedItem>,
    date: Option<String>,
    segregated: bool,
    profile: bool,
    /// Blank lines that belong to the item before them if it goes on behind them.
    blanks: usize,
}

impl Reader<'_> {
    /// True behind a blank line in the section *who this is*, which ends it without an enclosure.
    fn ends_profile(&self) -> bool {
        self.profile && self.blanks > 0
    }

    fn read(&mut self, line: &str) -> Option<()> {
        if line.is_empty() {
            self.blanks += 1;
        } else if let Some(more) = line.strip_prefix(' ') {
            let item = self.items.last_mut()?;
            let blanks = std::mem::take(&mut self.blanks);
            item.text.push_str(&"\n".repeat(blanks + 1));
            item.text.push_str(more);
        } else {
            // A blank line before the next item stands where a date is not known.
            if std::mem::take(&mut self.blanks) > 0 {
                self.date = None;
                self.profile = false;
            }
            self.start(line)?;
        }
        Some(())
    }

    fn start(&mut self, line: &str) -> Option<()> {
        if line == PROFILE && self.items.is_empty() && self.date.is_none() {
            self.profile = true;
        } else if line == UNTRUSTED {
            self.segregated = true;
            self.date = None;
        } else if is_date(line) {
            self.date = Some(line.to_owned());
        } else {
            let mut item = item(line, self.template, self.profile)?;
            item.date.clone_from(&self.date);
            item.segregated = self.segregated;
            item.profile = self.profile;
            self.items.push(item);
        }
        Some(())
    }

    fn finish(mut self) -> Vec<ParsedItem> {
        let Some(mark) = &self.mark else {
            return self.items;
        };
        for item in &mut self.items {
            // Stored text never has the mark: an item has it on every line or on none.
            if item.text.starts_with(mark.as_str()) || item.text == mark.trim_end() {
                let unmarked = |line: &str| line.strip_prefix(mark.as_str()).map(str::to_owned);
                let lines = item.text.split('\n').map(unmarked);
                if let Some(lines) = lines.collect::<Option<Vec<_>>>() {
                    item.text = lines.join("\n");
                }
            }
        }
        self.items
    }
}

/// The first line of an item: `[m1] Speaker [labels] (mark): text`, or a line of a profile, `[p1]`.
fn item(line: &str, template: &Template, is_profile: bool) -> Option<ParsedItem> {
    let mut item = ParsedItem::default();
    let mut rest = line;
    if template.shows_keys {
        let key = if is_profile { "[p" } else { "[m" };
        let (number, after) = rest.strip_prefix(key)?.split_once("] ")?;
        item.key = Some(number.parse().ok()?);
        rest = after;
    }
    let name = rest.find(['[', '(', ':'])?;
    rest[..name].trim_end().clone_into(&mut item.speaker);
    rest = &rest[name..];
    if let Some(labels) = rest.strip_prefix('[') {
        let (labels, after) = labels.split_once(']')?;
        item.labels = labels.split(", ").map(str::to_owned).collect();
        rest = after.trim_start_matches(' ');
    }
    if let Some(mark) = rest.strip_prefix('(') {
        let (mark, after) = mark.split_once(')')?;
        item.mark = Some(mark.to_owned());
        rest = after;
    }
    rest.strip_prefix(": ")?.clone_into(&mut item.text);
    Some(item)
}

#[cfg(test)]
mod tests;
