//! How memory enters prompts, as whoever owns it decides: a [`Policy`] says some of it, for a tenant, a space or one call; what none of
//! them says is as shipped ([`Settings::default`]).

use serde::{Deserialize, Serialize};

use crate::assembly::{
    AuditMode, FailurePolicy, GateMode, OrderPolicy, Strategy, TrustMode, UntrustedPolicy,
};
use crate::topic::{self, Topic, topics_over};

/// A value that a policy must not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where, for example `budget.percent_of_window`.
    pub field: String,
    /// What is wrong and how to mend it.
    pub description: String,
}

macro_rules! sections {
    ($($(#[$doc:meta])* $section:ident: $partial:ident $(($(#[$of_old:meta])* $old:ident: $old_type:ty))? => $whole:ident {
        $($(#[$of_field:meta])* $field:ident: $type:ty = $default:expr $(, in $range:expr)?;)*
    })*) => {
        $(
            $(#[$doc])*
            ///
            /// Absent: as the policy below says.
            #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub struct $partial {
                $($(#[$of_field])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
                $($(#[$of_old])* #[serde(skip_serializing_if = "Option::is_none")] pub $old: Option<$old_type>,)?
            }

            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq)]
            pub struct $whole {
                $($(#[$of_field])* pub $field: $type,)*
            }

            impl Default for $whole {
                fn default() -> Self {
                    Self { $($field: $default,)* }
                }
            }

            impl From<$whole> for $partial {
                fn from(whole: $whole) -> Self {
                    Self { $($field: Some(whole.$field),)* $($old: None,)? }
                }
            }

            impl $partial {
                fn over(self, below: Self) -> Self {
                    Self { $($field: self.$field.or(below.$field),)* $($old: self.$old.or(below.$old),)? }
                }

                fn settled(self) -> $whole {
                    let shipped = $whole::default();
                    $whole { $($field: self.$field.unwrap_or(shipped.$field),)* }
                }

                #[allow(unused_variables, clippy::ptr_arg, reason = "a section may have no numbers")]
                fn check(&self, problems: &mut Vec<Problem>) {
                    $($(
                        let range = $range;
                        if let Some(value) = self.$field && !range.contains(&value) {
                            problems.push(Problem {
                                field: concat!(stringify!($section), ".", stringify!($field)).to_owned(),
                                description: format!("is {value}; allowed is {} to {}", range.start(), range.end()),
                            });
                        }
                    )?)*
                }
            }
        )*

        /// What somebody says of how memory enters prompts; the rest is said below it.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Policy {
            $($(#[$doc])* pub $section: $partial,)*
            /// Topics that facts are kept, left out or tagged by. Absent, as in documents of
            /// earlier versions: none of its own.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub topics: Option<Vec<Topic>>,
        }

        /// How memory enters prompts, all of it.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Settings {
            $($(#[$doc])* pub $section: $whole,)*
            /// Topics that facts are kept, left out or tagged by. Default none.
            pub topics: Vec<Topic>,
        }

        impl From<Settings> for Policy {
            /// A policy that says everything.
            fn from(settings: Settings) -> Self {
                let topics = Some(settings.topics).filter(|topics| !topics.is_empty());
                Self { $($section: settings.$section.into(),)* topics }
            }
        }

        impl Policy {
            /// This policy, and for what it does not say the one below. Redactions of both count: who calls cannot lift what the owner
            /// of the memory set. Topics of both count, too; of two with one name the one of this
            /// policy.
            #[must_use]
            pub fn over(self, below: Self) -> Self {
                let (mut above, mut below) = (self.renamed(), below.renamed());
                let redactions = [below.format.redactions.take(), above.format.redactions.take()];
                let topics = match (above.topics.take(), below.topics.take()) {
                    (Some(above), Some(below)) => Some(topics_over(above, below)),
                    (above, below) => above.or(below),
                };
                let mut policy = Self { $($section: above.$section.over(below.$section),)* topics };
                policy.format.redactions = redactions.into_iter().flatten().reduce(|mut all, more| {
                    all.extend(more);
                    all
                });
                policy
            }

            /// This policy, and for what it does not say what is shipped.
            pub fn settled(self) -> Settings {
                let policy = self.renamed();
                let topics = policy.topics.unwrap_or_default();
                Settings { $($section: policy.$section.settled(),)* topics }
            }

            /// Everything that is wrong with it; empty when it can be used.
            pub fn problems(&self) -> Vec<Problem> {
                let mut problems = Vec::new();
                $(self.$section.check(&mut problems);)*
                self.check_lists(&mut problems);
                problems
            }
        }
    };
}

sections! {
    /// Where memory is placed (AMP, injection strategies).
    placing: PlacingPolicy => Placing {
        /// In the order of preference: the first that the request and the model allow. Default append, system.
        strategies: Vec<Strategy> = vec![Strategy::Append, Strategy::System];
    }

    /// What keeps memory out (AMP, quality gating).
    gating: GatingPolicy(
        /// Has no effect any more; documents of earlier versions have it.
        cold_turns: u32
    ) => Gating {
        /// Whether gates are asked. Default auto.
        mode: GateMode = GateMode::Auto;
        /// Gate 1. Default true.
        rules: bool = true;
        /// Gate 2. Default true.
        routing: bool = true;
        /// Gate 3: whether the reader of turns tells the probability of an item, not the search.
        /// Default false.
        needs: bool = false;
        /// Gate 3: least probability of an item, 0 to 1; 0 keeps every item.
        relevance: f32 = 0.0002, in 0.0..=1.0;
        /// Gate 3: least probability of the best item, 0 to 1; where even that is below, nothing is
        /// injected. Without a bound where only `relevance` is set. With `needs` the default is
        /// [`BEST_NEED`].
        best_relevance: f32 = 0.02, in 0.0..=1.0;
    }

    /// How much memory (AMP, token budgeting).
    budget: BudgetPolicy => Budget {
        /// Upper bound of what is added, in tokens. 0: nothing. Default 8,000.
        max_tokens: u32 = 8_000, in 0..=1_000_000;
        /// Upper bound as a share of the model's window, 0 to 100. Default 10; it counts where the window is known.
        percent_of_window: f32 = 10.0, in 0.0..=100.0;
        /// Tokens kept free for the answer. Default 4,000.
        reserved_output_tokens: u32 = 4_000, in 0..=1_000_000;
        /// At most so many tokens an item; 0: no cap. Default 512.
        max_item_tokens: u32 = 512, in 0..=1_000_000;
        /// An excerpt of fewer tokens is not worth its place. Default 24.
        min_item_tokens: u32 = 24, in 1..=10_000;
        /// At most so many items; 0: as many as fit. Default 0.
        max_items: u32 = 0, in 0..=1_000;
        /// At most so many of one session; 0: no cap. Default 0.
        max_items_per_session: u32 = 0, in 0..=1_000;
        /// At most so many of one source; 0: no cap. Default 0.
        max_items_per_source: u32 = 0, in 0..=1_000;
        /// Upper bound of the section *who this is*, in tokens, which [`Selection::profile`] asks for;
        /// 0: no section. It is part of all that is added. Default 150.
        profile_tokens: u32 = 150, in 0..=10_000;
        /// Upper bound of all that one exchange gets, over its requests and rounds; 0: no bound of its own. Default 0.
        exchange_tokens: u32 = 0, in 0..=10_000_000;
        /// Upper bound of all that one session gets; 0: no bound. Default 0.
        session_tokens: u32 = 0, in 0..=100_000_000;
    }

    /// Which of what was found (AMP, chunk prioritisation).
    selection: SelectionPolicy => Selection {
        /// What relevance counts, 0 to 10. Default 1.
        relevance: f32 = 1.0, in 0.0..=10.0;
        /// What recency counts, 0 to 10. Default 0.
        recency: f32 = 0.0, in 0.0..=10.0;
        /// Days in which recency falls to half. Default 90.
        half_life_days: f32 = 90.0, in 0.01..=36_525.0;
        /// How much an item loses that is like one before it, 0 (nothing) to 1. Default 0.
        diversity: f32 = 0.0, in 0.0..=1.0;
        /// What becomes of text of tools and the web. Default include.
        untrusted: UntrustedPolicy = UntrustedPolicy::Include;
        /// Whether facts that hold no longer may enter, marked with when they held. Turns always may: they are marked where what they
        /// say is known to be no longer so. Default false.
        superseded: bool = false;
        /// Whether long items may be cut to their relevant sentences. Default true.
        excerpts: bool = true;
        /// Section *who this is* at the beginning of the block: statements about the speaker that
        /// hold, whatever the prompt is. Default false.
        profile: bool = false;
    }

    /// What must not come back (AMP, session exclusion).
    exclusion: ExclusionPolicy(
        /// Deprecated, the opposite of `running_session`: true lets turns of the running session enter.
        current_session: bool
    ) => Exclusion {
        /// Turns of the running session are left out. Default true.
        running_session: bool = true;
        /// Turns that repeat words of the prompt are left out. Default true.
        in_prompt: bool = true;
        /// What was recorded within so many seconds is left out; 0: nothing. Default 0.
        newer_than_seconds: u32 = 0, in 0..=31_536_000;
    }

    /// What the block looks like.
    format: FormatPolicy => Format {
        /// Name of the template: a shipped one (`turns`, `cited`) or one of the tenant. Default `turns`.
        template: String = "turns".to_owned();
        /// How stored text is kept apart. Default delimited.
        trust: TrustMode = TrustMode::Delimited;
        /// In which order. Default chronological.
        order: OrderPolicy = OrderPolicy::Chronological;
        /// IANA time zone of dates; empty: that of the first space. Default empty.
        time_zone: String = String::new();
        /// Regular expressions of what is shown as `[redacted]`, at most 32 of 512 bytes; those of the policies below count too. Default
        /// none.
        redactions: Vec<String> = Vec::new();
    }

    /// What happens when memory is slow or away.
    failure: FailureSectionPolicy => Failure {
        /// Default open.
        policy: FailurePolicy = FailurePolicy::Open;
        /// Milliseconds from the call to its answer: settings, gates, search and the record. Default 250.
        deadline_ms: u32 = 250, in 1..=600_000;
    }

    /// Retrieval in rounds (AMP, multi-turn retrieval).
    tools: ToolsPolicy => Tools {
        /// Calls of a memory tool that are answered in one exchange; 0: none. Default 3.
        rounds: u32 = 3, in 0..=32;
        /// Upper bound of one result in tokens. Default 2,000.
        result_tokens: u32 = 2_000, in 128..=65_536;
        /// Milliseconds from the first call of an exchange to its last. Default 60,000.
        deadline_ms: u32 = 60_000, in 1..=3_600_000;
    }

    /// What is kept of injections (AMP, provenance).
    audit: AuditPolicy => Audit {
        /// Default full.
        mode: AuditMode = AuditMode::Full;
        /// For how many days. Default 30.
        retention_days: u32 = 30, in 1..=36_525;
    }

    /// What is stored of what passes by.
    capture: CapturePolicy => Capture {
        /// Whether words that a model copied from injected memory are told apart from new ones
        /// ([`crate::turn::Echo`]): no fact is derived from them. It looks at what is written down of injections, so not with `audit.mode`
        /// off. Default true.
        echoes: bool = true;
    }
}

/// Default of `gating.best_relevance` with `gating.needs`, chosen by `memfleet bench needs` for the
/// reader [`NEED_READER`] (docs/gates.md).
pub const BEST_NEED: f32 = 0.05;

/// Reader of turns that [`BEST_NEED`] is used with. It was chosen for `reader-2` and not again
/// since (docs/dev/issue-32.md).
pub const NEED_READER: &str = "reader-7";

/// Most redactions of a policy, and bytes of each.
const REDACTIONS: (usize, usize) = (32, 512);

impl Policy {
    /// The policy with the present names of its fields only.
    fn renamed(mut self) -> Self {
        if let Some(may_enter) = self.exclusion.current_session.take() {
            self.exclusion.running_session.get_or_insert(!may_enter);
        }
        self
    }

    fn check_lists(&self, problems: &mut Vec<Problem>) {
        let mut refuse = |field: &str, description: String| {
            problems.push(Problem {
                field: field.to_owned(),
                description,
            });
        };
        if let Some(strategies) = &self.placing.strategies {
            if strategies.is_empty() {
                let description = "must have at least one; `none` injects nothing";
                refuse("placing.strategies", description.to_owned());
            }
            let mut seen = strategies.clone();
            seen.sort_unstable();
            seen.dedup();
            if seen.len() < strategies.len() {
                refuse("placing.strategies", "must name each only once".to_owned());
            }
        }
        if let Some(zone) = &self.format.time_zone
            && !zone.is_empty()
            && zone.parse::<chrono_tz::Tz>().is_err()
        {
            let description = format!("`{zone}` is no IANA time zone, such as Europe/Zurich");
            refuse("format.time_zone", description);
        }
        let exclusion = &self.exclusion;
        if exclusion.running_session.is_some() && exclusion.current_session.is_some() {
            let description = "is the deprecated opposite of exclusion.running_session, which is set, too: leave exclusion.current_session out";
            refuse("exclusion.current_session", description.to_owned());
        }
        let redactions = self.format.redactions.as_deref().unwrap_or_default();
        if redactions.len() > REDACTIONS.0 {
            let description = format!("has {}; at most {}", redactions.len(), REDACTIONS.0);
            refuse("format.redactions", description);
        }
        if let Some(at) = redactions.iter().position(|it| it.len() > REDACTIONS.1) {
            let description = format!("is longer than {} bytes", REDACTIONS.1);
            refuse(&format!("format.redactions[{at}]"), description);
        }
        problems.extend(topic::problems(self.topics.as_deref().unwrap_or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_above_counts_and_the_rest_is_as_shipped() {
        let mut call = Policy::default();
        call.budget.max_tokens = Some(100);
        let mut tenant = Policy::default();
        (tenant.budget.max_tokens, tenant.tools.rounds) = (Some(900), Some(0));
        call.format.redactions = Some(vec!["a".to_owned()]);
        tenant.format.redactions = Some(vec!["b".to_owned()]);
        let settings = call.over(tenant).settled();
        assert_eq!(settings.format.redactions, ["b", "a"]);
        assert_eq!(
            (settings.budget.max_tokens, settings.tools.rounds),
            (100, 0)
        );
        assert_eq!(settings.gating, Gating::default());
        assert_eq!(Policy::from(settings.clone()).settled(), settings);
    }

    #[test]
    fn the_old_name_of_the_running_session_is_read_and_means_the_opposite() {
        let read = |json: &str| serde_json::from_str::<Policy>(json).unwrap();
        let old = read(r#"{"exclusion": {"current_session": true}}"#);
        let new = |is_out| {
            read(&format!(
                r#"{{"exclusion": {{"running_session": {is_out}}}}}"#
            ))
        };
        let is_out = |policy: Policy| policy.settled().exclusion.running_session;
        assert!(is_out(Policy::default()));
        assert!(!is_out(old.clone()));
        assert!(is_out(new(true).over(old.clone())));
        assert!(!is_out(old.clone().over(new(true))));
        // A document is given back as it was put.
        assert_eq!(
            serde_json::to_value(&old).unwrap()["exclusion"],
            serde_json::json!({"current_session": true})
        );
        assert_eq!(old.problems(), []);
        let both = read(r#"{"exclusion": {"current_session": true, "running_session": false}}"#);
        let [problem] = &both.problems()[..] else {
            panic!("{:?}", both.problems());
        };
        assert_eq!(problem.field, "exclusion.current_session");
        assert!(problem.description.contains("exclusion.running_session"));
    }

    #[test]
    fn cold_turns_of_an_earlier_version_are_read_and_have_no_effect() {
        let policy = r#"{"gating": {"cold_turns": 50, "relevance": 0.5}}"#;
        let policy: Policy = serde_json::from_str(policy).unwrap();
        assert_eq!(policy.problems(), []);
        let settings = policy.settled();
        assert_eq!(Some(settings.gating.relevance), Some(0.5));
        let whole = serde_json::to_value(Policy::from(settings)).unwrap();
        assert_eq!(whole["gating"].get("cold_turns"), None);
    }

    #[test]
    fn every_wrong_value_is_named_with_what_is_allowed() {
        let mut policy = Policy::default();
        policy.budget.percent_of_window = Some(f32::NAN);
        policy.tools.rounds = Some(33);
        policy.placing.strategies = Some(Vec::new());
        policy.format.time_zone = Some("Mars/Base".to_owned());
        let problems = policy.problems();
        let fields: Vec<_> = problems.iter().map(|it| it.field.as_str()).collect();
        let expected = [
            "budget.percent_of_window",
            "tools.rounds",
            "placing.strategies",
            "format.time_zone",
        ];
        assert_eq!(fields, expected);
        assert_eq!(problems[1].description, "is 33; allowed is 0 to 32");
    }

    #[test]
    fn topics_are_read_told_and_layered_by_name() {
        let read = |json: &str| serde_json::from_str::<Policy>(json).unwrap();
        let space = r#"{"topics": [{"name": "health", "action": "tag", "description": "Ills."}]}"#;
        let tenant = space
            .replace("tag", "leave_out")
            .replace("Ills", "Ailments");
        let settings = read(space).over(read(&tenant)).settled();
        assert_eq!(settings.topics, read(space).topics.unwrap());
        assert_eq!(Policy::from(settings.clone()).settled(), settings);
        assert_eq!(
            serde_json::to_string(&read(space))
                .unwrap()
                .matches("examples")
                .count(),
            0
        );
        // Documents of earlier versions have none.
        let before = Policy::default().over(read(&tenant));
        assert_eq!(before.topics, read(&tenant).topics);
        assert_eq!(read("{}").topics, None);
        let unknown = space.replace("tag", "drop");
        assert!(serde_json::from_str::<Policy>(&unknown).is_err());
        let blank = read(&space.replace("Ills.", ""));
        assert_eq!(blank.problems()[0].field, "topics[0].description");
    }

    #[test]
    fn unknown_settings_are_refused_and_absent_ones_are_not_written() {
        let read = serde_json::from_str::<Policy>(r#"{"budget": {"max_token": 5}}"#);
        assert!(read.unwrap_err().to_string().contains("max_token"));
        let read: Policy = serde_json::from_str(r#"{"budget": {"max_tokens": 5}}"#).unwrap();
        assert_eq!(read.budget.max_tokens, Some(5));
    }
}
