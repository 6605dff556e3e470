//! Long talks whose sentences are judged as lines of their speakers' profiles.

use std::ops::Range;

use super::SpokenText;
use super::judged::LineJudgement;
use super::lines::{LineError, fields, spoken};

/// A talk of people, or of a person with an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedTalk {
    /// Number of the talk.
    pub number: String,
    /// Tag of the language.
    pub language: String,
    /// Turns in order.
    pub turns: Vec<JudgedTurn>,
}

/// A turn of a talk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedTurn {
    /// Speaker and words, without the marks.
    pub said: SpokenText,
    /// Marked sentences, in order; none overlap. The others say nothing.
    pub sentences: Vec<JudgedSentence>,
}

/// A marked sentence of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedSentence {
    /// Bytes of the turn's words.
    pub bytes: Range<usize>,
    /// The judgement.
    pub judgement: LineJudgement,
}

impl JudgedTalk {
    /// Reads the talks of a file. Fails at the first line that is not of the format.
    pub fn read(text: &str) -> Result<Vec<Self>, LineError> {
        let mut talks: Vec<Self> = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let fault = |problem| LineError {
                line: number,
                problem,
            };
            match line.strip_prefix("## ") {
                Some(heading) => talks.push(Self::begun(heading).map_err(fault)?),
                None => {
                    let turn = JudgedTurn::read(line).map_err(fault)?;
                    let talk = talks.last_mut();
                    let talk = talk.ok_or_else(|| {
                        fault("a turn stands before the first heading".to_owned())
                    })?;
                    talk.turns.push(turn);
                }
            }
        }
        Ok(talks)
    }

    fn begun(heading: &str) -> Result<Self, String> {
        let [number, language] = fields(heading)[..] else {
            return Err("a heading is number | language".to_owned());
        };
        Ok(Self {
            number: number.to_owned(),
            language: language.to_owned(),
            turns: Vec::new(),
        })
    }
}

impl JudgedTurn {
    fn read(line: &str) -> Result<Self, String> {
        let marked = spoken(line)?;
        let (text, sentences) = unmarked(&marked.text)?;
        Ok(Self {
            said: SpokenText { text, ..marked },
            sentences,
        })
    }
}

/// Text without its marks, and the sentences that they mark.
fn unmarked(marked: &str) -> Result<(String, Vec<JudgedSentence>), String> {
    let mut text = String::new();
    let mut sentences = Vec::new();
    let mut rest = marked;
    while let Some((before, behind)) = rest.split_once('[') {
        let mark = behind.split_once(']').and_then(|(mark, after)| {
            let (letters, sentence) = mark.split_once(':')?;
            Some((LineJudgement::of_letters(letters)?, sentence, after))
        });
        let (judgement, sentence, after) = mark
            .filter(|(_, sentence, _)| !sentence.trim().is_empty() && !sentence.contains('['))
            .ok_or_else(|| {
                format!("`[{behind}` is no mark: letters of s, c, w or -, a colon, a sentence")
            })?;
        text.push_str(before);
        let start = text.len();
        text.push_str(sentence);
        sentences.push(JudgedSentence {
            bytes: start..text.len(),
            judgement,
        });
        rest = after;
    }
    text.push_str(rest);
    Ok((text, sentences))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_talk_is_read_with_its_judgements() {
        let text = "## 01 | en\nJon: Hey! [s-w:Lost my job last month], so... [scw:I'm opening a studio.]\n\
            *Assistant: Good luck.\n";
        let talk = &JudgedTalk::read(text).unwrap()[0];
        assert_eq!((&*talk.number, &*talk.language), ("01", "en"));
        let [said, answer] = &talk.turns[..] else {
            panic!("two turns");
        };
        assert_eq!(
            said.said.text,
            "Hey! Lost my job last month, so... I'm opening a studio."
        );
        assert!(answer.said.is_assistant && answer.sentences.is_empty());
        let judged = said.sentences.iter();
        let judged = judged.map(|it| (&said.said.text[it.bytes.clone()], it.judgement.is_line()));
        let expected = [
            ("Lost my job last month", false),
            ("I'm opening a studio.", true),
        ];
        assert_eq!(judged.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_that_is_not_of_the_format_is_told() {
        let mark = "is no mark: letters of s, c, w or -, a colon, a sentence";
        for (text, line, problem) in [
            (
                "Jon: hey",
                1,
                "a turn stands before the first heading".to_owned(),
            ),
            ("## 01", 1, "a heading is number | language".to_owned()),
            (
                "## 01 | en\nhey",
                2,
                "`hey` is no speaker, colon and text".to_owned(),
            ),
            (
                "## 01 | en\nJon: [scx:hey]",
                2,
                format!("`[scx:hey]` {mark}"),
            ),
            ("## 01 | en\nJon: [scw:hey", 2, format!("`[scw:hey` {mark}")),
            ("## 01 | en\nJon: [scw: ]", 2, format!("`[scw: ]` {mark}")),
        ] {
            let error = JudgedTalk::read(text).unwrap_err();
            assert_eq!((error.line, error.problem), (line, problem));
        }
    }
}
