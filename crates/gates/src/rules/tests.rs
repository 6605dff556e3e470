use memfleet_domain::assembly::GateOutcome::{Force, Pass, Skip};
use memfleet_domain::assembly::{GateOutcome, Reason};
use proptest::prelude::*;

use super::{Before, Judgement, Rules, Utterance};
use crate::labelled::{self, Expected, Labelled};

fn judge_in(text: &str, has_history: bool) -> Judgement {
    judge_after(
        text,
        match has_history {
            true => Before::Turns,
            false => Before::Nothing,
        },
    )
}

fn judge_after(text: &str, before: Before) -> Judgement {
    Rules::shipped().judge(Utterance { text, before })
}

fn judge(text: &str) -> Judgement {
    judge_in(text, false)
}

#[track_caller]
fn all(texts: &[&str], outcome: GateOutcome, reason: Reason) {
    for text in texts {
        let judgement = judge(text);
        assert_eq!(
            (judgement.outcome, judgement.reason),
            (outcome, reason),
            "{text:?}: {judgement:?}"
        );
    }
}

fn tuning() -> Vec<Labelled> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../evaluation/data/gates/tuning.tsv"
    );
    labelled::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn judged(expected: Expected) -> Vec<(Labelled, Judgement)> {
    let lines = tuning()
        .into_iter()
        .filter(|line| line.expected == expected);
    let judged = lines.map(|line| {
        let judgement = judge_in(&line.text, line.has_history);
        (line, judgement)
    });
    judged.collect()
}

#[test]
fn amp_042_greetings_acknowledgements_and_commands_are_skipped() {
    let pleasantries = [
        "hi",
        "Hi Anna!",
        "heyyy",
        "Good morning Claude :)",
        "ok thanks, bye",
        "thx!!",
        "lol",
        "👍🏽",
        "🎉🥳",
        "hahahaha",
        "T H X",
        "Ｔｈａｎｋ　ｙｏｕ！",
        "merci, have a nice day!",
        "got it, thanks so much",
    ];
    all(&pleasantries, Skip, Reason::Pleasantry);
    all(
        &["/clear", " /new ", "/model opus", "/add-dir ../docs"],
        Skip,
        Reason::Command,
    );
    all(
        &["```\nlet x = 1;\n```", "fn main() {\n    run();\n}"],
        Skip,
        Reason::CodeOnly,
    );
}

#[test]
fn amp_042_an_assent_is_skipped_only_where_it_accepts_nothing() {
    for text in ["got it", "alles klar"] {
        assert_eq!(judge_in(text, true).outcome, Pass, "{text}");
        assert_eq!(judge_in(text, false).reason, Reason::Pleasantry, "{text}");
    }
    for text in ["yes", "ok", "sí", "да", "好的", "はい", "네"] {
        assert_eq!(judge_in(text, true).outcome, Pass, "{text}");
        assert_eq!(judge_in(text, false).outcome, Pass, "{text}");
        let thanks = format!("{text}, thank you");
        assert_eq!(judge_in(&thanks, true).outcome, Pass, "{text}");
        assert_eq!(judge_in(&thanks, false).reason, Reason::Pleasantry);
    }
    for text in [
        "yes, but without nuts",
        "no, the other one",
        "Tuesday",
        "42",
        "yes tomorrow",
    ] {
        assert_eq!(judge_in(text, true).outcome, Pass, "{text}");
    }
}

#[test]
fn assent_after_a_turn_of_the_assistant_is_not_skipped() {
    for offer in [
        "Say the word and I'll deploy.",
        "I can book the table for eight.",
        "続けますか。",
        "Ich kann das gern übernehmen.",
    ] {
        for assent in [
            "go ahead",
            "lgtm",
            "ok",
            "sounds good",
            "👍",
            "続けて",
            "ok, do it",
            "yes, thank you",
            "ok thanks",
            "sure 🙂",
            "yes haha",
            "thanks 👍",
            "```\nlet x = 1;\n```",
        ] {
            let outcome = judge_after(assent, Before::reply(offer)).outcome;
            assert_eq!(outcome, Pass, "{offer} / {assent}");
        }
        for closing in ["thanks!", "haha", "good night", "🎉"] {
            let outcome = judge_after(closing, Before::reply(offer)).outcome;
            assert_eq!(outcome, Skip, "{offer} / {closing}");
        }
    }
}

#[test]
fn nothing_is_a_pleasantry_after_a_question_of_the_assistant() {
    let asked = Before::reply("Step 1 is done. Shall I go on with step 2, the batch size?");
    for text in [
        "go ahead",
        "done",
        "lgtm",
        "続けて",
        "continue",
        "next",
        "proceed",
        "yes",
        "thanks",
        "👍",
        "looks good",
        "はい",
        "```\nbatch = 50;\n```",
    ] {
        assert_eq!(judge_after(text, asked).outcome, Pass, "{text}");
    }
    for asks in ["続けますか？", "هل أتابع؟", "Which one?\n1. tea\n2. coffee"] {
        assert_eq!(
            judge_after("ok", Before::reply(asks)).outcome,
            Pass,
            "{asks}"
        );
    }
    for tells in [
        "Step 1 is done; the tests pass.",
        "See https://a.example/?q=1.",
    ] {
        assert_eq!(
            judge_after("thanks", Before::reply(tells)).outcome,
            Skip,
            "{tells}"
        );
    }
    assert_eq!(
        judge_after("ok", Before::reply("Να συνεχίσω;")).outcome,
        Pass
    );
    assert_eq!(judge_after("/clear", asked).outcome, Skip);
    let reference = judge_after("as we discussed", asked);
    assert_eq!(reference.outcome, Force);
}

