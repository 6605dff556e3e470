//! What an assembly rests on before memory is asked: the policy in force, the model, the tokenizer, the template.

use std::collections::BTreeMap;
use std::sync::Arc;

use memfleet_assembly::{Template, Tokenizer};
use memfleet_domain::Fault;
use memfleet_domain::assembly::{AuditMode, GateBound, ProviderFormat};
use memfleet_domain::ids::SpaceId;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::{Audit, AuditPolicy, BEST_NEED, Format, Gating, Policy, Settings};
use memfleet_ports::context::Context;
use memfleet_ports::retriever::Found;

use super::models::{self, Model};
use crate::Gateway;
use crate::settings::{Lately, TenantSettings};

/// What somebody said where the defaults depend on more: of two bounds that have defaults together, one that is given makes the other none.
#[derive(Clone, Copy)]
pub struct Said {
    /// `budget.max_tokens`.
    pub max_tokens: Option<u32>,
    /// Whether the call itself says it, not a policy that knows nothing of the model.
    pub max_tokens_by_call: bool,
    /// `budget.percent_of_window`.
    pub percent_of_window: Option<f32>,
    /// `gating.relevance`.
    pub relevance: Option<f32>,
    /// `gating.best_relevance`.
    pub best_relevance: Option<f32>,
}

/// The policy in force, and what else the tenant set.
#[derive(Clone)]
pub struct Basis {
    /// How memory enters.
    pub settings: Settings,
    /// What somebody said of how much, as far as anybody did.
    pub said: Said,
    /// Whether the settings of the tenant are those of now; else the store is away, and they are those of a few minutes ago.
    pub is_present: bool,
    /// What the tenant set.
    pub tenant: Arc<TenantSettings>,
    /// The form of the block.
    pub template: Arc<Template>,
    /// Names and versions of all that it was made of.
    pub versions: BTreeMap<String, String>,
}

impl Gateway {
    /// What the policies of a call, of its first space, of the tenant and of the node come to. Redactions of all spaces count, and what is written
    /// down is for those who own the memory to say, not for who calls.
    pub(crate) async fn basis(
        &self,
        context: &Context,
        spaces: &[SpaceId],
        call: Policy,
    ) -> Result<Basis, Fault> {
        let Lately {
            settings: tenant,
            is_present,
        } = self.settings.lately(&context.tenant).await?;
        said_by_owners(&call)?;
        tenant.readable(spaces)?;
        let mut versions = BTreeMap::new();
        let mut below = |space: Option<&SpaceId>, name: &str| {
            let found = tenant.policies.get(&space.cloned())?;
            versions.insert(format!("policy:{name}"), found.version.to_string());
            Some(found.value.clone())
        };
        let of_tenant = below(None, "tenant").unwrap_or_default();
        let of_space = spaces.first().and_then(|space| below(Some(space), "space"));
        let max_tokens_by_call = call.budget.max_tokens.is_some();
        let is_template_called = call.format.template.is_some();
        if let Some(version) = &self.policy.version {
            versions.insert("policy:node".to_owned(), version.clone());
        }
        let of_space = of_space.unwrap_or_default();
        let of_node = self.policy.policy.clone();
        let owned = of_tenant.over(of_node);
        let policy = call.over(of_space).over(owned.clone());
        let said = Said {
            max_tokens: policy.budget.max_tokens,
            max_tokens_by_call,
            percent_of_window: policy.budget.percent_of_window,
            relevance: policy.gating.relevance,
            best_relevance: policy.gating.best_relevance,
        };
        let mut settings = policy.settled();
        for other in tenant.of_spaces(spaces).skip(1) {
            let more = other.format.redactions.iter().flatten().cloned();
            settings.format.redactions.extend(more);
            settings.audit = both(&settings.audit, &other.over(owned.clone()).settled().audit);
        }
        let named = template(&settings.format.template, &tenant);
        let (template, version) = match named {
            // Nobody who calls can mend a policy, and a plain form is better than no memory.
            Err(fault) if !is_template_called => {
                tracing::warn!("the shipped template stands in for that of a policy: {fault}");
                template(&Format::default().template, &tenant)?
            }
            named => named?,
        };
        versions.insert("template".to_owned(), version);
        Ok(Basis {
            settings,
            said,
            is_present,
            tenant,
            template,
            versions,
        })
    }
}

/// Refuses what a call has no say in.
fn said_by_owners(call: &Policy) -> Result<(), Fault> {
    let field = match call {
        _ if call.audit != AuditPolicy::default() => "policy.audit",
        _ if call.topics.is_some() => "policy.topics",
        _ => return Ok(()),
    };
    let problem =
        "is not for a call to say: set it for the tenant or the space with Policies.PutPolicy";
    Err(Fault::invalid(field, problem))
}

/// What is written down of the words of two spaces together: something if either wants that, the words if both do.
fn both(one: &Audit, other: &Audit) -> Audit {
    let mode = match (one.mode, other.mode) {
        (one, other) if one == other => one,
        _ => AuditMode::Redacted,
    };
    let days = |audit: &Audit| match audit.mode {
        AuditMode::Off => 0,
        _ => audit.retention_days,
    };
    Audit {
        mode,
        retention_days: days(one).max(days(other)).max(1),
    }
}

