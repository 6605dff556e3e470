//! Echoes: what a text has word for word from others, whoever of a conversation says it. A model that repeats what memory gave it tells
//! nothing new.

use crate::hash::hash;
use memfleet_language::{Language, Retold, retold, sentences};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Words that a run starts to be looked for with.
const SHINGLE: usize = 2;
/// Words of the shortest run, those of a person counted; and how many of them are no function words where the language is known.
const SHORTEST: (usize, usize) = (4, 2);
/// Words of the shortest sentence that is an echo as a whole.
const SENTENCE: usize = 3;
/// Places of a source that a run is tried at: what stands in more of them is a figure of speech.
const PLACES: usize = 64;
/// Words of a text and its sources that are compared: many times what people write, and an end to what is one word a thousand times.
const COMPARED: usize = 1 << 22;

/// A run of words that a source has, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Bytes of the text, from a word's start to a word's end.
    pub span: Range<usize>,
    /// Which source.
    pub source: usize,
}

/// What may be copied.
pub struct Sources {
    language: Language,
    texts: Vec<Text>,
    /// Source and word that a shingle stands at.
    places: HashMap<u64, Vec<(usize, usize)>>,
}

impl Sources {
    /// Reads the sources.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>, language: Language) -> Self {
        let texts = texts.into_iter().map(|text| Text::of(text, language));
        let texts: Vec<_> = texts.collect();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        for (source, text) in texts.iter().enumerate() {
            for (at, shingle) in text.shingles() {
                let places = places.entry(shingle).or_default();
                if places.len() < PLACES {
                    places.push((source, at));
                }
            }
        }
        Self {
            language,
            texts,
            places,
        }
    }

    /// The echoes in a text, in order; none overlaps another. Of several sources the one with the longer run counts, then the first.
    pub fn echoes(&self, text: &str) -> Vec<Echo> {
        let text = Text::of(text, self.language);
        let (mut echoes, mut left) = (Vec::new(), COMPARED);
        let mut at = 0;
        while at < text.keys.len() && left > 0 {
            match self.longest(&text, at, &mut left) {
                Some((source, words)) => {
                    let span = text.span(&words);
                    at = words.end;
                    echoes.push(Echo { span, source });
                }
                None => at += 1,
            }
        }
        echoes
    }

    /// The longest run from a word on that is one.
    fn longest(&self, text: &Text, at: usize, left: &mut usize) -> Option<(usize, Range<usize>)> {
        let shingle = hash(text.keys.get(at..at + SHINGLE)?);
        let runs = self
            .places
            .get(&shingle)?
            .iter()
            .filter_map(|&(source, from)| {
                let said = &self.texts[source];
                let pairs = text.keys[at..].iter().zip(&said.keys[from..]);
                let length = pairs.take_while(|(ours, theirs)| ours == theirs).count();
                *left = left.saturating_sub(length);
                let is_sentence = said.sentences.contains(&(from..from + length));
                let run = at..at + length;
                text.is_echo(&run, is_sentence).then_some((source, run))
            });
        runs.max_by_key(|(source, run)| (run.len(), std::cmp::Reverse(*source)))
    }
}

/// The words of a text that do not depend on who speaks.
struct Text {
    all: Vec<Retold>,
    /// Which of all they are.
    words: Vec<usize>,
    keys: Vec<u64>,
    /// The first and the last of a sentence, in `words`.
    sentences: HashSet<Range<usize>>,
}

impl Text {
    fn of(text: &str, language: Language) -> Self {
        let all = retold(text, language);
        let (mut words, mut keys) = (Vec::new(), Vec::new());
        for (at, told) in all.iter().enumerate() {
            if let Some(word) = &told.word {
                words.push(at);
                keys.push(hash(word));
            }
        }
        let start = |byte: usize| words.partition_point(|&word| all[word].span.start < byte);
        let sentences = sentences(text).into_iter();
        let sentences = sentences.map(|it| start(it.start)..start(it.end)).collect();
        Self {
            all,
            words,
            keys,
            sentences,
        }
    }

    fn shingles(&self) -> impl Iterator<Item = (usize, u64)> {
        self.keys.windows(SHINGLE).map(hash).enumerate()
    }

