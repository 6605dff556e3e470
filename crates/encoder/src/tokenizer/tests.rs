//! The compact form beside `tokenizers`, on a small vocabulary with gaps.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// Pieces with scores that tie, overlap and leave characters out; special ones as XLM-RoBERTa has
/// them.
fn vocabulary() -> Vec<(String, f64)> {
    let special = ["<s>", "<pad>", "</s>", "<unk>"].map(|piece| (piece, 0.0));
    let pieces = [
        ("▁", -4.0),
        ("▁a", -4.5),
        ("a", -5.0),
        ("aa", -10.0),
        ("aaa", -15.0),
        ("b", -5.25),
        ("ab", -6.125),
        ("abab", -9.0),
        ("▁abc", -7.0),
        ("bcde", -6.0),
        ("e", -8.0),
        ("é", -6.0),
        ("ß", -7.5),
        ("<", -9.0),
        ("s", -6.0),
        (">", -9.0),
        ("/s", -8.0),
        ("s>", -9.5),
        ("猫", -7.0),
        ("▁猫", -6.5),
        ("猫が", -8.0),
        ("가", -7.0),
        ("각", -7.25),
        ("ก", -6.0),
        ("กำ", -6.5),
        ("ا", -5.0),
        ("لا", -5.5),
        ("👍", -8.0),
        ("fi", -6.0),
        ("x", -20.0),
        ("1", -5.0),
        ("⁄", -6.0),
        ("12", -7.0),
        (":", -5.0),
    ];
    let all = special.into_iter().chain(pieces);
    all.map(|(piece, score)| (piece.to_owned(), score))
        .collect()
}

/// A `tokenizer.json` of the XLM-RoBERTa family.
fn description() -> Value {
    let special = ["<s>", "<pad>", "</s>", "<unk>"].into_iter().enumerate();
    let added = special.map(|(id, content)| {
        json!({
            "id": id, "content": content, "single_word": false, "lstrip": false,
            "rstrip": false, "normalized": false, "special": true,
        })
    });
    let token = |name: &str| json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let sequence = json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let described = |name: &str, id: u32| json!({ "id": name, "ids": [id], "tokens": [name] });
    json!({
        "version": "1.0",
        "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": { "type": "Sequence", "normalizers": [
            { "type": "Nmt" },
            { "type": "NFKC" },
            { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " },
        ] },
        "pre_tokenizer": {
            "type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true,
        },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [token("<s>"), sequence, token("</s>")],
            "pair": [token("<s>"), sequence, token("</s>")],
            "special_tokens": { "<s>": described("<s>", 0), "</s>": described("</s>", 2) },
        },
        "decoder": null,
        "model": {
            "type": "Unigram", "unk_id": 3, "vocab": vocabulary(), "byte_fallback": false,
        },
    })
}

/// Both forms of a tokenizer, read back from files.
fn both(description: &Value, max_tokens: usize) -> (ModelTokenizer, ModelTokenizer) {
    let folder = TempDir::new().unwrap();
    let (json, compact) = (folder.path().join("json"), folder.path().join("compact"));
    fs::write(&json, description.to_string()).unwrap();
    fs::write(&compact, compact_tokenizer(&json).unwrap().unwrap()).unwrap();
    let open = |path| ModelTokenizer::open(path, max_tokens).unwrap();
    (open(&compact), open(&json))
}

fn assert_same((compact, json): &(ModelTokenizer, ModelTokenizer), text: &str) {
    let (ours, theirs) = (
        compact.tokenize(text).unwrap(),
        json.tokenize(text).unwrap(),
    );
    let beginning: String = text.chars().take(80).collect();
    assert_eq!(ours.ids(), theirs.ids(), "{beginning:?}");
    assert_eq!(ours.pieces(), theirs.pieces(), "{beginning:?}");
}

