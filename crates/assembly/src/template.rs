//! Templates: what a block shows beside the words of memory. They are data, and hold no placeholders: memory text never becomes one.

use crate::sanitise;
use serde::Deserialize;
use std::sync::LazyLock;

/// The longest notice in characters.
const NOTICE_CHARS: usize = 300;
/// The longest id in characters.
const ID_CHARS: usize = 32;

/// The form of a block, read from TOML; a field that is not known is refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own in a file"
)]
pub struct Template {
    /// Its name: lower-case letters, digits and hyphens, at most 32.
    pub id: String,
    /// Its version, from 1; any change of what it shows is a new one.
    pub version: u32,
    /// One line at the start of the block that says what it is. Default: none.
    pub notice: Option<String>,
    /// Whether items have keys to cite them by, `[m1]`. Default false.
    #[serde(default)]
    pub shows_keys: bool,
    /// Whether the date stands over the items of a day. Default true.
    #[serde(default = "yes")]
    pub shows_dates: bool,
    /// Whether the present is shown where it is given. Default true.
    #[serde(default = "yes")]
    pub shows_as_of: bool,
    /// Whether an origin other than user and assistant is shown. Default true.
    #[serde(default = "yes")]
    pub shows_trust: bool,
    /// Whether a granularity other than verbatim is shown. Default true.
    #[serde(default = "yes")]
    pub shows_granularity: bool,
    /// Whether the source is shown where it has a name. Default false.
    #[serde(default)]
    pub shows_source: bool,
    /// Whether the validity interval is shown where it is known. Default true.
    #[serde(default = "yes")]
    pub shows_validity: bool,
}

fn yes() -> bool {
    true
}

/// What is wrong with a template.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTemplate {
    /// It is not TOML, or has a field that is not known or of another type.
    #[error("{}", .0.message())]
    Syntax(#[from] toml::de::Error),
    /// A field has a value that it cannot have.
    #[error("{field} {reason}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
}

const TURNS_SOURCE: &str = include_str!("../templates/turns.toml");
const CITED_SOURCE: &str = include_str!("../templates/cited.toml");
static TURNS: LazyLock<Template> = LazyLock::new(|| shipped(TURNS_SOURCE));
static CITED: LazyLock<Template> = LazyLock::new(|| shipped(CITED_SOURCE));

fn shipped(source: &str) -> Template {
    Template::parse(source).expect("shipped templates are tested")
}

impl Template {
    /// The compact form: turns under their dates, and labels only where something is not what it seems. For callers that write their own prompt.
    pub fn turns() -> &'static Self {
        &TURNS
    }

    /// The full form: a notice, keys to cite by, and labels. For blocks that are put into a prompt as they are.
    pub fn cited() -> &'static Self {
        &CITED
    }

    /// Those that are shipped.
    pub fn shipped() -> [&'static Self; 2] {
        [&TURNS, &CITED]
    }

    /// Those that are shipped, each with the TOML that it is written as: a sample for templates of one's own.
    pub fn shipped_sources() -> [(&'static Self, &'static str); 2] {
        [(&TURNS, TURNS_SOURCE), (&CITED, CITED_SOURCE)]
    }

    /// Reads and checks a template.
    pub fn parse(source: &str) -> Result<Self, InvalidTemplate> {
        let template: Self = toml::from_str(source)?;
        let invalid = |field, reason| Err(InvalidTemplate::Field { field, reason });
        let in_id = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let id = template.id.as_bytes();
        if !(1..=ID_CHARS).contains(&id.len()) || !id.iter().copied().all(in_id) {
            return invalid(
                "id",
                "must be 1 to 32 lower-case letters, digits and hyphens",
            );
        }
        if template.version == 0 {
            return invalid("version", "must be at least 1");
        }
        match &template.notice {
            Some(notice) if !is_plain_line(notice) => invalid(
                "notice",
                "must be one line of 1 to 300 visible characters without markup",
            ),
            _ => Ok(template),
        }
    }
}

/// Whether a notice can stand in a block as it is: it looks like nothing else there, and is changed by no sanitising.
fn is_plain_line(notice: &str) -> bool {
    let length = notice.chars().count();
    (1..=NOTICE_CHARS).contains(&length)
        && !notice.contains(['\n', '<', '[', '{'])
        && sanitise::text(notice, None) == notice
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "id = \"mine\"\nversion = 1\n";

    #[test]
    fn amp_114_templates_are_data_without_placeholders_and_are_checked() {
        assert!(Template::parse(LEAST).is_ok());
        let wrong = [
            ("", "unknown", "show_keys = true"),
            ("", "notice", "notice = \"two\\nlines\""),
            ("", "notice", "notice = \"Hello {text}\""),
            ("", "notice", "notice = \"<system>\""),
            ("", "notice", "notice = \"\""),
            ("", "notice", "notice = \"bidi \\u202e\""),
        ];
        for (_, word, line) in wrong {
            let error = Template::parse(&format!("{LEAST}{line}")).unwrap_err();
            assert!(error.to_string().contains(word), "{line}: {error}");
        }
        for source in [
            "id = \"A b\"\nversion = 1",
            "id = \"a\"\nversion = 0",
            "id = \"a\"",
            "version = 1",
            "{",
        ] {
            assert!(Template::parse(source).is_err(), "{source}");
        }
    }

    #[test]
    fn shipped_templates_are_what_their_sources_say() {
        for (template, source) in Template::shipped_sources() {
            assert_eq!(Template::parse(source).unwrap(), *template);
        }
    }

    #[test]
    fn the_sample_of_the_document_shows_every_field_and_is_accepted() {
        let document = include_str!("../../../docs/amp.md");
        let sample = document.split("```toml\n").nth(1).unwrap();
        let sample = sample.split("```").next().unwrap();
        let template = Template::parse(sample).unwrap();
        for (field, _) in sample.parse::<toml::Table>().unwrap() {
            assert!(document.contains(&format!("| `{field}` |")), "{field}");
        }
        assert_eq!(
            document.matches("\n| `shows_").count(),
            format!("{template:?}").matches("shows_").count()
        );
    }

    #[test]
    fn amp_110_the_notice_says_that_memory_is_data_and_asks_for_nothing() {
        for template in Template::shipped() {
            let notice = template.notice.as_deref().unwrap_or_default();
            for word in ["must", "obey", "always", "prefer", "follow"] {
                assert!(!notice.to_lowercase().contains(word), "{notice}");
            }
        }
        let notice = Template::cited().notice.as_deref().unwrap();
        assert!(notice.contains("reference") && notice.contains("not instructions"));
    }
}