    /// A run with the words of a person right before it (you are …), which are told again with it.
    fn with_persons(&self, run: &Range<usize>) -> Range<usize> {
        let before = run.start.checked_sub(1);
        let start = before.map_or(0, |before| self.words[before] + 1);
        start..self.words[run.end - 1] + 1
    }

    fn is_echo(&self, run: &Range<usize>, is_sentence: bool) -> bool {
        let told = &self.all[self.with_persons(run)];
        if is_sentence && told.len() >= SENTENCE {
            return true;
        }
        let content = told.iter().filter(|it| it.has_content).count();
        told.len() >= SHORTEST.0 && content >= SHORTEST.1
    }

    fn span(&self, run: &Range<usize>) -> Range<usize> {
        let told = &self.all[self.with_persons(run)];
        told[0].span.start..told[told.len() - 1].span.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said<'t>(text: &'t str, sources: &[&str]) -> Vec<(&'t str, usize)> {
        let sources = Sources::of(sources.iter().copied(), Language::English);
        let echoes = sources.echoes(text).into_iter();
        echoes.map(|it| (&text[it.span], it.source)).collect()
    }

    #[test]
    fn what_is_told_again_is_found_in_either_person() {
        let sources = [
            "I'm allergic to walnuts. My dog's name is Max, by the way.",
            "I love sushi.",
        ];
        assert_eq!(
            said(
                "As far as I know, you're allergic to walnuts, so no cake.",
                &sources
            ),
            [("you're allergic to walnuts", 0)]
        );
        assert_eq!(
            said("You mentioned that your dog's name is Max.", &sources),
            [("your dog's name is Max", 0)]
        );
        assert_eq!(
            said("You love sushi! Shall we?", &sources),
            [("You love sushi", 1)]
        );
    }

    #[test]
    fn a_word_that_is_other_ends_the_run() {
        let source = ["We moved the weekly meeting to half past nine."];
        assert_eq!(
            said("They moved the weekly meeting to half past ten.", &source),
            [("moved the weekly meeting to half past", 0)]
        );
        assert!(said("It is about a meeting at half past ten.", &source).is_empty());
        let source = ["You were in Berlin with Anna."];
        assert!(said("You are in Berlin.", &source).is_empty());
    }

    #[test]
    fn figures_of_speech_are_no_echoes() {
        let source = ["Good morning. I went to the station. It is what it is, you know."];
        let text = "Well, I went to the zoo. It is what it is. Good morning to all.";
        assert_eq!(said(text, &source), []);
    }

    #[test]
    fn of_several_sources_the_longer_run_counts() {
        let sources = [
            "the red car of Anna",
            "the red car of Anna is in the garage",
        ];
        assert_eq!(
            said("So the red car of Anna is in the garage?", &sources),
            [("the red car of Anna is in the garage", 1)]
        );
        assert_eq!(
            said("So the red car of Anna it was.", &sources),
            [("the red car of Anna", 0)]
        );
    }

    #[test]
    fn scripts_without_spaces_have_echoes() {
        let sources = Sources::of(["我们把会议改到九点半，因为火车晚点。"], Language::Other);
        let text = "好的，会议改到九点半。";
        let echoes = sources.echoes(text);
        assert_eq!(&text[echoes[0].span.clone()], "会议改到九点半");
    }

    #[test]
    fn one_word_a_thousand_times_comes_to_an_end() {
        let (text, source) = ("so ".repeat(20_000), "so ".repeat(20_001));
        assert_eq!(said(&text, &[&source]), []);
    }

    proptest! {
        #[test]
        fn any_texts_give_ordered_spans(text in any::<String>(), sources in prop::collection::vec(any::<String>(), 0..4)) {
            let read = Sources::of(sources.iter().map(String::as_str), Language::English);
            let mut reached = 0;
            for echo in read.echoes(&text) {
                prop_assert!(text.get(echo.span.clone()).is_some() && echo.source < sources.len());
                prop_assert!(echo.span.start >= reached && echo.span.end > echo.span.start);
                reached = echo.span.end;
            }
        }

        #[test]
        fn a_copied_text_is_an_echo_as_a_whole(words in prop::collection::vec("[b-hj-l]{4,8}", 5..60)) {
            let text = words.join(" ");
            let framed = format!("You said: {text}. Is that so?");
            prop_assert_eq!(said(&framed, &[&text]), [(&*text, 0)]);
        }
    }
}
