//! Pleasantries: utterances that phrases of the lists cover from the first word to the last.

use super::lexicon::{Lexicon, Phrase};
use super::lists::Kind;
use super::tokens::{Token, Tokens};
use super::{Before, Hit, Utterance};

/// The most tokens of a pleasantry.
const MOST_TOKENS: usize = 60;

/// Emoji that may accept an offer.
const ASSENTS: [char; 8] = ['👍', '👌', '✅', '✔', '☑', '🆗', '🙆', '🤝'];

/// What a way to cover an utterance up to some token has met that is more than filler. The later one counts for more.
#[derive(Debug, Clone, Copy)]
enum Met<'a> {
    Nothing,
    /// A phrase that may accept an offer: "ok", "lgtm".
    Assent(&'a Phrase),
    Emoji,
    Laughter,
    Phrase(&'a Phrase),
    /// An assent where something may be offered: whatever stands beside it ("yes, thank you").
    Acceptance,
}

impl<'a> Met<'a> {
    fn phrase(phrase: &'a Phrase, may_accept: bool) -> Self {
        match phrase.kind {
            Kind::Filler => Self::Nothing,
            Kind::Answer | Kind::Acknowledgement if may_accept => Self::Acceptance,
            Kind::Answer | Kind::Acknowledgement => Self::Assent(phrase),
            _ => Self::Phrase(phrase),
        }
    }

    fn weight(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Assent(_) => 1,
            Self::Emoji => 2,
            Self::Laughter => 3,
            Self::Phrase(_) => 4,
            Self::Acceptance => 5,
        }
    }

    /// The weightier; of two alike the first.
    fn or(self, other: Self) -> Self {
        if other.weight() > self.weight() {
            other
        } else {
            self
        }
    }
}

/// The rule by which the utterance is a pleasantry.
pub fn find(lexicon: &Lexicon, utterance: Utterance<'_>) -> Option<Hit> {
    let reading = Tokens::read(utterance.text);
    if reading.has_signs || reading.tokens.len() > MOST_TOKENS {
        return None;
    }
    // After a turn of the assistant an assent may accept what it offers, with or without a question mark.
    let may_accept = utterance.before != Before::Nothing;
    if may_accept && utterance.text.contains(ASSENTS) {
        return None;
    }
    match cover(lexicon, &reading.tokens, may_accept)? {
        Met::Nothing | Met::Acceptance => None,
        // A pet and a cake with a question mark are a question.
        Met::Emoji => (!reading.asks).then(|| hit("emoji", "")),
        Met::Assent(phrase) => (phrase.kind == Kind::Acknowledgement).then(|| hit_of(phrase)),
        Met::Laughter => Some(hit("laughter", "")),
        Met::Phrase(phrase) => Some(hit_of(phrase)),
    }
}

/// What phrases that cover all tokens come to; none if some token is left over.
fn cover<'a>(lexicon: &'a Lexicon, tokens: &[Token], may_accept: bool) -> Option<Met<'a>> {
    let ids = tokens
        .iter()
        .map(|token| lexicon.ids(token))
        .collect::<Vec<_>>();
    let mut reached = vec![None; tokens.len() + 1];
    reached[0] = Some(Met::Nothing);
    for start in 0..tokens.len() {
        let Some(before) = reached[start] else {
            continue;
        };
        for (end, met, takes_name) in steps(lexicon, tokens, &ids, start, may_accept) {
            let now = before.or(met);
            let to = &mut reached[end];
            *to = Some(to.map_or(now, |other: Met<'_>| other.or(now)));
            let named = tokens
                .get(end)
                .filter(|_| takes_name && !tokens[end - 1].is_last);
            if named.is_some_and(|token| lexicon.can_be_name(token)) {
                let to = &mut reached[end + 1];
                *to = Some(to.map_or(now, |other: Met<'_>| other.or(now)));
            }
        }
    }
    reached.pop().flatten()
}

/// Where one can go from a token: the place after a phrase, what it is, and whether a name may follow.
fn steps<'a>(
    lexicon: &'a Lexicon,
    tokens: &[Token],
    ids: &[Vec<u32>],
    start: usize,
    may_accept: bool,
) -> Vec<(usize, Met<'a>, bool)> {
    let token = &tokens[start];
    if token.is_emoji() {
        return vec![(start + 1, Met::Emoji, false)];
    }
    let phrases = lexicon.pleasantries.at(ids, start).into_iter();
    let mut steps = phrases
        .map(|(end, phrase)| {
            let met = Met::phrase(phrase, may_accept);
            (end, met, phrase.kind.takes_name())
        })
        .collect::<Vec<_>>();
    if lexicon.is_laughter(token) {
        steps.push((start + 1, Met::Laughter, false));
    }
    steps
}

fn hit_of(phrase: &Phrase) -> Hit {
    let rule = format!("{}.{}", phrase.language, phrase.kind.name());
    hit(&rule, &phrase.text)
}

fn hit(rule: &str, pattern: &str) -> Hit {
    Hit {
        rule: format!("pleasantry.{rule}"),
        pattern: pattern.to_owned(),
    }
}
