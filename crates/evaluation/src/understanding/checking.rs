//! Labels held against the text of their scenario.

use std::ops::RangeInclusive;

use memfleet_domain::statement::StatementRelation;

use super::{LabelledScenario, QuestionTense, ScenarioKind, ScenarioQuestion, StatementPlace};

/// Counts that a scenario keeps within.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioBounds {
    /// Turns.
    pub turns: RangeInclusive<usize>,
    /// Questions.
    pub questions: RangeInclusive<usize>,
    /// Fewest pairs of any relation.
    pub pairs: usize,
    /// Fewest pairs that are unrelated.
    pub unrelated: usize,
}

impl ScenarioBounds {
    /// Bounds of the scenarios.
    pub const SCENARIO: Self = Self {
        turns: 5..=16,
        questions: 2..=5,
        pairs: 2,
        unrelated: 2,
    };

    /// Bounds of the contrast sets.
    pub const CONTRAST: Self = Self {
        turns: 2..=14,
        questions: 1..=4,
        pairs: 1,
        unrelated: 0,
    };
}

/// Least share of a turn's text that its statements cover.
const COVERED: f64 = 0.6;

impl LabelledScenario {
    /// Labels that contradict the text or each other, one sentence each; empty where there are
    /// none.
    pub fn problems(&self, bounds: &ScenarioBounds) -> Vec<String> {
        let mut problems = Vec::new();
        let turns = self.turns.len();
        if !bounds.turns.contains(&turns) {
            problems.push(format!("{turns} turns"));
        }
        self.check_turns(&mut problems);
        self.check_pairs(bounds, &mut problems);
        for question in &self.questions {
            self.check_question(question, &mut problems);
        }
        let questions = self.questions.len();
        if !bounds.questions.contains(&questions) {
            problems.push(format!("{questions} questions"));
        }
        problems
    }

    fn check_turns(&self, problems: &mut Vec<String>) {
        if !self.turns.is_sorted_by(|one, next| one.time < next.time) {
            problems.push("times do not increase".to_owned());
        }
        for (turn, number) in self.turns.iter().zip(0..) {
            let spans = turn.statements.iter().map(|statement| &statement.span);
            let foreign = spans
                .clone()
                .filter(|span| !turn.said.text.contains(span.as_str()));
            problems.extend(foreign.map(|span| format!("turn {number} does not say `{span}`")));
            let covered: usize = spans.map(|span| span.chars().count()).sum();
            let length = turn.said.text.chars().count().max(1);
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
            let contexts = turn.statements.iter().filter_map(|it| it.details.context);
            let unknown = contexts.filter(|place| !self.has(*place));
            problems.extend(unknown.map(no_statement));
        }
    }

    fn has(&self, place: StatementPlace) -> bool {
        let turn = self.turns.get(place.turn);
        turn.is_some_and(|turn| place.place < turn.statements.len())
    }

