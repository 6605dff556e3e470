//! How far a probability of relevance can be trusted: whether it comes true as often as it says, and what a threshold on it keeps of
//! the evidence and of turns that answer nothing.

/// What is known of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Its evidence is in the space.
    Answerable,
    /// It sounds as if its answer were there, and it is not.
    Adversarial,
    /// It was asked of another conversation: nothing here is known to bear on it.
    Foreign,
}

/// A question and the turns that were found for it, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What is known of it.
    pub kind: Kind,
    /// What was found.
    pub found: Vec<Candidate>,
    /// Evidence, that which was not found included.
    pub sought: usize,
}

/// A turn that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// What its relevance is told from; empty where something is missing.
    pub clues: Vec<f32>,
    /// Whether it is evidence.
    pub is_evidence: bool,
    /// What it takes of a budget.
    pub tokens: usize,
}

/// A question whose turns were given probabilities, in the order of [`Asked::found`]; none passes every threshold.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    /// The question.
    pub asked: &'a Asked,
    /// How likely each turn bears on it.
    pub relevance: Vec<Option<f64>>,
}

/// How often probabilities come true.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reliability {
    /// Mean distance of probability and outcome, squared (Brier), over all turns.
    pub brier: f64,
    /// Mean distance of what is promised from what comes true, of turns of at least [`Reliability::LEAST`], in bins (expected
    /// calibration error).
    pub calibration_error: f64,
}

impl Reliability {
    /// Below this nearly all turns lie, and nearly none bears on anything: they would hide every error.
    pub const LEAST: f64 = 0.01;
    /// Upper ends of the bins.
    const BINS: [f64; 12] = [
        0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0,
    ];

    /// Of some questions, those without answer in this conversation included as turns that bear on nothing.
    pub fn of(judged: &[Judged<'_>]) -> Self {
        let (mut squares, mut count) = (0.0, 0);
        let mut bins = [(0.0, 0.0, 0); Self::BINS.len()];
        for (relevance, outcome) in judged.iter().flat_map(Judged::outcomes) {
            squares += (relevance - outcome).powi(2);
            count += 1;
            if relevance >= Self::LEAST {
                let bin = Self::BINS.partition_point(|&end| end < relevance);
                let bin = &mut bins[bin.min(Self::BINS.len() - 1)];
                *bin = (bin.0 + relevance, bin.1 + outcome, bin.2 + 1);
            }
        }
        let counted: usize = bins.iter().map(|bin| bin.2).sum();
        let apart: f64 = bins.iter().map(|bin| (bin.0 - bin.1).abs()).sum();
        Self {
            brier: squares / f64::from(count.max(1)),
            calibration_error: apart / counted.max(1) as f64,
        }
    }
}

impl Judged<'_> {
    /// Probabilities, and 1 for evidence, 0 for other turns.
    fn outcomes(&self) -> impl Iterator<Item = (f64, f64)> {
        let pairs = self.relevance.iter().zip(&self.asked.found);
        pairs.filter_map(|(relevance, turn)| {
            Some(((*relevance)?, f64::from(u8::from(turn.is_evidence))))
        })
    }

    /// The turns of at least a relevance, in the order of ranking.
    fn kept(&self, threshold: f64) -> impl Iterator<Item = &Candidate> {
        let pairs = self.relevance.iter().zip(&self.asked.found);
        pairs
            .filter(move |(relevance, _)| relevance.is_none_or(|it| it >= threshold))
            .map(|(_, turn)| turn)
    }

    /// Whether the evidence is all among the kept turns that fit a budget, better ones first.
    fn covers(&self, threshold: f64, budget: usize) -> bool {
        let mut left = budget;
        let fits = |turn: &&Candidate| {
            let fits = turn.tokens <= left;
            left -= if fits { turn.tokens } else { 0 };
            fits
        };
        let shown = self.kept(threshold).filter(fits);
        shown.filter(|turn| turn.is_evidence).count() >= self.asked.sought
    }
}

/// What a threshold keeps; shares are 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The threshold.
    pub threshold: f64,
    /// Share of the kept turns of answerable questions that are evidence.
    pub precision: f64,
    /// Mean share of the evidence that is kept.
    pub recall: f64,
    /// For each budget in tokens the share of answerable questions all of whose evidence fits it.
    pub coverage: Vec<f64>,
    /// Of answerable questions.
    pub answerable: Means,
    /// Of adversarial ones.
    pub adversarial: Means,
    /// Of foreign ones.
    pub foreign: Means,
}

/// Means over questions of one kind; 0 where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Means {
    /// Questions.
    pub questions: usize,
    /// Turns that are kept.
    pub turns: f64,
    /// Tokens of these.
    pub tokens: f64,
    /// Share of questions that keep none.
    pub nothing: f64,
}

