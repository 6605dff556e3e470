//! What is known of a model that prompts are made for.

use serde::{Deserialize, Serialize};

/// A model, as far as something is said of it. What is not said is said below it: that of a call stands over the tenant's, that over the
/// shipped one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelProfile {
    /// Its name, as its provider knows it; one that ends in `*` stands for all that begin so. Empty: no particular one.
    pub name: String,
    /// Its context window in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_tokens: Option<u32>,
    /// Tokens of the window kept free for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserved_output_tokens: Option<u32>,
    /// Name of its tokenizer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<String>,
    /// Whether it takes a system prompt; not said: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_system: Option<bool>,
    /// Whether it calls tools; not said: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supports_tools: Option<bool>,
}

impl ModelProfile {
    /// What this says, and for the rest what the one below says.
    #[must_use]
    pub fn over(self, below: Self) -> Self {
        Self {
            name: self.name,
            window_tokens: self.window_tokens.or(below.window_tokens),
            reserved_output_tokens: self.reserved_output_tokens.or(below.reserved_output_tokens),
            tokenizer: self.tokenizer.or(below.tokenizer),
            supports_system: self.supports_system.or(below.supports_system),
            supports_tools: self.supports_tools.or(below.supports_tools),
        }
    }

    /// How much of `name` its own name fits: more bytes fit better; none where it does not.
    pub fn fits(&self, name: &str) -> Option<usize> {
        match self.name.strip_suffix('*') {
            Some(start) => name.starts_with(start).then_some(start.len()),
            None => (self.name == name).then_some(usize::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_is_the_best() {
        let fits = |name: &str, model| {
            let name = name.to_owned();
            ModelProfile {
                name,
                ..ModelProfile::default()
            }
            .fits(model)
        };
        assert!(fits("gpt-4o*", "gpt-4o-mini") > fits("gpt-*", "gpt-4o-mini"));
        assert!(fits("gpt-4o", "gpt-4o") > fits("gpt-4o*", "gpt-4o"));
        assert_eq!(fits("gpt-4o", "gpt-4o-mini"), None);
    }
}
