//! Topics of a policy: which statements of turns are kept, left out of what is derived, or tagged.

use serde::{Deserialize, Serialize};

use crate::policy::Problem;
use crate::words;

/// Most topics of a policy.
pub const MAX_TOPICS: usize = 32;

/// Most examples of a topic.
pub const MAX_EXAMPLES: usize = 20;

/// Bytes of the longest description, and of the longest example.
pub const MAX_TEXT_BYTES: usize = 512;

/// Bytes of the longest name of a topic.
pub const MAX_NAME_BYTES: usize = 64;

words! {
    /// Effect of a topic on a fact that matches it.
    TopicAction {
        /// Profiles list its statement even where it is not worth remembering otherwise.
        Keep = "keep",
        /// The fact is not made. It stands over [`Self::Keep`].
        LeaveOut = "leave_out",
        /// The fact carries the name of the topic.
        Tag = "tag",
    }
}

/// Topic of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Name, 1 to [`MAX_NAME_BYTES`] bytes; tells it from the other topics in force.
    pub name: String,
    /// Effect.
    pub action: TopicAction,
    /// Sentence that says what belongs to it, at most [`MAX_TEXT_BYTES`].
    pub description: String,
    /// Statements that belong to it, at most [`MAX_EXAMPLES`] of [`MAX_TEXT_BYTES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
}

/// Topics in force: those above, and those below whose names are not among them.
pub fn topics_over(above: Vec<Topic>, below: Vec<Topic>) -> Vec<Topic> {
    let is_new = |topic: &Topic| above.iter().all(|own| own.name != topic.name);
    let mut topics: Vec<Topic> = below.into_iter().filter(is_new).collect();
    topics.extend(above);
    topics
}

/// Everything that is wrong with the topics of one policy.
pub(crate) fn problems(topics: &[Topic]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |field: String, description: String| {
        problems.push(Problem { field, description });
    };
    if topics.len() > MAX_TOPICS {
        let description = format!("has {}; at most {MAX_TOPICS}: join topics", topics.len());
        refuse("topics".to_owned(), description);
    }
    for (place, topic) in topics.iter().enumerate() {
        let field = |name: &str| format!("topics[{place}].{name}");
        if let Some(problem) = problem_of_name(&topic.name) {
            refuse(field("name"), problem);
        } else if let Some(other) = topics[..place].iter().position(|it| it.name == topic.name) {
            let description = format!("is that of topics[{other}] too: give it another name");
            refuse(field("name"), description);
        }
        if let Some(problem) = problem_of_text(&topic.description) {
            refuse(field("description"), problem);
        }
        let count = topic.examples.len();
        if count > MAX_EXAMPLES {
            let advice = "leave out those that are like others";
            let description = format!("has {count}; at most {MAX_EXAMPLES}: {advice}");
            refuse(field("examples"), description);
        }
        for (number, example) in topic.examples.iter().enumerate() {
            if let Some(problem) = problem_of_text(example) {
                refuse(field(&format!("examples[{number}]")), problem);
            }
        }
    }
    problems
}

fn problem_of_name(name: &str) -> Option<String> {
    let is_plain = name.trim() == name && !name.chars().any(char::is_control);
    if !name.is_empty() && name.len() <= MAX_NAME_BYTES && is_plain {
        return None;
    }
    let bounds = format!("must have 1 to {MAX_NAME_BYTES} bytes");
    Some(format!("{bounds}, no line break and no space at its ends"))
}

fn problem_of_text(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return Some("is blank: write a sentence of the topic".to_owned());
    }
    let size = text.len();
    let is_long = size > MAX_TEXT_BYTES;
    is_long.then(|| format!("has {size} bytes; at most {MAX_TEXT_BYTES}: shorten it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, action: TopicAction) -> Topic {
        Topic {
            name: name.to_owned(),
            action,
            description: format!("All about {name}."),
            examples: Vec::new(),
        }
    }

    #[test]
    fn every_wrong_value_is_named_by_its_place() {
        let fine = topic("money", TopicAction::Tag);
        let mut long = topic("health", TopicAction::LeaveOut);
        long.examples = vec!["I have asthma.".to_owned(); 8];
        long.examples[7] = "x".repeat(513);
        let mut many = topic("pets", TopicAction::Keep);
        many.examples = vec!["My cat is old.".to_owned(); 21];
        many.description = " ".to_owned();
        let again = topic("money", TopicAction::Tag);
        let unnamed = topic("a\nb", TopicAction::Tag);
        let problems = problems(&[fine, long, many, again, unnamed]);
        let told = problems.iter().map(|it| (&*it.field, &*it.description));
        let expected = [
            (
                "topics[1].examples[7]",
                "has 513 bytes; at most 512: shorten it",
            ),
            (
                "topics[2].description",
                "is blank: write a sentence of the topic",
            ),
            (
                "topics[2].examples",
                "has 21; at most 20: leave out those that are like others",
            ),
            (
                "topics[3].name",
                "is that of topics[0] too: give it another name",
            ),
            (
                "topics[4].name",
                "must have 1 to 64 bytes, no line break and no space at its ends",
            ),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let many: Vec<_> = (0..33)
            .map(|number| topic(&number.to_string(), TopicAction::Tag))
            .collect();
        assert_eq!(super::problems(&many)[0].field, "topics");
        assert_eq!(super::problems(&many[..32]), []);
    }

    #[test]
    fn topics_add_up_and_one_above_takes_the_place_of_its_name() {
        let below = vec![
            topic("health", TopicAction::LeaveOut),
            topic("money", TopicAction::LeaveOut),
        ];
        let above = vec![topic("health", TopicAction::Tag)];
        let in_force = topics_over(above, below);
        let told = in_force.iter().map(|it| (&*it.name, it.action));
        let expected = [
            ("money", TopicAction::LeaveOut),
            ("health", TopicAction::Tag),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}
