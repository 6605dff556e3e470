//! Kinds of calls and how often each is made.

use std::fmt;
use std::str::FromStr;

use rand::Rng;
use rand::rngs::StdRng;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `Remember` of one turn.
    Remember,
    /// `Remember` of one turn, and the `Recall` that waits for it and finds it.
    Searchable,
    /// `Recall` of ten turns.
    Recall,
    /// `Assemble` of a block of 1,000 tokens.
    Assemble,
}

const KINDS: [Kind; 4] = [
    Kind::Remember,
    Kind::Searchable,
    Kind::Recall,
    Kind::Assemble,
];

/// Whole shares of kinds, with at least one call in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix(Vec<(Kind, u32)>);

impl Mix {
    /// The kind of the next call.
    pub fn draw(&self, random: &mut StdRng) -> Kind {
        let mut drawn = random.random_range(0..self.total());
        for (kind, share) in &self.0 {
            match drawn.checked_sub(*share) {
                Some(rest) => drawn = rest,
                None => return *kind,
            }
        }
        unreachable!("what is drawn is less than all shares together")
    }

    fn total(&self) -> u32 {
        self.0.iter().map(|(_, share)| share).sum()
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Remember => "remember",
            Self::Searchable => "searchable",
            Self::Recall => "recall",
            Self::Assemble => "assemble",
        })
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut shares = Vec::new();
        for part in text.split(',') {
            let (name, share) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not kind=share, as in recall=4"))?;
            let kind = KINDS.into_iter().find(|kind| kind.to_string() == name);
            let kind = kind.ok_or_else(|| {
                format!("`{name}` is no kind of call: remember, searchable, recall, assemble")
            })?;
            let share = share
                .parse::<u16>()
                .map_err(|_| format!("the share of {name} is a whole number, not `{share}`"))?;
            shares.push((kind, u32::from(share)));
        }
        let mix = Self(shares);
        if mix.total() == 0 {
            return Err("no kind of call has a share".to_owned());
        }
        Ok(mix)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn calls_are_drawn_by_their_shares() {
        let mix: Mix = "remember=1,recall=3,assemble=0".parse().unwrap();
        let mut random = StdRng::seed_from_u64(1);
        let mut drawn = BTreeMap::<_, u32>::new();
        for _ in 0..4000 {
            *drawn.entry(mix.draw(&mut random)).or_default() += 1;
        }
        assert_eq!(drawn.len(), 2);
        assert!((900..1100).contains(&drawn[&Kind::Remember]), "{drawn:?}");
    }

    #[test]
    fn what_is_wrong_with_a_mix_is_said() {
        for (text, part) in [
            ("recall", "`recall` is not kind=share"),
            ("search=1", "`search` is no kind"),
            ("recall=some", "whole number, not `some`"),
            ("recall=0", "no kind of call has a share"),
        ] {
            let error = text.parse::<Mix>().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
