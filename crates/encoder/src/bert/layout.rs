//! What a file says about itself, for those who write such files and for the loop that runs them.

use std::collections::HashMap;

/// The longest vector of 32-bit lanes there is.
pub(super) const LANES: usize = 16;
/// The longest vector of bytes.
const BYTES: usize = 64;

const LAYERS: &str = "memfleet.bert.layers";
const HEADS: &str = "memfleet.bert.heads";
const EPSILON: &str = "memfleet.bert.epsilon";

/// What the loop must know besides the named constants; it stands in the ONNX file's metadata.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BertLayout {
    /// Number of layers.
    pub layers: usize,
    /// Heads of attention a layer.
    pub heads: usize,
    /// Added to a variance before its root is taken.
    pub epsilon: f32,
}

impl BertLayout {
    /// Whether rows of `hidden` and of `inner` components and the heads fill the processor's vectors, which the loop rests on.
    pub fn suits(&self, hidden: usize, inner: usize) -> bool {
        let fills = |width: usize| width > 0 && width.is_multiple_of(BYTES);
        let heads = self.heads > 0 && hidden.is_multiple_of(self.heads);
        self.layers > 0
            && heads
            && fills(hidden)
            && fills(inner)
            && (hidden / self.heads).is_multiple_of(LANES)
    }

    /// Names and values of the metadata.
    pub fn properties(&self) -> [(&'static str, String); 3] {
        [
            (LAYERS, self.layers.to_string()),
            (HEADS, self.heads.to_string()),
            (EPSILON, self.epsilon.to_string()),
        ]
    }

    /// What the metadata of a file says; `None` for a file that says nothing, the name of what cannot be read otherwise.
    pub(super) fn read(properties: &HashMap<String, String>) -> Option<Result<Self, &'static str>> {
        let names = [LAYERS, HEADS, EPSILON];
        names
            .iter()
            .any(|name| properties.contains_key(*name))
            .then(|| Self::parse(properties))
    }

    fn parse(properties: &HashMap<String, String>) -> Result<Self, &'static str> {
        let text = |name: &'static str| properties.get(name).ok_or(name);
        let count = |name: &'static str| text(name)?.parse().map_err(|_| name);
        Ok(Self {
            layers: count(LAYERS)?,
            heads: count(HEADS)?,
            epsilon: text(EPSILON)?.parse().map_err(|_| EPSILON)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: BertLayout = BertLayout {
        layers: 6,
        heads: 12,
        epsilon: 1e-12,
    };

    fn metadata() -> HashMap<String, String> {
        let properties = LAYOUT.properties();
        properties
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(BertLayout::read(&metadata()), Some(Ok(LAYOUT)));
        assert_eq!(BertLayout::read(&HashMap::new()), None);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let mut broken = metadata();
        broken.insert(HEADS.to_owned(), "many".to_owned());
        assert_eq!(BertLayout::read(&broken), Some(Err(HEADS)));
        broken.remove(HEADS);
        assert_eq!(BertLayout::read(&broken), Some(Err(HEADS)));
    }

    #[test]
    fn rows_and_heads_must_fill_vectors() {
        assert!(LAYOUT.suits(384, 1536));
        assert!(!LAYOUT.suits(312, 1200));
        assert!(!LAYOUT.suits(384, 1500));
        assert!(
            !BertLayout {
                heads: 48,
                ..LAYOUT
            }
            .suits(384, 1536)
        );
        assert!(!BertLayout { heads: 0, ..LAYOUT }.suits(384, 1536));
        assert!(!LAYOUT.suits(0, 0));
    }
}
