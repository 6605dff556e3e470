//! The form without instructions of its own.

use super::{GROUP, Panel, ZERO_POINT};

/// Columns of a panel.
const WIDTH: usize = 16;

pub(super) fn multiply(panel: &mut Panel<'_>) {
    panel.check(WIDTH);
    let lines = panel
        .lines
        .iter()
        .flat_map(|line| line.0.as_chunks::<{ GROUP * WIDTH }>().0);
    for (row, sums) in panel
        .rows
        .chunks_exact(panel.inputs)
        .zip(panel.sums.chunks_mut(panel.stride))
    {
        let mut totals = [0_i32; WIDTH];
        for (inputs, weights) in row.as_chunks::<GROUP>().0.iter().zip(lines.clone()) {
            let inputs = inputs.map(|x| i32::from(x) - i32::from(ZERO_POINT));
            for (total, weights) in totals.iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                let pairs = inputs.iter().zip(weights);
                *total += pairs.map(|(x, &w)| x * i32::from(w)).sum::<i32>();
            }
        }
        sums[..WIDTH].copy_from_slice(&totals);
    }
}
