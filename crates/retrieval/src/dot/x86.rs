//! The x86-64 forms. Safe to call where the named instructions exist; all pointers come from fixed-size arrays or slices
//! whose lengths are checked here.

use std::arch::x86_64::{
    __m256i, __m512i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32,
    _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_max_epi32, _mm256_set1_epi32,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm512_cvtepi8_epi16, _mm512_dpbusd_epi32,
    _mm512_dpwssd_epi32, _mm512_loadu_si512, _mm512_max_epi32, _mm512_reduce_add_epi32,
    _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_sub_epi32,
};

use super::{LANES, differing_signs, plain};

/// Two components of each of [`LANES`] tokens, widened.
pub(super) type Pairs = [i16; 2 * LANES];
/// Components of the widest rows that [`highest_vnni`] takes.
pub(super) const WIDEST: usize = 1_024;
/// Four components of each of [`LANES`] tokens.
pub(super) type Quads = [i8; 4 * LANES];

pub(super) fn has_vnni() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("popcnt")
}

/// Tokens laid out for [`highest_avx2`].
pub(super) fn pairs(values: &[i8], dimensions: usize) -> Vec<Pairs> {
    transpose::<2, _, _>(values, dimensions, i16::from)
}

/// Tokens laid out for [`highest_vnni`].
pub(super) fn quads(values: &[i8], dimensions: usize) -> Vec<Quads> {
    transpose::<4, _, _>(values, dimensions, |x| x)
}

/// Groups of `GROUP` components, each group of all lanes side by side.
fn transpose<const GROUP: usize, T: Copy + Default, const WIDTH: usize>(
    values: &[i8],
    dimensions: usize,
    widen: impl Fn(i8) -> T,
) -> Vec<[T; WIDTH]> {
    let groups = dimensions / GROUP;
    let tokens = values.chunks_exact(dimensions);
    let mut out = vec![[T::default(); WIDTH]; tokens.len().div_ceil(LANES) * groups];
    for (token, row) in tokens.enumerate() {
        let (tile, lane) = (token / LANES, token % LANES);
        for (at, &value) in row.iter().enumerate() {
            out[tile * groups + at / GROUP][lane * GROUP + at % GROUP] = widen(value);
        }
    }
    out
}

/// Product of two slices of one length.
#[target_feature(enable = "avx2")]
pub(super) fn dot_avx2(a: &[i8], b: &[i8]) -> i32 {
    let (a_blocks, a_rest) = a.as_chunks::<16>();
    let (b_blocks, b_rest) = b.as_chunks::<16>();
    let mut sum = _mm256_setzero_si256();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        // SAFETY: both blocks are 16 bytes; unaligned loads.
        let (x, y) = unsafe {
            (
                _mm_loadu_si128(x.as_ptr().cast()),
                _mm_loadu_si128(y.as_ptr().cast()),
            )
        };
        let product = _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), _mm256_cvtepi8_epi16(y));
        sum = _mm256_add_epi32(sum, product);
    }
    add_lanes(sum) + plain(a_rest, b_rest)
}

#[target_feature(enable = "avx2")]
fn add_lanes(sum: __m256i) -> i32 {
    let four = _mm_add_epi32(
        _mm256_castsi256_si128(sum),
        _mm256_extracti128_si256::<1>(sum),
    );
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b00_00_00_01>(two)))
}

/// Product of two slices of one length.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn dot_vnni(a: &[i8], b: &[i8]) -> i32 {
    let (a_blocks, a_rest) = a.as_chunks::<32>();
    let (b_blocks, b_rest) = b.as_chunks::<32>();
    let mut sum = _mm512_setzero_si512();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        // SAFETY: both blocks are 32 bytes; unaligned loads.
        let (x, y) = unsafe {
            (
                _mm256_loadu_si256(x.as_ptr().cast()),
                _mm256_loadu_si256(y.as_ptr().cast()),
            )
        };
        sum = _mm512_dpwssd_epi32(sum, _mm512_cvtepi8_epi16(x), _mm512_cvtepi8_epi16(y));
    }
    _mm512_reduce_add_epi32(sum) + plain(a_rest, b_rest)
}

