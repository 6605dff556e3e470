//! Statement form of an English question: "Where do I live?" is answered by "I live …". A sentence in
//! that form answers the question in so many words; others that share its words may only mention them
//! ("He thinks I live …"). A few questions are often answered in other words ("What is my job?", "I work
//! as …"); `data/statement_forms.txt` lists them.

use std::ops::Range;

use memfleet_domain::turn::{Role, Trust, Turn};
use memfleet_language::mentions::mentions;
use memfleet_language::{Analyzer, Language, fold, sentences};

use crate::asking::{Asking, NOW};
use crate::facts::own_words::own_words;
use crate::facts::words::lines;

const DO: [&str; 3] = ["do", "does", "did"];
const BE: [&str; 5] = ["am", "is", "are", "was", "were"];
const OTHER_AUXILIARIES: [&str; 8] = [
    "have", "has", "had", "can", "will", "should", "would", "could",
];
const FIRST_PERSON: [&str; 4] = ["i", "we", "me", "us"];
/// Words that may stand between a subject and its verb and change nothing.
const BETWEEN: [&str; 4] = ["now", "still", "currently", "also"];
/// Words that begin a sentence about somebody or something else than its speaker.
const OTHER_SUBJECTS: [&str; 12] = [
    "my", "our", "his", "her", "their", "your", "the", "he", "she", "they", "you", "it",
];
/// Words that join a clause to the one before it.
const JOINING: [&str; 3] = ["and", "but", "so"];
/// Words in front of the name of a place or an organisation.
const BEFORE_PLACES: [&str; 6] = ["in", "at", "for", "near", "from", "to"];

/// A word of a text, folded, with contractions taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    text: String,
    /// Bytes of the word in the text.
    range: Range<usize>,
    begins_clause: bool,
    is_capitalised: bool,
}

/// Statement form of one question.
pub struct StatementForm {
    /// Words that the statement begins with, folded: its subject, then its verb.
    opening: Vec<String>,
    /// Beginnings of statements that answer the question in other words.
    paraphrases: Vec<Vec<&'static str>>,
    /// Words of the question that such a statement answers without having them.
    answered_words: Vec<&'static str>,
    /// Whether its subject is its speaker ("I", "we").
    is_of_speaker: bool,
    asks_where: bool,
    analyzer: Analyzer,
}

/// A clause of a text in the statement form of a question.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    /// Byte in the text where the clause begins.
    pub start: usize,
    /// Whether it names what is asked for, as far as that can be seen: a place for "where".
    pub is_specific: bool,
    /// True for an answer in other words than the question's.
    pub is_paraphrase: bool,
}

