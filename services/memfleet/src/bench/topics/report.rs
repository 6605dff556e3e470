//! The report of `memfleet bench topics`, shares in percent.

use std::collections::BTreeMap;
use std::fmt::Write;

use memfleet_constructor::topic_threshold;
use memfleet_domain::topic::TopicAction;
use serde::Serialize;

use super::super::percent;

/// Thresholds whose effect is shown beside those in force.
const SHOWN: [f32; 9] = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6];

/// Labelled statement with its score.
pub struct ScoredStatement {
    pub topic: String,
    pub score: f32,
    pub is_inside: bool,
    pub is_near: bool,
    pub is_english: bool,
}

/// All models.
#[derive(Debug, Serialize)]
pub struct TopicsReport {
    pub topics: usize,
    pub models: Vec<ModelFigures>,
}

/// One model.
#[derive(Debug, Serialize)]
pub struct ModelFigures {
    model: String,
    /// In every language.
    all: LanguageFigures,
    english: LanguageFigures,
}

/// Statements of some languages.
#[derive(Debug, Serialize)]
struct LanguageFigures {
    inside: usize,
    outside: usize,
    /// By action, at the threshold in force.
    actions: BTreeMap<&'static str, ThresholdFigures>,
    thresholds: Vec<ThresholdFigures>,
}

/// Effect of a threshold.
#[derive(Debug, Serialize)]
struct ThresholdFigures {
    threshold: f32,
    /// Statements inside that match.
    found: f64,
    /// Statements inside that match, in the topic that has the fewest.
    least_found: f64,
    /// Statements that match and are inside.
    precision: f64,
    /// Statements outside with a near subject that match.
    near_taken: f64,
    /// Other statements outside that match.
    others_taken: f64,
}

impl ModelFigures {
    pub fn of(model: &str, statements: &[ScoredStatement]) -> Self {
        let all: Vec<_> = statements.iter().collect();
        let english = statements
            .iter()
            .filter(|it| it.is_english)
            .collect::<Vec<_>>();
        Self {
            model: model.to_owned(),
            all: LanguageFigures::of(model, &all),
            english: LanguageFigures::of(model, &english),
        }
    }
}

impl LanguageFigures {
    fn of(model: &str, statements: &[&ScoredStatement]) -> Self {
        let inside = statements.iter().filter(|it| it.is_inside).count();
        let actions = TopicAction::ALL.iter().map(|action| {
            let threshold = topic_threshold(model, *action);
            (action.name(), ThresholdFigures::of(threshold, statements))
        });
        let thresholds = SHOWN.iter();
        let thresholds = thresholds.map(|it| ThresholdFigures::of(*it, statements));
        Self {
            inside,
            outside: statements.len() - inside,
            actions: actions.collect(),
            thresholds: thresholds.collect(),
        }
    }
}

impl ThresholdFigures {
    fn of(threshold: f32, statements: &[&ScoredStatement]) -> Self {
        let share = |is_among: &dyn Fn(&ScoredStatement) -> bool| {
            let among = statements.iter().filter(|it| is_among(it));
            let matched = among.clone().filter(|it| it.score >= threshold).count();
            percent(matched, among.count())
        };
        let mut found: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for statement in statements.iter().filter(|it| it.is_inside) {
            let (matched, count) = found.entry(&statement.topic).or_default();
            *matched += usize::from(statement.score >= threshold);
            *count += 1;
        }
        let least = found
            .values()
            .map(|(matched, count)| percent(*matched, *count));
        let matched = statements.iter().filter(|it| it.score >= threshold);
        let right = matched.clone().filter(|it| it.is_inside).count();
        Self {
            threshold,
            found: share(&|it| it.is_inside),
            least_found: least.fold(100.0, f64::min),
            precision: percent(right, matched.count()),
            near_taken: share(&|it| !it.is_inside && it.is_near),
            others_taken: share(&|it| !it.is_inside && !it.is_near),
        }
    }

    fn row(&self, text: &mut String, name: &str) {
        let _ = writeln!(
            text,
            "    {name:<10} {:>5.2} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            self.threshold,
            self.found,
            self.least_found,
            self.precision,
            self.near_taken,
            self.others_taken,
        );
    }
}

impl TopicsReport {
    /// Human form.
    pub fn table(&self) -> String {
        let mut text = format!("{} topics, shares in percent\n", self.topics);
        for model in &self.models {
            let _ = writeln!(text, "{}", model.model);
            for (name, figures) in [("every language", &model.all), ("English", &model.english)] {
                let LanguageFigures {
                    inside, outside, ..
                } = figures;
                let _ = writeln!(
                    text,
                    "  {name}: {inside} statements inside, {outside} outside"
                );
                text += "    action     score     found     least precision      near    others\n";
                for (action, figures) in &figures.actions {
                    figures.row(&mut text, action);
                }
                for figures in &figures.thresholds {
                    figures.row(&mut text, "");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_those_inside_near_and_others() {
        let statement = |topic: &str, score, is_inside, is_near| ScoredStatement {
            topic: topic.to_owned(),
            score,
            is_inside,
            is_near,
            is_english: true,
        };
        let statements = [
            statement("a", 0.9, true, false),
            statement("a", 0.8, true, false),
            statement("b", 0.7, true, false),
            statement("b", 0.1, true, false),
            statement("a", 0.6, false, true),
            statement("b", 0.2, false, false),
        ];
        let all: Vec<_> = statements.iter().collect();
        let figures = ThresholdFigures::of(0.5, &all);
        let told = [
            figures.found,
            figures.least_found,
            figures.precision,
            figures.near_taken,
            figures.others_taken,
        ];
        assert_eq!(told.map(|it| it as u32), [75, 50, 75, 100, 0]);
        let report = TopicsReport {
            topics: 2,
            models: vec![ModelFigures::of("other", &statements)],
        };
        assert!(report.table().contains("leave_out"));
    }
}
