//! Text of a reply as it may be kept: one line, of bounded length.

use crate::dropped::Why;

/// The text without its margins; refused when it is empty, longer than `limit` characters, or has control characters.
pub fn line(text: &str, limit: usize) -> Result<String, Why> {
    let line = text.trim();
    let is_kept =
        !line.is_empty() && line.chars().count() <= limit && !line.chars().any(char::is_control);
    is_kept.then(|| line.to_owned()).ok_or(Why::Malformed)
}

/// The same for a part that may be absent; an empty one is.
pub fn optional_line(text: Option<&str>, limit: usize) -> Result<Option<String>, Why> {
    let text = text.filter(|text| !text.trim().is_empty());
    text.map(|text| line(text, limit)).transpose()
}

/// A share from 0 to 1.
pub fn share(value: f32) -> Result<f32, Why> {
    (0.0..=1.0)
        .contains(&value)
        .then_some(value)
        .ok_or(Why::Malformed)
}

/// A quotation, which may have more than one line, without its margins.
pub fn quotation(text: &str, limit: usize) -> Result<&str, Why> {
    let quotation = text.trim();
    let is_kept = !quotation.is_empty() && quotation.chars().count() <= limit;
    is_kept.then_some(quotation).ok_or(Why::Malformed)
}
