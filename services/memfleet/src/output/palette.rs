//! The few styles that human output uses.

use anstyle::{AnsiColor, Style};

/// Styles, or none where they would only be noise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Palette {
    styled: bool,
}

impl Palette {
    /// A palette that styles when `styled`, and otherwise gives texts back as they are.
    pub fn new(styled: bool) -> Self {
        Self { styled }
    }

    /// What a reader looks for first.
    pub fn strong(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// What explains the rest.
    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Something that works.
    pub fn good(self, text: &str) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// Something that needs attention.
    pub fn warning(self, text: &str) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    fn paint(self, style: Style, text: &str) -> String {
        if self.styled && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_appear_only_when_asked_for() {
        assert_eq!(Palette::new(false).strong("8"), "8");
        assert!(Palette::new(true).strong("8").contains("\u{1b}[1m8"));
    }
}
