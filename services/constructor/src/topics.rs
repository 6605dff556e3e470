//! Filter of facts by the topics of policies: which are left out, kept or tagged. It stands behind
//! every extractor, so that rules, statements and language models are held to the same topics.

mod boundary;
mod matcher;
mod thresholds;

use std::sync::Arc;

use memfleet_domain::fact::Draft;
use memfleet_domain::ids::SpaceId;
use memfleet_domain::topic::{Topic, TopicAction, topics_over};
use memfleet_domain::{Fault, FaultKind, Scope};
use memfleet_ports::embedder::Embedder;
use memfleet_ports::policies::policy_key;
use memfleet_ports::settings::Settings;
use serde::Deserialize;

pub use self::matcher::TopicMatcher;
pub use self::thresholds::topic_threshold;

/// Topics of a stored policy. What else a policy says is not for the constructor.
#[derive(Deserialize)]
struct StoredTopics {
    #[serde(default)]
    topics: Option<Vec<Topic>>,
}

/// Topics in force for a space, and what they make of facts.
pub struct TopicFilter {
    settings: Arc<dyn Settings>,
    of_node: Vec<Topic>,
    matcher: TopicMatcher,
}

impl TopicFilter {
    /// A filter by the policies in `settings`, above `of_node`, the topics of the configuration.
    pub fn new(
        settings: Arc<dyn Settings>,
        embedder: Arc<dyn Embedder>,
        of_node: Vec<Topic>,
    ) -> Self {
        Self {
            settings,
            of_node,
            matcher: TopicMatcher::new(embedder),
        }
    }

    /// Facts that are made, of each turn, with their tags. Fails where the topics cannot be read or
    /// no embedder answers: facts wait then and are never made unfiltered.
    pub(crate) async fn admitted(
        &self,
        scope: &Scope,
        drafts: Vec<Vec<Draft>>,
    ) -> Result<Vec<Vec<Draft>>, Fault> {
        let found = drafts.iter().flatten().collect::<Vec<_>>();
        let mut verdicts = self.verdicts(scope, &found).await?.into_iter();
        let admitted = drafts.into_iter().map(|drafts| {
            let admitted = drafts.into_iter().filter_map(|mut draft| {
                verdicts.next().flatten()?.apply(&mut draft);
                Some(draft)
            });
            admitted.collect()
        });
        Ok(admitted.collect())
    }

    /// Verdict on each fact; absent for a fact that is not to be.
    pub(crate) async fn verdicts(
        &self,
        scope: &Scope,
        facts: &[&Draft],
    ) -> Result<Vec<Option<FactVerdict>>, Fault> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let topics = self.in_force(scope).await?;
        let is_longer = |fact: &&&Draft| fact.listed() != fact.text;
        let texts = facts.iter().map(|fact| fact.text.clone());
        let lines = facts.iter().filter(is_longer);
        let texts = texts.chain(lines.map(|fact| fact.listed().to_owned()));
        let matches = self.matches(&topics, texts.collect()).await?;
        let (of_facts, of_lines) = matches.split_at(facts.len());
        let mut of_lines = of_lines.iter();
        let verdicts = facts.iter().zip(of_facts).map(|(fact, matched)| {
            let line = is_longer(&fact).then(|| of_lines.next()).flatten();
            let mut verdict = verdict(&topics, matched)?;
            verdict.line_is_left_out = line.is_some_and(|it| leaves_out(&topics, it));
            Some(verdict)
        });
        Ok(verdicts.collect())
    }

    /// True for each topic that each text matches.
    async fn matches(&self, topics: &[Topic], texts: Vec<String>) -> Result<Vec<Vec<bool>>, Fault> {
        if topics.is_empty() {
            return Ok(vec![Vec::new(); texts.len()]);
        }
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let embedding = self.matcher.embedding().await?;
        let scores = self.matcher.scores(&embedding, topics, texts).await?;
        let thresholds = topics.iter();
        let thresholds = thresholds.map(|it| topic_threshold(&embedding.model, it.action));
        let thresholds: Vec<f32> = thresholds.collect();
        let matched = scores.iter().map(|scores| {
            let pairs = scores.iter().zip(&thresholds);
            pairs.map(|(score, threshold)| score >= threshold).collect()
        });
        Ok(matched.collect())
    }

    /// Topics of the space, above those of its tenant, above those of the configuration.
    async fn in_force(&self, scope: &Scope) -> Result<Vec<Topic>, Fault> {
        let of_tenant = self.stored(scope, None).await?;
        let of_space = self.stored(scope, Some(scope.space.clone())).await?;
        let owned = topics_over(of_tenant, self.of_node.clone());
        Ok(topics_over(of_space, owned))
    }

    /// Topics of the latest version of a policy.
    async fn stored(&self, scope: &Scope, space: Option<SpaceId>) -> Result<Vec<Topic>, Fault> {
        let key = policy_key(space);
        let latest = self.settings.history(&scope.tenant, &key, 1, None).await?;
        let latest = latest.items.into_iter().next();
        let Some(body) = latest.and_then(|latest| latest.body) else {
            return Ok(Vec::new());
        };
        let stored: StoredTopics = serde_json::from_str(&body).map_err(|error| {
            let advice = "Update this server, or put the policy again";
            Fault::new(
                FaultKind::Unavailable,
                "POLICY_UNREADABLE",
                format!("`topics` of a policy cannot be read by this version: {error}. {advice}"),
            )
        })?;
        Ok(stored.topics.unwrap_or_default())
    }
}

