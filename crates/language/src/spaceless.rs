//! Scripts written without spaces: their words are approximated by overlapping pairs of characters.

use unicode_segmentation::UnicodeSegmentation;

/// A script class whose runs are cut into pairs. Kanji, Hiragana and Katakana change where words do, so a run never spans
/// two of them: a one-character Japanese stem between two particles is a run, and a term, of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spaceless {
    Han,
    Hiragana,
    Katakana,
    SouthEastAsian,
}

impl Spaceless {
    /// The class of a letter or mark, `None` for scripts with spaces.
    pub(crate) fn of(letter: char) -> Option<Self> {
        if letter < '\u{E00}' {
            return None;
        }
        match letter as u32 {
            0xE00..=0xEFF | 0x1000..=0x109F | 0x1780..=0x17FF => Some(Self::SouthEastAsian),
            0x3041..=0x309F => Some(Self::Hiragana),
            0x30A1..=0x30FA | 0x30FC..=0x30FF | 0x31F0..=0x31FF => Some(Self::Katakana),
            0x3005..=0x3007
            | 0x3400..=0x4DBF
            | 0x4E00..=0x9FFF
            | 0xF900..=0xFAFF
            | 0x2_0000..=0x3_FFFF => Some(Self::Han),
            _ => None,
        }
    }
}

/// Calls `emit` with every overlapping pair of characters of `run`, or with the run itself if it is one character.
pub(crate) fn pairs(run: &str, mut emit: impl FnMut(&str)) {
    let starts: Vec<usize> = run.grapheme_indices(true).map(|(start, _)| start).collect();
    if starts.len() < 3 {
        emit(run);
        return;
    }
    for pair in starts.windows(3) {
        emit(&run[pair[0]..pair[2]]);
    }
    emit(&run[starts[starts.len() - 2]..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(run: &str) -> Vec<String> {
        let mut out = Vec::new();
        pairs(run, |pair| out.push(pair.to_owned()));
        out
    }

    #[test]
    fn runs_become_overlapping_pairs_and_single_characters_stay() {
        assert_eq!(collect("東京都"), ["東京", "京都"]);
        assert_eq!(collect("東京"), ["東京"]);
        assert_eq!(collect("猫"), ["猫"]);
        assert_eq!(collect("ไปกิน"), ["ไป", "ปกิ", "กิน"]);
    }
}
