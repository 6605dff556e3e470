//! How memory enters prompts, as somebody set it. What may be in a policy is said once, in the domain.

use memfleet_domain::assembly::Strategy;
use memfleet_domain::policy::{
    AuditPolicy, BudgetPolicy, CapturePolicy, ExclusionPolicy, FailureSectionPolicy, FormatPolicy,
    GatingPolicy, PlacingPolicy, Policy, SelectionPolicy, ToolsPolicy,
};
use memfleet_domain::topic::Topic;

use super::words::number;
use super::{Checked, Fields};
use crate::proto;

/// Sections of the same name on both sides: fields of plain values; words; lists.
macro_rules! sections {
    ($($section:ident: $type:ident {
        $($plain:ident)*; $($word:ident: $message:ident)*; $($list:ident by $make:ident, $read:ident)*
    })*) => {
        $(
            #[allow(deprecated, reason = "earlier callers send and read earlier names")]
            impl From<$type> for proto::$type {
                fn from(section: $type) -> Self {
                    Self {
                        $($plain: section.$plain,)*
                        $($word: number::<proto::$message, _>(section.$word),)*
                        $($list: $make(section.$list),)*
                    }
                }
            }

            #[allow(deprecated, reason = "earlier callers send and read earlier names")]
            impl Checked for proto::$type {
                type Value = $type;

                #[allow(unused_variables, reason = "a section may have plain values only")]
                #[allow(clippy::needless_update, reason = "a section may have former fields")]
                fn check(self, fields: &mut Fields) -> Option<$type> {
                    $(let $word = fields.optional_word(stringify!($word), self.$word);)*
                    $(let $list = fields.$read(stringify!($list), self.$list);)*
                    Some($type {
                        $($plain: self.$plain,)*
                        // What was wrong was told, and so is what else is wrong.
                        $($word: $word.unwrap_or_default(),)*
                        $($list: $list.unwrap_or_default(),)*
                        ..$type::default()
                    })
                }
            }
        )*

        impl From<Policy> for proto::Policy {
            fn from(policy: Policy) -> Self {
                Self {
                    $($section: (policy.$section != $type::default()).then(|| policy.$section.into()),)*
                    topics: policy.topics.into_iter().flatten().map(Into::into).collect(),
                }
            }
        }

        impl Checked for proto::Policy {
            type Value = Policy;

            fn check(self, fields: &mut Fields) -> Option<Policy> {
                $(let $section = fields.message_or_default(stringify!($section), self.$section);)*
                // The domain says how many there may be.
                let topics = fields.messages("topics", self.topics, usize::MAX)?;
                let topics = Some(topics).filter(|topics| !topics.is_empty());
                let policy = Policy { $($section: $section?,)* topics };
                for problem in policy.problems() {
                    fields.refuse::<()>(&problem.field, problem.description);
                }
                Some(policy)
            }
        }
    };
}

sections! {
    placing: PlacingPolicy { ; ; strategies by numbers, strategies }
    gating: GatingPolicy { rules routing needs relevance best_relevance; mode: GateMode; }
    budget: BudgetPolicy {
        max_tokens percent_of_window reserved_output_tokens max_item_tokens min_item_tokens max_items
        max_items_per_session max_items_per_source profile_tokens exchange_tokens session_tokens; ;
    }
    selection: SelectionPolicy {
        relevance recency half_life_days diversity superseded excerpts profile;
        untrusted: UntrustedPolicy;
    }
    exclusion: ExclusionPolicy { running_session current_session in_prompt newer_than_seconds; ; }
    format: FormatPolicy {
        template time_zone; trust: TrustMode order: OrderPolicy; redactions by texts, patterns
    }
    failure: FailureSectionPolicy { deadline_ms; policy: FailurePolicy; }
    tools: ToolsPolicy { rounds result_tokens deadline_ms; ; }
    audit: AuditPolicy { retention_days; mode: AuditMode; }
    capture: CapturePolicy { echoes; ; }
}

impl From<Topic> for proto::Topic {
    fn from(topic: Topic) -> Self {
        Self {
            name: topic.name,
            action: proto::TopicAction::from(topic.action).into(),
            description: topic.description,
            examples: topic.examples,
        }
    }
}

impl Checked for proto::Topic {
    type Value = Topic;

    fn check(self, fields: &mut Fields) -> Option<Topic> {
        Some(Topic {
            action: fields.word("action", self.action)?,
            name: self.name,
            description: self.description,
            examples: self.examples,
        })
    }
}

fn numbers(strategies: Option<Vec<Strategy>>) -> Vec<i32> {
    let strategies = strategies.unwrap_or_default().into_iter();
    strategies
        .map(|strategy| proto::Strategy::from(strategy).into())
        .collect()
}

fn texts(texts: Option<Vec<String>>) -> Vec<String> {
    texts.unwrap_or_default()
}

#[expect(
    clippy::option_option,
    reason = "the outer one says whether the field was right"
)]
impl Fields {
    /// An empty list says nothing.
    fn strategies(&mut self, field: &str, numbers: Vec<i32>) -> Option<Option<Vec<Strategy>>> {
        let most = Strategy::ALL.len();
        let read = self.each(field, numbers, most, |fields, number| {
            fields.word("", number)
        })?;
        Some((!read.is_empty()).then_some(read))
    }

    /// The same; the domain says what may be in them.
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "one of the ways to read a list"
    )]
    fn patterns(&mut self, _: &str, texts: Vec<String>) -> Option<Option<Vec<String>>> {
        Some((!texts.is_empty()).then_some(texts))
    }
}