    fn check_pairs(&self, bounds: &ScenarioBounds, problems: &mut Vec<String>) {
        for pair in &self.pairs {
            let unknown = [pair.later, pair.earlier].into_iter();
            let unknown = unknown.filter(|place| !self.has(*place));
            problems.extend(unknown.map(no_statement));
            if pair.later <= pair.earlier {
                problems.push(format!("{:?} is not later", pair.later));
            }
            if pair.relation == StatementRelation::Ends && pair.since.is_none() {
                problems.push(format!("{:?} ends something without a date", pair.later));
            }
        }
        let count = |relation| {
            let pairs = self.pairs.iter();
            pairs.filter(|pair| pair.relation == relation).count()
        };
        if self.pairs.len() < bounds.pairs || count(StatementRelation::Unrelated) < bounds.unrelated
        {
            problems.push("too few pairs, or too few that are unrelated".to_owned());
        }
        let changes = count(StatementRelation::Ends) + count(StatementRelation::Corrects);
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
            turn.is_some_and(|turn| folded(&turn.said.text).contains(&folded(answer)))
        };
        // A wrong answer that no turn states as true is said of something else.
        let all_turns: Vec<usize> = (0..self.turns.len()).collect();
        let wrong_turns = match question.wrong_evidence.is_empty() {
            true => &all_turns,
            false => &question.wrong_evidence,
        };
        let answers = [
            (&question.right, &question.evidence),
            (&question.wrong, wrong_turns),
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

pub(super) fn no_statement(place: StatementPlace) -> String {
    format!("there is no statement {}.{}", place.turn, place.place)
}

/// A text without differences of case and white space.
pub(super) fn folded(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    const SCENARIO: &str = "\
## 001 | en | plain_change
@ 2025-01-14T18:40 Ilse: We're in the flat in Emden.
- We're in the flat in Emden. | state | us | keep
@ 2025-06-29T09:12 Ilse: First night in Leer!
- First night in Leer! | state | us | ctx=0.0
> 1.0 ends 0.0 | 2025-06-29
? now | 2025-09-08T19:00 | Where does Ilse live? | + leer | - Emden | e=1 s=0
";

    fn problems(text: &str, bounds: &ScenarioBounds) -> Vec<String> {
        read(text).unwrap()[0].problems(bounds)
    }

    #[test]
    fn a_short_scenario_is_whole_in_a_contrast_set_only() {
        assert!(problems(SCENARIO, &ScenarioBounds::CONTRAST).is_empty());
        assert_eq!(
            problems(SCENARIO, &ScenarioBounds::SCENARIO),
            [
                "2 turns",
                "too few pairs, or too few that are unrelated",
                "1 questions"
            ]
        );
    }

    #[test]
    fn labels_that_contradict_the_text_or_each_other_are_told() {
        for (from, to, problem) in [
            (
                "- First",
                "- Last",
                "turn 1 does not say `Last night in Leer!`",
            ),
            (
                "- First night in Leer!",
                "- First",
                "statements cover too little of turn 1",
            ),
            (
                "| us | ctx",
                "| | ctx",
                "a statement of turn 1 has no owner",
            ),
            ("ctx=0.0", "ctx=0.1", "there is no statement 0.1"),
            (
                "2025-06-29T09:12",
                "2025-01-14T18:40",
                "times do not increase",
            ),
            (
                "> 1.0 ends 0.0",
                "> 1.1 ends 0.0",
                "there is no statement 1.1",
            ),
            (
                " | 2025-06-29\n",
                "\n",
                "StatementPlace { turn: 1, place: 0 } ends something without a date",
            ),
            (
                "plain_change",
                "other_person",
                "something changes in a scenario without a change",
            ),
            (
                "1.0 ends",
                "1.0 adds",
                "nothing changes in a scenario with a change",
            ),
            (
                "> 1.0 ends 0.0 | 2025-06-29\n",
                "",
                "too few pairs, or too few that are unrelated",
            ),
            (
                "2025-09-08T19:00",
                "2025-06-29T09:12",
                "question `Where does Ilse live?`: it is asked before the end",
            ),
            (
                "+ leer",
                "+ Leer ; Jever",
                "question `Where does Ilse live?`: none of its turns says `Jever`",
            ),
            (
                "- Emden |",
                "- Jever |",
                "question `Where does Ilse live?`: none of its turns says `Jever`",
            ),
            (
                "e=1",
                "e=1,0",
                "question `Where does Ilse live?`: turn 0 says no right answer",
            ),
            (
                "? now",
                "? unknown",
                "question `Where does Ilse live?`: right answers and their turns belong to all questions but unknown ones",
            ),
        ] {
            let text = SCENARIO.replace(from, to);
            let problems = problems(&text, &ScenarioBounds::CONTRAST);
            assert!(
                problems.iter().any(|it| it == problem),
                "{problem}: {problems:?}"
            );
        }
        let turned = SCENARIO.replace("> 1.0 ends 0.0", "> 0.0 ends 1.0");
        let problems = problems(&turned, &ScenarioBounds::CONTRAST);
        assert!(problems[0].ends_with("is not later"), "{problems:?}");
    }
}
