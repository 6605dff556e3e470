//! The languages with rules of their own (stemmer, stop words, time and person words), and their detection.

use rust_stemmers::Algorithm;
use unicode_script::Script;

/// A language of text. Every script is analysed under every language; the language only adds its stemmer and word lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Language {
    /// Arabic.
    Arabic,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// English: the default.
    #[default]
    English,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian.
    Norwegian,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Tamil.
    Tamil,
    /// Turkish.
    Turkish,
    /// Any other language: no stemming, no stop words.
    Other,
}

impl Language {
    /// Every language, [`Language::Other`] last.
    pub const ALL: [Self; 19] = [
        Self::Arabic,
        Self::Danish,
        Self::Dutch,
        Self::English,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
        Self::Other,
    ];

    /// The ISO 639-1 code; `und` (ISO 639-2, undetermined) for [`Language::Other`].
    pub fn code(self) -> &'static str {
        match self {
            Self::Arabic => "ar",
            Self::Danish => "da",
            Self::Dutch => "nl",
            Self::English => "en",
            Self::Finnish => "fi",
            Self::French => "fr",
            Self::German => "de",
            Self::Greek => "el",
            Self::Hungarian => "hu",
            Self::Italian => "it",
            Self::Norwegian => "no",
            Self::Portuguese => "pt",
            Self::Romanian => "ro",
            Self::Russian => "ru",
            Self::Spanish => "es",
            Self::Swedish => "sv",
            Self::Tamil => "ta",
            Self::Turkish => "tr",
            Self::Other => "und",
        }
    }

    /// The language with exactly this code.
    pub fn of_code(code: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.code() == code)
    }

    /// The language of a BCP 47 tag (`de`, `pt-BR`); a well-formed tag of a language without rules is [`Language::Other`].
    /// `None` when the tag is not well-formed: its first part must be two or three ASCII letters.
    pub fn from_tag(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', '_']).next().unwrap_or_default();
        let letters = primary.len() == 2 || primary.len() == 3;
        if !letters || !primary.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
        let code = match primary.to_ascii_lowercase().as_str() {
            "nb" | "nn" => "no".to_owned(),
            other => other.to_owned(),
        };
        Some(Self::of_code(&code).unwrap_or(Self::Other))
    }

    /// The language that a tag names, English where it names none.
    pub fn tagged(tag: Option<&str>) -> Self {
        tag.and_then(Self::from_tag).unwrap_or_default()
    }

    /// The language of a text, where the text tells: a question, or a turn of a few words, seldom does.
    pub fn recognise(text: &str) -> Option<Self> {
        let info = whatlang::detect(text)?;
        let told_by_script = info.script() != whatlang::Script::Latin;
        (told_by_script || info.is_reliable()).then(|| Self::of_detected(info.lang()))
    }

    fn of_detected(detected: whatlang::Lang) -> Self {
        use whatlang::Lang;
        match detected {
            Lang::Ara => Self::Arabic,
            Lang::Dan => Self::Danish,
            Lang::Nld => Self::Dutch,
            Lang::Eng => Self::English,
            Lang::Fin => Self::Finnish,
            Lang::Fra => Self::French,
            Lang::Deu => Self::German,
            Lang::Ell => Self::Greek,
            Lang::Hun => Self::Hungarian,
            Lang::Ita => Self::Italian,
            Lang::Nob => Self::Norwegian,
            Lang::Por => Self::Portuguese,
            Lang::Ron => Self::Romanian,
            Lang::Rus => Self::Russian,
            Lang::Spa => Self::Spanish,
            Lang::Swe => Self::Swedish,
            Lang::Tam => Self::Tamil,
            Lang::Tur => Self::Turkish,
            _ => Self::Other,
        }
    }

    /// The stemmer for a word in `script`: the language's own in its script, the usual language of any other script.
    /// [`Language::Other`] stems nothing.
    pub(crate) fn algorithm(self, script: Script) -> Option<Algorithm> {
        if self == Self::Other {
            return None;
        }
        match script {
            Script::Arabic => Some(Algorithm::Arabic),
            Script::Cyrillic => Some(Algorithm::Russian),
            Script::Greek => Some(Algorithm::Greek),
            Script::Tamil => Some(Algorithm::Tamil),
            Script::Latin => Some(self.latin_algorithm()),
            _ => None,
        }
    }

    fn latin_algorithm(self) -> Algorithm {
        match self {
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Turkish => Algorithm::Turkish,
            _ => Algorithm::English,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_names_its_language_whatever_region_follows() {
        assert_eq!(Language::from_tag("pt-BR"), Some(Language::Portuguese));
        assert_eq!(Language::from_tag("EN_us"), Some(Language::English));
        assert_eq!(Language::from_tag("nb"), Some(Language::Norwegian));
        assert_eq!(Language::from_tag("ja"), Some(Language::Other));
        assert_eq!(Language::from_tag("english"), None);
        assert_eq!(Language::from_tag(""), None);
    }

    #[test]
    fn codes_and_languages_are_one_to_one() {
        for language in Language::ALL {
            assert_eq!(Language::from_tag(language.code()), Some(language));
            assert_eq!(Language::of_code(language.code()), Some(language));
        }
        for unknown in ["", "zz", "EN", "pt-BR"] {
            assert_eq!(Language::of_code(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_text_of_some_length_tells_its_language_and_a_short_one_does_not() {
        let german = "Ich bin gestern mit meiner Schwester in die Stadt gefahren und wir haben ein neues Fahrrad gekauft.";
        assert_eq!(Language::recognise(german), Some(Language::German));
        assert_eq!(
            Language::recognise("Вчера мы ездили в город и купили новый велосипед для сестры."),
            Some(Language::Russian)
        );
        assert_eq!(
            Language::recognise("昨日は友達と一緒に映画を見ました"),
            Some(Language::Other)
        );
        for short in ["", "ok", "Where is Noor?"] {
            assert_eq!(Language::recognise(short), None, "{short}");
        }
    }

    #[test]
    fn without_a_tag_the_language_is_english() {
        assert_eq!(Language::tagged(None), Language::English);
        assert_eq!(Language::tagged(Some("und")), Language::Other);
    }
}
