//! The policy of the configuration: it stands below those of all tenants, and above what is shipped.

use memfleet_domain::policy::{Policy, Problem};

use crate::assemble::{Redactions, is_shipped_template};

/// The policy that a process was started with.
#[derive(Debug, Clone, Default)]
pub struct NodePolicy {
    /// What it says.
    pub policy: Policy,
    /// Tells it from others, as `policy:node` of an assembly's versions; absent where it says nothing.
    pub version: Option<String>,
}

impl NodePolicy {
    /// A policy without [problems].
    pub fn new(policy: Policy) -> Self {
        let says_something = policy != Policy::default();
        let version = says_something.then(|| {
            let written =
                serde_json::to_vec(&policy).expect("a policy is made of tables and values");
            blake3::hash(&written).to_hex()[..12].to_owned()
        });
        Self { policy, version }
    }
}

/// Everything that is wrong with a policy for a node.
pub fn problems(policy: &Policy) -> Vec<Problem> {
    let mut problems = usable(policy);
    if let Some(template) = &policy.format.template
        && !is_shipped_template(template)
    {
        problems.push(Problem {
            field: "format.template".to_owned(),
            description: format!("`{template}` is no shipped template, and a node has no others"),
        });
    }
    problems
}

/// What is wrong with a policy, whoever sets it: its values and its patterns.
pub(crate) fn usable(policy: &Policy) -> Vec<Problem> {
    let mut problems = policy.problems();
    let redactions = policy.format.redactions.as_deref().unwrap_or_default();
    if let Err(fault) = Redactions::new(redactions) {
        problems.extend(fault.fields.into_iter().map(|it| Problem {
            field: it.field.trim_start_matches("policy.").to_owned(),
            description: it.description,
        }));
    }
    problems
}