/// A template by name, those of the tenant first, and what names its version.
pub fn template(name: &str, tenant: &TenantSettings) -> Result<(Arc<Template>, String), Fault> {
    if let Some(own) = tenant.templates.get(name) {
        return Ok((
            Arc::new(own.value.clone()),
            format!("{name} {}", own.version),
        ));
    }
    let shipped = Template::shipped();
    let found = shipped.iter().find(|template| template.id == name);
    found
        .map(|template| {
            let version = format!("{name} {}", template.version);
            (Arc::new((*template).clone()), version)
        })
        .ok_or_else(|| {
            let known: Vec<_> = shipped.iter().map(|template| template.id.as_str()).collect();
            let problem = format!(
                "`{name}` is no template of this tenant, nor one of those that are shipped ({}): set it with Policies.PutDocument",
                known.join(", ")
            );
            Fault::invalid("policy.format.template", problem)
        })
}

/// Whether a template of this name is shipped.
pub fn is_shipped_template(name: &str) -> bool {
    Template::shipped().iter().any(|it| it.id == name)
}

/// Turns from which on the relevance that a search tells leaves something out: among few, too
/// little stands out for it, and nearly all fits.
const MANY_TURNS: u64 = 200;

/// Turns below which it says nothing at all.
const FEW_TURNS: u64 = 8;

/// Least relevance of the best item in between; docs/benchmarks.md has what it drops and keeps.
const BEST_AMONG_FEW: f32 = 0.0125;

/// Thresholds of gate 3, as probabilities; 0 where one does not count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Least relevance of an item.
    pub of_item: f32,
    /// Least relevance of the best item: where it stays below, none enters.
    pub of_best: f32,
}

impl Thresholds {
    /// None: everything enters.
    pub const NONE: Self = Self {
        of_item: 0.0,
        of_best: 0.0,
    };

    /// Thresholds of needs, in spaces of every size and language.
    pub fn of_needs() -> Self {
        Self {
            of_item: Gating::default().relevance,
            of_best: BEST_NEED,
        }
    }

    /// Thresholds of the relevance that a search tells: without `gating.needs`, for rounds, and
    /// where no reader of turns answers.
    pub fn of_search(found: &Found) -> Self {
        match found.searched {
            ..FEW_TURNS => Self::NONE,
            FEW_TURNS..MANY_TURNS => Self {
                of_item: 0.0,
                of_best: BEST_AMONG_FEW,
            },
            _ => Self {
                of_item: Gating::default().relevance,
                of_best: Gating::default().best_relevance,
            },
        }
    }

    /// Thresholds of the relevance that a caller brings.
    pub fn of_brought() -> Self {
        Self {
            of_item: Gating::default().relevance,
            of_best: 0.0,
        }
    }

    /// Every bound of gate 3; `best` is the best relevance, absent where nothing was scored. A
    /// bound of 0 does not count.
    pub fn bounds(self, best: Option<f32>) -> Vec<GateBound> {
        let Some(best) = best else {
            return Vec::new();
        };
        let bound = |name, least| GateBound::at_least(name, best, least);
        vec![
            bound("gating.best_relevance", self.of_best),
            bound("gating.relevance", self.of_item),
        ]
    }

    /// Least relevance of an item, given that of all hits.
    pub fn of_each(self, found: &Found) -> f32 {
        let best = found.hits.iter().filter_map(|hit| hit.relevance);
        match best.max_by(f32::total_cmp) {
            Some(best) if best < self.of_best => self.of_best.max(self.of_item),
            _ => self.of_item,
        }
    }
}

impl Basis {
    /// Thresholds in force: those that a policy sets, and for what none sets `shipped`. The best
    /// item has no bound of its own where a policy sets that of an item alone.
    pub fn thresholds(&self, shipped: Thresholds) -> Thresholds {
        let said = &self.said;
        let of_best = match said.relevance {
            Some(_) => 0.0,
            None => shipped.of_best,
        };
        Thresholds {
            of_item: said.relevance.unwrap_or(shipped.of_item),
            of_best: said.best_relevance.unwrap_or(of_best),
        }
    }

    /// The model that is called, and what counts its tokens.
    pub fn model(
        &self,
        asked: ModelProfile,
        in_prompt: Option<&str>,
        format: Option<ProviderFormat>,
        tokenizer: Option<String>,
        tokenizers: &memfleet_assembly::Tokenizers,
    ) -> Result<(Model, Tokenizer), Fault> {
        let field = match (&tokenizer, &asked.tokenizer) {
            (None, Some(_)) => "model.tokenizer",
            _ => "tokenizer",
        };
        let model = models::model(asked, in_prompt, format, &self.tenant);
        let name = tokenizer.unwrap_or_else(|| model.tokenizer.clone());
        let tokenizer = tokenizers
            .get(&name)
            .map_err(|error| Fault::invalid(field, error.to_string()))?;
        Ok((model, tokenizer))
    }
}