/// The plain loop, with the processor's own count of bits.
#[target_feature(enable = "popcnt")]
pub(super) fn differing_signs_popcnt(query: &[u64], rows: &[u64], differences: &mut [u16]) {
    differing_signs(query, rows, differences);
}

/// Highest product of each of a tile's tokens with any row; a row has twice as many components as the tile has pairs.
#[target_feature(enable = "avx2")]
pub(super) fn highest_avx2(tile: &[Pairs], rows: &[i8]) -> [i32; LANES] {
    let mut best = [_mm256_set1_epi32(i32::MIN); 2];
    for row in rows.chunks_exact(2 * tile.len()) {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (&[x, y], weights) in row.as_chunks::<2>().0.iter().zip(tile) {
            let both = (i32::from(y) << 16) | (i32::from(x) & 0xffff);
            let both = _mm256_set1_epi32(both);
            for (sum, half) in sums.iter_mut().zip(weights.as_chunks::<16>().0) {
                // SAFETY: half a group is 16 numbers of 2 bytes; unaligned load.
                let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(both, half));
            }
        }
        best = [
            _mm256_max_epi32(best[0], sums[0]),
            _mm256_max_epi32(best[1], sums[1]),
        ];
    }
    let mut out = [0; LANES];
    for (half, best) in out.as_chunks_mut::<8>().0.iter_mut().zip(best) {
        // SAFETY: half the lanes are 8 numbers of 4 bytes; unaligned store.
        unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), best) };
    }
    out
}

/// Highest product of each of a tile's tokens with any row; a row has four times as many components as the tile has groups.
///
/// The instruction multiplies unsigned by signed bytes, so rows are shifted by 128; what that adds depends on the query
/// token alone and is taken off at the end.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(super) fn highest_vnni(tile: &[Quads], rows: &[i8]) -> [i32; LANES] {
    let width = 4 * tile.len();
    let mut shift = _mm512_setzero_si512();
    for group in tile {
        shift = _mm512_dpbusd_epi32(shift, _mm512_set1_epi8(i8::MIN), load(group));
    }
    let mut best = _mm512_set1_epi32(i32::MIN);
    let mut room = [0; WIDEST];
    for part in rows.chunks(WIDEST / width * width) {
        let shifted = &mut room[..part.len()];
        let bytes = part.iter().map(|x| x.cast_unsigned() ^ 0x80);
        shifted.iter_mut().zip(bytes).for_each(|(to, x)| *to = x);
        let fours = shifted.chunks_exact(4 * width);
        for row in fours.remainder().chunks_exact(width) {
            let [sum] = products(tile, [row]);
            best = _mm512_max_epi32(best, sum);
        }
        for four in fours {
            let (front, back) = four.split_at(2 * width);
            let ((a, b), (c, d)) = (front.split_at(width), back.split_at(width));
            let [a, b, c, d] = products(tile, [a, b, c, d]);
            let (front, back) = (_mm512_max_epi32(a, b), _mm512_max_epi32(c, d));
            best = _mm512_max_epi32(best, _mm512_max_epi32(front, back));
        }
    }
    let mut out = [0; LANES];
    // SAFETY: the lanes are 16 numbers of 4 bytes; unaligned store.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_sub_epi32(best, shift)) };
    out
}

/// Products of shifted rows with each of a tile's tokens. Several rows at once read the tile once, and none waits for the
/// sum of another.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn products<const ROWS: usize>(tile: &[Quads], rows: [&[u8]; ROWS]) -> [__m512i; ROWS] {
    let mut fours = [&[][..]; ROWS];
    for (fours, row) in fours.iter_mut().zip(rows) {
        *fours = &row.as_chunks::<4>().0[..tile.len()];
    }
    let mut sums = [_mm512_setzero_si512(); ROWS];
    for (at, group) in tile.iter().enumerate() {
        let group = load(group);
        for (sum, fours) in sums.iter_mut().zip(fours) {
            let four = _mm512_set1_epi32(i32::from_le_bytes(fours[at]));
            *sum = _mm512_dpbusd_epi32(*sum, four, group);
        }
    }
    sums
}

#[target_feature(enable = "avx512f")]
fn load(group: &Quads) -> __m512i {
    // SAFETY: a group is 64 bytes; unaligned load.
    unsafe { _mm512_loadu_si512(group.as_ptr().cast()) }
}
