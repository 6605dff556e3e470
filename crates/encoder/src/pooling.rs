//! From the vectors of all pieces to the one of the text.

use crate::tokens::Tokens;
use crate::vectors::{Encoding, TokenVectors, normalise};

/// How the sentence vector is made of the last hidden state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Mean over all pieces, special ones included (sentence-transformers' `mean_tokens`).
    Mean,
    /// The vector of the first piece (`cls_token`).
    First,
}

impl Pooling {
    /// The encoding of one text from its hidden state, row-major `tokens.len() × dimensions`.
    pub(crate) fn encoding(self, hidden: &[f32], dimensions: usize, tokens: &Tokens) -> Encoding {
        let mut sentence = match self {
            Self::Mean => column_sums(hidden, dimensions),
            Self::First => hidden[..dimensions].to_vec(),
        };
        normalise(&mut sentence);
        let (mut pieces, mut values) = (Vec::new(), Vec::new());
        for (place, piece) in tokens.known() {
            pieces.push(piece);
            values.extend_from_slice(&hidden[place * dimensions..][..dimensions]);
        }
        values.chunks_exact_mut(dimensions).for_each(normalise);
        Encoding {
            sentence,
            tokens: TokenVectors {
                dimensions,
                pieces,
                values,
            },
        }
    }
}

/// Sums; the mean differs by a factor that normalising takes out.
fn column_sums(rows: &[f32], dimensions: usize) -> Vec<f32> {
    let mut sums = vec![0.0; dimensions];
    for row in rows.chunks_exact(dimensions) {
        sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_counts_special_pieces_and_rows_leave_them_out() {
        let tokens = Tokens::new(vec![101, 7, 102], &[1, 0, 1]);
        let encoding = Pooling::Mean.encoding(&[3.0, 0.0, 0.0, 2.0, 0.0, 2.0], 2, &tokens);
        assert_eq!(encoding.sentence, [0.6, 0.8]);
        assert_eq!(encoding.tokens.values, [0.0, 1.0]);
        assert_eq!(encoding.tokens.pieces, [7]);
    }

    #[test]
    fn first_takes_the_first_piece() {
        let tokens = Tokens::new(vec![101, 102], &[1, 1]);
        let encoding = Pooling::First.encoding(&[0.0, 5.0, 1.0, 0.0], 2, &tokens);
        assert_eq!(encoding.sentence, [0.0, 1.0]);
        assert!(encoding.tokens.is_empty());
    }
}
