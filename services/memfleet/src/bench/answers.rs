//! `memfleet bench answers`: answers without a language model to the questions of scenarios of the
//! understanding corpus, each in a space of its own: right, stale, both, something else, or none.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use futures::TryStreamExt;
use memfleet_consolidator::Mode;
use memfleet_evaluation::understanding::ScenarioQuestion;
use memfleet_ports::memory::{AnswerMode, AnswerPart, AnswerRequest, Memory, Outcome};
use memfleet_runtime::BoxError;
use serde::Serialize;

use super::changes::{STAGES, ScenarioArgs, remembered};
use super::retrieval::progress;
use super::{Bench, percent, query};
use crate::corpus::call;
use crate::models::ConfiguredModels;

/// Hits that an answer is made of, at most.
const DEPTH: u32 = 20;

/// Arguments.
#[derive(Debug, Args)]
pub struct AnswersArgs {
    #[command(flatten)]
    scenarios: ScenarioArgs,
    /// Name the questions and their answers
    #[arg(long)]
    list: bool,
    /// Write the report as JSON to this file
    #[arg(id = "json", long = "json", value_name = "OUT")]
    pub out: Option<PathBuf>,
}

/// Figures of one part.
#[derive(Debug, Serialize)]
pub struct AnswersReport {
    part: String,
    scenarios: usize,
    /// By the tense of the question.
    tenses: BTreeMap<&'static str, AnswerFigures>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    list: Vec<String>,
}

/// Answers to the questions of a tense.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct AnswerFigures {
    questions: usize,
    /// Answers that hold a right value and no wrong one.
    right: usize,
    /// Answers that hold both.
    both: usize,
    /// Answers that hold a wrong value alone.
    wrong: usize,
    /// Answers that hold neither.
    other: usize,
    /// Questions that are not answered.
    abstained: usize,
}

impl AnswerFigures {
    fn add(&mut self, question: &ScenarioQuestion, answer: Option<&str>) {
        self.questions += 1;
        let holds = |values: &[String]| {
            let answer = answer.map(str::to_lowercase).unwrap_or_default();
            values.iter().any(|it| answer.contains(&it.to_lowercase()))
        };
        let count = match (answer, holds(&question.right), holds(&question.wrong)) {
            (None, ..) => &mut self.abstained,
            (_, true, false) => &mut self.right,
            (_, true, true) => &mut self.both,
            (_, false, true) => &mut self.wrong,
            (_, false, false) => &mut self.other,
        };
        *count += 1;
    }

    fn row(&self, name: &str) -> String {
        let share = |count| percent(count, self.questions);
        format!(
            "{name:8} {:6} {:7.1} {:7.1} {:7.1} {:7.1} {:10.1}",
            self.questions,
            share(self.right),
            share(self.both),
            share(self.wrong),
            share(self.other),
            share(self.abstained),
        )
    }
}

impl AnswersReport {
    /// Lines for people.
    pub fn table(&self) -> String {
        let mut lines = vec![
            format!("{} scenarios of {}; shares in %", self.scenarios, self.part),
            "tense    number   right    both   wrong   other  abstained".to_owned(),
        ];
        let rows = self.tenses.iter();
        lines.extend(rows.map(|(tense, figures)| figures.row(tense)));
        lines.extend(self.list.iter().cloned());
        lines.join("\n")
    }
}

/// Measures one part of the corpus.
pub async fn measure(
    args: &AnswersArgs,
    models: &ConfiguredModels,
) -> Result<AnswersReport, BoxError> {
    let scenarios = args.scenarios.scenarios()?;
    let bench = Bench::start_with(models, &STAGES, Mode::default()).await?;
    let gateway = &bench.node.gateway;
    let mut report = AnswersReport {
        part: args.scenarios.part.clone(),
        scenarios: scenarios.len(),
        tenses: BTreeMap::new(),
        list: Vec::new(),
    };
    let corpora = remembered(&bench, &scenarios, &args.scenarios.among()?).await?;
    let bar = progress("asking", scenarios.len());
    for (scenario, corpus) in scenarios.iter().zip(&corpora) {
        for question in &scenario.questions {
            let request = AnswerRequest {
                query: query(&corpus.space, question.text.clone(), DEPTH),
                wait_for: Vec::new(),
                mode: AnswerMode::Rules,
            };
            let answer = answer(&**gateway, request).await?;
            let figures = report.tenses.entry(question.tense.name()).or_default();
            figures.add(question, answer.as_deref());
            if args.list {
                let answer = answer.as_deref().unwrap_or("(none)").replace('\n', " | ");
                report.list.push(format!(
                    "{} {} {}: {} => {answer}",
                    scenario.kind,
                    scenario.number,
                    question.tense.name(),
                    question.text
                ));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    bench.stop().await;
    Ok(report)
}

/// Words of an answer; nothing where memory does not hold it.
async fn answer(memory: &dyn Memory, request: AnswerRequest) -> Result<Option<String>, BoxError> {
    let parts: Vec<AnswerPart> = memory.answer(&call(), request).await?.try_collect().await?;
    let mut words = String::new();
    for part in parts {
        match part {
            AnswerPart::Text(text) => words.push_str(&text),
            AnswerPart::End(end) if end.outcome == Outcome::Abstained => return Ok(None),
            AnswerPart::End(_) | AnswerPart::Citation(_) => {}
        }
    }
    Ok(Some(words))
}
