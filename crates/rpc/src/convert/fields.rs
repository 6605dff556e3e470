//! Collects the violations of one message while it is read, each with its path as in the proto.

use std::fmt::{Display, Write};
use std::ops::RangeInclusive;
use std::str::FromStr;

use memfleet_domain::Fault;
use memfleet_domain::fault::FieldViolation;
use memfleet_domain::ids::NameError;

use super::Checked;

/// Violations that a fault names; a status travels in headers, which are small.
const NAMED: usize = 20;

/// Where the reading stands and what was wrong so far.
#[derive(Debug)]
pub struct Fields {
    path: String,
    violations: Vec<FieldViolation>,
    unnamed: usize,
    sizes_limited: bool,
}

impl Fields {
    pub(super) fn of_request() -> Self {
        Self {
            path: String::new(),
            violations: Vec::new(),
            unnamed: 0,
            sizes_limited: true,
        }
    }

    pub(super) fn of_answer() -> Self {
        Self {
            sizes_limited: false,
            ..Self::of_request()
        }
    }

    /// The fault that names what was wrong, if anything was.
    pub(super) fn into_fault(self) -> Option<Fault> {
        if self.violations.is_empty() {
            return None;
        }
        let mut fault = Fault::invalid_fields(self.violations);
        if self.unnamed > 0 {
            let _infallible = write!(fault.message, "; and {} more", self.unnamed);
            fault = fault.with("more_violations", self.unnamed.to_string());
        }
        Some(fault)
    }

    /// Adds a violation of `field`; an empty name means the element that is being read.
    pub(super) fn refuse<T>(&mut self, field: &str, description: impl Into<String>) -> Option<T> {
        if self.violations.len() == NAMED {
            self.unnamed += 1;
            return None;
        }
        let dot = if self.path.is_empty() || field.is_empty() {
            ""
        } else {
            "."
        };
        self.violations.push(FieldViolation {
            field: format!("{}{dot}{field}", self.path),
            description: description.into(),
        });
        None
    }

    /// Reads what lies under `segment` of the path.
    pub(super) fn inside<T>(
        &mut self,
        segment: impl Display,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = self.path.len();
        let dot = if self.path.is_empty() { "" } else { "." };
        let _infallible = write!(self.path, "{dot}{segment}");
        let value = read(self);
        self.path.truncate(outer);
        value
    }

    /// A message that must be there.
    pub(super) fn message<M: Checked>(
        &mut self,
        field: &str,
        message: Option<M>,
    ) -> Option<M::Value> {
        match message {
            Some(message) => self.inside(field, |fields| message.check(fields)),
            None => self.refuse(field, "is required"),
        }
    }

    /// A message that may be absent.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn optional<M: Checked>(
        &mut self,
        field: &str,
        message: Option<M>,
    ) -> Option<Option<M::Value>> {
        match message {
            Some(message) => self.message(field, Some(message)).map(Some),
            None => Some(None),
        }
    }

    /// A message whose absence means the default.
    pub(super) fn message_or_default<M: Checked>(
        &mut self,
        field: &str,
        message: Option<M>,
    ) -> Option<M::Value>
    where
        M::Value: Default,
    {
        match message {
            Some(message) => self.inside(field, |fields| message.check(fields)),
            None => Some(M::Value::default()),
        }
    }

    /// Every element of a list, read by `read` with an empty field name.
    pub(super) fn each<I, T>(
        &mut self,
        field: &str,
        items: Vec<I>,
        limit: usize,
        mut read: impl FnMut(&mut Self, I) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.at_most(field, items.len(), limit, "elements")?;
        let values: Vec<Option<T>> = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| {
                self.inside(format_args!("{field}[{index}]"), |fields| {
                    read(fields, item)
                })
            })
            .collect();
        values.into_iter().collect()
    }

    /// A list of messages.
    pub(super) fn messages<M: Checked>(
        &mut self,
        field: &str,
        items: Vec<M>,
        limit: usize,
    ) -> Option<Vec<M::Value>> {
        self.each(field, items, limit, |fields, item| item.check(fields))
    }

    /// Names of a list.
    pub(super) fn names<T>(
        &mut self,
        field: &str,
        names: Vec<String>,
        limit: usize,
        make: impl Fn(String) -> Result<T, NameError>,
    ) -> Option<Vec<T>> {
        self.each(field, names, limit, |fields, name| {
            fields.name("", name, &make)
        })
    }

    /// A list that must not be empty.
    pub(super) fn some<T>(&mut self, field: &str, values: Option<Vec<T>>) -> Option<Vec<T>> {
        match values {
            Some(values) if values.is_empty() => {
                self.refuse(field, "must have at least one element")
            }
            values => values,
        }
    }

    /// Whether `count` is allowed.
    pub(super) fn at_most(
        &mut self,
        field: &str,
        count: usize,
        limit: usize,
        unit: &str,
    ) -> Option<()> {
        if self.sizes_limited && count > limit {
            return self.refuse(
                field,
                format!("has {count} {unit}; at most {limit} are allowed"),
            );
        }
        Some(())
    }

    /// Text of at most `limit` bytes, kept as it is.
    pub(super) fn text(&mut self, field: &str, text: String, limit: usize) -> Option<String> {
        self.at_most(field, text.len(), limit, "bytes of UTF-8")?;
        Some(text)
    }

    /// Text that says something.
    pub(super) fn words(&mut self, field: &str, text: String, limit: usize) -> Option<String> {
        if self.sizes_limited && text.trim().is_empty() {
            return self.refuse(field, "must not be blank");
        }
        self.text(field, text, limit)
    }

    /// A required name.
    pub(super) fn name<T>(
        &mut self,
        field: &str,
        text: String,
        make: impl FnOnce(String) -> Result<T, NameError>,
    ) -> Option<T> {
        make(text).map_or_else(|error| self.refuse(field, error.to_string()), Some)
    }

    /// A name that may be left out.
    #[expect(
        clippy::option_option,
        reason = "the outer one says whether the field was right"
    )]
    pub(super) fn optional_name<T>(
        &mut self,
        field: &str,
        text: String,
        make: impl FnOnce(String) -> Result<T, NameError>,
    ) -> Option<Option<T>> {
        if text.is_empty() {
            Some(None)
        } else {
            self.name(field, text, make).map(Some)
        }
    }

    /// A probability.
    pub(super) fn probability(&mut self, field: &str, value: f32) -> Option<f32> {
        match (0.0..=1.0).contains(&value) {
            true => Some(value),
            false => self.refuse(field, format!("is {value}; it must lie between 0 and 1")),
        }
    }

    /// An id that memfleet gave; `what` says which.
    pub(super) fn id<T: FromStr>(&mut self, field: &str, text: &str, what: &str) -> Option<T> {
        text.parse().map_or_else(
            |_| self.refuse(field, format!("must be {what}, a UUID")),
            Some,
        )
    }

    /// A number in `range`; 0 means `default`.
    pub(super) fn number(
        &mut self,
        field: &str,
        value: u32,
        default: u32,
        range: RangeInclusive<u32>,
    ) -> Option<u32> {
        match value {
            0 => Some(default),
            value if range.contains(&value) => Some(value),
            value => {
                let (start, end) = range.into_inner();
                self.refuse(
                    field,
                    format!("is {value}; it must lie between {start} and {end}"),
                )
            }
        }
    }

    /// Whether the message is held to the limits of requests.
    pub(super) fn sizes_limited(&self) -> bool {
        self.sizes_limited
    }
}
