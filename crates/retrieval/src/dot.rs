//! Products of vectors of signed bytes, the one place of this crate with `unsafe`: AVX-512 VNNI or
//! AVX2 where the processor has them, else plain loops (which the compiler turns into NEON on
//! aarch64). Every form gives exactly the same integers.
//!
//! [`Query`] compares one vector with many rows, by all bytes or by their signs alone; [`Tiles`] compares the rows of one text
//! with all tokens of a query and keeps the highest product of each token.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
mod x86;

/// Query tokens compared at once.
const LANES: usize = 16;

/// Which instructions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Kernel {
    /// The fastest that this processor has; asked once.
    fn best() -> Self {
        static BEST: OnceLock<Kernel> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// Every form that this processor has, fastest first.
    fn available() -> Vec<Self> {
        let mut kernels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_vnni() {
                kernels.push(Self::Vnni);
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                kernels.push(Self::Avx2);
            }
        }
        kernels.push(Self::Plain);
        kernels
    }
}

/// One vector, ready to be compared with many.
pub(crate) struct Query {
    kernel: Kernel,
    vector: Vec<i8>,
    signs: Vec<u64>,
}

/// The signs of a vector's components, a bit each: set where the component is negative.
pub(crate) fn signs(vector: &[i8]) -> impl Iterator<Item = u64> {
    let bit = |word: u64, (at, &x): (usize, &i8)| word | u64::from(x < 0) << at;
    let word = move |part: &[i8]| part.iter().enumerate().fold(0, bit);
    vector.chunks(64).map(word)
}

impl Query {
    /// Takes the vector that all others are compared with.
    pub(crate) fn new(vector: &[i8]) -> Self {
        Self::with_kernel(vector, Kernel::best())
    }

    fn with_kernel(vector: &[i8], kernel: Kernel) -> Self {
        Self {
            kernel,
            vector: vector.to_vec(),
            signs: signs(vector).collect(),
        }
    }

    /// Components.
    pub(crate) fn len(&self) -> usize {
        self.vector.len()
    }

    /// The product with a row of the same length.
    pub(crate) fn dot(&self, row: &[i8]) -> i32 {
        assert_eq!(row.len(), self.vector.len(), "vectors of one length");
        match self.kernel {
            Kernel::Plain => plain(&self.vector, row),
            // SAFETY: `Kernel::available` found the instructions on this processor.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { x86::dot_avx2(&self.vector, row) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Vnni => unsafe { x86::dot_vnni(&self.vector, row) },
        }
    }

    /// In how many signs each row differs (the Hamming distance of their bits); `rows` holds [`signs`] row by row.
    pub(crate) fn differences(&self, rows: &[u64], differences: &mut [u16]) {
        match self.kernel {
            Kernel::Plain => differing_signs(&self.signs, rows, differences),
            // SAFETY: `Kernel::available` found the instructions on this processor.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { x86::differing_signs_popcnt(&self.signs, rows, differences) },
        }
    }
}

/// The tokens of a query, ready to be compared with the tokens of many texts.
pub(crate) struct Tiles {
    dimensions: usize,
    tokens: usize,
    layout: Layout,
}

/// The query's tokens, laid out for a kernel. A tile holds [`LANES`] tokens, the last one filled up with zeros.
enum Layout {
    /// Row by row.
    Plain(Vec<i8>),
    /// For each tile and each pair of components: that pair of every token.
    #[cfg(target_arch = "x86_64")]
    Pairs(Vec<x86::Pairs>),
    /// For each tile and each four components: those of every token.
    #[cfg(target_arch = "x86_64")]
    Quads(Vec<x86::Quads>),
}

impl Tiles {
    /// `values` holds the query's tokens row by row.
    pub(crate) fn new(values: &[i8], dimensions: usize) -> Self {
        Self::with_kernel(values, dimensions, Kernel::best())
    }

