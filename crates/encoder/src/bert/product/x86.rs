//! The x86-64 forms. A tile of sums stays in registers while a panel passes by.

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_abs_epi8, _mm256_add_epi32, _mm256_dpbusd_avx_epi32,
    _mm256_load_si256, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sign_epi8,
    _mm256_storeu_si256, _mm256_xor_si256, _mm512_dpbusd_epi32, _mm512_load_si512,
    _mm512_loadu_si512, _mm512_set1_epi32, _mm512_storeu_si512,
};
use std::array;

use super::{GROUP, Panel, ZERO_POINT};

/// Multiplies a panel: `$most` rows at once, then the rest in one smaller tile.
macro_rules! in_tiles {
    ($panel:ident, $width:expr, $tile:ident, $most:literal, $($fewer:literal)+) => {{
        $panel.check($width);
        let count = $panel.count();
        let mut first = 0;
        // SAFETY: `check` saw that rows, lines and sums are as long as the tiles read and write, and this
        // function is only called where the processor has the instructions.
        unsafe {
            while first + $most <= count {
                $tile::<$most>($panel, first);
                first += $most;
            }
            match count - first {
                $($fewer => $tile::<$fewer>($panel, first),)+
                _ => {}
            }
        }
    }};
}

#[target_feature(enable = "avx512f,avx512vnni")]
pub(super) fn multiply_avx512_vnni(panel: &mut Panel<'_>) {
    in_tiles!(panel, 64, tile_avx512_vnni, 6, 1 2 3 4 5);
}

#[target_feature(enable = "avx2,avxvnni")]
pub(super) fn multiply_avx_vnni(panel: &mut Panel<'_>) {
    in_tiles!(panel, 16, tile_avx_vnni, 5, 1 2 3 4);
}

#[target_feature(enable = "avx2")]
pub(super) fn multiply_avx2(panel: &mut Panel<'_>) {
    in_tiles!(panel, 16, tile_avx2, 4, 1 2 3);
}

/// Four inputs of a row as one number.
///
/// # Safety
/// `row` must have four bytes behind `at`.
#[inline(always)]
unsafe fn four(row: *const u8, at: usize) -> i32 {
    unsafe { row.add(at).cast::<i32>().read_unaligned() }
}

/// Sums of `ROWS` rows from `first` on.
///
/// # Safety
/// The panel must be checked for a width of 64 and have the rows.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn tile_avx512_vnni<const ROWS: usize>(panel: &mut Panel<'_>, first: usize) {
    const VECTORS: usize = 4;
    let rows = unsafe { panel.rows.as_ptr().add(first * panel.inputs) };
    let corrections = panel.corrections.as_ptr();
    let start: [__m512i; VECTORS] =
        array::from_fn(|vector| unsafe { _mm512_loadu_si512(corrections.add(16 * vector).cast()) });
    let mut sums = [start; ROWS];
    let mut weights = panel.lines.as_ptr();
    for at in (0..panel.inputs).step_by(GROUP) {
        let columns: [__m512i; VECTORS] =
            array::from_fn(|vector| unsafe { _mm512_load_si512(weights.add(vector).cast()) });
        for (row, sums) in sums.iter_mut().enumerate() {
            let inputs = _mm512_set1_epi32(unsafe { four(rows.add(row * panel.inputs), at) });
            for (sum, columns) in sums.iter_mut().zip(columns) {
                *sum = _mm512_dpbusd_epi32(*sum, inputs, columns);
            }
        }
        weights = unsafe { weights.add(VECTORS) };
    }
    let out = unsafe { panel.sums.as_mut_ptr().add(first * panel.stride) };
    for (row, sums) in sums.into_iter().enumerate() {
        for (vector, sum) in sums.into_iter().enumerate() {
            unsafe { _mm512_storeu_si512(out.add(row * panel.stride + 16 * vector).cast(), sum) };
        }
    }
}

/// Body of a tile of 256-bit vectors: `$start` gives a sum's first value by its vector's number, `$inputs` what becomes
/// of four broadcast inputs, `$add` adds their products with a vector of weights to a sum.
macro_rules! tile_256 {
    ($panel:ident, $first:ident, $rows:ident, $start:expr, $inputs:expr, $add:expr) => {{
        const VECTORS: usize = 2;
        // SAFETY: as the caller promises.
        unsafe {
            let rows = $panel.rows.as_ptr().add($first * $panel.inputs);
            let start: [__m256i; VECTORS] = array::from_fn($start);
            let mut sums = [start; $rows];
            let mut weights = $panel.lines.as_ptr().cast::<__m256i>();
            for at in (0..$panel.inputs).step_by(GROUP) {
                let columns: [__m256i; VECTORS] =
                    array::from_fn(|vector| _mm256_load_si256(weights.add(vector)));
                for (row, sums) in sums.iter_mut().enumerate() {
                    let inputs = _mm256_set1_epi32(four(rows.add(row * $panel.inputs), at));
                    let inputs = $inputs(inputs);
                    for (sum, columns) in sums.iter_mut().zip(columns) {
                        *sum = $add(*sum, inputs, columns);
                    }
                }
                weights = weights.add(VECTORS);
            }
            let out = $panel.sums.as_mut_ptr().add($first * $panel.stride);
            for (row, sums) in sums.into_iter().enumerate() {
                for (vector, sum) in sums.into_iter().enumerate() {
                    _mm256_storeu_si256(out.add(row * $panel.stride + 8 * vector).cast(), sum);
                }
            }
        }
    }};
}

/// Sums of `ROWS` rows from `first` on.
///
/// # Safety
/// The panel must be checked for a width of 16 and have the rows.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn tile_avx_vnni<const ROWS: usize>(panel: &mut Panel<'_>, first: usize) {
    let corrections = panel.corrections.as_ptr();
    tile_256!(
        panel,
        first,
        ROWS,
        |vector| _mm256_loadu_si256(corrections.add(8 * vector).cast()),
        |inputs: __m256i| inputs,
        |sum, inputs, columns| _mm256_dpbusd_avx_epi32(sum, inputs, columns)
    );
}

/// Sums of `ROWS` rows from `first` on. Inputs are split into magnitude and sign, and the sign goes to the weights: a pair
/// of products then fits 16 bits, which products of unsigned inputs do not.
///
/// # Safety
/// The panel must be checked for a width of 16 and have the rows.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn tile_avx2<const ROWS: usize>(panel: &mut Panel<'_>, first: usize) {
    let zero_point = _mm256_set1_epi8(ZERO_POINT.cast_signed());
    let ones = _mm256_set1_epi16(1);
    tile_256!(
        panel,
        first,
        ROWS,
        |_| _mm256_setzero_si256(),
        |inputs: __m256i| {
            let signed = _mm256_xor_si256(inputs, zero_point);
            (_mm256_abs_epi8(signed), signed)
        },
        |sum, (magnitudes, signed), columns| {
            let columns = _mm256_sign_epi8(columns, signed);
            let pairs = _mm256_maddubs_epi16(magnitudes, columns);
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, ones))
        }
    );
}
