//! Labels held against the text of their scenario.

use super::{
    LabelledScenario, QuestionTense, Relation, ScenarioKind, ScenarioQuestion, StatementPlace,
};

/// Turns of a scenario.
const TURNS: std::ops::RangeInclusive<usize> = 5..=14;
/// Questions about it.
const QUESTIONS: std::ops::RangeInclusive<usize> = 2..=4;
/// Fewest pairs that are unrelated.
const UNRELATED: usize = 3;
/// Least share of a turn's text that its statements cover.
const COVERED: f64 = 0.6;

impl LabelledScenario {
    /// Labels that contradict the text or each other, one sentence each; empty where there are
    /// none.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        self.check_turns(&mut problems);
        self.check_pairs(&mut problems);
        for question in &self.questions {
            self.check_question(question, &mut problems);
        }
        let questions = self.questions.len();
        if !QUESTIONS.contains(&questions) {
            problems.push(format!("{questions} questions"));
        }
        problems
    }

    fn check_turns(&self, problems: &mut Vec<String>) {
        let turns = self.turns.len();
        if !TURNS.contains(&turns) {
            problems.push(format!("{turns} turns"));
        }
        if !self.turns.is_sorted_by(|one, next| one.time < next.time) {
            problems.push("times do not increase".to_owned());
        }
        for (turn, number) in self.turns.iter().zip(0..) {
            let spans = turn.statements.iter().map(|statement| &statement.span);
            let foreign = spans
                .clone()
                .filter(|span| !turn.text.contains(span.as_str()));
            problems.extend(foreign.map(|span| format!("turn {number} does not say `{span}`")));
            let covered: usize = spans.map(|span| span.chars().count()).sum();
            let length = turn.text.chars().count().max(1);
            if (covered as f64) < COVERED * length as f64 {
                problems.push(format!("statements cover too little of turn {number}"));
            }
            if turn
                .statements
                .iter()
                .any(|statement| statement.owner.is_empty())
            {
                problems.push(format!("a statement of turn {number} has no owner"));
            }
            let contexts = turn.statements.iter().filter_map(|it| it.context);
            let unknown = contexts.filter(|place| !self.has(*place));
            problems.extend(unknown.map(no_statement));
        }
    }

    fn has(&self, place: StatementPlace) -> bool {
        let turn = self.turns.get(place.turn);
        turn.is_some_and(|turn| place.place < turn.statements.len())
    }

    fn check_pairs(&self, problems: &mut Vec<String>) {
        for pair in &self.pairs {
            let unknown = [pair.later, pair.earlier].into_iter();
            let unknown = unknown.filter(|place| !self.has(*place));
            problems.extend(unknown.map(no_statement));
            if pair.later <= pair.earlier {
                problems.push(format!("{:?} is not later", pair.later));
            }
            if pair.relation == Relation::Ends && pair.since.is_none() {
                problems.push(format!("{:?} ends something without a date", pair.later));
            }
        }
        let count = |relation| {
            let pairs = self.pairs.iter();
            pairs.filter(|pair| pair.relation == relation).count()
        };
        if count(Relation::Unrelated) < UNRELATED {
            problems.push("too few unrelated pairs".to_owned());
        }
        let changes = count(Relation::Ends) + count(Relation::Corrects);
        match (self.kind.changes(), changes) {
            (false, 1..) => {
                problems.push("something changes in a scenario without a change".into())
            }
            (true, 0) if self.kind != ScenarioKind::Expiry => {
                problems.push("nothing changes in a scenario with a change".to_owned());
            }
            _ => {}
        }
    }

    fn check_question(&self, question: &ScenarioQuestion, problems: &mut Vec<String>) {
        let text = &question.text;
        let mut fault = |problem: String| problems.push(format!("question `{text}`: {problem}"));
        if self
            .turns
            .last()
            .is_some_and(|turn| question.asked_at <= turn.time)
        {
            fault("it is asked before the end".to_owned());
        }
        let is_unknown = question.tense == QuestionTense::Unknown;
        if is_unknown != question.right.is_empty() || is_unknown != question.evidence.is_empty() {
            fault("right answers and their turns belong to all questions but unknown ones".into());
        }
        let says = |turn: &usize, answer: &str| {
            let turn = self.turns.get(*turn);
            turn.is_some_and(|turn| folded(&turn.text).contains(&folded(answer)))
        };
        let answers = [
            (&question.right, &question.evidence),
            (&question.wrong, &question.wrong_evidence),
        ];
        for (answers, turns) in answers {
            for answer in answers {
                if !turns.iter().any(|turn| says(turn, answer)) {
                    fault(format!("none of its turns says `{answer}`"));
                }
            }
        }
        for turn in &question.evidence {
            if !question.right.iter().any(|answer| says(turn, answer)) {
                fault(format!("turn {turn} says no right answer"));
            }
        }
    }
}

fn no_statement(place: StatementPlace) -> String {
    format!("there is no statement {}.{}", place.turn, place.place)
}

/// A text without differences of case and white space.
pub(super) fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}
