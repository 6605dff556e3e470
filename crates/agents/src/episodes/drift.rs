//! Where the meaning of a conversation drifts (after `TextTiling`, Hearst 1997): the turns on both sides of a gap are compared, and
//! a gap that is a clear dip among its neighbours divides.

use super::Said;

/// Turns that are compared on each side of a gap.
const SIDE: usize = 4;
/// Turns between two divisions.
const LEAST: usize = 4;

/// The places before which the matter shifts, ascending; none without vectors.
pub(super) fn shifts(turns: &[Said<'_>]) -> Vec<usize> {
    let similarities: Vec<f32> = (1..turns.len())
        .map(|at| {
            let before = &turns[at.saturating_sub(SIDE)..at];
            let after = &turns[at..turns.len().min(at + SIDE)];
            cosine(&sum(before), &sum(after)).unwrap_or(1.0)
        })
        .collect();
    let depths: Vec<f32> = (0..similarities.len())
        .map(|at| depth(&similarities, at))
        .collect();
    let count = depths.len().max(1) as f32;
    let mean = depths.iter().sum::<f32>() / count;
    let variance = depths.iter().map(|it| (it - mean).powi(2)).sum::<f32>() / count;
    let least = mean + variance.sqrt();
    let mut shifts: Vec<usize> = Vec::new();
    for (gap, &depth) in depths.iter().enumerate() {
        let at = gap + 1;
        let is_far = at - shifts.last().copied().unwrap_or(0) >= LEAST;
        let is_dip = depth > least && depth >= *depths.get(gap + 1).unwrap_or(&0.0);
        if is_far && is_dip {
            shifts.push(at);
        }
    }
    shifts
}

/// How far the similarity at a gap lies below the heights on both sides.
fn depth(similarities: &[f32], at: usize) -> f32 {
    let own = similarities[at];
    let climb = |heights: &mut dyn Iterator<Item = &f32>| {
        let mut highest = own;
        for &height in heights {
            if height < highest {
                break;
            }
            highest = height;
        }
        highest - own
    };
    climb(&mut similarities[..at].iter().rev()) + climb(&mut similarities[at + 1..].iter())
}

fn sum(turns: &[Said<'_>]) -> Vec<f32> {
    let mut sum: Vec<f32> = Vec::new();
    for vector in turns.iter().filter_map(|turn| turn.vector) {
        sum.resize(sum.len().max(vector.len()), 0.0);
        sum.iter_mut()
            .zip(vector)
            .for_each(|(sum, &x)| *sum += f32::from(x));
    }
    sum
}

/// The cosine of two vectors; absent where one is missing or zero.
pub(super) fn cosine(one: &[f32], other: &[f32]) -> Option<f32> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f32>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    (lengths > 0.0 && one.len() == other.len()).then(|| dot(one, other) / lengths)
}
