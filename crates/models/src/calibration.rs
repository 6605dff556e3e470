//! How far each component of a model's activations goes, measured on texts of our own.

use memfleet_encoder::Encoder;

use crate::error::Error;
use crate::export::Ranges;

/// One text a line: chat, questions, code, figures, several languages, very short ones.
const TEXTS: &str = include_str!("../data/calibration.txt");

/// Runs the full-precision model over the texts; `products` are the names of its range outputs.
pub(crate) fn measure(encoder: &Encoder, products: &[String]) -> Result<Ranges, Error> {
    let names: Vec<&str> = products.iter().map(String::as_str).collect();
    let texts: Vec<&str> = TEXTS.lines().collect();
    let mut ranges = Ranges::new();
    // One text a run, so that no padding is measured.
    for tokens in encoder.tokenize(&texts)? {
        let magnitudes = encoder.outputs(&tokens, &names)?;
        for (name, magnitudes) in names.iter().zip(magnitudes) {
            let range = ranges
                .entry((*name).to_owned())
                .or_insert_with(|| vec![0.0; magnitudes.len()]);
            range
                .iter_mut()
                .zip(magnitudes)
                .for_each(|(most, x)| *most = most.max(x));
        }
    }
    Ok(ranges)
}