impl StatementForm {
    /// Form of a question as the speaker of a turn would answer it; `asked` is how the question names
    /// this speaker, where it does. Absent for other languages and where the question has no such form.
    pub fn of(question: &str, asked: Option<&str>, language: Language) -> Option<Self> {
        if language != Language::English {
            return None;
        }
        let tokens = tokens(question);
        let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        let is_auxiliary = |text: &&str| [&DO[..], &BE, &OTHER_AUXILIARIES].concat().contains(text);
        let at = texts.iter().position(is_auxiliary)?;
        let auxiliary = texts[at];
        let mut rest = owned(&texts[at + 1..]);
        if let Some(name) = asked {
            let name = fold(name);
            let first = rest.first_mut()?;
            if *first == name {
                "i".clone_into(first);
            } else if *first == format!("{name}'s") {
                "my".clone_into(first);
            } else {
                return None;
            }
        }
        let asked_words = [&owned(&texts[..at])[..], &rest].concat();
        let (answered_words, paraphrases) = paraphrases(&asked_words);
        let subject = rest.first()?.clone();
        let is_of_speaker = ["i", "we"].contains(&subject.as_str());
        let opening = match subject.as_str() {
            "i" | "we" => {
                let verb = rest
                    .iter()
                    .skip(1)
                    .find(|word| !BETWEEN.contains(&word.as_str()))?;
                let stays = !DO.contains(&auxiliary);
                let auxiliary = stays.then(|| auxiliary.to_owned());
                [Some(subject), auxiliary, Some(verb.clone())]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            "my" | "our" if BE.contains(&auxiliary) && rest.len() > 1 => rest
                .into_iter()
                .filter(|word| !NOW.contains(&word.as_str()) && !BETWEEN.contains(&word.as_str()))
                .collect(),
            _ => return None,
        };
        Some(Self {
            opening,
            paraphrases,
            answered_words,
            is_of_speaker,
            asks_where: texts.contains(&"where"),
            analyzer: Analyzer::new(language),
        })
    }

    /// The first clause of a text that is in this form; where there is none, the first that answers the
    /// question in other words.
    pub fn find(&self, text: &str) -> Option<Statement> {
        let tokens = tokens(text);
        let opening: Vec<&str> = self.opening.iter().map(String::as_str).collect();
        let stated = self.beginning(&tokens, &opening, false);
        let mut paraphrases = self.paraphrases.iter();
        stated.or_else(|| paraphrases.find_map(|words| self.beginning(&tokens, words, true)))
    }

    /// Words of the question that a statement in other words answers without having them.
    pub fn answered_words(&self) -> &[&'static str] {
        &self.answered_words
    }

    /// The first clause that begins with these words.
    fn beginning(
        &self,
        tokens: &[Token],
        words: &[&str],
        is_paraphrase: bool,
    ) -> Option<Statement> {
        let starts = (0..tokens.len()).filter(|&at| tokens[at].begins_clause);
        let mut found = starts.filter_map(|at| Some((at, self.matched(&tokens[at..], words)?)));
        let (at, length) = found.next()?;
        let object = &tokens[at + length..];
        let is_place = |pair: &[Token]| {
            BEFORE_PLACES.contains(&pair[0].text.as_str()) && pair[1].is_capitalised
        };
        Some(Statement {
            start: tokens[at].range.start,
            is_specific: !self.asks_where || object.windows(2).any(is_place),
            is_paraphrase,
        })
    }

    /// Whether a text may be about the subject: one that begins with somebody else and does not mention
    /// its speaker is not about the speaker.
    pub fn may_be_about(&self, text: &str) -> bool {
        let tokens = tokens(text);
        let begins = tokens.first().map(|token| token.text.as_str());
        let mentions_speaker = tokens
            .iter()
            .any(|token| FIRST_PERSON.contains(&token.text.as_str()));
        !self.is_of_speaker
            || mentions_speaker
            || !begins.is_some_and(|first| OTHER_SUBJECTS.contains(&first))
    }

    /// How many words an opening takes at the beginning of a clause.
    fn matched(&self, clause: &[Token], opening: &[&str]) -> Option<usize> {
        let mut at = 0;
        for (place, wanted) in opening.iter().enumerate() {
            while place > 0 && self.may_pass(&clause.get(at)?.text, wanted) {
                at += 1;
            }
            if !self.is_word(&clause.get(at)?.text, wanted) {
                return None;
            }
            at += 1;
        }
        Some(at)
    }

    /// True for a word that is passed over between two words of the opening. "I'm using …" tells
    /// of a while and is not "I use …"; the verb of a thing is passed over ("My dog is called …").
    fn may_pass(&self, word: &str, wanted: &str) -> bool {
        let is_verb = !self.is_of_speaker && BE.contains(&word);
        let is_passed = BETWEEN.contains(&word) || is_verb || word == "have";
        is_passed && !self.is_word(word, wanted)
    }

    fn is_word(&self, word: &str, wanted: &str) -> bool {
        let stem = |word: &str| self.analyzer.terms(word);
        word == wanted || (!stem(wanted).is_empty() && stem(word) == stem(wanted))
    }
}

/// Question about the present that turns may answer in so many words.
pub struct PresentQuestion<'q> {
    text: &'q str,
    language: Language,
    is_first_person: bool,
    /// The statement form of a question in the first person; of others it depends on the speaker.
    own_form: Option<StatementForm>,
}

