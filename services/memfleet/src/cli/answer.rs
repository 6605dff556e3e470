//! `memfleet answer`: a question answered from memory, with what the answer rests on.

use clap::{Args, ValueEnum};
use futures::TryStreamExt;
use memfleet_ports::memory::{
    AnswerEnd, AnswerMode, AnswerPart, AnswerRequest, Answers, Citation, Outcome,
};
use memfleet_rpc::limits;
use memfleet_runtime::BoxError;
use serde_json::{Value, json};

use super::Handle;
use super::exit::{Error, Exit};
use super::recall::SearchArgs;
use super::values::range;
use crate::output::{Output, Palette, count, printable, time};

/// Answer a question from memory, with the turns that the answer rests on
#[derive(Debug, Args)]
pub struct AnswerArgs {
    #[command(flatten)]
    search: SearchArgs,
    /// How many turns to look at
    #[arg(long, short, default_value_t = 20, value_parser = range(1..=limits::EVIDENCE))]
    k: u32,
    /// Who answers
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    mode: Mode,
}

/// Who answers.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// A language model if the node has one and it says something, else quotations
    Auto,
    /// Quotations; no language model is asked
    Rules,
    /// A language model, or an error
    Model,
}

/// Runs the command.
pub async fn run(args: AnswerArgs, handle: &Handle, output: &mut Output) -> Result<Exit, Error> {
    let (query, wait_for) = args.search.query(args.k);
    let several = query.spaces.len() > 1;
    let request = AnswerRequest {
        query,
        wait_for,
        mode: match args.mode {
            Mode::Auto => AnswerMode::Auto,
            Mode::Rules => AnswerMode::Rules,
            Mode::Model => AnswerMode::Model,
        },
    };
    let parts = handle.memory.answer(&handle.call(), request).await?;
    let answer = read(parts, output).await?;
    if output.is_json() {
        output.json(&to_json(&answer))?;
    } else {
        let palette = output.palette();
        output.text(&below(&answer, several, palette))?;
    }
    Ok(Exit::Done)
}

/// An answer that has arrived.
struct Answer {
    text: String,
    /// Each once, in order.
    citations: Vec<Citation>,
    end: AnswerEnd,
}

/// Reads an answer to its end. People see it as it comes, with the number of each citation.
async fn read(mut parts: Answers<AnswerPart>, output: &mut Output) -> Result<Answer, Error> {
    let (mut text, mut citations) = (String::new(), Vec::<Citation>::new());
    while let Some(part) = parts.try_next().await? {
        let shown = match part {
            AnswerPart::Text(more) => {
                text.push_str(&more);
                printable(&more)
            }
            AnswerPart::Citation(citation) => format!(" [{}]", number(&mut citations, *citation)),
            AnswerPart::End(end) => {
                return Ok(Answer {
                    text,
                    citations,
                    end,
                });
            }
        };
        if !output.is_json() {
            output.piece(&shown)?;
            output.flush()?;
        }
    }
    Err(BoxError::from("the answer broke off before its end; ask again").into())
}

/// The number of a citation in the list, from 1.
fn number(citations: &mut Vec<Citation>, citation: Citation) -> usize {
    let known = citations.iter().position(|known| *known == citation);
    known.unwrap_or_else(|| {
        citations.push(citation);
        citations.len() - 1
    }) + 1
}

fn to_json(answer: &Answer) -> Value {
    let end = &answer.end;
    let citations = answer.citations.iter().map(|citation| {
        let (start, stop) = citation.evidence;
        json!({
            "space": citation.space,
            "turn_id": citation.turn,
            "session": citation.session,
            "speaker": citation.speaker,
            "time": citation.time,
            "evidence": (start < stop).then_some([start, stop]),
            "quote": citation.quote,
        })
    });
    json!({
        "answer": (end.outcome == Outcome::Answered).then_some(&answer.text),
        "citations": citations.collect::<Vec<_>>(),
        "outcome": match end.outcome {
            Outcome::Answered => "answered",
            Outcome::Abstained => "abstained",
        },
        "mode": if end.model.is_some() { "model" } else { "rules" },
        "model": end.model.as_ref().map(|model| &model.model),
        "prompt": end.model.as_ref().map(|model| &model.prompt),
        "looked_at": end.looked_at,
        "dropped_citations": end.dropped_citations,
        "understood": end.understood,
        "retries": end.retries,
        "uncertain": end.is_uncertain,
        "degraded": end.degraded,
    })
}

