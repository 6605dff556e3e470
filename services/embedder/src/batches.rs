//! Cutting texts into batches: sorted by length so that little is padded, bounded by a token budget so that a query never
//! waits long behind passages.

/// Cuts `lengths` (tokens a text) into batches of indexes. A batch's longest text times its size stays within `budget`; a text
/// over the budget is a batch of its own.
pub fn batches(lengths: &[usize], budget: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&index| lengths[index]);
    let mut batches: Vec<Vec<usize>> = Vec::new();
    for index in order {
        match batches.last_mut() {
            Some(batch) if (batch.len() + 1) * lengths[index] <= budget => batch.push(index),
            _ => batches.push(vec![index]),
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_hold_texts_of_similar_length_within_the_budget() {
        assert_eq!(
            batches(&[10, 200, 12, 11, 500], 40),
            [vec![0, 3, 2], vec![1], vec![4]]
        );
    }

    #[test]
    fn every_text_is_in_one_batch() {
        let lengths: Vec<usize> = (0..97).map(|index| index * 37 % 53).collect();
        let mut all = batches(&lengths, 256).concat();
        all.sort_unstable();
        assert_eq!(all, (0..97).collect::<Vec<_>>());
    }
}