impl<'q> PresentQuestion<'q> {
    /// Reads a question. Absent where it is about the past, or no turn can be in its statement
    /// form.
    pub fn of(text: &'q str, language: Language) -> Option<Self> {
        let asking = Asking::of(text, language);
        let is_first_person = asking.is_first_person();
        let own_form = is_first_person
            .then(|| StatementForm::of(text, None, language))
            .flatten();
        let has_form = !is_first_person || own_form.is_some();
        (!asking.is_of_the_past() && has_form).then_some(Self {
            text,
            language,
            is_first_person,
            own_form,
        })
    }

    /// True for a turn that states the answer: in the question's statement form, with the kind of
    /// value that it asks for, and meant.
    pub fn is_answered_by(&self, turn: &Turn) -> bool {
        let of_speaker = match self.is_first_person {
            true => None,
            false => self.form_of_speaker(turn),
        };
        let Some(form) = self.own_form.as_ref().or(of_speaker.as_ref()) else {
            return false;
        };
        let accepted = &turn.accepted;
        let is_own = accepted.role == Role::User && accepted.trust == Trust::User;
        if turn.replaced.is_some() || self.is_first_person && !is_own {
            return false;
        }
        let Some(own) = own_words(&accepted.content.searchable_text()) else {
            return false;
        };
        sentences(&own).into_iter().any(|sentence| {
            let said = &own[sentence];
            let stated = form.find(said).filter(|_| !states_nothing(said));
            stated.is_some_and(|stated| stated.is_specific && !stated.is_paraphrase)
        })
    }

    /// The form in which the speaker of a turn would answer; absent where the question names
    /// another.
    fn form_of_speaker(&self, turn: &Turn) -> Option<StatementForm> {
        let speakers = [turn.accepted.speaker.to_string()];
        let named = mentions(self.text, &speakers, self.language).mentions;
        let is_named = !named.is_empty();
        is_named.then(|| StatementForm::of(self.text, Some(&speakers[0]), self.language))?
    }
}

