//! Choosing the weights of a linear score by coordinate ascent on recall itself (Metzler & Croft, 2007): the measure is a
//! staircase without a gradient, but one weight can be changed at a time and the ranks counted again.

/// Depths whose mean recall is raised: the ranks that reach a prompt.
const DEPTHS: [usize; 3] = [5, 10, 20];
/// What a weight is multiplied by to look for a better one.
const FACTORS: [f32; 7] = [0.0, 0.5, 0.75, 0.9, 1.1, 1.33, 2.0];
/// Recall that a change must gain: less is noise of single questions.
const LEAST_GAIN: f64 = 0.0005;
/// Rounds over all weights.
const ROUNDS: usize = 5;

/// One question and the turns that were ranked for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// What each signal adds at a weight of 1, by signal, then by turn; empty for a signal that says nothing.
    columns: Vec<Vec<f32>>,
    /// Places of the evidence among the turns.
    evidence: Vec<usize>,
    /// Evidence, that which was not ranked included.
    sought: usize,
    turns: usize,
}

impl Example {
    /// `signals` holds a row a turn, of one length; `evidence` names rows; `sought` counts all evidence, found or not.
    pub fn new(signals: &[Vec<f32>], evidence: Vec<usize>, sought: usize) -> Self {
        let width = signals.first().map_or(0, Vec::len);
        let column = |at: usize| {
            let column: Vec<f32> = signals.iter().map(|row| row[at]).collect();
            if column.iter().all(|&value| value == 0.0) {
                Vec::new()
            } else {
                column
            }
        };
        Self {
            columns: (0..width).map(column).collect(),
            evidence,
            sought,
            turns: signals.len(),
        }
    }

    fn scores(&self, weights: &[f32]) -> Vec<f32> {
        let mut scores = vec![0.0; self.turns];
        for (column, weight) in self.columns.iter().zip(weights) {
            add(&mut scores, column, *weight);
        }
        scores
    }

    /// Share of the evidence among the first `depth` turns, for each depth.
    fn recall(&self, scores: &[f32], depths: &[usize]) -> Vec<f64> {
        let ahead = |evidence: usize| {
            let score = scores[evidence];
            scores.iter().filter(|&&other| other >= score).count() - 1
        };
        let ranks: Vec<usize> = self.evidence.iter().map(|&place| ahead(place)).collect();
        let share = |&depth: &usize| {
            let found = ranks.iter().filter(|&&rank| rank < depth).count();
            found as f64 / self.sought.max(1) as f64
        };
        depths.iter().map(share).collect()
    }
}

/// Mean recall at a depth, 0 to 1, of questions ranked with `weights`.
pub fn recall<'a>(
    examples: impl IntoIterator<Item = &'a Example>,
    weights: &[f32],
    depth: usize,
) -> f64 {
    let shares: Vec<f64> = examples
        .into_iter()
        .map(|example| example.recall(&example.scores(weights), &[depth])[0])
        .collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// Better weights for the questions of several data sets, each of which counts the same. `start` is where to begin, and what
/// stays where nothing better is found.
pub fn ascend(sets: &[Vec<&Example>], start: &[f32]) -> Vec<f32> {
    let mut climb = Climb::new(sets, start);
    for _ in 0..ROUNDS {
        let before = climb.reached;
        for signal in 0..start.len() {
            climb.improve(signal);
        }
        if climb.reached <= before {
            break;
        }
    }
    climb.weights
}

struct Climb<'a> {
    sets: &'a [Vec<&'a Example>],
    weights: Vec<f32>,
    /// Scores under `weights`, by set and question.
    scores: Vec<Vec<Vec<f32>>>,
    reached: f64,
}

impl<'a> Climb<'a> {
    fn new(sets: &'a [Vec<&'a Example>], start: &[f32]) -> Self {
        let scores =
            |set: &Vec<&Example>| set.iter().map(|example| example.scores(start)).collect();
        let mut climb = Self {
            sets,
            weights: start.to_vec(),
            scores: sets.iter().map(scores).collect(),
            reached: 0.0,
        };
        climb.reached = climb.objective(0, 0.0);
        climb
    }

    /// Mean over the sets of mean recall when a weight is changed by `change`.
    fn objective(&self, signal: usize, change: f32) -> f64 {
        let of_set = |(set, scores): (&Vec<&Example>, &Vec<Vec<f32>>)| {
            let mut buffer = Vec::new();
            let of_question = |(example, scores): (&&Example, &Vec<f32>)| {
                buffer.clone_from(scores);
                add(&mut buffer, &example.columns[signal], change);
                example.recall(&buffer, &DEPTHS).iter().sum::<f64>() / DEPTHS.len() as f64
            };
            let sum: f64 = set.iter().zip(scores).map(of_question).sum();
            sum / set.len().max(1) as f64
        };
        let sum: f64 = self.sets.iter().zip(&self.scores).map(of_set).sum();
        sum / self.sets.len().max(1) as f64
    }

    fn improve(&mut self, signal: usize) {
        let weight = self.weights[signal];
        let trial = |factor: f32| {
            let change = weight * (factor - 1.0);
            (self.objective(signal, change), change)
        };
        let best = FACTORS
            .map(trial)
            .into_iter()
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let Some((reached, change)) =
            best.filter(|(reached, _)| *reached > self.reached + LEAST_GAIN)
        else {
            return;
        };
        self.reached = reached;
        self.weights[signal] += change;
        for (set, scores) in self.sets.iter().zip(&mut self.scores) {
            for (example, scores) in set.iter().zip(scores) {
                add(scores, &example.columns[signal], change);
            }
        }
    }
}

/// Adds a column times a weight; a signal that says nothing has no column.
fn add(scores: &mut [f32], column: &[f32], weight: f32) {
    for (score, value) in scores.iter_mut().zip(column) {
        *score += weight * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty turns; the first signal is right, the second points elsewhere, the third is silent.
    fn question(evidence: usize) -> Example {
        let row = |turn: usize| {
            let right = f32::from(turn == evidence);
            vec![right, (turn as f32 - evidence as f32).abs() / 10.0, 0.0]
        };
        let rows: Vec<Vec<f32>> = (0..40).map(row).collect();
        Example::new(&rows, vec![evidence], 1)
    }

    #[test]
    fn a_misleading_signal_loses_its_weight() {
        let questions = [question(3), question(20)];
        let set: Vec<&Example> = questions.iter().collect();
        let start = [1.0, 1.0, 1.0];
        assert_eq!(recall(set.iter().copied(), &start, 5), 0.0);
        let weights = ascend(std::slice::from_ref(&set), &start);
        assert_eq!(recall(set, &weights, 5), 1.0);
        assert!(weights[1] < weights[0]);
        assert_eq!(weights[2], 1.0);
    }

    #[test]
    fn evidence_that_was_not_ranked_counts_as_missed_and_ties_rank_last() {
        let example = Example::new(&[vec![1.0], vec![0.0]], vec![0], 2);
        assert_eq!(recall([&example], &[1.0], 5), 0.5);
        let flat = Example::new(&[vec![1.0], vec![1.0]], vec![0], 1);
        assert_eq!(recall([&flat], &[1.0], 1), 0.0);
    }

    #[test]
    fn nothing_to_learn_from_changes_nothing() {
        assert_eq!(ascend(&[], &[0.5, -1.0]), [0.5, -1.0]);
        assert_eq!(recall([], &[0.5], 10), 0.0);
    }
}