/// What stands below the words: what they rest on, who said them, what was missing; `several` names the space of each citation.
fn below(answer: &Answer, several: bool, palette: Palette) -> String {
    let mut lines = vec![match answer.end.outcome {
        Outcome::Answered => "\n".to_owned(),
        Outcome::Abstained => palette.warning("memory does not hold the answer"),
    }];
    let numbered = answer.citations.iter().zip(1..);
    lines.extend(numbered.map(|(citation, number)| line(citation, number, several, palette)));
    let end = &answer.end;
    let author = match &end.model {
        Some(model) => printable(&model.model),
        None => "quotation".to_owned(),
    };
    let looked_at = count(end.looked_at.into(), "turn");
    let again = match end.retries {
        0 => String::new(),
        retries => format!(", looked again {}", count(retries.into(), "time")),
    };
    lines.push(palette.dim(&format!("by {author}, from {looked_at}{again}")));
    if let Some(understood) = &end.understood {
        lines.push(palette.dim(&format!("understood as: {}", printable(understood))));
    }
    if end.dropped_citations > 0 {
        let dropped = count(end.dropped_citations.into(), "citation");
        lines.push(palette.warning(&format!("{dropped} of nothing that was shown left out")));
    }
    let missing = end.degraded.iter();
    lines.extend(
        missing.map(|missing| palette.warning(&format!("incomplete: {}", printable(missing)))),
    );
    lines.join("\n")
}

fn line(citation: &Citation, number: usize, several: bool, palette: Palette) -> String {
    let session = printable(citation.session.as_str());
    let place = match several {
        true => format!("{} / {session}", printable(citation.space.as_str())),
        false => session,
    };
    let quote = printable(&citation.quote);
    let quote = quote.split_whitespace().collect::<Vec<_>>().join(" ");
    let speaker = palette.strong(&printable(citation.speaker.as_str()));
    let when = time(citation.time);
    format!(
        "[{number}] {}  {speaker}  {when}  {quote}",
        palette.dim(&place)
    )
}

#[cfg(test)]
mod tests {
    use memfleet_domain::Timestamp;
    use memfleet_domain::ids::{SessionId, SpaceId, Speaker, TurnId};

    use super::*;

    fn citation(quote: &str) -> Citation {
        Citation {
            space: SpaceId::new("ada").unwrap(),
            turn: TurnId::from_bytes([1; 16]),
            session: SessionId::new("monday").unwrap(),
            speaker: Speaker::new("Ada").unwrap(),
            time: Timestamp::UNIX_EPOCH,
            evidence: (0, quote.len() as u32),
            quote: quote.to_owned(),
        }
    }

    fn answer(outcome: Outcome, citations: Vec<Citation>) -> Answer {
        Answer {
            text: "Oslo".to_owned(),
            citations,
            end: AnswerEnd {
                outcome,
                model: None,
                degraded: vec!["facts: \u{1b}[2J".to_owned()],
                looked_at: 2,
                dropped_citations: 1,
                understood: None,
                retries: 1,
                is_uncertain: false,
            },
        }
    }

    #[test]
    fn a_citation_has_one_number() {
        let mut citations = Vec::new();
        let numbers = ["a", "b", "a"].map(|quote| number(&mut citations, citation(quote)));
        assert_eq!((numbers, citations.len()), ([1, 2, 1], 2));
    }

    #[test]
    fn citations_stand_below_the_words_one_a_line() {
        let answered = answer(Outcome::Answered, vec![citation("I moved\nto Oslo.")]);
        assert_eq!(
            below(&answered, true, Palette::default()),
            "\n\n[1] ada / monday  Ada  1970-01-01 00:00  I moved to Oslo.\nby quotation, from 2 turns, looked again 1 time\n\
             1 citation of nothing that was shown left out\nincomplete: facts: \u{fffd}[2J"
        );
    }

    #[test]
    fn an_abstention_says_so_and_has_no_answer() {
        let abstained = answer(Outcome::Abstained, Vec::new());
        let text = below(&abstained, false, Palette::default());
        assert!(text.starts_with("memory does not hold the answer\nby quotation"));
        let json = to_json(&abstained);
        assert_eq!(
            (json["answer"].is_null(), &json["outcome"]),
            (true, &json!("abstained"))
        );
    }
}