    fn with_kernel(values: &[i8], dimensions: usize, kernel: Kernel) -> Self {
        let dimensions = dimensions.max(1);
        let layout = match kernel {
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 if dimensions.is_multiple_of(2) => {
                Layout::Pairs(x86::pairs(values, dimensions))
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Vnni if dimensions.is_multiple_of(4) && dimensions <= x86::WIDEST => {
                Layout::Quads(x86::quads(values, dimensions))
            }
            _ => Layout::Plain(values.to_vec()),
        };
        Self {
            dimensions,
            tokens: values.len() / dimensions,
            layout,
        }
    }

    /// Query tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Components a token.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// For each token of the query its highest product with any of `rows`; `i32::MIN` where there is no row.
    pub(crate) fn highest(&self, rows: &[i8], best: &mut [i32]) {
        assert_eq!(best.len(), self.tokens, "one maximum a query token");
        best.fill(i32::MIN);
        if rows.len() < self.dimensions {
            return;
        }
        match &self.layout {
            Layout::Plain(values) => highest_plain(values, self.dimensions, rows, best),
            #[cfg(target_arch = "x86_64")]
            Layout::Pairs(pairs) => {
                let tiles = pairs.chunks_exact(self.dimensions / 2);
                for (tile, best) in tiles.zip(best.chunks_mut(LANES)) {
                    // SAFETY: this layout is only made where AVX2 was found.
                    let products = unsafe { x86::highest_avx2(tile, rows) };
                    best.copy_from_slice(&products[..best.len()]);
                }
            }
            #[cfg(target_arch = "x86_64")]
            Layout::Quads(quads) => {
                let tiles = quads.chunks_exact(self.dimensions / 4);
                for (tile, best) in tiles.zip(best.chunks_mut(LANES)) {
                    // SAFETY: this layout is only made where AVX-512 VNNI was found.
                    let products = unsafe { x86::highest_vnni(tile, rows) };
                    best.copy_from_slice(&products[..best.len()]);
                }
            }
        }
    }
}

fn plain(a: &[i8], b: &[i8]) -> i32 {
    a.iter()
        .zip(b)
        .map(|(&x, &y)| i32::from(i16::from(x) * i16::from(y)))
        .sum()
}

#[inline]
fn differing_signs(query: &[u64], rows: &[u64], differences: &mut [u16]) {
    let rows = rows.chunks_exact(query.len().max(1));
    for (row, difference) in rows.zip(differences) {
        let words = row.iter().zip(query);
        *difference = words.map(|(x, y)| (x ^ y).count_ones() as u16).sum();
    }
}

fn highest_plain(values: &[i8], dimensions: usize, rows: &[i8], best: &mut [i32]) {
    for row in rows.chunks_exact(dimensions) {
        for (best, token) in best.iter_mut().zip(values.chunks_exact(dimensions)) {
            *best = (*best).max(plain(token, row));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_kernel_gives_the_plain_product(
            (a, b) in (0_usize..400).prop_flat_map(|n| (vec(any::<i8>(), n), vec(any::<i8>(), n))),
        ) {
            for kernel in Kernel::available() {
                prop_assert_eq!(Query::with_kernel(&a, kernel).dot(&b), plain(&a, &b), "{:?}", kernel);
            }
        }

        #[test]
        fn every_kernel_counts_differing_signs(
            (a, b) in (1_usize..400).prop_flat_map(|n| (vec(any::<i8>(), n), vec(any::<i8>(), n))),
        ) {
            let count = a.iter().zip(&b).filter(|&(&x, &y)| (x < 0) != (y < 0)).count() as u16;
            let rows: Vec<u64> = signs(&b).chain(signs(&a)).collect();
            for kernel in Kernel::available() {
                let mut differences = [u16::MAX; 2];
                Query::with_kernel(&a, kernel).differences(&rows, &mut differences);
                prop_assert_eq!(differences, [count, 0], "{:?}", kernel);
            }
        }

        #[test]
        fn every_kernel_finds_the_highest_products(
            (dimensions, query, rows) in (1_usize..40, 0_usize..40, 0_usize..9).prop_flat_map(|(d, q, r)| {
                (Just(d), vec(any::<i8>(), d * q), vec(any::<i8>(), d * r))
            }),
        ) {
            let expected: Vec<i32> = query
                .chunks_exact(dimensions)
                .map(|token| rows.chunks_exact(dimensions).map(|row| plain(token, row)).max().unwrap_or(i32::MIN))
                .collect();
            for kernel in Kernel::available() {
                let tiles = Tiles::with_kernel(&query, dimensions, kernel);
                let mut best = std::vec![0; tiles.tokens()];
                tiles.highest(&rows, &mut best);
                prop_assert_eq!(&best, &expected, "{:?}", kernel);
            }
        }
    }

    #[test]
    fn extreme_bytes_do_not_overflow() {
        let lowest = std::vec![i8::MIN; 384];
        for kernel in Kernel::available() {
            assert_eq!(
                Query::with_kernel(&lowest, kernel).dot(&lowest),
                384 * 16_384
            );
            let tiles = Tiles::with_kernel(&lowest, 64, kernel);
            let mut best = [0; 6];
            tiles.highest(&lowest, &mut best);
            assert_eq!(best, [64 * 16_384; 6]);
        }
    }
}
