//! The aarch64 form. A tile of sums stays in registers while a panel passes by.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vdupq_n_s32, vld1q_s8, vreinterpretq_s8_s32, vst1q_s32,
};
use std::arch::asm;
use std::array;

use super::{GROUP, Panel, ZERO_POINT};

/// Columns of a panel.
const WIDTH: usize = 16;
/// Vectors of a panel's columns.
const VECTORS: usize = 4;
/// Rows of a tile.
const ROWS: usize = 4;
/// Four inputs become signed by this.
const SIGNS: i32 = i32::from_ne_bytes([ZERO_POINT; GROUP]);

#[target_feature(enable = "neon,dotprod")]
pub(super) fn multiply(panel: &mut Panel<'_>) {
    panel.check(WIDTH);
    let count = panel.count();
    let mut first = 0;
    // SAFETY: `check` saw that rows, lines and sums are as long as the tiles read and write.
    unsafe {
        while first + ROWS <= count {
            tile::<ROWS>(panel, first);
            first += ROWS;
        }
        while first < count {
            tile::<1>(panel, first);
            first += 1;
        }
    }
}

/// Adds to each of four sums the product of four pairs of bytes.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot(mut sum: int32x4_t, inputs: int8x16_t, columns: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these registers alone. Its intrinsic is not stable yet.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {inputs:v}.16b, {columns:v}.16b",
            sum = inout(vreg) sum,
            inputs = in(vreg) inputs,
            columns = in(vreg) columns,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// Sums of `COUNT` rows from `first` on.
///
/// # Safety
/// The panel must be checked for a width of 16 and have the rows.
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn tile<const COUNT: usize>(panel: &mut Panel<'_>, first: usize) {
    let mut sums = [[vdupq_n_s32(0); VECTORS]; COUNT];
    unsafe {
        let rows = panel.rows.as_ptr().add(first * panel.inputs);
        let mut weights = panel.lines.as_ptr().cast::<i8>();
        for at in (0..panel.inputs).step_by(GROUP) {
            let columns: [int8x16_t; VECTORS] =
                array::from_fn(|vector| vld1q_s8(weights.add(16 * vector)));
            for (row, sums) in sums.iter_mut().enumerate() {
                let inputs = rows.add(row * panel.inputs + at).cast::<i32>();
                let inputs = vreinterpretq_s8_s32(vdupq_n_s32(inputs.read_unaligned() ^ SIGNS));
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    *sum = dot(*sum, inputs, columns);
                }
            }
            weights = weights.add(16 * VECTORS);
        }
        let out = panel.sums.as_mut_ptr().add(first * panel.stride);
        for (row, sums) in sums.into_iter().enumerate() {
            for (vector, sum) in sums.into_iter().enumerate() {
                vst1q_s32(out.add(row * panel.stride + 4 * vector), sum);
            }
        }
    }
}