/// Strings of which each has its way through some step.
fn fragment() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "a",
        "aa",
        "ab",
        "abab",
        "abc",
        "bcde",
        "e",
        "e\u{301}",
        "\u{301}",
        "x",
        "s",
        "<",
        ">",
        "/",
        "<s>",
        "</s>",
        "<unk>",
        "<pad>",
        "＜s＞",
        "＜unk＞",
        " ",
        "  ",
        "\u{3000}",
        "\u{a0}",
        "\u{a8}",
        "▁",
        "\t",
        "\n",
        "\r",
        "\0",
        "\u{1}",
        "\u{b}",
        "\u{7f}",
        "\u{85}",
        "\u{200b}",
        "\u{200d}",
        "\u{feff}",
        "\u{fffd}",
        "\u{2028}",
        "ﬁ",
        "½",
        "①",
        "㍿",
        "ﷺ",
        "가",
        "\u{1100}\u{1161}",
        "\u{11a8}",
        "กำ",
        "ก\u{e33}",
        "لا",
        "ﻻ",
        "猫が",
        "か\u{3099}",
        "👍",
        "👍🏽",
        "👩\u{200d}👩",
        "🇬🇷",
        "\u{fe0f}",
        "Ω",
        "ſ",
        "\u{1e9b}\u{323}",
        "\u{10ffff}",
        "\u{e000}",
        "𝐀",
        "ö",
        "q",
    ]);
    prop_oneof![6 => known.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_forms_cut_any_text_into_the_same_pieces(
        fragments in prop::collection::vec(fragment(), 0..40),
        max_tokens in prop::sample::select(vec![4_usize, 9, 512]),
    ) {
        thread_local! {
            static TOKENIZERS: [(usize, (ModelTokenizer, ModelTokenizer)); 3] =
                [4, 9, 512].map(|most| (most, both(&description(), most)));
        }
        let text = fragments.concat();
        TOKENIZERS.with(|tokenizers| {
            let found = tokenizers.iter().find(|(most, _)| *most == max_tokens);
            assert_same(&found.unwrap().1, &text);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn placed_pieces_are_those_of_the_text_and_stand_in_its_order(
        fragments in prop::collection::vec(fragment(), 0..20),
    ) {
        thread_local! {
            static COMPACT: ModelTokenizer = both(&description(), 512).0;
        }
        // Strings of special pieces are cut like any other here.
        let fragments = fragments.into_iter().filter(|it| !it.contains(['<', '＜', '>', '＞']));
        let text: String = fragments.collect();
        let (placed, plain) = COMPACT.with(|tokenizer| {
            (tokenizer.pieces(&text, 510).unwrap(), tokenizer.tokenize(&text).unwrap())
        });
        let ids: Vec<u32> = placed.iter().map(|piece| piece.id).collect();
        prop_assert_eq!(&ids[..], plain.pieces());
        for piece in &placed {
            prop_assert!(text.get(piece.bytes.clone()).is_some(), "{:?}", piece);
        }
        prop_assert!(placed.is_sorted_by_key(|piece| piece.bytes.start));
    }
}

fn placed_at(tokenizer: &ModelTokenizer, text: &str) -> Vec<std::ops::Range<usize>> {
    let pieces = tokenizer.pieces(text, 9).unwrap();
    pieces.into_iter().map(|piece| piece.bytes).collect()
}

#[test]
fn a_head_keeps_the_space_at_its_end() {
    let (compact, json) = both(&description(), 512);
    let ids = |tokenizer: &ModelTokenizer| -> Vec<u32> {
        let pieces = tokenizer.pieces("aa: ", 9).unwrap();
        pieces.into_iter().map(|piece| piece.id).collect()
    };
    assert_eq!(ids(&compact), ids(&json));
}

#[test]
fn few_pieces_of_a_long_word_take_little_time() {
    let (compact, _) = both(&description(), 512);
    let text = "ab1x".repeat(1 << 20);
    let begun = std::time::Instant::now();
    for _ in 0..100 {
        assert_eq!(compact.pieces(&text, 96).unwrap().len(), 96);
    }
    assert!(begun.elapsed().as_secs() < 5);
}

#[test]
fn placed_pieces_name_their_bytes() {
    let (compact, json) = both(&description(), 512);
    let places = |tokenizer: &ModelTokenizer| {
        let pieces = tokenizer.pieces("aa  bcdeｅ 猫がx", 9).unwrap();
        let bytes = pieces.into_iter().map(|piece| piece.bytes);
        bytes.collect::<Vec<_>>()
    };
    assert_eq!(
        places(&compact),
        [0..1, 1..2, 2..3, 4..8, 8..11, 11..12, 12..18, 18..19]
    );
    assert_eq!(places(&json).len(), 8);
    assert_eq!(placed_at(&compact, "猫"), placed_at(&json, "猫"));
    assert_eq!(compact.pieces("aa bb aa", 2).unwrap().len(), 2);
    assert_eq!(compact.around().unwrap(), (0, 2));
    assert_eq!(json.around().unwrap(), (0, 2));
}

#[test]
fn an_empty_text_has_no_pieces_of_its_own() {
    let tokenizers = both(&description(), 8);
    for text in ["", " ", "\u{1}", "\u{1}\u{7f}", "\u{feff}"] {
        assert_same(&tokenizers, text);
    }
    let tokens = tokenizers.0.tokenize("").unwrap();
    assert_eq!((tokens.ids(), tokens.pieces()), (&[0, 2][..], &[][..]));
}

#[test]
fn a_word_of_a_megabyte_takes_time_in_proportion() {
    let tokenizers = both(&description(), 512);
    for unit in ["a", "ab", "x", "q", "\u{301}", "</s>", "<", "\u{1}", "a "] {
        let text = unit.repeat((1 << 20) / unit.len());
        let started = std::time::Instant::now();
        tokenizers.0.tokenize(&text).unwrap();
        assert!(started.elapsed().as_secs() < 5, "{unit:?}");
        assert_same(&tokenizers, &unit.repeat(2000));
    }
}

#[test]
fn a_compact_file_that_is_cut_off_or_damaged_is_refused() {
    let folder = TempDir::new().unwrap();
    let (json, compact) = (folder.path().join("json"), folder.path().join("compact"));
    fs::write(&json, description().to_string()).unwrap();
    let whole = compact_tokenizer(&json).unwrap().unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&compact, bytes).unwrap();
        ModelTokenizer::open(&compact, 8).err().unwrap().to_string()
    };
    for length in 0..whole.len() {
        let reason = refused(&whole[..length]);
        let is_named = reason.ends_with("pull the model again");
        assert!(is_named || length < 20, "{reason}");
    }
    let mut damaged = whole.clone();
    damaged[whole.len() - 40] ^= 1;
    assert!(refused(&damaged).ends_with("pull the model again"));
}

#[test]
fn other_steps_have_no_compact_form() {
    let mut others = vec![description(); 4];
    others[0]["model"]["type"] = json!("WordPiece");
    others[1]["model"]["byte_fallback"] = json!(true);
    others[2]["normalizer"]["normalizers"][1]["type"] = json!("NFC");
    others[3]["added_tokens"][0]["lstrip"] = json!(true);
    for other in others {
        assert_eq!(compact::of_json(other.to_string().as_bytes()), Ok(None));
    }
    assert!(compact::of_json(b"{").is_err());
}
