//! Products of rows of bytes with a weight of bytes: the one place of this crate with `unsafe`. The instructions are
//! chosen when a weight is packed: AVX-512 VNNI, AVX-VNNI or AVX2 on x86-64, NEON's dot product on aarch64, else plain
//! loops. Every form gives exactly the same integers; none saturates.

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
mod neon;

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Byte of an input that stands for zero.
pub(super) const ZERO_POINT: u8 = 128;

/// Inputs whose products are added up by one instruction.
const GROUP: usize = 4;

/// Columns of a weight come in multiples of this, and so do its inputs.
pub(super) const COLUMNS: usize = 64;

/// A cache line of a packed weight.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line([i8; 64]);

/// Instruction set that computes a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instructions {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "aarch64")]
    NeonDot,
}

/// Weight of `inputs × outputs` bytes from -127 to 127, laid out for the instructions that multiply it: panels of adjacent columns,
/// in a panel groups of four inputs, in a group the four bytes of each column side by side.
pub(super) struct PackedWeight {
    instructions: Instructions,
    inputs: usize,
    outputs: usize,
    lines: Vec<Line>,
    /// By column, what the zero point adds to a sum of unsigned inputs, negated.
    corrections: Vec<i32>,
}

/// One panel of a weight and the rows that it is multiplied with.
struct Panel<'a> {
    /// Rows of `inputs` bytes behind each other.
    rows: &'a [u8],
    inputs: usize,
    /// The panel's columns, `inputs × width`.
    lines: &'a [Line],
    /// As many as the panel has columns.
    corrections: &'a [i32],
    /// From the panel's first column in the first row of sums to the end.
    sums: &'a mut [i32],
    /// Sums of a row.
    stride: usize,
}

impl Instructions {
    /// The fastest that this processor has; asked once.
    fn best() -> Self {
        static BEST: OnceLock<Instructions> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// All that this processor has, fastest first.
    fn available() -> Vec<Self> {
        let mut available = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2");
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
                available.push(Self::Avx512Vnni);
            }
            if avx2 && is_x86_feature_detected!("avxvnni") {
                available.push(Self::AvxVnni);
            }
            if avx2 {
                available.push(Self::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            available.push(Self::NeonDot);
        }
        available.push(Self::Plain);
        available
    }

    /// Columns of a panel.
    fn width(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => 64,
            _ => 16,
        }
    }

    /// Name for reports, as the processor's maker has it.
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "none",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => "AVX-VNNI",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => "AVX-512 VNNI",
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => "NEON dot product",
        }
    }

    fn multiply(self, panel: &mut Panel<'_>) {
        match self {
            Self::Plain => plain::multiply(panel),
            // SAFETY: `available` names them only where the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::multiply_avx2(panel) },
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => unsafe { x86::multiply_avx_vnni(panel) },
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => unsafe { x86::multiply_avx512_vnni(panel) },
            #[cfg(target_arch = "aarch64")]
            Self::NeonDot => unsafe { neon::multiply(panel) },
        }
    }
}

/// Name of the instructions that multiply bytes on this machine.
pub fn instructions() -> &'static str {
    Instructions::best().name()
}

/// Multiplications of bytes a second on the calling thread, without anything between the products and with all data in
/// the first cache: what the processor gives at best. Takes about `duration`.
pub fn product_rate(duration: Duration) -> f64 {
    const ROWS: usize = 60;
    const INPUTS: usize = 2 * COLUMNS;
    let weight = PackedWeight::pack(&[1; INPUTS * COLUMNS], [INPUTS, COLUMNS]);
    let rows = [ZERO_POINT + 1; ROWS * INPUTS];
    let mut sums = [0; ROWS * COLUMNS];
    let (started, mut runs) = (Instant::now(), 0);
    while started.elapsed() < duration {
        for _ in 0..100 {
            weight.multiply(black_box(&rows), &mut sums);
            black_box(&mut sums);
        }
        runs += 100 * ROWS * INPUTS * COLUMNS;
    }
    runs as f64 / started.elapsed().as_secs_f64()
}

impl PackedWeight {
    /// Packs a row-major weight whose sides are multiples of [`COLUMNS`].
    pub(super) fn pack(values: &[i8], shape: [usize; 2]) -> Self {
        Self::pack_for(Instructions::best(), values, shape)
    }