impl Means {
    fn of(kind: Kind, judged: &[Judged<'_>], threshold: f64) -> Self {
        let mut means = Self::default();
        for judged in judged.iter().filter(|judged| judged.asked.kind == kind) {
            let turns = judged.kept(threshold).count();
            means.questions += 1;
            means.turns += turns as f64;
            means.tokens += judged.kept(threshold).map(|it| it.tokens).sum::<usize>() as f64;
            means.nothing += f64::from(u8::from(turns == 0));
        }
        let questions = means.questions.max(1) as f64;
        for mean in [&mut means.turns, &mut means.tokens, &mut means.nothing] {
            *mean /= questions;
        }
        means
    }
}

impl Kept {
    /// What `threshold` keeps of what was found for some questions.
    pub fn of(judged: &[Judged<'_>], threshold: f64, budgets: &[usize]) -> Self {
        let answerable = || {
            let all = judged.iter();
            all.filter(|judged| judged.asked.kind == Kind::Answerable)
        };
        let questions = answerable().count().max(1) as f64;
        let (mut kept, mut evidence, mut recall) = (0, 0, 0.0);
        for judged in answerable() {
            let found = judged.kept(threshold).filter(|it| it.is_evidence).count();
            kept += judged.kept(threshold).count();
            evidence += found;
            recall += found as f64 / judged.asked.sought.max(1) as f64;
        }
        let covered = |&budget: &usize| {
            let covered = answerable().filter(|judged| judged.covers(threshold, budget));
            covered.count() as f64 / questions
        };
        Self {
            threshold,
            precision: f64::from(evidence as u32) / f64::from(kept.max(1) as u32),
            recall: recall / questions,
            coverage: budgets.iter().map(covered).collect(),
            answerable: Means::of(Kind::Answerable, judged, threshold),
            adversarial: Means::of(Kind::Adversarial, judged, threshold),
            foreign: Means::of(Kind::Foreign, judged, threshold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of ten tokens each.
    fn asked(kind: Kind, evidence: &[bool], sought: usize) -> Asked {
        let turn = |&is_evidence: &bool| Candidate {
            clues: Vec::new(),
            is_evidence,
            tokens: 10,
        };
        Asked {
            kind,
            found: evidence.iter().map(turn).collect(),
            sought,
        }
    }

    fn judged<'a>(asked: &'a Asked, relevance: &[f64]) -> Judged<'a> {
        Judged {
            asked,
            relevance: relevance.iter().copied().map(Some).collect(),
        }
    }

    #[test]
    fn a_threshold_keeps_what_reaches_it() {
        let own = asked(Kind::Answerable, &[true, false, true], 2);
        let foreign = asked(Kind::Foreign, &[false, false], 0);
        let all = [
            judged(&own, &[0.5, 0.2, 0.1]),
            judged(&foreign, &[0.1, 0.1]),
        ];
        let kept = Kept::of(&all, 0.2, &[100]);
        assert_eq!((kept.precision, kept.recall), (0.5, 0.5));
        assert_eq!(kept.coverage, [0.0]);
        assert_eq!(kept.answerable.turns, 2.0);
        assert_eq!((kept.foreign.turns, kept.foreign.nothing), (0.0, 1.0));
        assert_eq!(kept.adversarial, Means::default());
        assert_eq!(Kept::of(&all, 0.1, &[100]).coverage, [1.0]);
    }

    #[test]
    fn what_a_threshold_drops_leaves_its_tokens_to_others() {
        let asked = asked(Kind::Answerable, &[true, false, true], 2);
        let judged = [judged(&asked, &[0.5, 0.1, 0.4])];
        assert_eq!(Kept::of(&judged, 0.0, &[20]).coverage, [0.0]);
        assert_eq!(Kept::of(&judged, 0.2, &[20]).coverage, [1.0]);
    }

    #[test]
    fn a_turn_without_a_probability_passes_and_says_nothing_of_reliability() {
        let asked = asked(Kind::Answerable, &[true], 1);
        let judged = [Judged {
            asked: &asked,
            relevance: vec![None],
        }];
        assert_eq!(Kept::of(&judged, 0.9, &[10]).recall, 1.0);
        assert_eq!(Reliability::of(&judged).brier, 0.0);
    }

    #[test]
    fn promises_that_come_true_have_no_calibration_error() {
        let asked = asked(Kind::Answerable, &[true, false, false, false], 1);
        let good = Reliability::of(&[judged(&asked, &[0.25; 4])]);
        assert!(good.calibration_error < 1e-9);
        let bad = Reliability::of(&[judged(&asked, &[0.75; 4])]);
        assert!((bad.calibration_error - 0.5).abs() < 1e-9);
        assert!(bad.brier > good.brier);
    }
}
