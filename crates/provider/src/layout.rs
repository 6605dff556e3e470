//! Where in a request's bytes the things stand that an edit may touch.

use crate::json::{Node, Object};
use crate::malformed::Malformed;
use std::ops::Range;

/// The places of a request.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// The body's members.
    pub(crate) root: List,
    /// The dedicated field of the system prompt.
    pub(crate) system: Slot,
    /// All messages; a string where `OpenAI` responses have one as input.
    pub(crate) messages: Slot,
    /// The content of each message.
    pub(crate) contents: Vec<Slot>,
    pub(crate) tools: Tools,
    pub(crate) choice: Choice,
}

/// A value that may be there.
#[derive(Clone, Debug, Default)]
pub(crate) enum Slot {
    #[default]
    Absent,
    Null(Range<usize>),
    Text(Range<usize>),
    List(List),
}

/// An array or object, and what is in it: elements, or members with their names. A list of one may
/// stand without its brackets: it is then where its only item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct List {
    pub(crate) range: Range<usize>,
    pub(crate) items: Vec<Range<usize>>,
}

/// The tools of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    /// The array.
    pub(crate) slot: Slot,
    /// The index of its member in the body.
    pub(crate) member: Option<usize>,
    /// Gemini: the arrays of function declarations, each with the index of its entry in the array.
    pub(crate) declarations: Vec<(usize, List)>,
    /// Name and place of each: in the array, or in one of the declarations.
    pub(crate) sites: Vec<Site>,
}

/// Where a tool stands.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) name: String,
    /// Which of the declarations; `None` for the array itself.
    pub(crate) declarations: Option<usize>,
    pub(crate) index: usize,
}

/// Where the choice of tools stands.
#[derive(Clone, Debug, Default)]
pub(crate) enum Choice {
    /// Nowhere; it would be a member of the body.
    #[default]
    Absent,
    /// Here.
    Value(Range<usize>),
    /// Nowhere, but the object that it would be a member of is here (Gemini's `toolConfig`).
    Inside(List),
}

impl List {
    pub(crate) fn of_object(object: &Object<'_>) -> Self {
        Self {
            range: object.range.clone(),
            items: object.members.iter().map(|m| m.range.clone()).collect(),
        }
    }

    /// Tells a list whose only item stands without brackets.
    pub(crate) fn is_bare(&self) -> bool {
        self.items.first() == Some(&self.range)
    }

    pub(crate) fn of_array(array: Node<'_>, elements: &[Node<'_>]) -> Self {
        Self {
            range: array.range(),
            items: elements.iter().map(|element| element.range()).collect(),
        }
    }
}

impl Slot {
    /// The slot of a list that may be absent or null, with the elements that `read` finds in it.
    pub(crate) fn list<'a>(
        value: Option<Node<'a>>,
        read: fn(Node<'a>) -> Result<Vec<Node<'a>>, Malformed>,
    ) -> Result<(Self, Vec<Node<'a>>), Malformed> {
        match value {
            None => Ok((Self::Absent, Vec::new())),
            Some(value) if value.is_null() => Ok((Self::Null(value.range()), Vec::new())),
            Some(value) => {
                let elements = read(value)?;
                Ok((Self::List(List::of_array(value, &elements)), elements))
            }
        }
    }
}
