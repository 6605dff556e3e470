//! JSON as spans of the original text: what is not read is never copied, so it cannot change.
//!
//! A [`Node`] is a value with its place. Objects and arrays are opened one level at a time; what lies deeper is only scanned.

mod visitors;

use crate::malformed::{Malformed, Reason};
use serde::de::Deserializer as _;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;
use visitors::{Elements, Members, Text};

/// How deep a body may be nested.
pub(crate) const MAX_DEPTH: usize = 128;

/// A value and where it stands in the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'a> {
    raw: &'a str,
    start: usize,
}

/// An object, opened.
#[derive(Clone, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) range: Range<usize>,
    pub(crate) members: Vec<Member<'a>>,
}

/// A name and its value.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) value: Node<'a>,
    /// From the quote of the name to the end of the value.
    pub(crate) range: Range<usize>,
}

impl<'a> Node<'a> {
    /// The value that is the whole of `bytes`.
    pub(crate) fn document(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| Malformed::here(Reason::NotUtf8(error.valid_up_to())))?;
        Self::of_text(text)
    }

    /// The value that is the whole of `text`.
    pub(crate) fn of_text(text: &'a str) -> Result<Self, Malformed> {
        if text.starts_with('\u{feff}') {
            return Err(Malformed::here(Reason::ByteOrderMark));
        }
        if depth(text) > MAX_DEPTH {
            return Err(Malformed::here(Reason::TooDeep(MAX_DEPTH)));
        }
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
        Ok(Self {
            raw: text,
            start: 0,
        }
        .inner(raw))
    }

    fn inner(self, raw: &'a RawValue) -> Self {
        let raw = raw.get();
        // A borrowed raw value is a part of the text that it was read from.
        let offset = raw.as_ptr().addr() - self.raw.as_ptr().addr();
        Self {
            raw,
            start: self.start + offset,
        }
    }

    pub(crate) fn raw(self) -> &'a str {
        self.raw
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.start + self.raw.len()
    }

    pub(crate) fn is_null(self) -> bool {
        self.raw == "null"
    }

    pub(crate) fn is_string(self) -> bool {
        self.raw.starts_with('"')
    }

    pub(crate) fn is_array(self) -> bool {
        self.raw.starts_with('[')
    }

    pub(crate) fn is_object(self) -> bool {
        self.raw.starts_with('{')
    }

    /// The text of a string.
    pub(crate) fn string(self) -> Result<Cow<'a, str>, Malformed> {
        if !self.is_string() {
            return Err(Malformed::here(Reason::NotA("a string")));
        }
        serde_json::from_str::<Text<'a>>(self.raw)
            .map(|text| text.0)
            .map_err(|_| Malformed::here(Reason::LoneSurrogate))
    }

    pub(crate) fn unsigned(self) -> Option<u64> {
        self.raw.parse().ok()
    }

    pub(crate) fn is_true(self) -> bool {
        self.raw == "true"
    }

    /// The elements of an array.
    pub(crate) fn elements(self) -> Result<Vec<Self>, Malformed> {
        if !self.is_array() {
            return Err(Malformed::here(Reason::NotA("an array")));
        }
        let raw = serde_json::Deserializer::from_str(self.raw)
            .deserialize_seq(Elements)
            .map_err(|error| not_json(&error))?;
        Ok(raw.into_iter().map(|value| self.inner(value)).collect())
    }

    /// The elements of an array; an object is its own only element, as in all JSON of protocol
    /// buffers.
    pub(crate) fn one_or_more(self) -> Result<Vec<Self>, Malformed> {
        if self.is_object() {
            return Ok(vec![self]);
        }
        self.elements()
    }

    /// The members of an object, each name once.
    pub(crate) fn object(self) -> Result<Object<'a>, Malformed> {
        if !self.is_object() {
            return Err(Malformed::here(Reason::NotA("an object")));
        }
        let raw = serde_json::Deserializer::from_str(self.raw)
            .deserialize_map(Members)
            .map_err(|_| Malformed::here(Reason::LoneSurrogate))?;
        let mut seen = HashSet::new();
        let mut members = Vec::with_capacity(raw.len());
        let mut end = 1;
        for (name, value) in raw {
            if !seen.insert(name.clone()) {
                return Err(Malformed::here(Reason::DuplicateKey(name.into_owned())));
            }
            let value = self.inner(value);
            // Between two members stand only blanks and a comma: the next quote opens the name.
            let quote = end + self.raw[end..].find('"').unwrap_or(0);
            end = value.range().end - self.start;
            members.push(Member {
                name,
                value,
                range: self.start + quote..self.start + end,
            });
        }
        Ok(Object {
            range: self.range(),
            members,
        })
    }
}