/// Verdict of the topics on a fact that is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FactVerdict {
    /// Names of the topics that tag it.
    pub(crate) tags: Vec<String>,
    /// True where a topic to keep stands over its worth.
    pub(crate) is_kept: bool,
    /// True where the words beside the statement in its line are left out.
    pub(crate) line_is_left_out: bool,
}

impl FactVerdict {
    /// Gives a fact its tags, and keeps its statement or not.
    pub(crate) fn apply(self, draft: &mut Draft) {
        draft.topics = self.tags;
        if let Some(labels) = &mut draft.statement {
            labels.kept = self.is_kept;
        }
        if self.line_is_left_out {
            draft.shrink_line();
        }
    }
}

/// True where one of the topics that a text matches leaves it out.
fn leaves_out(topics: &[Topic], matched: &[bool]) -> bool {
    let mut matched = topics.iter().zip(matched).filter(|(_, matches)| **matches);
    matched.any(|(topic, _)| topic.action == TopicAction::LeaveOut)
}

/// Verdict on a fact that matches these of the topics; absent where it is left out.
fn verdict(topics: &[Topic], matched: &[bool]) -> Option<FactVerdict> {
    let of = |action| {
        let matched = topics.iter().zip(matched).filter(|(_, matches)| **matches);
        let matched = matched.map(|(topic, _)| topic);
        matched.filter(move |topic| topic.action == action)
    };
    if leaves_out(topics, matched) {
        metrics::counter!("memfleet_facts_left_out_total").increment(1);
        return None;
    }
    let tags = of(TopicAction::Tag).map(|topic| topic.name.clone());
    Some(FactVerdict {
        tags: tags.collect(),
        is_kept: of(TopicAction::Keep).next().is_some(),
        line_is_left_out: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, action: TopicAction) -> Topic {
        Topic {
            name: name.to_owned(),
            action,
            description: name.to_owned(),
            examples: Vec::new(),
        }
    }

    #[test]
    fn leaving_out_stands_over_keeping_and_tags_stand_alone() {
        let topics = [
            topic("health", TopicAction::LeaveOut),
            topic("pets", TopicAction::Keep),
            topic("money", TopicAction::Tag),
            topic("work", TopicAction::Tag),
        ];
        let verdict = |matched: [bool; 4]| verdict(&topics, &matched);
        let made = |tags: &[&str], is_kept| {
            let tags = tags.iter().map(|it| (*it).to_owned()).collect();
            Some(FactVerdict {
                tags,
                is_kept,
                line_is_left_out: false,
            })
        };
        assert_eq!(verdict([false; 4]), made(&[], false));
        assert_eq!(verdict([true; 4]), None);
        assert_eq!(verdict([true, true, false, false]), None);
        assert_eq!(verdict([false, true, false, true]), made(&["work"], true));
        assert_eq!(
            verdict([false, false, true, true]),
            made(&["money", "work"], false)
        );
    }
}
