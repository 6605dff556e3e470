//! What the encoder gives back.

/// The vectors of one text.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoding {
    /// Pooled vector of the whole text, length 1.
    pub sentence: Vec<f32>,
    /// One vector for every word piece.
    pub tokens: TokenVectors,
}

/// One vector for every word piece of a text, the special pieces around it left out. An empty text has none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenVectors {
    /// Components of a row.
    pub dimensions: usize,
    /// Vocabulary ids, in the order of the text.
    pub pieces: Vec<u32>,
    /// Row-major, `pieces.len() × dimensions`; every row has length 1.
    pub values: Vec<f32>,
}

impl TokenVectors {
    /// Number of word pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// True for a text without word pieces.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The vectors, one slice a word piece.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimensions.max(1))
    }
}

/// Scales a vector to length 1; a zero vector stays zero.
pub(crate) fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        let inverse = length.recip();
        for x in vector {
            *x *= inverse;
        }
    }
}