impl<'a> Object<'a> {
    /// The member of this name, `null` or not.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        self.member(name).map(|member| member.value)
    }

    pub(crate) fn member(&self, name: &str) -> Option<&Member<'a>> {
        self.members.iter().find(|member| member.name == name)
    }

    /// The member of this name that is not `null`.
    pub(crate) fn present(&self, name: &str) -> Option<Node<'a>> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The text of a member; `None` where there is none or it is no string.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.string().ok()
    }

    /// An object that is a member; `None` where there is none.
    pub(crate) fn child(&self, name: &str) -> Result<Option<Object<'a>>, Malformed> {
        self.present(name)
            .map(|value| value.object().map_err(|error| error.within(name)))
            .transpose()
    }

    /// The elements of an array that is a member; none where there is no such member.
    pub(crate) fn list(&self, name: &str) -> Result<Vec<Node<'a>>, Malformed> {
        self.present(name).map_or(Ok(Vec::new()), |value| {
            value.elements().map_err(|error| error.within(name))
        })
    }

    /// A member that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<Node<'a>, Malformed> {
        match self.get(name) {
            None => Err(Malformed::here(Reason::Missing).within(name)),
            Some(value) if value.is_null() => Err(Malformed::here(Reason::Null).within(name)),
            Some(value) => Ok(value),
        }
    }
}

/// `text` as a JSON string, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// An object of members whose values are JSON.
pub(crate) fn object_of(members: &[(&str, String)]) -> String {
    let members = members
        .iter()
        .map(|(name, value)| format!("{}:{value}", quoted(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn not_json(error: &serde_json::Error) -> Malformed {
    Malformed::here(Reason::NotJson {
        line: error.line(),
        column: error.column(),
    })
}

/// How deep the arrays and objects of a text are nested, valid or not.
fn depth(text: &str) -> usize {
    let (mut open, mut deepest, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str) -> Reason {
        Node::of_text(text)
            .and_then(Node::object)
            .unwrap_err()
            .reason
    }

    #[test]
    fn hostile_documents_are_refused_with_their_reason() {
        assert_eq!(reason("\u{feff}{}"), Reason::ByteOrderMark);
        assert_eq!(
            reason("{\"a\":1,\"\\u0061\":2}"),
            Reason::DuplicateKey("a".into())
        );
        assert_eq!(reason(&"[".repeat(1_000_000)), Reason::TooDeep(MAX_DEPTH));
        assert_eq!(reason("{\"\\ud800\":1}"), Reason::LoneSurrogate);
        assert!(matches!(reason("{} {}"), Reason::NotJson { .. }));
        assert!(matches!(reason(""), Reason::NotJson { .. }));
        assert!(matches!(reason("{\"a\":01}"), Reason::NotJson { .. }));
        assert_eq!(reason("[]"), Reason::NotA("an object"));
        assert_eq!(
            Node::document(b"{\"a\":\"\xff\"}").unwrap_err().reason,
            Reason::NotUtf8(6)
        );
    }

    #[test]
    fn members_know_where_they_stand() {
        let text = " { \"a\" : [1, 2.50e1 ] ,\n\"b\\\"\":{ } } ";
        let object = Node::of_text(text).unwrap().object().unwrap();
        let spans: Vec<&str> = object
            .members
            .iter()
            .map(|m| &text[m.range.clone()])
            .collect();
        assert_eq!(spans, ["\"a\" : [1, 2.50e1 ]", "\"b\\\"\":{ }"]);
        assert_eq!(object.members[1].name, "b\"");
        let elements = object.get("a").unwrap().elements().unwrap();
        assert_eq!(&text[elements[1].range()], "2.50e1");
    }
}
