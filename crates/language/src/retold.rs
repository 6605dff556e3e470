//! Words as either side of a conversation would say them: "I am" and "you are" become the same.

use crate::language::Language;
use crate::mentions::Table;
use crate::spaceless::Spaceless;
use crate::{stopwords, words};
use std::ops::Range;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retold {
    /// As it is compared: folded, without what depends on who speaks. Absent where all of it does (I, your).
    pub word: Option<String>,
    /// Bytes of the text.
    pub span: Range<usize>,
    /// Whether it is no function word; unknown languages have none.
    pub has_content: bool,
}

/// Forms of a verb that say nothing but who speaks, each with the one that stands for it. Others (French, Russian verbs) bend with
/// the person too, and stay as they are.
const FORMS: [(&str, &str); 4] = [("am", "are"), ("m", "are"), ("re", "are"), ("was", "were")];

/// The words of a text, in order. Scripts without spaces give a word a letter.
pub fn retold(text: &str, language: Language) -> Vec<Retold> {
    let stopwords = stopwords::of(language);
    let written = words::of(text);
    let pieces = written.into_iter().flat_map(|word| letters(text, word));
    let retold = pieces.map(|word| {
        let of_person = [Table::First, Table::Second]
            .iter()
            .any(|table| table.has(language, &word.folded));
        let form = FORMS.iter().find(|(form, _)| *form == word.folded);
        let form = form.filter(|_| language == Language::English);
        Retold {
            has_content: !of_person && form.is_none() && !stopwords.contains(&word.folded),
            word: (!of_person).then(|| form.map_or(word.folded, |(_, same)| (*same).to_owned())),
            span: word.span,
        }
    });
    retold.collect()
}

/// A word, or its letters where its script has no spaces.
fn letters(text: &str, word: words::Word) -> Vec<words::Word> {
    let written = &text[word.span.clone()];
    if !written.contains(|letter| Spaceless::of(letter).is_some()) {
        return vec![word];
    }
    let letters = written.char_indices().map(|(at, letter)| {
        let start = word.span.start + at;
        words::Word {
            folded: crate::fold(&written[at..at + letter.len_utf8()]),
            span: start..start + letter.len_utf8(),
        }
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, language: Language) -> Vec<String> {
        let retold = retold(text, language).into_iter();
        retold.filter_map(|it| it.word).collect()
    }

    #[test]
    fn both_sides_of_a_conversation_say_the_same() {
        let told = words("I'm allergic to my dog.", Language::English);
        assert_eq!(told, ["are", "allergic", "to", "dog"]);
        assert_eq!(
            told,
            words("You are allergic to your dog!", Language::English)
        );
        assert_eq!(
            words("Mein Hund heißt Max", Language::German),
            words("Dein Hund heißt Max", Language::German)
        );
    }

    #[test]
    fn tense_and_what_is_denied_stay() {
        let now = words("I am in Berlin", Language::English);
        assert_ne!(now, words("You were in Berlin", Language::English));
        assert_ne!(now, words("You are not in Berlin", Language::English));
    }

    #[test]
    fn spans_are_of_the_text_in_any_script() {
        let text = "İch wohne 在柏林 สวัสดี";
        for it in retold(text, Language::Other) {
            assert!(text.get(it.span).is_some());
        }
        assert_eq!(words("在柏林", Language::Other).len(), 3);
    }

    #[test]
    fn function_words_have_no_content() {
        let told = retold("I went to the station", Language::English);
        let content = told.iter().filter(|it| it.has_content).count();
        assert_eq!(content, 2);
        let told = retold("über Anna", Language::German);
        assert!(!told[0].has_content && told[1].has_content);
    }
}
