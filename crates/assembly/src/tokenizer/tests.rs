//! What tokenizers promise.

use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;

static ALL: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| {
    Tokenizer::NAMES
        .iter()
        .map(|name| Tokenizer::named(name).unwrap())
        .collect()
});

#[test]
fn amp_078_names_give_their_tokenizer_and_others_an_error_with_those_that_are_known() {
    for name in Tokenizer::NAMES {
        assert_eq!(Tokenizer::named(name).unwrap().name(), name);
    }
    let count = |name: &str, text: &str| Tokenizer::named(name).unwrap().count(text);
    assert_eq!(count("o200k_base", "hello world"), 2);
    assert_eq!(count("bytes", "héllo"), 6);
    let unknown = Tokenizer::named("p50k").unwrap_err().to_string();
    assert!(
        unknown.contains("p50k") && unknown.contains("o200k_base"),
        "{unknown}"
    );
}

#[test]
fn amp_078_only_bounds_are_approximate() {
    for tokenizer in ALL.iter() {
        let bound = matches!(tokenizer.name(), "approximate" | "bytes");
        assert_eq!(tokenizer.is_approximate(), bound);
    }
}

#[test]
fn special_tokens_in_text_are_plain_text() {
    let tokenizer = Tokenizer::named("o200k_base").unwrap();
    assert!(tokenizer.count("<|endoftext|>") > 1);
}

/// A square would take minutes for a megabyte; how long it does take is in the benches.
#[test]
fn amp_079_a_megabyte_of_one_sign_is_counted() {
    for tokenizer in ALL.iter() {
        for unit in [" ", "a", "\n", "é", "! ", "=", "世", " \n", "\u{300}"] {
            let text = unit.repeat((1 << 20) / unit.len());
            assert!(tokenizer.count(&text) > 0, "{unit:?} {}", tokenizer.name());
        }
    }
}

#[test]
fn a_tokenizer_of_the_callers_own_counts_by_its_name() {
    struct Words;
    impl Count for Words {
        fn count(&self, text: &str) -> usize {
            text.split_whitespace().count()
        }
    }
    let words = Tokenizer::counting("words", Arc::new(Words));
    assert_eq!((words.name(), words.count("a b c")), ("words", 3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn amp_064_what_is_added_is_the_same_whether_all_or_the_end_of_the_text_is_looked_at(
        before in "([a-zA-Z'é世.!?)0-9\u{300}]{1,6}[ \n\t]{1,3}){0,60}[a-z \n]{0,70}",
        addition in "[ \n]{0,3}([a-z世<.0-9]{1,7}[ \n]{0,2}){0,9}",
    ) {
        for tokenizer in ALL.iter().filter(|tokenizer| !tokenizer.is_approximate()) {
            let both = [before.as_str(), addition.as_str()].concat();
            let whole = tokenizer.count(&both).saturating_sub(tokenizer.count(&before));
            prop_assert_eq!(tokenizer.added(&before, &addition), whole, "{}", tokenizer.name());
        }
    }
}

mod files {
    use super::*;
    use std::path::PathBuf;

    /// A tokenizer of five whole words, which would truncate to two tokens.
    const WORDS: &str = r#"{"version":"1.0","truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0},
        "padding":null,"added_tokens":[{"id":0,"content":"[CLS]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
        "normalizer":null,"pre_tokenizer":{"type":"Whitespace"},
        "post_processor":{"type":"BertProcessing","sep":["[CLS]",0],"cls":["[CLS]",0]},"decoder":null,
        "model":{"type":"WordLevel","vocab":{"[CLS]":0,"one":1,"two":2,"three":3,"?":4},"unk_token":"?"}}"#;

    fn file(name: &str, content: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("memfleet-assembly-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    #[test]
    fn amp_078_a_file_counts_without_special_tokens_and_without_truncation() {
        let path = file("words.json", WORDS);
        let tokenizers = Tokenizers::new([("words".to_owned(), path.clone())]).unwrap();
        let words = tokenizers.get("words").unwrap();
        assert_eq!(words.count("one two three four"), 4);
        assert!(!words.is_approximate());
        // Loaded once: the file is not needed any more.
        std::fs::remove_file(path).unwrap();
        assert_eq!(tokenizers.clone().get("words").unwrap().count("one two"), 2);
    }

    #[test]
    fn amp_078_names_that_are_not_known_taken_or_not_readable_say_so() {
        let broken = file("broken.json", "{}");
        let tokenizers = Tokenizers::new([("broken".to_owned(), broken)]).unwrap();
        assert_eq!(tokenizers.names().last(), Some(&"broken"));
        let error = |name: &str| tokenizers.get(name).unwrap_err().to_string();
        assert!(error("gpt").contains("bytes, broken"), "{}", error("gpt"));
        assert!(error("broken").contains("broken.json"));
        assert!(tokenizers.get("bytes").is_ok());
        let taken = Tokenizers::new([("bytes".to_owned(), PathBuf::new())]);
        assert!(matches!(taken, Err(TokenizersError::BuiltIn(_))));
    }
}

#[test]
fn nothing_is_counted_once_the_time_is_over() {
    struct Never;
    impl Count for Never {
        fn count(&self, _: &str) -> usize {
            panic!("it is too late")
        }
    }
    let tokenizer = Tokenizer::counting("slow", Arc::new(Never)).until(Instant::now());
    assert_eq!(tokenizer.count("some words"), 10);
    let far = Instant::now() + std::time::Duration::from_hours(1);
    let tokenizer = Tokenizer::named("o200k_base").unwrap().until(far);
    assert_eq!(tokenizer.count("some words"), 2);
}