    fn pack_for(instructions: Instructions, values: &[i8], [inputs, outputs]: [usize; 2]) -> Self {
        assert!(inputs.is_multiple_of(COLUMNS) && outputs.is_multiple_of(COLUMNS));
        assert_eq!(values.len(), inputs * outputs, "a value for every place");
        assert!(!values.contains(&i8::MIN), "AVX2 negates weights");
        let width = instructions.width();
        let mut packed = Vec::with_capacity(values.len());
        for panel in (0..outputs).step_by(width) {
            for group in values.chunks_exact(GROUP * outputs) {
                for column in panel..panel + width {
                    packed.extend(group.iter().skip(column).step_by(outputs));
                }
            }
        }
        let (lines, _) = packed.as_chunks();
        let sums = values
            .chunks_exact(outputs)
            .fold(vec![0; outputs], |mut sums, row| {
                for (sum, &value) in sums.iter_mut().zip(row) {
                    *sum += i32::from(value);
                }
                sums
            });
        Self {
            instructions,
            inputs,
            outputs,
            lines: lines.iter().map(|&line| Line(line)).collect(),
            corrections: sums
                .iter()
                .map(|sum| -i32::from(ZERO_POINT) * sum)
                .collect(),
        }
    }

    /// Bytes of a row that is multiplied.
    pub(super) fn inputs(&self) -> usize {
        self.inputs
    }

    /// Columns.
    pub(super) fn outputs(&self) -> usize {
        self.outputs
    }

    /// Writes `(rows − ZERO_POINT) · weight`, row by row.
    pub(super) fn multiply(&self, rows: &[u8], sums: &mut [i32]) {
        assert_eq!(
            rows.len() / self.inputs * self.outputs,
            sums.len(),
            "a sum for every row and column"
        );
        assert!(rows.len().is_multiple_of(self.inputs), "whole rows");
        if rows.is_empty() {
            return;
        }
        let width = self.instructions.width();
        let panels = self.lines.chunks_exact(self.inputs * width / COLUMNS);
        let corrections = self.corrections.chunks_exact(width);
        for (number, (lines, corrections)) in panels.zip(corrections).enumerate() {
            self.instructions.multiply(&mut Panel {
                rows,
                inputs: self.inputs,
                lines,
                corrections,
                sums: &mut sums[number * width..],
                stride: self.outputs,
            });
        }
    }
}

impl Panel<'_> {
    /// Number of rows.
    fn count(&self) -> usize {
        self.rows.len() / self.inputs
    }

    /// Checks what the forms with `unsafe` rest on: a panel of `width` columns, and a sum for each of every row.
    fn check(&self, width: usize) {
        let count = self.count();
        assert!(
            count > 0
                && self.inputs.is_multiple_of(GROUP)
                && self.rows.len() == count * self.inputs
        );
        assert!(size_of_val(self.lines) == self.inputs * width);
        assert!(self.corrections.len() == width && width <= self.stride);
        assert!(self.sums.len() >= (count - 1) * self.stride + width);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, number by number.
    fn expected(rows: &[u8], values: &[i8], [inputs, outputs]: [usize; 2]) -> Vec<i32> {
        let product = |row: &[u8], column: usize| {
            let pairs = row.iter().zip(values.iter().skip(column).step_by(outputs));
            pairs
                .map(|(&x, &w)| (i32::from(x) - i32::from(ZERO_POINT)) * i32::from(w))
                .sum()
        };
        let rows = rows.chunks_exact(inputs);
        rows.flat_map(|row| (0..outputs).map(move |column| product(row, column)))
            .collect()
    }

    fn assert_all_agree(rows: &[u8], values: &[i8], shape: [usize; 2]) {
        let expected = expected(rows, values, shape);
        for instructions in Instructions::available() {
            let weight = PackedWeight::pack_for(instructions, values, shape);
            let mut sums = vec![i32::MIN; expected.len()];
            weight.multiply(rows, &mut sums);
            assert!(
                sums == expected,
                "{instructions:?} differs for {} rows",
                rows.len() / shape[0]
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn every_instruction_set_gives_the_exact_product(
            count in 0_usize..15,
            sides in (1_usize..3, 1_usize..4),
            seed in any::<u64>(),
        ) {
            let shape = [sides.0 * COLUMNS, sides.1 * COLUMNS];
            let mut state = seed | 1;
            let mut byte = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[3]
            };
            let rows: Vec<u8> = (0..count * shape[0]).map(|_| byte()).collect();
            let value = |byte: u8| byte.cast_signed().max(-i8::MAX);
            let values: Vec<i8> = (0..shape[0] * shape[1]).map(|_| value(byte())).collect();
            assert_all_agree(&rows, &values, shape);
        }
    }

    #[test]
    fn the_largest_bytes_do_not_saturate() {
        let shape = [COLUMNS, COLUMNS];
        for (x, w) in [(255, 127), (255, -127), (0, 127), (0, -127), (1, -127)] {
            assert_all_agree(&[x; 3 * COLUMNS], &[w; COLUMNS * COLUMNS], shape);
        }
    }
}
