//! What a fuzzer chooses, a letter each, before what it makes up: so that an input can be read and written by hand.

/// Ends a part of an input.
const SEPARATOR: u8 = 0x1E;

/// What is left of an input.
#[derive(Clone, Copy)]
pub(crate) struct Choices<'b>(&'b [u8]);

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// The next letter as a number: `0` is 0, `1` is 1, and every other byte is some number, too. 0 where nothing is left.
    pub(crate) fn number(&mut self) -> usize {
        let Some((letter, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(letter.wrapping_sub(b'0'))
    }

    /// One of these.
    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.number() % of.len()]
    }

    /// Whether the next number is odd.
    pub(crate) fn flag(&mut self) -> bool {
        self.number() % 2 == 1
    }

    /// Up to the next separator; `None` where nothing is left.
    pub(crate) fn part(&mut self) -> Option<&'b [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = self.0.iter().position(|byte| *byte == SEPARATOR);
        let end = end.unwrap_or(self.0.len());
        let part = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(part)
    }

    /// All that is left.
    pub(crate) fn rest(self) -> &'b [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_choices_and_the_rest_is_in_parts() {
        let mut choices = Choices::new(b"12ab\x1ec\x1e\x1ed");
        assert_eq!((choices.number(), choices.one(&['x', 'y'])), (1, 'x'));
        let parts: Vec<&[u8]> = std::iter::from_fn(|| choices.part()).collect();
        assert_eq!(parts, [b"ab".as_slice(), b"c", b"", b"d"]);
        assert!(choices.rest().is_empty() && !choices.flag());
    }
}