/// True for a sentence that states nothing: a question has the words of its answer and is none,
/// and a tone tag says that its sentence is not meant.
pub(super) fn states_nothing(sentence: &str) -> bool {
    if sentence.trim_end().ends_with(" /s") {
        return true;
    }
    let end = sentence.trim_end_matches(|letter: char| {
        letter.is_whitespace() || ['"', '”', '»', ')', '!'].contains(&letter)
    });
    end.ends_with(['?', '？', '؟'])
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Words of a question that a statement may answer without having them, and how such statements begin.
/// Both are empty where the list has no entry for the question.
fn paraphrases(question: &[String]) -> (Vec<&'static str>, Vec<Vec<&'static str>>) {
    let has = |asked: &str| {
        let mut words = question.iter();
        asked
            .split(' ')
            .all(|word| words.any(|other| other == word))
    };
    let data = lines(include_str!("../../data/statement_forms.txt"));
    let entry = data.into_iter().find(|(asked, _)| has(asked));
    let Some((asked, openings)) = entry else {
        return (Vec::new(), Vec::new());
    };
    let openings = openings.split(", ").map(|words| words.split(' ').collect());
    (asked.split(' ').collect(), openings.collect())
}

fn tokens(text: &str) -> Vec<Token> {
    let is_part = |letter: char| letter.is_alphanumeric() || ['\'', '’'].contains(&letter);
    let mut tokens: Vec<Token> = Vec::new();
    let mut begins_clause = true;
    let mut rest = 0;
    while let Some(offset) = text[rest..].find(|letter: char| letter.is_alphanumeric()) {
        let start = rest + offset;
        let gap = &text[rest..start];
        begins_clause |= gap.contains([',', ';', '.', '!', '?', '\n', '—', '–', '(']);
        let length = text[start..].find(|letter: char| !is_part(letter));
        let end = length.map_or(text.len(), |length| start + length);
        rest = end;
        let word = &text[start..end];
        let folded = fold(word).replace('’', "'");
        let is_capitalised = word.chars().next().is_some_and(char::is_uppercase);
        let parts = expanded(folded.trim_end_matches('\''));
        for (place, part) in parts.into_iter().enumerate() {
            tokens.push(Token {
                begins_clause: begins_clause && place == 0,
                text: part,
                range: start..end,
                is_capitalised,
            });
        }
        // A joining word begins no clause itself; the word behind it does.
        let joins = tokens
            .last()
            .is_some_and(|token| JOINING.contains(&token.text.as_str()));
        begins_clause = joins;
    }
    tokens
}

/// A word with its contraction taken apart; possessives stay.
fn expanded(word: &str) -> Vec<String> {
    let pronouns = [
        "i", "we", "you", "he", "she", "it", "they", "that", "what", "where", "who",
    ];
    let endings = [
        ("'m", "am"),
        ("'re", "are"),
        ("'ve", "have"),
        ("'ll", "will"),
        ("'d", "would"),
    ];
    let split = endings
        .iter()
        .find_map(|(ending, full)| Some((word.strip_suffix(ending)?, *full)))
        .or_else(|| {
            let stem = word.strip_suffix("'s")?;
            pronouns.contains(&stem).then_some((stem, "is"))
        });
    match split {
        Some((stem, full)) => vec![stem.to_owned(), full.to_owned()],
        None => vec![word.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(question: &str) -> StatementForm {
        StatementForm::of(question, None, Language::English).unwrap()
    }

    #[test]
    fn a_statement_begins_with_subject_and_verb_of_the_question() {
        for (question, said) in [
            ("Where do I live?", "I live in Ghent."),
            ("Where do I live now?", "Well, I still live in Ghent."),
            ("Where do I live?", "My name is Corvin and I live in Graz."),
            ("Which book am I reading?", "I'm reading Middlemarch."),
            ("What is my dog called?", "My dog is called Biscuit."),
            ("What's my favorite color?", "My favorite color is green."),
        ] {
            let found = form(question).find(said);
            assert!(
                found.is_some_and(|found| found.is_specific),
                "{question} / {said}"
            );
        }
    }

    #[test]
    fn a_clause_that_only_has_its_words_is_no_statement() {
        for (question, said) in [
            ("Where do I live?", "He thinks I live in Ghent."),
            ("Where do I live?", "I refuse to live in Ghent."),
            ("Which car do I use?", "I'm using Ida's car this week."),
            ("Where do I live?", "I hardly live in Ghent."),
            ("Which book am I reading?", "I read the Daily Mirror."),
            (
                "What is my dog called?",
                "The dog in the film is called Toto.",
            ),
            ("Where do I live?", "My sister lives in Bergen."),
        ] {
            assert_eq!(form(question).find(said), None, "{question} / {said}");
        }
    }

    #[test]
    fn a_few_questions_are_answered_in_other_words() {
        for (question, said) in [
            ("What is my job?", "I work as a nurse."),
            ("What do I do for a living?", "Well, I'm a welder."),
            ("What's my email address?", "My email is ada@example.org."),
            ("Where do I live?", "I'm Ida and I am based in Graz."),
            (
                "Which language do I use at work?",
                "I write Kotlin at work.",
            ),
        ] {
            let found = form(question).find(said);
            assert!(
                found.is_some_and(|found| found.is_specific && found.is_paraphrase),
                "{question} / {said}"
            );
        }
        assert_eq!(form("What is my shoe size?").find("I'm a welder."), None);
        assert!(
            !form("Where do I live?")
                .find("I live in Porto.")
                .unwrap()
                .is_paraphrase
        );
    }

    #[test]
    fn where_asks_for_the_name_of_a_place() {
        let is_specific = |said| form("Where do I live?").find(said).unwrap().is_specific;
        assert!(is_specific("I live in Ghent."));
        assert!(!is_specific("I live in fear of the dentist."));
        assert!(
            !form("Where do I work?")
                .find("I work for free on Sundays.")
                .unwrap()
                .is_specific
        );
    }

    #[test]
    fn a_named_speaker_answers_in_the_first_person() {
        let form =
            StatementForm::of("Where does Ada live?", Some("Ada"), Language::English).unwrap();
        assert!(form.find("I live in Rome.").is_some());
        assert!(!form.may_be_about("My sister lives in Bergen."));
        assert!(form.may_be_about("Moved to Oslo last week!"));
        assert!(
            StatementForm::of("Where does Ada live?", Some("Ben"), Language::English).is_none()
        );
        assert!(StatementForm::of("Wo wohne ich?", None, Language::German).is_none());
    }
}
