//! The compact tokenizer of multilingual-e5-small beside `tokenizers`, on chats in 19 languages.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result};
use memfleet_encoder::{Encoder, ModelFiles, Tokens};
use memfleet_models::{ModelDirectory, default_root};

/// Every line of the language sets: messages and questions with the JSON around them.
fn lines() -> Result<Vec<String>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../evaluation/data/languages");
    let mut lines = Vec::new();
    for part in ["dev", "test"] {
        for file in fs::read_dir(data.join(part))? {
            let text = fs::read_to_string(file?.path())?;
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    Ok(lines)
}

/// The contents of a line, and parts of it that begin and end inside words.
fn parts(line: &str) -> impl Iterator<Item = String> {
    let content = line
        .rsplit_once("\": \"")
        .map_or(line, |(_, content)| content);
    let characters: Vec<char> = content.chars().collect();
    let middle = characters.len() / 3..characters.len() / 2;
    let spaceless = characters.iter().filter(|c| !c.is_whitespace()).collect();
    [
        line.to_owned(),
        content.to_owned(),
        characters[middle].iter().collect(),
        characters.iter().rev().collect(),
        spaceless,
    ]
    .into_iter()
}

#[test]
#[ignore = "needs multilingual-e5-small in the model folder"]
fn both_forms_of_the_tokenizer_cut_all_languages_into_the_same_pieces() -> Result<()> {
    let model = ModelDirectory::open(&default_root()?.join("multilingual-e5-small"))?;
    let compact = model.load(NonZeroUsize::MIN)?;
    let files = ModelFiles {
        tokenizer: model.path().join("tokenizer.json"),
        ..model.files()
    };
    let json = Encoder::open(&files, model.spec(), NonZeroUsize::MIN)?;
    let mut compared = 0;
    for line in lines()? {
        for part in parts(&line) {
            let ours = compact.tokenize(&[&part])?;
            let theirs = json.tokenize(&[&part])?;
            let ids = |tokens: &[Tokens]| tokens.first().map(|it| it.ids().to_vec());
            let pieces = ids(&ours).context("one text, one answer")?;
            assert_eq!(Some(&pieces), ids(&theirs).as_ref(), "{part}");
            compared += pieces.len();
        }
    }
    assert!(compared > 1_000_000, "{compared} pieces");
    Ok(())
}