#[test]
fn amp_044_references_to_memory_force_the_search() {
    let references = [
        "Remember when we compared the two machines?",
        "what did I tell you about the leak",
        "as we discussed last week, go on",
        "was hatten wir letzte Woche besprochen?",
        "¿Qué te conté de la boda?",
        "我上次跟你说的那个装修队叫什么？",
        "覚えてる？ 前に話した店",
        "어디로 가기로 했었는지 기억나?",
        "помнишь, что мы решили?",
        "هل تذكر اسم الطبيب",
        "จำได้ไหมว่าเราเลือกโรงแรมไหน",
    ];
    all(&references, Force, Reason::MemoryReference);
}

#[test]
fn amp_045_imperatives_with_content_pass() {
    let imperatives = [
        "update me on the migration",
        "create a summary of what happened",
        "draft the mail to Tom",
        "hello! please finish the letter",
    ];
    all(&imperatives, Pass, Reason::Undecided);
}

#[test]
fn amp_046_short_content_passes() {
    let short = [
        "my dog's name",
        "RRF",
        "Berlin plan",
        "OK Computer",
        "thanks list",
        "Henry",
        "Hello Kitty backpack",
        "rent",
        "/etc/hosts is broken",
        "/srv/media",
        "garage code",
        "Thanksgiving menu",
        "555 1234",
    ];
    all(&short, Pass, Reason::Undecided);
}

#[test]
fn amp_047_greetings_of_any_script_are_skipped() {
    let greetings = [
        "你好",
        "こんにちは！",
        "안녕하세요~",
        "สวัสดีค่ะ",
        "السلام عليكم",
        "नमस्ते",
        "Здравствуйте!",
        "谢谢！",
        "ขอบคุณมากครับ",
        "ありがとうございます。",
        "привіт",
    ];
    all(&greetings, Skip, Reason::Pleasantry);
}

#[test]
fn amp_047_questions_in_any_script_pass() {
    let questions = [
        "我的狗叫什么？",
        "私の犬の名前は？",
        "내 개 이름이 뭐야？",
        "หมาของฉันชื่ออะไร",
        "ما اسم كلبي؟",
        "मेरे कुत्ते का नाम क्या है？",
        "Как зовут мою собаку?",
        "კარგად ხარ, რა ჰქვია ძაღლს?",
        "Πώς λένε τον σκύλο μου;",
        "איך קוראים לכלב שלי?",
    ];
    all(&questions, Pass, Reason::Undecided);
}

#[test]
fn amp_047_a_language_that_the_data_does_not_know_is_undecided() {
    all(
        &["გამარჯობა", "ሰላም", "sannu da zuwa", "ᏏᏲ", "xqzzt"],
        Pass,
        Reason::Undecided,
    );
}

#[test]
fn amp_048_follow_ups_are_undecided() {
    for text in [
        "and the second one?",
        "why not?",
        "the blue one",
        "und der andere?",
        "那第二个呢",
        "ok and then what",
    ] {
        assert_eq!(judge_in(text, true).outcome, Pass, "{text}");
    }
}

#[test]
fn amp_049_a_session_in_prose_is_prose() {
    all(
        &["session Alpha", "what was said in session 12"],
        Pass,
        Reason::Undecided,
    );
}

#[test]
fn amp_050_text_that_cannot_be_seen_is_empty() {
    all(
        &[
            "",
            " ",
            "\n\t",
            "\u{200b}\u{feff}",
            "...",
            "？！",
            "\u{200d} \u{2060}",
        ],
        Skip,
        Reason::Empty,
    );
}

#[test]
fn amp_051_the_rule_its_pattern_and_the_version_are_named() {
    let judgement = judge("Thanks a lot!");
    assert_eq!(judgement.rule.as_deref(), Some("pleasantry.en.thanks"));
    assert_eq!(judgement.pattern.as_deref(), Some("thanks a lot"));
    assert_eq!(judgement.version, super::VERSION);
    assert_eq!(judge("vector").rule, None);
}

#[test]
fn amp_058_rules_skip_at_most_one_in_a_hundred_wrongly() {
    let judged = judged(Expected::Ask);
    let wrong = judged.iter().filter(|(_, it)| it.outcome == Skip);
    let wrong = wrong
        .map(|(line, it)| (&line.text, &it.rule))
        .collect::<Vec<_>>();
    assert!(
        wrong.len() * 100 <= judged.len(),
        "{} of {}: {wrong:#?}",
        wrong.len(),
        judged.len()
    );
}

#[test]
fn amp_058_rules_let_few_idle_utterances_pass() {
    // Assents in a conversation and code that answers pass: most of these.
    let judged = judged(Expected::Skip);
    let idle = judged.iter().filter(|(_, it)| it.outcome != Skip);
    let idle = idle
        .map(|(line, it)| (&line.text, it.outcome))
        .collect::<Vec<_>>();
    assert!(
        idle.len() * 10 <= judged.len() * 3,
        "{} of {}: {idle:#?}",
        idle.len(),
        judged.len()
    );
}

proptest! {
    #[test]
    fn any_text_is_judged_without_panic(text in any::<String>(), has_history in any::<bool>()) {
        judge_in(&text, has_history);
    }

    #[test]
    fn a_word_that_is_left_over_leaves_it_undecided(word in "[b-d][f-h][k-m][p-s][v-x]") {
        let judgement = judge(&format!("thanks a lot, {word}"));
        prop_assert_eq!(judgement.outcome, Pass);
    }
}
