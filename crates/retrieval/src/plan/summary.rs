//! Whether a query asks for a summary: then long turns, which say much at once, are not held back.

/// How words begin that ask for a summary, in the languages of the word lists.
const BEGINNINGS: &[&str] = &[
    "summar",
    "overview",
    "recap",
    "zusammenfass",
    "zusammengefasst",
    "überblick",
    "résum",
    "récapitul",
    "resum",
    "riassu",
    "riepilog",
    "panoramica",
    "samenvat",
    "overzicht",
    "sammanfatt",
    "sammendrag",
    "opsummer",
    "oppsummer",
    "özet",
    "обзор",
    "резюм",
    "краткое содержание",
    "总结",
    "總結",
    "概述",
    "まとめ",
    "要約",
    "요약",
];

/// Whether a word of the text begins in one of those ways; in scripts without spaces, whether the text holds one.
pub(super) fn is_asked_for(text: &str) -> bool {
    let text = text.to_lowercase();
    BEGINNINGS.iter().any(|beginning| {
        text.match_indices(beginning).any(|(at, _)| {
            let spaceless = !beginning.starts_with(char::is_lowercase);
            spaceless || !text[..at].ends_with(char::is_alphanumeric)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_a_summary_are_heard_at_the_beginning_of_words() {
        assert!(is_asked_for("Could you Summarise our plans?"));
        assert!(is_asked_for("Give me an OVERVIEW."));
        assert!(is_asked_for("これまでの話を要約して"));
        assert!(!is_asked_for("Did she presume so?"));
    }
}
